"""Labels that a person gives instead of predicted ones, on the page of a classified table."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.label_saving import (
    Decision,
    Place,
    may_take_back,
    place_for,
    save_decisions,
    take_labels_back,
)
from malmoi.app.language import language, say
from malmoi.app.plain_text import escaped
from malmoi.app.table_classification import Corrections, SavedLabel
from malmoi.errors import InputError
from malmoi.free_names import free_name
from malmoi.labels.annotating import Suggestion
from malmoi.labels.people import Person

if TYPE_CHECKING:
    from malmoi.app.visit import Visit

# As many as `malmoi.app.label_saving.save_decisions` takes at a time.
_AT_A_TIME = 1_000
# Rows by their index: the text, and what the model says of it.
Predicted = Mapping[int, tuple[str, Suggestion | None]]
# The column of the cells, whatever it is called on screen.
_RIGHT = "malmoi:right"


@dataclass(frozen=True, kw_only=True)
class ShownRows:
    """An editor of some rows, and what their cells held when it was first drawn.

    Streamlit keeps what is typed as changes of that, and forgets them with the editor.

    Attributes:
        named: the rows and the language, another of which is another editor.
        rows: their index, in the order on screen.
        cells: labels by index.
        right: the column of the cells, which the table has no other of.
        editor: key of the widget.
        taken: the changes that were taken over, by place on screen.
    """

    named: str
    rows: list[int]
    cells: dict[int, str]
    right: str
    editor: str
    taken: dict[int, str | None] = field(default_factory=dict)


def shown_rows(key: str, rows: pd.DataFrame, corrections: Corrections) -> ShownRows:
    """The editor of these rows: the one that is on screen, else a new one."""
    index = rows.index.tolist()
    named = hashlib.sha256(repr((language(), index)).encode()).hexdigest()
    place = f"shown_{key}"
    kept: ShownRows | None = st.session_state.get(place)
    if kept is None or kept.named != named or kept.editor not in st.session_state:
        kept = ShownRows(
            named=named,
            rows=index,
            cells=dict(corrections.typed),
            right=free_name(_RIGHT, rows.columns),
            editor=f"editor_{key}_{uuid.uuid4().hex}",
        )
        st.session_state[place] = kept
    return kept


def take_edits(corrections: Corrections, shown: ShownRows, texts: Sequence[str]) -> None:
    """Take over what was just typed, and nothing else; for the editor's `on_change`.

    Not from what the editor shows: another tab may have typed into other rows of the table, and the
    page may be turned in the same run.

    Args:
        shown: the editor.
        texts: of its rows; a label of nothing cannot be kept.
    """
    edited = st.session_state[shown.editor]["edited_rows"]
    for place, cells in edited.items():
        label = cells.get(shown.right)
        if shown.right not in cells or shown.taken.get(int(place), "") == label:
            continue
        shown.taken[int(place)] = label
        if label is None or texts[int(place)].strip():
            corrections.take({shown.rows[int(place)]: label})


def offer_saving(
    visit: Visit,
    place: Place,
    corrections: Corrections,
    predicted: Predicted,
    about: tuple[str, str, str],
) -> None:
    """Draw the button, and save what waits when it is pressed.

    Args:
        predicted: the rows of `corrections.waiting`. What another tab adds meanwhile waits on.
        about: the model's name, the file's, and what names the result.
    """
    key = about[2]
    new = len(corrections.waiting(place.id, place.labels))
    emptied = len(_to_take_back(visit.person, place, corrections))
    if not st.button(
        _button(new, emptied),
        icon=":material/save:",
        type="primary" if new or emptied else "secondary",
        disabled=not (new or emptied),
        key=f"save_{key}",
    ):
        return
    try:
        saved = save(visit, place, corrections, predicted, about)
    except InputError as error:
        explain(say("Some labels were not saved or taken back."), error)
        return
    st.session_state[f"told_{key}"] = saved
    # The button is to say what waits now.
    st.rerun()


def save(
    visit: Visit,
    place: Place,
    corrections: Corrections,
    predicted: Predicted,
    about: tuple[str, str, str],
) -> tuple[int, int]:
    """Save what waits, then take back what was emptied of the visitor's own; see `offer_saving`.

    A label from before a name was typed is taken back, too, once its row has got another.

    Returns:
        How many labels were saved, and how many taken back.

    Raises:
        InputError: the project does not take them; what was saved before stays so.
    """
    model, source, key = about
    name = visit.person.name
    waiting = corrections.waiting(place.id, place.labels)
    rows = [row for row in waiting if row in predicted]
    for start in range(0, len(rows), _AT_A_TIME):
        part = rows[start : start + _AT_A_TIME]
        decisions = []
        for row in part:
            text, suggestion = predicted[row]
            # Another one for each time that the row is saved.
            act = f"{key}:{row}:{corrections.times.get(row, 0)}:{name}:{waiting[row]}"
            decisions.append(
                Decision(
                    text=text,
                    label=waiting[row],
                    suggestion=suggestion,
                    request_id=hashlib.sha256(act.encode()).hexdigest(),
                )
            )
        ids = save_decisions(visit, place, decisions, source)
        if place.access is None:
            place = place_for(visit, place.labels, model)  # which was made just now
        saved = corrections.saved_in(place.id)
        for row, text_id, decision in zip(part, ids, decisions, strict=True):
            given = SavedLabel(
                label=decision.label,
                text_id=text_id,
                person=name,
                request_id=decision.request_id,
            )
            saved[row] = (*saved.get(row, ()), given)
            corrections.times[row] = corrections.times.get(row, 0) + 1
    gone = _to_take_back(visit.person, place, corrections)
    _take_back(place, corrections, gone)
    return len(rows), len(gone.keys() - set(rows))


def _to_take_back(
    person: Person, place: Place, corrections: Corrections
) -> dict[int, list[SavedLabel]]:
    """The person's labels of emptied rows, and those from before a name that have got another one.

    By row. Told from what is saved, so that what failed once is done the next time.
    """
    emptied = set(corrections.emptied(place.id))
    found = {
        row: [
            one
            for one in given
            if may_take_back(person, one.person)
            and (row in emptied or one.person != given[-1].person == person.name)
        ]
        for row, given in corrections.saved_in(place.id).copy().items()
    }
    return {row: labels for row, labels in found.items() if labels}


def _take_back(
    place: Place, corrections: Corrections, rows: Mapping[int, Sequence[SavedLabel]]
) -> None:
    """Let these labels of rows hold no longer; the texts stay in the project."""
    by_giver: dict[str, list[tuple[int, str]]] = {}
    for one in chain.from_iterable(rows.values()):
        by_giver.setdefault(one.person, []).append((one.text_id, one.request_id))
    for giver, requests in by_giver.items():
        assert place.access is not None  # in a project that is yet to be made nothing is saved
        take_labels_back(place.access, giver, requests)
    saved = corrections.saved_in(place.id)
    for row, gone in rows.items():
        # None is left, too, where another tab has done it meanwhile.
        left = tuple(one for one in saved.get(row, ()) if one not in gone)
        if left:
            saved[row] = left
        else:
            saved.pop(row, None)


def _button(new: int, emptied: int) -> str:
    """What it says, by how many labels are to be saved and taken back."""
    if not emptied:
        return say("Save {new:correction}", new=new) if new else say("Save corrections")
    if not new:
        return say("Take {emptied:label} back", emptied=emptied)
    return say("Save {new:correction}, take {emptied:,} back", new=new, emptied=emptied)


def tell_left(visit: Visit, place: Place, corrections: Corrections) -> None:
    """Say which labels saving leaves as they are, and why."""
    if unknown := corrections.unknown(place.labels):
        names = escaped(", ".join(sorted(set(unknown))))
        st.caption(
            say(
                "Labels that are not saved, for this project does not have them ({names}): "
                "{count:,}. Open one that has, or correct the cells.",
                names=names,
                count=len(unknown),
            )
        )
    saved = corrections.saved_in(place.id)
    labels = {row: saved.get(row, ()) for row in corrections.emptied(place.id)}
    others = {
        (row, one.person)
        for row in labels
        for one in labels[row]
        if not may_take_back(visit.person, one.person)
    }
    if others:
        names = escaped(", ".join(sorted({person for _, person in others})))
        st.caption(
            say(
                "Labels of emptied cells that stay, as {names} gave them: {count:,}.",
                names=names,
                count=len(others),
            )
        )


def tell_saved(key: str) -> None:
    """Say how many labels were saved or taken back just now."""
    told: tuple[int, int] | None = st.session_state.pop(f"told_{key}", None)
    if told is None:
        return
    saved, emptied = told
    if saved:
        st.success(say("{saved:label} saved.", saved=saved), icon=":material/check:")
    if emptied:
        st.success(
            say(
                "Labels taken back: {emptied:,}. The texts stay in the project unlabelled.",
                emptied=emptied,
            ),
            icon=":material/undo:",
        )


def corrected_table(table: pd.DataFrame, corrections: Corrections, column: str) -> pd.DataFrame:
    """The table with a column of the given labels; as it is where there are none."""
    if not corrections.typed:
        return table
    given = pd.Series(corrections.typed, dtype="object").reindex(table.index)
    return table.assign(**{column: given.where(given.notna(), None)})
