"""The visitor's projects: how far each is, opened by a click, put away and taken out again."""

from collections.abc import Sequence

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.navigation import open_project
from malmoi.app.plain_text import escaped
from malmoi.app.projects.progress_counts import counted
from malmoi.app.visit import PROJECT, Visit
from malmoi.errors import InputError
from malmoi.labels.project import Project
from malmoi.labels.projects import archive
from malmoi.labels.roles import Role, allows
from malmoi.messages import Phrase

ROLES: dict[Role, str] = {
    "annotator": Phrase("annotator"),
    "reviewer": Phrase("reviewer"),
    "admin": Phrase("admin"),
}
_AT_ONCE = 30
_WIDTHS = (4.5, 3, 1.5, 2)


def draw_overview(visit: Visit) -> None:
    """The list, and below it those that are archived once somebody asks for them."""
    _draw_list(visit, visit.store.list(visit.person))
    draw_archived(visit)


def _draw_list(visit: Visit, projects: Sequence[Project]) -> None:
    wanted = ""
    if len(projects) > _AT_ONCE:
        wanted = st.text_input(
            say("Find one of {projects:,} projects", projects=len(projects)),
            key="projects_find",
            icon=":material/search:",
        )
    found = [one for one in projects if (wanted or "").casefold() in one.name.casefold()]
    for project in found[:_AT_ONCE]:
        _draw_row(visit, project)
    if len(found) > _AT_ONCE:
        left = len(found) - _AT_ONCE
        st.caption(say("{left:,} more; find them by name.", left=left))


def _draw_row(visit: Visit, project: Project) -> None:
    done = counted(visit, project.id)
    is_open = visit.open_project is not None and visit.open_project.project.id == project.id
    with st.container(border=True):
        title, bar, role, menu = st.columns(_WIDTHS, vertical_alignment="center")
        if title.button(
            escaped(project.name),
            key=f"open-{project.id}",
            type="tertiary",
            icon=":material/folder_open:" if is_open else ":material/folder:",
            help=say("Open it and label"),
        ):
            open_project(project.name, to_label=True)
        share = done.finished / done.texts if done.texts else 0.0
        how_far = say(
            "{texts:text} · {finished:,} finished ({share:.0%})",
            texts=done.texts,
            finished=done.finished,
            share=share,
        )
        bar.progress(share, text=how_far if done.texts else say("No texts yet"))
        role.text(say(ROLES[project.role]))
        if allows(project.role, "admin") and menu.button(
            say("Archive"),
            key=f"archive-{project.id}",
            help=say("Takes it out of the list. All stays, and it can be opened again."),
        ):
            _move(visit, project.id, away=True)


def draw_archived(visit: Visit) -> None:
    """Those that are archived, once somebody asks for them."""
    if not st.toggle(say("Show archived projects"), key="projects_archived"):
        return
    away = [
        project
        for project in visit.store.list(visit.person, archived=True)
        if project.archived_at is not None
    ]
    if not away:
        st.caption(say("None is archived."))
    for project in away[:_AT_ONCE]:
        title, role, menu = st.columns([7, 1.6, 2], vertical_alignment="center")
        title.text(project.name)
        role.text(say(ROLES[project.role]))
        if allows(project.role, "admin") and menu.button(
            say("Open again"),
            key=f"unarchive-{project.id}",
        ):
            _move(visit, project.id, away=False)


def _move(visit: Visit, project_id: int, *, away: bool) -> None:
    try:
        archive(visit.store.access(visit.person, project_id), away=away)
    except InputError as error:
        explain(say("Only admins can move this project."), error)
        return
    if away and visit.open_project is not None and visit.open_project.project.id == project_id:
        # Else the next run would say that what the address names is not there.
        st.query_params.pop(PROJECT, None)
    st.rerun()
