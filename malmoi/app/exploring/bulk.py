"""Many texts given a label at once, and that undone, on the page 살펴보기."""

import uuid
from collections.abc import Sequence

import streamlit as st

from malmoi.app.as_of import local_time
from malmoi.app.explanation import explain
from malmoi.app.language import number_of, say
from malmoi.app.plain_text import escaped
from malmoi.app.reviewing.one_text import joined
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
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


def draw_bulk(opened: OpenProject, search: Search, chosen: Sequence[int]) -> None:
    """Draw the buttons for the rows that are chosen and for all that were found.

    Args:
        opened: whose texts; the visitor is a reviewer.
        search: what was found.
        chosen: ids of the rows that are chosen.
    """
    with st.container(horizontal=True):
        if st.button(
            say(f"고른 {len(chosen)}건 라벨 정하기", f"Label the {len(chosen)} chosen"),
            key="explore_bulk_chosen",
            icon=":material/checklist:",
            disabled=not chosen,
        ):
            _confirm(opened, list(chosen))
        if st.button(
            say("찾은 글 모두 라벨 정하기", "Label all found"),
            key="explore_bulk_all",
            icon=":material/done_all:",
        ):
            _confirm(opened, search)
        draw_latest(opened)


def draw_latest(opened: OpenProject) -> None:
    """Draw the button behind which the latest changes are, to undo them; for a reviewer."""
    with st.popover(say("한꺼번에 바꾼 기록", "Bulk changes"), icon=":material/history:"):
        _list_latest(opened)


def say_what_was_done(opened: OpenProject) -> bool:
    """The line after a change; whether there was one, so that what was counted may be otherwise."""
    failed: InputError | None = st.session_state.pop(_FAILED, None)
    if failed is not None:
        explain(say("바꾸지 못했습니다.", "Nothing was changed."), failed)
    done: tuple[int, str] | None = st.session_state.pop(_DONE, None)
    if done is not None and done[0] == opened.project.id:
        st.success(done[1], icon=":material/check_circle:")
    return done is not None


def _confirm(opened: OpenProject, which: Sequence[int] | Search) -> None:
    """Open the dialog that asks for the label; its title is in the visitor's language."""
    title = say("라벨 정하기", "Give a label")
    # Counted before the dialog, of which each click draws all anew.
    found = texts_to_decide(opened.access, which)
    st.dialog(title, width="medium")(_ask_for_label)(opened, which, found)


def _tell_what_is_unsettled(opened: OpenProject, found: TextsToDecide) -> None:
    """Say how many of the texts people disagree on, have too few labels, or are decided already."""
    parts = []
    if found.disagreeing:
        parts.append(
            say(
                f"의견이 갈린 글 {found.disagreeing:,}건",
                f"{number_of(found.disagreeing, 'text')} on which people disagree",
            )
        )
    if found.short:
        needed = opened.project.settings.annotators_per_text
        without = say(
            f"아직 아무도 라벨을 붙이지 않은 글 {found.short:,}건",
            f"{number_of(found.short, 'text')} without a label",
        )
        too_few = say(
            f"라벨을 붙인 사람이 {needed}명보다 적은 글 {found.short:,}건",
            f"{number_of(found.short, 'text')} with labels of fewer than {needed} people",
        )
        parts.append(without if needed == 1 else too_few)
    if found.decided:
        parts.append(
            say(
                f"이미 검수에서 정해져 그 결정이 바뀌는 글 {found.decided:,}건",
                f"{number_of(found.decided, 'text')} of which a decision of review is replaced",
            )
        )
    if parts:
        listed = ", ".join(parts)
        st.warning(
            say(f"이 가운데 {listed}이 있습니다.", f"Among these: {listed}."),
            icon=":material/warning:",
        )


def _ask_for_label(
    opened: OpenProject, which: Sequence[int] | Search, found: TextsToDecide
) -> None:
    """Name how many texts get it."""
    number = found.texts
    if number > MOST_RELABELLED or not number:
        st.warning(
            say(
                f"한 번에 1건부터 {MOST_RELABELLED:,}건까지 바꿀 수 있습니다. 검색을 좁혀 주세요.",
                f"1 to {MOST_RELABELLED:,} texts can be changed at once. Narrow the search.",
            )
        )
        return
    titles = {one.name: escaped(one.title) for one in opened.project.labels if not one.retired}
    several = opened.project.kind == "multi"
    chosen = st.pills(
        say(f"글 {number:,}건의 라벨", f"The label of {number_of(number, 'text')}"),
        list(titles),
        selection_mode="multi" if several else "single",
        format_func=titles.__getitem__,
        key="explore_bulk_labels",
    )
    _tell_what_is_unsettled(opened, found)
    note = st.text_input(say("까닭", "Why"), key="explore_bulk_note", max_chars=1_000)
    st.caption(
        say(
            "글마다 검수 결정으로 적힙니다. 사람들이 붙인 라벨은 그대로 남고, 한 번에 되돌릴 수 "
            "있습니다.",
            "Each text gets a decision of review. The labels that people gave stay, and all of it "
            "can be undone at once.",
        )
    )
    labels = tuple(chosen) if isinstance(chosen, list) else (chosen,) if chosen else ()
    # One id until it is done, so that a second click is the same change.
    request_id = st.session_state.setdefault(_REQUEST, uuid.uuid4().hex)
    if st.button(
        say(f"{number:,}건 바꾸기", f"Change {number_of(number, 'text')}"),
        key="explore_bulk_confirm",
        type="primary",
        disabled=not labels and not several,
    ):
        _change(opened, which, labels, request_id, number, (note or "").strip())
        st.session_state.pop(_REQUEST, None)
        st.rerun()


def _change(
    opened: OpenProject,
    which: Sequence[int] | Search,
    labels: Sequence[str],
    request_id: str,
    number: int,
    note: str,
) -> None:
    """Do it, and keep for the next run what is to be said of it."""
    try:
        made = relabel(
            opened.access, which, labels, request_id=request_id, expected=number, note=note
        )
    except InputError as error:
        st.session_state[_FAILED] = error
        return
    label = escaped(joined(made.labels))
    line = say(
        f"{made.texts:,}건을 {label}(으)로 정했습니다. ‘한꺼번에 바꾼 기록’에서 되돌릴 수 "
        "있습니다.",
        f"{number_of(made.texts, 'text')} set to {label}. Undo it under Bulk changes.",
    )
    st.session_state[_DONE] = (opened.project.id, line)


def _list_latest(opened: OpenProject) -> None:
    made = latest_relabellings(opened.access)
    if not made:
        st.caption(say("아직 없습니다.", "There are none yet."))
    for one in made:
        line, button = st.columns([2, 1], vertical_alignment="center")
        when = local_time(one.created_at).strftime("%m-%d %H:%M")
        number = say(f"{one.texts:,}건", number_of(one.texts, "text"))
        line.text(f"{when} {one.person}: {number} → {joined(one.labels)}")
        if one.undone:
            button.text(say("되돌림", "undone"))
        else:
            button.button(
                say("되돌리기", "Undo"),
                key=f"explore_bulk_undo_{one.id}",
                on_click=_undo,
                args=(opened, one.id),
            )


def _undo(opened: OpenProject, relabelling_id: int) -> None:
    try:
        number = undo_relabelling(opened.access, relabelling_id)
    except InputError as error:
        st.session_state[_FAILED] = error
        return
    line = say(f"{number:,}건을 전으로 되돌렸습니다.", f"{number_of(number, 'text')} restored.")
    st.session_state[_DONE] = (opened.project.id, line)
