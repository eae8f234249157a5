"""Which columns of the imported files are shown with a text."""

from collections.abc import Sequence

import streamlit as st

from malmoi.app.language import say
from malmoi.app.visit import OpenProject
from malmoi.labels.filled_export import imported_columns

_SHOWN = "labelling_columns"


def choose_columns(open_project: OpenProject) -> None:
    """Let the visitor choose, where the files had other columns than that of the texts."""
    project = open_project.project.id
    chosen: dict[int, Sequence[str]] = st.session_state.setdefault(_SHOWN, {})
    if not (columns := imported_columns(open_project.access)):
        return
    chosen[project] = st.pills(
        say("Shown with a text"),
        columns,
        selection_mode="multi",
        default=[name for name in chosen.get(project, ()) if name in columns],
        key=f"{_SHOWN}-{project}",
    )


def shown_columns(project: int) -> Sequence[str]:
    """Those that were chosen in this session, by the id of a project."""
    before = st.session_state.get(_SHOWN, {}).get(project, ())
    # The card is drawn before the field, whose value is known all the same.
    shown: Sequence[str] = st.session_state.get(f"{_SHOWN}-{project}", before)
    return shown
