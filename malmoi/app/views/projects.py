"""The page "작업": the visitor's projects, new ones, texts into them and files out of them."""

import streamlit as st

from malmoi.app.address import write_to_address
from malmoi.app.filling import draw_filling
from malmoi.app.navigation import next_projects_view
from malmoi.app.projects.exports import draw_exports
from malmoi.app.projects.first_screen import draw_first_screen
from malmoi.app.projects.imports import draw_import
from malmoi.app.projects.more_texts import draw_more_texts
from malmoi.app.projects.new_project import begin_new_form, draw_new_project, fill_taken_labels
from malmoi.app.projects.overview import draw_archived, draw_overview
from malmoi.app.projects.task_projects import draw_task_projects
from malmoi.app.sections import choose_section
from malmoi.app.visit import Visit
from malmoi.messages import Phrase

VIEW = "view"
_VIEWS = {
    "list": (Phrase("My projects"), "folder_open"),
    "new": (Phrase("New"), "add_circle"),
    "texts": (Phrase("Add texts"), "upload"),
    "export": (Phrase("Export"), "download"),
}


def show(visit: Visit) -> None:
    if (wanted := next_projects_view()) is not None:
        st.session_state[VIEW] = wanted
    fill_taken_labels()
    # Texts are added to a project, and exported from one.
    has_project = visit.open_project is not None
    if not has_project and st.session_state.get(VIEW, st.query_params.get(VIEW)) != "new":
        if st.session_state.pop(VIEW, None) == "list":
            begin_new_form()  # who comes back from the form has left its files, too
            write_to_address(VIEW, "")
        draw_first_screen(visit)
        draw_archived(visit)
        return
    offered = list(_VIEWS) if has_project else ["list", "new"]
    view = choose_section(VIEW, _VIEWS, offered, first="list")
    if visit.open_project is not None:
        draw_import(visit.open_project, with_end=view in ("list", "texts"))
    if view == "new":
        draw_new_project(visit)
        draw_task_projects(visit)
    elif view == "texts" and visit.open_project is not None:
        visit.open_project.draw_name()
        draw_more_texts(visit.open_project)
    elif view == "export" and visit.open_project is not None:
        visit.open_project.draw_name()
        draw_filling(visit.open_project)
        draw_exports(visit.open_project)
    else:
        draw_overview(visit)
