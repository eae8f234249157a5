"""A text that is reviewed: its words, what each annotator says, and the buttons that decide."""

import uuid
from collections.abc import Callable, Sequence

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.plain_text import escaped
from malmoi.app.projects.guideline import show_guideline
from malmoi.app.side_by_side import side_by_side
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.label_book import ShownLabel
from malmoi.labels.project import ProjectLabel
from malmoi.labels.review import ReviewedText
from malmoi.labels.searching import FoundText, read_model_views

# Keys of Streamlit's own menu, which it gives to no button.
_TAKEN = ("c", "r")
# What a decision does: the labels and the note, or None to withdraw it.
Decide = Callable[[tuple[ShownLabel, ...] | None, str], None]


def joined(labels: Sequence[str], skipped: bool = False) -> str:
    """Labels in one line; what stands for none of them, or for a skip."""
    if skipped:
        return say("skipped")
    return ", ".join(labels) or say("none of them")


def shown_labels(found: FoundText) -> str:
    """What was decided, or the different votes."""
    if found.adjudicated is not None:
        return f"✓ {joined(found.adjudicated)}"
    votes = dict.fromkeys(joined(vote.labels, vote.skipped) for vote in found.votes)
    return " ↔ ".join(votes)


def draw_text(
    open_project: OpenProject,
    text: ReviewedText,
    decide: Decide,
    draw_below: Callable[[], None] | None = None,
) -> None:
    """Draw it, beside the guideline."""
    left, right = side_by_side("review_text")
    with left:
        with st.container(border=True):
            st.text(text.text)
        _draw_votes(text)
        _draw_decision(open_project, text, decide)
        _draw_thread(open_project, text)
        if draw_below is not None:
            draw_below()
    with right:
        with st.expander(say("Guideline"), expanded=True, icon=":material/menu_book:"):
            _draw_guideline(open_project)
        _draw_model(open_project, text)


def _draw_votes(text: ReviewedText) -> None:
    said = {vote.annotator for vote in text.votes}
    rows = [
        (vote.annotator, joined(vote.labels, vote.skipped), vote.flagged) for vote in text.votes
    ]
    # Notes stand in the thread.
    rows += [
        (remark.annotator, "–", True)
        for remark in text.remarks
        if remark.flagged and remark.annotator not in said
    ]
    for annotator, labels, flagged in rows:
        who, what, flag = st.columns([2, 2, 5])
        who.text(annotator)
        what.text(labels)
        flag.text(say("⚑ flag ") if flagged else " ")
    if not rows:
        st.caption(say("Nobody has labelled it yet."))
    if text.adjudicated is not None:
        st.text(
            say(
                "Decided: {labels} ({reviewer}) {note}",
                labels=joined(text.adjudicated),
                reviewer=text.reviewer,
                note=text.decision_note,
            )
        )


def _draw_thread(open_project: OpenProject, text: ReviewedText) -> None:
    """What people have written to each other about the text, and a field to answer."""
    for one in text.comments:
        st.caption(f"{escaped(one.person)} · {local_time(one.written_at):%m-%d %H:%M}")
        st.text(one.text)
    key = f"review_comment_{text.text_id}_{len(text.comments)}"
    note = st.text_input(say("Write to the annotators"), key=key, max_chars=10_000)
    if st.button(say("Send"), key=f"{key}_send", icon=":material/send:") and note.strip():
        mine = [one for one in text.comments[-1:] if one.person == open_project.access.person.name]
        # It goes on with one's own last note, in whose place it would stand.
        whole = "\n".join([*(one.text for one in mine), note.strip()])
        request_id = f"comment:{uuid.uuid4().hex}"
        act = Act(text_id=text.text_id, kind="note", note=whole, request_id=request_id)
        try:
            save_acts(open_project.access, [act])
        except InputError as error:
            explain(say("It was not sent."), error)
        else:
            st.rerun()


def _draw_decision(open_project: OpenProject, text: ReviewedText, decide: Decide) -> None:
    labels = open_project.project.offered_labels
    key = f"{text.text_id}_{text.decision_id}"
    note_key = f"review_note_{key}"

    def decide_as(chosen: tuple[ShownLabel, ...] | None) -> None:
        decide(chosen, (st.session_state.get(note_key) or "").strip())

    if open_project.project.kind == "single":
        with st.container(horizontal=True):
            for label in labels:
                st.button(
                    escaped(label.title),
                    key=f"review_decide_{key}_{label.id}",
                    help=escaped(label.meaning) or None,
                    shortcut=_shortcut(label),
                    on_click=decide_as,
                    args=((shown_label(label),),),
                    type="primary" if text.adjudicated == (label.name,) else "secondary",
                )
    else:
        _draw_several(labels, text, key, decide_as)
    st.text_area(say("Why (before you choose a label)"), key=note_key, max_chars=10_000, height=68)
    if text.adjudicated is not None:
        st.button(
            say("Withdraw the decision"),
            key=f"review_withdraw_{key}",
            icon=":material/undo:",
            on_click=decide_as,
            args=(None,),
        )


def _draw_several(
    labels: Sequence[ProjectLabel],
    text: ReviewedText,
    key: str,
    decide_as: Callable[[tuple[ShownLabel, ...] | None], None],
) -> None:
    """Several labels are chosen first, and saved by a button."""
    titles = {label.name: escaped(label.title) for label in labels}
    chosen_key = f"review_chosen_{key}"

    def decide() -> None:
        chosen = st.session_state.get(chosen_key) or ()
        decide_as(tuple(shown_label(label) for label in labels if label.name in chosen))

    # `chrome.js` knows its key.
    with st.container(key="review_several"):
        st.pills(
            say("Labels"),
            list(titles),
            selection_mode="multi",
            format_func=titles.__getitem__,
            default=[name for name in text.adjudicated or () if name in titles],
            key=chosen_key,
        )
        st.button(
            say("Decide so"),
            key=f"review_decide_{key}",
            type="primary",
            shortcut="Enter",
            on_click=decide,
        )


def shown_label(label: ProjectLabel) -> ShownLabel:
    """What a button of this label says when it is pressed, whatever it is called by then."""
    return ShownLabel(label.id or 0, label.name)


def _shortcut(label: ProjectLabel) -> str | None:
    return label.key if label.key and label.key not in _TAKEN else None


def _draw_guideline(open_project: OpenProject) -> None:
    for label in open_project.project.offered_labels:
        if label.meaning:
            st.text(f"{label.title}: {label.meaning}")
    if open_project.project.guideline:
        show_guideline(open_project.project.guideline)
    elif not any(label.meaning for label in open_project.project.labels):
        st.caption(say("None has been written yet."))


def _draw_model(open_project: OpenProject, text: ReviewedText) -> None:
    with st.expander(say("What the model says (decide first)"), icon=":material/smart_toy:"):
        view = read_model_views(open_project.access, [text.text_id]).get(text.text_id)
        if view is None or view.label is None:
            st.caption(say("The model has not said anything yet."))
            return
        for label, score in ((view.label, view.score), (view.second_label, view.second_score)):
            if label is not None:
                st.text(label if score is None else f"{label}  {score:.0%}")
