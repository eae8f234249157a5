"""One text of the page 살펴보기: votes, what the model says, its history, where it came from."""

import pandas as pd
import streamlit as st

from malmoi.app.found_models import short_name
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.reviewing.one_text import joined
from malmoi.app.visit import OpenProject
from malmoi.labels.searching import FoundText
from malmoi.labels.text_history import TextAct, TextHistory, read_history

_PERCENT = ".0%"


def draw_history(open_project: OpenProject, text_id: int) -> None:
    """Draw the text with all that the visitor may know of it.

    Raises:
        InputError: the project has no such text.
    """
    history = read_history(open_project.access, text_id)
    with st.container(border=True):
        st.text(history.found.text)
    votes, model = st.columns(2)
    with votes:
        _draw_votes(history.found)
    with model:
        _draw_model(history.found)
    acts, sources = st.tabs(
        [
            say("History ({acts})", acts=len(history.acts)),
            say("Sources ({sources})", sources=len(history.sources)),
        ]
    )
    with acts:
        _draw_acts(history)
    with sources:
        _draw_sources(history)


def _draw_votes(found: FoundText) -> None:
    st.caption(say("Labels"))
    for vote in found.votes:
        flag = " ⚑" if vote.flagged else ""
        note = f" · {vote.note}" if vote.note else ""
        st.text(f"{vote.annotator}: {joined(vote.labels, vote.skipped)}{flag}{note}")
    if found.adjudicated is not None:
        title = say("Decision of review")
        st.text(f"{title}: {joined(found.adjudicated)} ({found.reviewer})")
    if not found.votes and found.adjudicated is None:
        st.text(say("None yet."))


def _draw_model(found: FoundText) -> None:
    st.caption(say("Model"))
    view = found.view
    if view is None or view.label is None:
        st.text(say("It says nothing."))
        return
    for label, score in ((view.label, view.score), (view.second_label, view.second_score)):
        if label is not None:
            st.text(label if score is None else f"{label} {score:{_PERCENT}}")
    if view.doubt is not None:
        doubt = f"{view.doubt:{_PERCENT}}"
        st.text(say("Doubt of the label given {doubt}", doubt=doubt))


def _draw_acts(history: TextHistory) -> None:
    if not history.acts:
        st.caption(say("Nothing has been done yet."))
        return
    frame = pd.DataFrame(
        {
            "when": [f"{local_time(act.created_at):%Y-%m-%d %H:%M:%S}" for act in history.acts],
            "who": [act.person for act in history.acts],
            "what": [_said(act) for act in history.acts],
            "labels": [
                joined(act.labels) if act.action in ("label", "decide") else ""
                for act in history.acts
            ],
            "note": [act.note for act in history.acts],
            "suggested": [_suggested(act) for act in history.acts],
            "seconds": [act.seconds for act in history.acts],
            "guideline": [act.guideline_version for act in history.acts],
        }
    )
    column = st.column_config
    st.dataframe(
        frame,
        hide_index=True,
        key=f"explore_acts_{history.found.text_id}",
        column_config={
            "when": column.TextColumn(say("When")),
            "who": column.TextColumn(say("Who")),
            "what": column.TextColumn(say("What")),
            "labels": column.TextColumn(say("Labels")),
            "note": column.TextColumn(say("Note")),
            "suggested": column.TextColumn(say("Suggested then")),
            "seconds": column.NumberColumn(say("Seconds"), format="%.1f"),
            "guideline": column.NumberColumn(say("Guideline version")),
        },
    )


def _said(act: TextAct) -> str:
    names = {
        "label": say("label"),
        "skip": say("skip"),
        "flag": say("flag up") if act.flagged else say("flag down"),
        "note": say("note"),
        "decide": say("decision"),
        "withdraw": say("decision withdrawn"),
    }
    if act.action == "undo":
        what = names.get(act.undoes or "", "")
        return say("undo ({what})", what=what)
    gone = say(" (no longer holds)") if act.undone else ""
    return f"{names[act.action]}{gone}"


def _suggested(act: TextAct) -> str:
    if act.suggested_label is None:
        return ""
    score = "" if act.suggested_score is None else f" {act.suggested_score:{_PERCENT}}"
    return f"{act.suggested_label}{score} ({short_name(act.suggested_model or '')})"


def _draw_sources(history: TextHistory) -> None:
    cells = sorted({name for one in history.sources for name in one.cells})
    # A table has its own columns first; a file's may have any name.
    rows = [
        [one.source, one.place, one.text or "", *(one.cells.get(name, "") for name in cells)]
        for one in history.sources
    ]
    named = [say("File name"), say("Row"), say("Text there")]
    frame = pd.DataFrame(rows, columns=[str(place) for place in range(len(named) + len(cells))])
    st.dataframe(
        frame,
        hide_index=True,
        key=f"explore_sources_{history.found.text_id}",
        column_config={
            str(place): st.column_config.TextColumn(name)
            for place, name in enumerate([*named, *cells])
        },
    )
