"""Labels that a person gives instead of predicted ones, on the page of a classified table."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app.batch import Corrections
from app.explanation import explain
from app.keeping import Decision, Place, keep, place_for
from app.language import language, say
from malmoi.errors import InputError
from malmoi.labels.annotating import Suggestion

if TYPE_CHECKING:
    from app.visit import Visit

# As many as `app.keeping.keep` takes at a time.
_AT_A_TIME = 1_000


# The column of the cells, whatever it is called on screen; no table has one of this name.
RIGHT = "malmoi:right"


@dataclass(frozen=True, kw_only=True)
class ShownRows:
    """An editor of some rows, and what their cells held when it was first drawn.

    Streamlit keeps what is typed as changes of that, and forgets them with the editor.

    Attributes:
        named: the rows and the language, another of which is another editor.
        rows: their index, in the order on screen.
        cells: labels by index.
        editor: key of the widget.
        taken: the changes that were taken over, by place on screen.
    """

    named: str
    rows: list[int]
    cells: dict[int, str]
    editor: str
    taken: dict[int, str | None] = field(default_factory=dict)


def shown_rows(key: str, rows: pd.DataFrame, corrections: Corrections) -> ShownRows:
    """The editor of these rows: the one that is on screen, else a new one.

    Args:
        key: names the table among widgets.
        rows: of the table.
        corrections: of the table.
    """
    index = rows.index.tolist()
    named = hashlib.sha256(repr((language(), index)).encode()).hexdigest()
    place = f"shown_{key}"
    kept: ShownRows | None = st.session_state.get(place)
    if kept is None or kept.named != named or kept.editor not in st.session_state:
        editor = f"editor_{key}_{uuid.uuid4().hex}"
        kept = ShownRows(named=named, rows=index, cells=dict(corrections.typed), editor=editor)
        st.session_state[place] = kept
    return kept


def take_edits(corrections: Corrections, shown: ShownRows, texts: Sequence[str]) -> None:
    """Take over what was just typed, and nothing else; for the editor's `on_change`.

    Not from what the editor shows: another tab may have typed into other rows of the table, and the
    page may be turned in the same run.

    Args:
        corrections: of the table.
        shown: the editor.
        texts: of its rows; a label of nothing cannot be kept.
    """
    edited = st.session_state[shown.editor]["edited_rows"]
    for place, cells in edited.items():
        label = cells.get(RIGHT)
        if RIGHT not in cells or shown.taken.get(int(place), "") == label:
            continue
        shown.taken[int(place)] = label
        if label is None or texts[int(place)].strip():
            corrections.take({shown.rows[int(place)]: label})


@dataclass(frozen=True, kw_only=True)
class PredictedRow:
    """A row as it was classified.

    Attributes:
        text: in its cell.
        label: that was predicted; empty without one.
        confidence: in it, from 0 to 1.
    """

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
    corrections.aim_at(None if place.access is None else place.access.project_id)
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
        decisions = [
            _decision(
                predicted[row],
                waiting[row],
                model,
                f"{key}:{row}:{corrections.times.get(row, 0)}:{visit.person.name}",
            )
            for row in part
        ]
        keep(visit, place, decisions, source)
        for row in part:
            corrections.saved[row] = waiting[row]
            corrections.times[row] = corrections.times.get(row, 0) + 1
        if place.access is None:
            place = place_for(visit, place.labels, model)  # which was made just now
            corrections.saved_in = None if place.access is None else place.access.project_id
    return len(rows)


def tell_saved(key: str) -> None:
    """Say how many labels were saved just now."""
    number: int | None = st.session_state.pop(f"told_{key}", None)
    if number is not None:
        st.success(
            say(f"라벨 {number:,}개를 저장했습니다.", f"{number:,} labels saved."),
            icon=":material/check:",
        )


def _decision(predicted: PredictedRow, label: str, model: str, act: str) -> Decision:
    """The label of a row; `act` is another one for each time that the row is saved."""
    suggestion = None
    if predicted.label and predicted.confidence is not None:
        suggestion = Suggestion(label=predicted.label, score=predicted.confidence, model=model)
    return Decision(
        text=predicted.text,
        label=label,
        suggestion=suggestion,
        request_id=hashlib.sha256(f"{act}:{label}".encode()).hexdigest(),
    )


def corrected_table(table: pd.DataFrame, corrections: Corrections, column: str) -> pd.DataFrame:
    """The table with a column of the given labels; as it is where there are none."""
    if not corrections.typed:
        return table
    given = pd.Series(corrections.typed, dtype="object").reindex(table.index)
    return table.assign(**{column: given.where(given.notna(), None)})
