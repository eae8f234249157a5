"""The pages of the app. One page is imported and drawn at a run."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st

from malmoi.app.chrome import draw_chrome
from malmoi.app.explanation import explain
from malmoi.app.invitations import invited
from malmoi.app.language import say
from malmoi.app.login import logged_in, needs_login
from malmoi.app.visit import SIDEBAR, Visit, draw_sidebar, open_project_named
from malmoi.errors import InputError
from malmoi.messages import Phrase


@dataclass(frozen=True, kw_only=True)
class AppPage:
    """A page: `malmoi.app.views.MODULE.show(visit)`, under `/MODULE` in the address.

    Attributes:
        module: of the page.
        title: of its entry in the menu, and above it.
        icon: of its entry, by Material's name.
        of_project: it is about a project, and stands in the menu where there is one.
    """

    module: str
    title: str
    icon: str
    of_project: bool = False


PAGES = (
    AppPage(module="projects", title=Phrase("Projects"), icon="folder_open"),
    AppPage(module="labelling", title=Phrase("Labelling"), icon="label", of_project=True),
    AppPage(module="review", title=Phrase("Review"), icon="rule", of_project=True),
    AppPage(module="explore", title=Phrase("Explore"), icon="manage_search", of_project=True),
    AppPage(module="analysis", title=Phrase("Analysis"), icon="insights", of_project=True),
    AppPage(module="status", title=Phrase("Status"), icon="monitoring", of_project=True),
    AppPage(module="single", title=Phrase("One text"), icon="edit_note"),
    AppPage(module="file", title=Phrase("File"), icon="table"),
    AppPage(module="models", title=Phrase("Models"), icon="neurology"),
    AppPage(module="settings", title=Phrase("Settings"), icon="settings", of_project=True),
)

_DRAWN, _NEXT_VIEW = "pages", "next_projects_view"
# The default page has no name in the address, whatever it is called here. It is also a hidden page
# under the name that people expect beside those of the others.
_DEFAULT, _HOME = PAGES[0].module, "home"


def draw() -> None:
    """Draw the sidebar and the page that the address names."""
    draw_chrome()
    person = None
    if needs_login() and (person := logged_in()) is None:
        return
    try:
        if person is None:
            person = invited()
            if person is None:
                return
        # Outside of any page, so that what is chosen there stays when the page changes.
        visit = draw_sidebar(person)
    except InputError as error:
        explain(say("The database of labels cannot be opened."), error)
        return
    pages = {
        page.module: st.Page(
            _drawing(page, visit),
            title=say(page.title),
            icon=f":material/{page.icon}:",
            url_path=_name_in_address(page.module),
            default=page.module == _DEFAULT,
            visibility="hidden" if page.of_project and not visit.open_project else "visible",
        )
        for page in PAGES
    }
    st.session_state[_DRAWN] = pages
    other_name = st.Page(
        _drawing(PAGES[0], visit),
        title=say(PAGES[0].title),
        url_path=_DEFAULT,
        visibility="hidden",
    )
    st.navigation([*pages.values(), other_name]).run()


def link_to(module: str, label: str, query: Mapping[str, str] | None = None) -> None:
    """Draw a link to another page of the app, where there is one of this name.

    Args:
        query: what the address is to say beside the page.
    """
    page = st.session_state.get(_DRAWN, {}).get(module)
    if page is not None:
        st.page_link(page, label=label, icon=page.icon, query_params={**held(), **(query or {})})


def go_to(module: str, query: Mapping[str, str] | None = None) -> None:
    """Go on with another page, which ends this run; nothing where there is no such page.

    What the sidebar holds goes along in the address: Streamlit forgets all widgets here.

    Args:
        query: what the address is to say beside that.
    """
    if any(page.module == module for page in PAGES):
        # A page is known by its place in the address; this one is never drawn itself.
        page = st.Page(_nothing, url_path=_name_in_address(module))
        st.switch_page(page, query_params={**held(), **(query or {})})


def open_project(name: str, *, to_label: bool) -> None:
    """Let the project be the open one and label it, or else show the list; ends this run."""
    open_project_named(name)
    if to_label:
        go_to("labelling")
    show_next("list")


def show_next(view: str) -> None:
    """Go on with a part of the page 작업; ends this run."""
    st.session_state[_NEXT_VIEW] = view
    st.rerun()


def next_projects_view() -> str | None:
    """The part of the page 작업 that `show_next` asks for, told once; None: as it is."""
    view: str | None = st.session_state.pop(_NEXT_VIEW, None)
    return view


def held() -> dict[str, str]:
    """What the sidebar holds, as it stands in the address."""
    return {key: st.query_params[key] for key in SIDEBAR if key in st.query_params}


def _name_in_address(module: str) -> str:
    return _HOME if module == _DEFAULT else module


def _nothing() -> None:
    pass


def _drawing(page: AppPage, visit: Visit) -> Callable[[], None]:
    def draw_page() -> None:
        is_first = page.module == _DEFAULT and visit.open_project is None
        title = "말모이" if is_first else say(page.title)
        st.set_page_config(page_title=title if is_first else f"{title} · 말모이")
        st.title(title, anchor=False)
        show: Callable[[Visit], None] = importlib.import_module(
            f"malmoi.app.views.{page.module}"
        ).show
        show(visit)

    return draw_page
