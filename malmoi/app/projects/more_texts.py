"""More texts for the open project, with labels of files where they have any."""

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.projects.file_choice import as_order, choose_texts
from malmoi.app.projects.imports import start_import
from malmoi.app.projects.running import import_key, works
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.people import AccessError

_FORM = "more_texts_form"
_PATIENCE = 2.0


def draw_more_texts(project: OpenProject) -> None:
    """The form."""
    if not project.allows("admin"):
        st.info(
            say(
                "글은 관리자가 더합니다. 작업의 관리자에게 부탁해 주세요.",
                "Admins add texts. Ask an admin of the project.",
            ),
            icon=":material/lock:",
        )
        return
    running = works().of(import_key(project.access.project_id))
    if running is not None and running.is_on:
        return  # its bar stands above
    form = f"more{project.access.project_id}-{st.session_state.setdefault(_FORM, 0)}"
    chosen = choose_texts(form).files
    if any(one.way.label_column or one.way.origin != "table" for one in chosen):
        st.caption(
            say(
                "이 작업의 라벨 목록에 없는 라벨은 가져오지 않고 알려 드립니다: ",
                "Labels that the project does not have are left out and told: ",
            )
        )
        st.text(", ".join(project.project.label_names))
    if not st.button(
        say("가져오기", "Import"),
        type="primary",
        icon=":material/upload:",
        disabled=not chosen,
        key=f"{form}-import",
    ):
        return
    try:
        start_import(project.access, as_order(chosen)).wait(_PATIENCE)
    except AccessError as error:
        explain(say("글은 관리자만 더할 수 있습니다.", "Only admins can add texts."), error)
        return
    except InputError as error:
        explain(say("지금은 가져올 수 없습니다.", "It cannot be imported now."), error)
        return
    st.session_state[_FORM] += 1
    st.rerun()
