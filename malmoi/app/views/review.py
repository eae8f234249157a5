"""The page "검수": texts whose annotators differ, one after the other, to be decided."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say, say_choice_again
from malmoi.app.plain_text import escaped, shortened
from malmoi.app.reviewing.one_text import draw_text, joined
from malmoi.app.reviewing.vote_table import choose_text
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.label_book import ShownLabel
from malmoi.labels.people import AccessError
from malmoi.labels.review import (
    MOST_COUNTED,
    DisagreeingPair,
    ReviewCounts,
    ReviewedText,
    ReviewState,
    adjudicate,
    latest_decisions,
    review_counts,
    texts_to_review,
    texts_with_votes,
)
from malmoi.labels.stored_text import sha256_of

_QUEUES: tuple[ReviewState, ...] = ("disagreeing", "flagged", "skipped", "adjudicated")
_ROWS = 50
_LAST, _FAILED, _PLACE = "review_last", "review_failed", "review_place"
# The project, the queue, and the choices of a pair.
_Which = tuple[int, ReviewState, tuple[str, str] | None]


@dataclass(frozen=True, kw_only=True)
class _Decision:
    """The one that was saved last, to say so and to undo it."""

    project_id: int
    text_id: int
    words: str
    labels: tuple[str, ...]
    decision_id: int


@dataclass(kw_only=True)
class _Place:
    """Where in a queue the reviewer is: the texts gone past, and the one on screen."""

    which: _Which
    passed: list[int] = field(default_factory=list)
    shown: int | None = None

    @property
    def after(self) -> int:
        """The id behind which the queue goes on."""
        if self.shown is not None:
            return self.shown - 1
        return self.passed[-1] if self.passed else 0

    def go_on(self, text_id: int) -> None:
        self.passed.append(text_id)
        self.shown = None

    def go_back(self) -> None:
        if self.passed:
            self.passed.pop()
        self.shown = None


def show(visit: Visit) -> None:
    open_project = visit.needs_project()
    if open_project is None:
        return
    try:
        counts = review_counts(open_project.access)
    except AccessError:
        st.info(
            say("Only reviewers and admins review. Ask an admin of the project if you need to."),
            icon=":material/lock:",
        )
        return
    _say_what_was_done(open_project)
    queue, pair, as_list = _choose(counts)
    if queue == "adjudicated":
        _draw_decisions(open_project)
    elif as_list:
        _draw_list(open_project, queue, pair)
    else:
        _draw_next(open_project, queue, pair)


def _choose(counts: ReviewCounts) -> tuple[ReviewState, DisagreeingPair | None, bool]:
    names: dict[ReviewState, str] = {
        "disagreeing": say("Disagreeing"),
        "flagged": say("Flagged"),
        "skipped": say("Skipped"),
        "adjudicated": say("Decided"),
    }
    numbers = {one: _bounded(getattr(counts, one)) for one in _QUEUES}
    # Not as the field's default, which would follow the counts while somebody works.
    waiting = (one for one in _QUEUES[:-1] if getattr(counts, one))
    st.session_state.setdefault("review_queue", next(waiting, "disagreeing"))
    # They go on in the next line where the page is narrow.
    row = st.container(horizontal=True, vertical_alignment="bottom")
    queue = row.segmented_control(
        say("Queue"),
        _QUEUES,
        format_func=lambda one: f"{names[one]} {numbers[one]}",
        key="review_queue",
        required=True,
    )
    assert queue is not None  # as it is required

    pair: DisagreeingPair | None = None
    if queue == "disagreeing" and counts.pairs:
        by_choice = {one.choices: one for one in counts.pairs}
        if st.session_state.get("review_pair") not in (None, *by_choice):
            st.session_state["review_pair"] = None
        say_choice_again("review_pair")
        chosen = row.selectbox(
            say("Between"),
            [None, *by_choice],
            format_func=lambda one: _pair_name(None if one is None else by_choice[one]),
            key="review_pair",
            placeholder=say("All"),
            width=220,
        )
        pair = by_choice.get(chosen) if chosen else None
    shown = row.segmented_control(
        say("View"),
        ("one", "list"),
        format_func={"one": say("One by one"), "list": say("List")}.__getitem__,
        key="review_view",
        default="one",
        required=True,
        disabled=queue == "adjudicated",
    )
    return queue, pair, shown == "list"


def _pair_name(pair: DisagreeingPair | None) -> str:
    if pair is None:
        return say("All")
    names = f"{joined(pair.first)} ↔ {joined(pair.second)}"
    return say("{names} ({texts:,})", names=names, texts=pair.texts)


def _bounded(number: int) -> str:
    if number > MOST_COUNTED:
        return say("{most:,}+", most=MOST_COUNTED)
    return f"{number:,}"


def _draw_next(open_project: OpenProject, queue: ReviewState, pair: DisagreeingPair | None) -> None:
    place = _place(open_project, queue, pair)
    choices = None if pair is None else pair.choices
    found = texts_to_review(open_project.access, queue, limit=2, after=place.after, pair=choices)
    if place.shown is not None and place.shown not in [one.text_id for one in found[:1]]:
        # Another text in its place would get the label that is on its way to this one.
        found = [*texts_with_votes(open_project.access, [place.shown]), *found]
        st.info(
            say(
                "This text has left the queue: somebody has decided it, or its labels have changed."
            ),
            icon=":material/update:",
        )
        is_last = False
    else:
        is_last = len(found) < 2 and not place.passed
    if not found and place.passed:
        place.passed.clear()
        found = texts_to_review(open_project.access, queue, limit=2, pair=choices)
        is_last = len(found) < 2
    if not found:
        st.success(
            say("Nothing waits in this queue. What comes up will appear here."),
            icon=":material/task_alt:",
        )
        return
    text = found[0]
    place.shown = text.text_id
    _draw_deciding(open_project, text, lambda: _draw_moving(place, text.text_id, is_last))


def _draw_moving(place: _Place, text_id: int, is_last: bool) -> None:
    with st.container(horizontal=True):
        st.button(
            say("Back"),
            key="review_back",
            icon=":material/arrow_back:",
            disabled=not place.passed,
            on_click=place.go_back,
            shortcut="Left",
        )
        st.button(
            say("Next, undecided"),
            key=f"review_next_{text_id}",
            icon=":material/arrow_forward:",
            disabled=is_last,
            on_click=place.go_on,
            args=(text_id,),
            shortcut="Right",
        )


def _place(open_project: OpenProject, queue: ReviewState, pair: DisagreeingPair | None) -> _Place:
    which = (open_project.project.id, queue, None if pair is None else pair.choices)
    held: _Place | None = st.session_state.get(_PLACE)
    if held is None or held.which != which:
        held = st.session_state[_PLACE] = _Place(which=which)
    return held


def _draw_list(open_project: OpenProject, queue: ReviewState, pair: DisagreeingPair | None) -> None:
    place = _place(open_project, queue, pair)
    place.shown = None
    after = place.after
    choices = None if pair is None else pair.choices
    found = texts_to_review(open_project.access, queue, limit=_ROWS + 1, after=after, pair=choices)
    more, found = len(found) > _ROWS, found[:_ROWS]
    chosen = _table(found, f"review_list_{open_project.project.id}_{queue}_{after}")
    with st.container(horizontal=True):
        st.button(
            say("Page before"),
            key="review_page_back",
            disabled=not place.passed,
            on_click=place.go_back,
        )
        st.button(
            say("Next page"),
            key=f"review_page_{after}",
            disabled=not more,
            on_click=place.go_on,
            args=(found[-1].text_id if found else 0,),
        )
    if chosen is not None:
        _draw_deciding(open_project, chosen)


def _draw_decisions(open_project: OpenProject) -> None:
    found = latest_decisions(open_project.access, limit=_ROWS)
    if not found:
        st.info(say("Nothing has been decided yet."))
        return
    st.caption(say("The latest {rows}, newest first. Choose a row to decide again.", rows=_ROWS))
    chosen = _table(found, f"review_decided_{open_project.project.id}")
    if chosen is not None:
        _draw_deciding(open_project, chosen)


def _table(found: Sequence[ReviewedText], key: str) -> ReviewedText | None:
    """The texts as rows; the one that was chosen."""
    if not found:
        st.info(say("There are no texts here."))
        return None
    return choose_text(found, key)


def _draw_deciding(
    open_project: OpenProject, text: ReviewedText, draw_below: Callable[[], None] | None = None
) -> None:
    request_id = st.session_state.setdefault(_request_key(text), uuid.uuid4().hex)

    def decide(labels: tuple[ShownLabel, ...] | None, note: str) -> None:
        _save(open_project.access, text, labels, request_id, note)

    draw_text(open_project, text, decide, draw_below)


def _request_key(text: ReviewedText) -> str:
    return f"review_request_{text.text_id}_{text.decision_id}"


def _save(
    access: ProjectAccess,
    text: ReviewedText,
    labels: tuple[ShownLabel, ...] | None,
    request_id: str,
    note: str,
) -> None:
    """Save what was decided of the text that was on screen."""
    try:
        saved = adjudicate(
            access,
            text.text_id,
            labels,
            request_id=request_id,
            note=note,
            shown=sha256_of(text.text),
            shown_decision=text.decision_id,
        )
    except InputError as error:
        st.session_state[_FAILED] = error
        return
    if not saved.new:
        return  # a second click on what was on screen
    st.session_state.pop(_request_key(text), None)
    place: _Place | None = st.session_state.get(_PLACE)
    if place is not None:
        place.shown = None
    st.session_state[_LAST] = _Decision(
        project_id=access.project_id,
        text_id=text.text_id,
        words=shortened(text.text),
        labels=tuple(label.name for label in labels or ()),
        decision_id=saved.id if labels is not None else 0,
    )


def _undo(access: ProjectAccess, last: _Decision) -> None:
    try:
        adjudicate(
            access,
            last.text_id,
            None,
            request_id=f"undo-decision-{last.decision_id}",
            shown_decision=last.decision_id,
        )
    except InputError as error:
        st.session_state[_FAILED] = error
    else:
        place: _Place | None = st.session_state.get(_PLACE)
        if place is not None:
            place.passed[:] = [last.text_id - 1]  # so that it is on screen again
            place.shown = None
    st.session_state.pop(_LAST, None)


def _say_what_was_done(open_project: OpenProject) -> None:
    failed: InputError | None = st.session_state.pop(_FAILED, None)
    if failed is not None:
        explain(
            say("It was not saved. Somebody may have decided meanwhile: look at the text again."),
            failed,
        )
    last: _Decision | None = st.session_state.get(_LAST)
    if last is None or last.project_id != open_project.project.id:
        return
    line = st.container(horizontal=True, vertical_alignment="center")
    words = escaped(last.words)
    if not last.decision_id:
        line.success(
            say("The decision of “{words}” is withdrawn.", words=words),
            icon=":material/undo:",
        )
        return
    labels = escaped(joined(last.labels))
    line.success(
        say("Saved: “{words}” → {labels}", words=words, labels=labels),
        icon=":material/check_circle:",
    )
    line.button(
        say("Undo"),
        key=f"review_undo_{last.decision_id}",
        icon=":material/undo:",
        on_click=_undo,
        args=(open_project.access, last),
        shortcut="Backspace",
    )
