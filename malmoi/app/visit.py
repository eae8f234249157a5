"""Who visits the app, and which project they have open: what every page is drawn from.

The project and the visitor's name stand in the address, so that a reload, a bookmark or a link to a
colleague opens the same page. A name there is a wish: the store asks for the person's role at every
read and write.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from sqlalchemy import Engine

from malmoi.app.address import take_from_address, write_to_address
from malmoi.app.language import LANGUAGE, NAMES, say
from malmoi.app.plain_text import escaped
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import database_url, database_url_of, from_any_folder
from malmoi.labels.database import DATABASE_VARIABLE
from malmoi.labels.leasing import return_leases
from malmoi.labels.people import LOCAL_NAME, Person
from malmoi.labels.project import Project
from malmoi.labels.projects import ProjectStore, read_project
from malmoi.labels.roles import Role, allows

PROJECT, NAME = "project", "name"
# Also of one in the address, which no field bounds.
_LONGEST_NAME = 60
# What of it stands in the address.
SIDEBAR = (PROJECT, NAME, LANGUAGE)


@dataclass(frozen=True, kw_only=True)
class OpenProject:
    """A project that the visitor may see, as it was when this page was drawn."""

    access: ProjectAccess
    project: Project

    def allows(self, needed: Role) -> bool:
        """Whether the visitor has this role in it; what decides is the store, not this."""
        return allows(self.project.role, needed)

    def draw_name(self) -> None:
        """Say which project a page is about, as its name is written."""
        with st.container(horizontal=True):
            st.markdown(":material/folder_open:", width="content")
            st.text(self.project.name)


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One run of a page for one visitor.

    Attributes:
        store: of the label database.
        person: the visitor.
        open_project: the one chosen in the sidebar; None where there is none to choose.
    """

    store: ProjectStore
    person: Person
    open_project: OpenProject | None

    @property
    def label_names(self) -> Sequence[str]:
        """What a model for the open project would say; nothing without one."""
        return () if self.open_project is None else self.open_project.project.label_names

    def needs_project(self) -> OpenProject | None:
        """The open project; where there is none, the page says how to begin one."""
        if self.open_project is None:
            st.info(
                say("There is no project yet. Make one on the page Projects."),
                icon=":material/folder_open:",
            )
        return self.open_project


@st.cache_resource(show_spinner=False, max_entries=4)
def _store_of(url: str, file: int) -> ProjectStore:
    return ProjectStore(url)


def project_store() -> ProjectStore:
    """The store of this server, opened once; again where its file was taken away or replaced.

    Raises:
        InputError: the database cannot be used.
    """
    return _store_of(*_place())


def known_engine() -> Engine | None:
    """The engine of `project_store`, for what goes on beside the pages; None: nobody has made the
    database yet.

    Raises:
        InputError: as `project_store`.
    """
    url, file = _place()
    is_missing = file == 0 and url.startswith("sqlite")
    return None if is_missing else _store_of(url, file).engine


def _place() -> tuple[str, int]:
    """The URL of the database, and which file it is; 0: there is none."""
    url = from_any_folder(database_url_of(database_url(), DATABASE_VARIABLE))
    path = Path(url.database or "")
    is_file = url.get_backend_name() == "sqlite" and path.is_file()
    return url.render_as_string(hide_password=False), path.stat().st_ino if is_file else 0


def open_project_named(name: str) -> None:
    """Let the sidebar choose a project at the next run, as after it was made."""
    st.session_state[_NEXT] = name


_NEXT, _FORMER = "next_project", "former_name"


def draw_sidebar(person: Person | None = None) -> Visit:
    """Ask who visits and for which project.

    Args:
        person: who has logged in or was invited; a local one, and None, is asked for a name.

    Raises:
        InputError: the database cannot be used, or the name cannot be stored.
    """
    store = project_store()
    with st.sidebar:
        if person is None or person.is_local:
            person = Person(name=_ask_for_name() or LOCAL_NAME, is_local=True)
        elif person.only_project is not None:
            st.text(person.name)
        projects = {project.name: project for project in store.list(person)}
        name = _ask_for_project(list(projects))
        _ask_for_language()
    if name is None:
        return Visit(store=store, person=person, open_project=None)
    access = store.access(person, projects[name].id)
    if person.is_local:
        _give_back_leases_of_former_name(access)
    return Visit(
        store=store,
        person=person,
        open_project=OpenProject(access=access, project=read_project(access)),
    )


def _give_back_leases_of_former_name(access: ProjectAccess) -> None:
    """Who begins without a name and then types one is the same person, and needs the same texts."""
    former = st.session_state.get(_FORMER)
    # Of another name the texts stay: it may be a colleague's, who is at work.
    if former == LOCAL_NAME != access.person.name:
        return_leases(replace(access, person=Person(name=former, is_local=True)))
    st.session_state[_FORMER] = access.person.name


def _ask_for_project(names: list[str]) -> str | None:
    """The project that is open, which always stands in the address."""
    if not names:
        return None
    if (wanted := st.session_state.pop(_NEXT, None)) in names:
        st.session_state[PROJECT] = wanted
    elif st.session_state.get(PROJECT) not in names:
        st.session_state.pop(PROJECT, None)
    missing = take_from_address(PROJECT, names)
    # Said outright: the browser would go on showing one that was put away.
    st.session_state.setdefault(PROJECT, names[0])
    name = st.selectbox(say("Project"), names, key=PROJECT)
    if missing is not None:
        st.warning(
            say("There is no project {name}, or it is not yours to see.", name=escaped(missing)),
            icon=":material/search_off:",
        )
    write_to_address(PROJECT, name)
    return name


def _ask_for_name() -> str:
    take_from_address(NAME)
    name = st.text_input(
        say("Annotator"),
        key=NAME,
        placeholder=say("Name (kept with every label)"),
        max_chars=_LONGEST_NAME,
    )
    name = (name or "").strip()[:_LONGEST_NAME].strip()
    write_to_address(NAME, name)
    return name


def _ask_for_language() -> None:
    take_from_address(LANGUAGE, NAMES)
    # Not as the field's default, which Streamlit refuses beside what the address says.
    st.session_state.setdefault(LANGUAGE, "ko")
    chosen = st.segmented_control(
        say("Language"),
        list(NAMES),
        format_func=NAMES.__getitem__,
        key=LANGUAGE,
        required=True,
        label_visibility="collapsed",
    )
    write_to_address(LANGUAGE, "" if chosen == "ko" else str(chosen))
