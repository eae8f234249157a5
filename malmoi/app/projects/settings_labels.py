"""Labels of the open project: renamed, coloured, added, no longer offered."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.plain_text import escaped
from malmoi.app.projects.label_rows import draw_heads, edit_label, typed_labels
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.label_merging import merge_labels
from malmoi.labels.people import AccessError
from malmoi.labels.project import ProjectLabel
from malmoi.labels.projects import change_labels


def draw_labels(open_project: OpenProject) -> None:
    """A row for each label; for all but admins it is only shown."""
    may = open_project.allows("admin")
    st.caption(
        say(
            "What was labelled follows a label that is renamed. One that is retired can no longer "
            "be chosen; what was labelled with it stays."
        )
    )
    with st.form(f"labels-{open_project.project.id}", border=False):
        draw_heads(with_names=True)
        edited = [
            edit_label(
                label,
                # What somebody else has changed meanwhile is shown, not put back.
                key=f"label-{label.id}-{_mark(label)}",
                with_names=True,
                disabled=not may,
            )
            for label in open_project.project.labels
        ]
        added = st.text_input(
            say("Labels to add (with commas)"),
            key=f"labels-add-{_mark(*open_project.project.labels)}",
            disabled=not may,
        )
        pressed = st.form_submit_button(
            say("Save the labels"),
            type="primary",
            icon=":material/save:",
            disabled=not may,
        )
    if pressed:
        _save(open_project, edited, typed_labels(added or ""))
    if may:
        _draw_merging(open_project)


def _draw_merging(open_project: OpenProject) -> None:
    """Two labels to choose, and what becomes of their texts."""
    project = open_project.project
    with st.expander(say("Merge two labels"), icon=":material/merge:"):
        left, right = st.columns(2)
        gone = left.selectbox(
            say("This label goes"),
            [label.name for label in project.labels],
            index=None,
            key=f"merge-gone-{project.id}",
        )
        stays = right.selectbox(
            say("All of it becomes"),
            [name for name in project.label_names if name != gone],
            index=None,
            key=f"merge-stays-{project.id}",
        )
        if gone is None or stays is None:
            return
        try:
            done = merge_labels(open_project.access, gone, stays, only_count=True)
            st.caption(
                say(
                    "{texts:text} of {gone} become {stays}, with their votes, decisions, "
                    "suggestions and history; people no longer differ on {agreeing:,} of them. "
                    "This cannot be taken back.",
                    texts=done.texts,
                    gone=escaped(gone),
                    stays=escaped(stays),
                    agreeing=done.agreeing,
                )
            )
            if st.button(say("Merge"), type="primary", icon=":material/merge:"):
                merge_labels(open_project.access, gone, stays)
                st.toast(say("The labels are merged."), icon=":material/check:")
                st.rerun()
        except AccessError as error:
            explain(say("Only admins change labels."), error)
        except InputError as error:
            explain(say("These two cannot be merged."), error)


def _save(open_project: OpenProject, edited: Sequence[ProjectLabel], added: Sequence[str]) -> None:
    before = {label.id for label in open_project.project.labels if label.retired}
    # The key of one that is retired now is given to none that is added with it: whoever labels at
    # this moment still means the other by it.
    labels = [
        replace(label, key=None) if label.retired and label.id in before else label
        for label in edited
    ]
    labels += [ProjectLabel(name=name) for name in added]
    try:
        change_labels(open_project.access, labels)
    except AccessError as error:
        explain(say("Only admins change labels."), error)
    except InputError as error:
        explain(say("It cannot be saved like this. Is a name or a key there twice?"), error)
    else:
        st.toast(say("The labels are saved."), icon=":material/check:")
        st.rerun()


def _mark(*labels: ProjectLabel) -> str:
    """Changes when any of them does."""
    return hashlib.sha256(repr(labels).encode()).hexdigest()[:12]
