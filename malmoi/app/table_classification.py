"""Classifying a whole table, without any user interface."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pandas as pd

from malmoi.errors import InputError
from malmoi.inference.output_columns import OutputColumns
from malmoi.inference.prediction import SEPARATOR, Prediction
from malmoi.text.reading.columns import SAMPLE_ROWS, ColumnRequest

# Everywhere on the screen: one decimal, as in "45.0%".
PERCENT = "%.1f%%"
# Of the probabilities in a table that is shown.
_DECIMALS = 4
# What answers must be right for, so that nobody has to look (assumption).
ACCEPTED = 0.95


class TablePredictor(Protocol):
    """What this module needs of `malmoi.inference.classifier.Classifier`."""

    columns: OutputColumns

    def threshold(self, accuracy: float) -> float: ...
    def predict_filled(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> Sequence[Prediction | None]: ...


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
    classifier: TablePredictor,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> BatchResult:
    """Add the predicted label, its confidence and every label's probability to a table.

    Rows whose text is empty keep their place with empty results.

    Args:
        progress: called with texts done and texts in all.

    Returns:
        The new table and what there is to say about it.

    Raises:
        InputError: no such column, or not one text in it.
    """
    if column not in table.columns:
        raise InputError(
            "the table has no column {column!r}; it has {columns}",
            column=column,
            columns=list(table.columns),
        )
    started = time.perf_counter()
    predictions = classifier.predict_filled(_cells(table[column]).tolist(), progress=progress)
    seconds = time.perf_counter() - started
    found = [prediction for prediction in predictions if prediction is not None]
    if not found:
        raise InputError(
            "the column {column!r} has no text in any of its {count} rows",
            column=column,
            count=len(table),
        )

    columns = replace(
        classifier.columns,
        label="예측",
        score="확신도",
        probability="확률 ",
        check="확인",
        threshold=sure_from(classifier),
        separator=SEPARATOR,
    )
    label, *numbers = columns.names(list(table.columns))
    check = [numbers.pop()] if columns.threshold is not None else []
    result = columns.added(table, predictions).fillna(dict.fromkeys([label, *check], ""))
    counts = result[label].loc[[one is not None for one in predictions]].value_counts()
    return BatchResult(
        table=result.round(dict.fromkeys(numbers, _DECIMALS)),
        prediction_column=label,
        number_columns=numbers,
        counts={str(name): int(count) for name, count in counts.items()},
        empty_rows=[row for row, one in enumerate(predictions, 1) if one is None],
        cut=sum(prediction.cut for prediction in found),
        seconds=seconds,
    )


def sure_from(classifier: TablePredictor) -> float | None:
    """The confidence from which `ACCEPTED` of the answers are right; None where nobody knows."""
    try:
        return classifier.threshold(ACCEPTED)
    except InputError:
        return None


def as_percent(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A copy with fractions times 100, to be shown as `PERCENT`."""
    return table.assign(**{name: table[name].astype("float64") * 100 for name in columns})


def _cells(column: pd.Series) -> pd.Series:
    return column.fillna("").astype("str")
