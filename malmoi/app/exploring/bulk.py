"""Many texts given a label at once, and that undone, on the page 살펴보기."""

import uuid
from collections.abc import Sequence

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.exploring.giving import draw_giving
from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.plain_text import escaped
from malmoi.app.reviewing.one_text import joined, shown_label
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.label_book import ShownLabel
from malmoi.labels.relabelling import (
    MOST_RELABELLED,
    TextsToDecide,
    latest_relabellings,
    relabel,
    texts_to_decide,
    undo_relabelling,
)
from malmoi.labels.searching import Search

_DONE, _FAILED, _REQUEST = "explore_bulk_done", "explore_bulk_failed", "explore_bulk_request"


def draw_bulk(open_project: OpenProject, search: Search, chosen: Sequence[int]) -> None:
    """Draw the buttons for the rows that are chosen and for all that were found.

    Args:
        open_project: whose texts; the visitor is a reviewer.
        search: what was found.
        chosen: ids of the rows that are chosen.
    """
    with st.container(horizontal=True):
        if st.button(
            say("Label the {texts} chosen", texts=len(chosen)),
            key="explore_bulk_chosen",
            icon=":material/checklist:",
            disabled=not chosen,
        ):
            confirm(open_project, list(chosen))
        if st.button(say("Label all found"), key="explore_bulk_all", icon=":material/done_all:"):
            confirm(open_project, search)
        draw_giving(open_project, search, chosen)
        draw_latest(open_project)


def draw_latest(open_project: OpenProject) -> None:
    """Draw the button behind which the latest changes are, to undo them; for a reviewer."""
    with st.popover(say("Bulk changes"), icon=":material/history:"):
        _list_latest(open_project)


def say_what_was_done(open_project: OpenProject) -> bool:
    """The line after a change; whether there was one, so that what was counted may be otherwise."""
    failed: InputError | None = st.session_state.pop(_FAILED, None)
    if failed is not None:
        explain(say("Nothing was changed."), failed)
    done: tuple[int, str] | None = st.session_state.pop(_DONE, None)
    if done is not None and done[0] == open_project.project.id:
        st.success(done[1], icon=":material/check_circle:")
    return done is not None


def confirm(open_project: OpenProject, which: Sequence[int] | Search) -> None:
    """Open the dialog that asks for the label; its title is in the visitor's language."""
    title = say("Give a label")
    # Counted before the dialog, of which each click draws all anew.
    found = texts_to_decide(open_project.access, which)
    st.dialog(title, width="medium")(_ask_for_label)(open_project, which, found)


def _tell_what_is_unsettled(open_project: OpenProject, found: TextsToDecide) -> None:
    """Say how many of the texts people disagree on, have too few labels, or are decided already."""
    parts = []
    if found.disagreeing:
        parts.append(say("{texts:text} on which people disagree", texts=found.disagreeing))
    if found.short:
        needed = open_project.project.settings.annotators_per_text
        without = say("{texts:text} without a label", texts=found.short)
        too_few = say(
            "{texts:text} with labels of fewer than {needed} people",
            texts=found.short,
            needed=needed,
        )
        parts.append(without if needed == 1 else too_few)
    if found.decided:
        parts.append(
            say("{texts:text} of which a decision of review is replaced", texts=found.decided)
        )
    if parts:
        listed = ", ".join(parts)
        st.warning(say("Among these: {listed}.", listed=listed), icon=":material/warning:")


def _ask_for_label(
    open_project: OpenProject, which: Sequence[int] | Search, found: TextsToDecide
) -> None:
    """Name how many texts get it."""
    number = found.texts
    if number > MOST_RELABELLED or not number:
        st.warning(
            say(
                "1 to {most:,} texts can be changed at once. Narrow the search.",
                most=MOST_RELABELLED,
            )
        )
        return
    offered = open_project.project.offered_labels
    titles = {shown_label(one): escaped(one.title) for one in offered}
    several = open_project.project.kind == "multi"
    chosen = st.pills(
        say("The label of {number:text}", number=number),
        list(titles),
        selection_mode="multi" if several else "single",
        format_func=titles.__getitem__,
        key="explore_bulk_labels",
    )
    _tell_what_is_unsettled(open_project, found)
    note = st.text_input(say("Why"), key="explore_bulk_note", max_chars=1_000)
    st.caption(
        say(
            "Each text gets a decision of review. The labels that people gave stay, and all of it "
            "can be undone at once."
        )
    )
    labels = tuple(chosen) if isinstance(chosen, list) else (chosen,) if chosen else ()
    # One id until it is done, so that a second click is the same change.
    request_id = st.session_state.setdefault(_REQUEST, uuid.uuid4().hex)
    if st.button(
        say("Change {number:text}", number=number),
        key="explore_bulk_confirm",
        type="primary",
        disabled=not labels and not several,
    ):
        _change(open_project, which, labels, request_id, number, (note or "").strip())
        st.session_state.pop(_REQUEST, None)
        st.rerun()


def _change(
    open_project: OpenProject,
    which: Sequence[int] | Search,
    labels: Sequence[ShownLabel],
    request_id: str,
    number: int,
    note: str,
) -> None:
    """Do it, and keep for the next run what is to be said of it."""
    try:
        made = relabel(
            open_project.access, which, labels, request_id=request_id, expected=number, note=note
        )
    except InputError as error:
        st.session_state[_FAILED] = error
        return
    label = escaped(joined(made.labels))
    line = say(
        "{texts:text} set to {label}. Undo it under Bulk changes.", texts=made.texts, label=label
    )
    st.session_state[_DONE] = (open_project.project.id, line)


def _list_latest(open_project: OpenProject) -> None:
    made = latest_relabellings(open_project.access)
    if not made:
        st.caption(say("There are none yet."))
    for one in made:
        line, button = st.columns([2, 1], vertical_alignment="center")
        when = local_time(one.created_at).strftime("%m-%d %H:%M")
        number = say("{texts:,} changed", texts=one.texts)
        line.text(f"{when} {one.person}: {number} → {joined(one.labels)}")
        if one.undone:
            button.text(say("undone"))
        else:
            button.button(
                say("Undo"),
                key=f"explore_bulk_undo_{one.id}",
                on_click=_undo,
                args=(open_project, one.id),
            )


def _undo(open_project: OpenProject, relabelling_id: int) -> None:
    try:
        number = undo_relabelling(open_project.access, relabelling_id)
    except InputError as error:
        st.session_state[_FAILED] = error
        return
    line = say("{number:text} restored.", number=number)
    st.session_state[_DONE] = (open_project.project.id, line)
