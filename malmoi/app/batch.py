"""Classifying a whole table, without any user interface."""

import io
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pandas as pd
from openpyxl import Workbook

from malmoi.errors import InputError
from malmoi.free_names import free_name
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.columns import SAMPLE_ROWS, ColumnRequest
from malmoi.text.table_writing import save_book
from malmoi.text.written_cells import EXCEL_ROWS, csv_cell, excel_cell

PREDICTION = "예측"
CONFIDENCE = "확신도"
PROBABILITY = "확률"
# Everywhere on the screen: one decimal, as in "45.0%".
PERCENT = "%.1f%%"


class PredictionLike(Protocol):
    """What this module needs of `malmoi.inference.classifier.Prediction`."""

    @property
    def label(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def probabilities(self) -> Mapping[str, float]: ...
    @property
    def cut(self) -> bool: ...


class Predictor(Protocol):
    """What this module needs of a classifier."""

    @property
    def labels(self) -> Sequence[str]: ...
    def predict(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> Sequence[PredictionLike]: ...


@dataclass(frozen=True, kw_only=True)
class SavedLabel:
    """A label that was given to a row in a project.

    Attributes:
        label: which.
        text_id: of the row's text there.
        person: who gave it.
        request_id: of the act, to take it back by.
    """

    label: str
    text_id: int
    person: str
    request_id: str


@dataclass(kw_only=True)
class Corrections:
    """Labels that a person gives to rows of a classified table instead of the predicted ones.

    They stay with its result, whichever of its rows are on screen.

    Attributes:
        typed: the label in the cell of a row, by the row's index.
        saved: those that are in a project, by the project's id and the row, as they were given:
            the last one of a row is what its cell held.
        times: how often a row was saved.
    """

    typed: dict[int, str] = field(default_factory=dict)
    saved: dict[int, dict[int, tuple[SavedLabel, ...]]] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)

    def saved_in(self, project_id: int | None) -> dict[int, tuple[SavedLabel, ...]]:
        """Those that are in a project; None: in one that is yet to be made."""
        return {} if project_id is None else self.saved.setdefault(project_id, {})

    def waiting(self, project_id: int | None, labels: Collection[str]) -> dict[int, str]:
        """Those that are yet to be saved in a project, in the order of the rows.

        Args:
            project_id: None: one that is yet to be made.
            labels: that can be given in it; others wait for another project.
        """
        saved = {row: given[-1].label for row, given in self.saved_in(project_id).copy().items()}
        return {
            row: label
            for row, label in sorted(self.typed.copy().items())
            if label in labels and saved.get(row) != label
        }

    def unknown(self, labels: Collection[str]) -> list[str]:
        """The labels in cells that are none of these, one for each cell."""
        return [label for label in self.typed.copy().values() if label not in labels]

    def emptied(self, project_id: int | None) -> list[int]:
        """The rows whose label is in a project still, and in their cell no longer."""
        return sorted(set(self.saved_in(project_id)) - set(self.typed))

    def take(self, cells: Mapping[int, str | None]) -> None:
        """Take over what was typed into cells; None empties one."""
        for row, label in cells.items():
            if label is None:
                self.typed.pop(row, None)
            else:
                self.typed[row] = label


@dataclass(frozen=True)
class BatchResult:
    """A classified table.

    Attributes:
        table: the given table with the new columns to its right; same rows, same order.
        prediction_column: the column that holds the label.
        number_columns: the new columns of confidence and probabilities, fractions.
        counts: texts by predicted label, most frequent first.
        empty_rows: row numbers (1 is the first below the header) whose text cell is empty, or
            holds nothing that is left once it is clean (`<br>`, an address).
        cut: how many texts are longer than what the model reads of them.
        seconds: time spent predicting.
        corrections: labels that a person has given since.
    """

    table: pd.DataFrame
    prediction_column: str
    number_columns: list[str]
    counts: dict[str, int]
    empty_rows: list[int]
    cut: int
    seconds: float
    corrections: Corrections = field(default_factory=Corrections)


def default_text_column(table: pd.DataFrame) -> str:
    """The column that most likely holds the texts.

    The one that every command would take (`malmoi.text.reading.columns`); where none has a known
    name, the column with the longest cells on average.
    """
    if table.columns.empty:
        raise InputError("the table has no columns; expected a header row and texts below it")
    columns = [str(name) for name in table.columns]
    sample = table.head(SAMPLE_ROWS).to_numpy().tolist()
    try:
        return columns[ColumnRequest().locate(columns, "", sample).text]
    except InputError:
        pass  # no column is called so, or holds words
    lengths = {str(name): _cells(table[name]).str.len().mean() for name in table.columns}
    return max(lengths, key=lambda name: lengths[name])


def classify_table(
    table: pd.DataFrame,
    column: str,
    classifier: Predictor,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> BatchResult:
    """Add the predicted label, its confidence and every label's probability to a table.

    Rows whose text is empty keep their place with empty results.

    Args:
        table: what was uploaded; it is not changed.
        column: the column with the texts.
        classifier: what predicts.
        progress: called with texts done and texts in all.

    Returns:
        The new table and what there is to say about it.

    Raises:
        InputError: no such column, or not one text in it.
    """
    if column not in table.columns:
        raise InputError(f"the table has no column {column!r}; it has {list(table.columns)}")
    cells = _cells(table[column])
    filled = [index for index, cell in enumerate(cells) if clean_text(cell)]
    if not filled:
        raise InputError(f"the column {column!r} has no text in any of its {len(table)} rows")

    started = time.perf_counter()
    predictions = classifier.predict([cells.iloc[index] for index in filled], progress=progress)
    seconds = time.perf_counter() - started
    if len(predictions) != len(filled):
        raise RuntimeError(f"{len(predictions)} predictions for {len(filled)} texts")

    new = _new_columns(len(table), filled, predictions, classifier.labels)
    result = table.copy()
    names = {name: free_name(name, table.columns) for name in new}
    for name, values in new.items():
        kind = "str" if name == PREDICTION else "float64"
        result[names[name]] = pd.Series(values, index=table.index, dtype=kind)
    done = set(filled)
    counts = pd.Series([prediction.label for prediction in predictions]).value_counts()
    return BatchResult(
        table=result,
        prediction_column=names[PREDICTION],
        number_columns=[names[name] for name in new if name != PREDICTION],
        counts={str(label): int(count) for label, count in counts.items()},
        empty_rows=[index + 1 for index in range(len(table)) if index not in done],
        cut=sum(prediction.cut for prediction in predictions),
        seconds=seconds,
    )


def _new_columns(
    rows: int, filled: list[int], predictions: Sequence[PredictionLike], labels: Sequence[str]
) -> dict[str, list[object]]:
    """What is added to the table; rows that are not `filled` stay empty."""
    new: dict[str, list[object]] = {PREDICTION: [""] * rows, CONFIDENCE: [None] * rows}
    new |= {f"{PROBABILITY} {label}": [None] * rows for label in labels}
    for index, prediction in zip(filled, predictions, strict=True):
        new[PREDICTION][index] = prediction.label
        new[CONFIDENCE][index] = round(prediction.confidence, 4)
        for label in labels:
            new[f"{PROBABILITY} {label}"][index] = round(prediction.probabilities[label], 4)
    return new


def as_percent(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A copy with fractions times 100, to be shown as `PERCENT`."""
    return table.assign(**{name: table[name].astype("float64") * 100 for name in columns})


def to_csv(table: pd.DataFrame) -> bytes:
    """CSV in UTF-8 with a byte order mark, without which Excel shows broken Hangul.

    No cell is a formula: see `malmoi.text.reading.spreadsheet_cells`.

    Rows end as RFC 4180 has it. Python 3.11 quotes only characters of that ending: with a bare
    line feed, a lone carriage return in a cell would cut its row in two.
    """
    texts = [
        place for place, kind in enumerate(table.dtypes) if not pd.api.types.is_numeric_dtype(kind)
    ]
    shown = table.set_axis([csv_cell(name) for name in table.columns], axis="columns")
    for place in texts:
        shown.isetitem(place, [csv_cell(cell) for cell in table.iloc[:, place]])
    return shown.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def to_xlsx(table: pd.DataFrame) -> bytes:
    """An Excel workbook with one sheet.

    Texts stay texts: one that starts with "=" is not turned into a formula. Control characters
    that the format forbids are left out, and a cell holds at most `EXCEL_CELL` characters.

    Raises:
        InputError: more rows than a sheet can hold.
    """
    if len(table) >= EXCEL_ROWS:
        raise InputError(f"an Excel sheet holds {EXCEL_ROWS:,} rows; this table has more: use CSV")
    book = Workbook(write_only=True)
    sheet = book.create_sheet("malmoi")
    for row in [list(table.columns), *table.itertuples(index=False, name=None)]:
        sheet.append([excel_cell(sheet, value) for value in row])
    buffer = io.BytesIO()
    save_book(book, buffer)
    return buffer.getvalue()


def _cells(column: pd.Series) -> pd.Series:
    return column.fillna("").astype("str")
