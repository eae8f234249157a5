"""Going from one page to another with a project."""

from enum import Enum

import streamlit as st

from malmoi.app.navigation import go_to
from malmoi.app.visit import open_project_named

VIEW = "view"


class Destination(Enum):
    """Where one goes: the module of a page."""

    LABELLING = "labelling"
    PROJECTS = "projects"


def open_project(name: str, where: Destination) -> None:
    """Let the project be the open one and go on with it; ends this run of the page."""
    open_project_named(name)
    if where is Destination.LABELLING:
        go_to(where.value)
    st.session_state[_NEXT_VIEW] = "list"
    st.rerun()


_NEXT_VIEW = "next_projects_view"


def apply_next_view() -> None:
    """Choose the part of the page 작업 that was asked for; before its control is drawn."""
    if (wanted := st.session_state.pop(_NEXT_VIEW, None)) is not None:
        st.session_state[VIEW] = wanted
