"""Labels that a person gives instead of predicted ones, on the page of a classified table."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app.batch import Corrections
from app.explanation import explain
from app.keeping import Decision, Place, keep, place_for
from app.language import say
from malmoi.errors import InputError
from malmoi.labels.annotating import Suggestion

if TYPE_CHECKING:
    from app.visit import Visit

# As many as `app.keeping.keep` takes at a time.
_AT_A_TIME = 1_000


@dataclass(frozen=True, kw_only=True)
class ShownRows:
    """An editor of some rows, and what their cells held when it was first drawn.

    Streamlit keeps what is typed as changes of that, and forgets them with the editor.
    """

    rows: str
    cells: dict[int, str]
    editor: str


def shown_rows(key: str, rows: pd.DataFrame, corrections: Corrections) -> ShownRows:
    """The editor of these rows: the one that is on screen, else a new one."""
    named = hashlib.sha256(repr(rows.index.tolist()).encode()).hexdigest()
    place = f"shown_{key}"
    kept: ShownRows | None = st.session_state.get(place)
    if kept is None or kept.rows != named or kept.editor not in st.session_state:
        editor = f"editor_{key}_{uuid.uuid4().hex}"
        kept = ShownRows(rows=named, cells=dict(corrections.typed), editor=editor)
        st.session_state[place] = kept
    return kept


@dataclass(frozen=True, kw_only=True)
class PredictedRow:
    """A row as it was classified."""

    text: str
    label: str
    confidence: float | None


def offer_saving(
    visit: Visit,
    place: Place,
    corrections: Corrections,
    predicted: Mapping[int, PredictedRow],
    about: tuple[str, str, str],
) -> None:
    """Draw the button, and save what waits when it is pressed.

    Args:
        visit: whose labels they are.
        place: where they go.
        corrections: of the table.
        predicted: the rows of `corrections.waiting`.
        about: the model's name, the file's, and what names the result.
    """
    key = about[2]
    number = len(corrections.waiting)
    words = say(f"고친 라벨 {number:,}개 저장", f"Save {number:,} corrections")
    if not st.button(
        words if number else say("고친 라벨 저장", "Save corrections"),
        icon=":material/save:",
        type="primary" if number else "secondary",
        disabled=not number,
        key=f"save_{key}",
    ):
        return
    try:
        saved = save(visit, place, corrections, predicted, about)
    except InputError as error:
        explain(say("라벨을 저장하지 못했습니다.", "The labels were not saved."), error)
        return
    st.session_state[f"told_{key}"] = saved
    # The button is to say what waits now.
    st.rerun()


def save(
    visit: Visit,
    place: Place,
    corrections: Corrections,
    predicted: Mapping[int, PredictedRow],
    about: tuple[str, str, str],
) -> int:
    """Save what waits; see `offer_saving`.

    Returns:
        How many labels were saved.

    Raises:
        InputError: the project does not take them; what was saved before stays so.
    """
    model, source, key = about
    waiting = corrections.waiting
    rows = list(waiting)
    for start in range(0, len(rows), _AT_A_TIME):
        part = rows[start : start + _AT_A_TIME]
        decisions = [_decision(visit, corrections, row, predicted[row], model, key) for row in part]
        keep(visit, place, decisions, source)
        if place.access is None:
            place = place_for(visit, place.labels, model)  # which was made just now
        for row in part:
            corrections.saved[row] = waiting[row]
            corrections.times[row] = corrections.times.get(row, 0) + 1
    return len(rows)


def tell_saved(key: str) -> None:
    """Say how many labels were saved just now."""
    number: int | None = st.session_state.pop(f"told_{key}", None)
    if number is not None:
        st.success(
            say(f"라벨 {number:,}개를 저장했습니다.", f"{number:,} labels saved."),
            icon=":material/check:",
        )


def _decision(
    visit: Visit, corrections: Corrections, row: int, predicted: PredictedRow, model: str, key: str
) -> Decision:
    label = corrections.typed[row]
    # The same again is the same act; back to a label after another one is an act of its own.
    times = corrections.times.get(row, 0)
    named = f"{key}:{row}:{times}:{label}:{visit.person.name}"
    suggestion = None
    if predicted.label and predicted.confidence is not None:
        suggestion = Suggestion(label=predicted.label, score=predicted.confidence, model=model)
    return Decision(
        text=predicted.text,
        label=label,
        suggestion=suggestion,
        request_id=hashlib.sha256(named.encode()).hexdigest(),
    )


def corrected_table(table: pd.DataFrame, corrections: Corrections, column: str) -> pd.DataFrame:
    """The table with a column of the given labels; as it is where there are none."""
    if not corrections.typed:
        return table
    given = pd.Series(corrections.typed, dtype="object").reindex(table.index)
    return table.assign(**{column: given.where(given.notna(), None)})
