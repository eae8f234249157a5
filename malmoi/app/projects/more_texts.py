"""More texts for the open project, with labels of files where they have any."""

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.jobs import import_key, jobs
from malmoi.app.language import say
from malmoi.app.projects.file_choice import as_order, choose_texts
from malmoi.app.projects.imports import start_import
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.people import AccessError

_FORM = "more_texts_form"
_PATIENCE = 2.0


def draw_more_texts(project: OpenProject) -> None:
    """The form."""
    if not project.allows("admin"):
        st.info(say("Admins add texts. Ask an admin of the project."), icon=":material/lock:")
        return
    job = jobs().of(import_key(project.access.engine, project.access.project_id))
    if job is not None and job.is_on:
        return  # its bar stands above
    form = f"more{project.access.project_id}-{st.session_state.setdefault(_FORM, 0)}"
    chosen = choose_texts(form).files
    if any(one.way.label_column or one.way.origin != "table" for one in chosen):
        st.caption(say("Labels that the project does not have are left out and told: "))
        st.text(", ".join(project.project.label_names))
    if not st.button(
        say("Import"),
        type="primary",
        icon=":material/upload:",
        disabled=not chosen,
        key=f"{form}-import",
    ):
        return
    try:
        start_import(project.access, as_order(chosen)).wait(_PATIENCE)
    except AccessError as error:
        explain(say("Only admins can add texts."), error)
        return
    except InputError as error:
        explain(say("It cannot be imported now."), error)
        return
    st.session_state[_FORM] += 1
    st.rerun()
