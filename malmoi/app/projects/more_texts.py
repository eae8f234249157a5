"""More texts for the open project, with labels of files where they have any."""

from dataclasses import replace

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.jobs import import_key, jobs
from malmoi.app.language import say
from malmoi.app.projects.file_choice import as_order, choose_texts
from malmoi.app.projects.imports import ImportOrder, ask_to_import, is_trial, start_import
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.people import AccessError

_FORM = "more_texts_form"
_PATIENCE = 2.0


def draw_more_texts(project: OpenProject) -> None:
    if not project.allows("admin"):
        st.info(say("Admins add texts. Ask an admin of the project."), icon=":material/lock:")
        return
    job = jobs().of(import_key(project.access.engine, project.access.project_id))
    if job is not None and job.is_on and not is_trial(job):
        return  # its bar stands above
    form = f"more{project.access.project_id}-{st.session_state.setdefault(_FORM, 0)}"
    chosen = choose_texts(form).files
    order = as_order(chosen)
    is_asked = job is not None and is_trial(job) and (job.is_on or job.result or job.error)
    if job is not None and is_asked and job.keeps.groups == order.groups:
        if ask_to_import(job):
            _start(project, order)
        return
    has_labels = any(one.way.has_labels for one in chosen)
    if has_labels:
        st.caption(say("Labels that the project does not have are left out and told: "))
        st.text(", ".join(project.project.label_names))
    if st.button(
        say("Import"),
        type="primary",
        icon=":material/upload:",
        disabled=not chosen,
        key=f"{form}-import",
    ):
        # Of labels that are there, some may be newer than those of the files.
        _start(project, replace(order, is_trial=has_labels))


def _start(project: OpenProject, order: ImportOrder) -> None:
    try:
        start_import(project.access, order).wait(_PATIENCE)
    except AccessError as error:
        explain(say("Only admins can add texts."), error)
        return
    except InputError as error:
        explain(say("It cannot be imported now."), error)
        return
    if not order.is_trial:
        st.session_state[_FORM] += 1  # an empty form for the next
    st.rerun()
