"""Predictions as columns of a table: `label`, `score` and a probability of every label."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from malmoi.free_names import free_name
from malmoi.inference.description import ModelDescription
from malmoi.inference.prediction import Prediction, ValuePrediction

if TYPE_CHECKING:
    import pandas as pd

    from malmoi.text.record import Record

VALUE = "value"
# Where several files become one table: which one a row is of.
SOURCE = "source_file"
# Where several sheets of a workbook do: which one.
SHEET = "source_sheet"


def with_sheet(row: "Record") -> "Record":
    """The row with its sheet as the first column, where several sheets become one table."""
    sheet = row.place.rpartition(":")[0]
    return replace(row, cells={SHEET: sheet, **row.cells}) if sheet else row


def with_source(row: "Record") -> "Record":
    """The row with its file as the first column; one that has such a column keeps what it says."""
    return replace(row, cells={SOURCE: row.source, **row.cells})


@dataclass(frozen=True)
class OutputColumns:
    """The new columns of a table that a model has labelled.

    Attributes:
        description: of the model.
        label, score, probability: what the columns are called; the last one before every label.
    """

    description: ModelDescription
    label: str = "label"
    score: str = "score"
    probability: str = "prob_"

    @property
    def gives_labels(self) -> bool:
        """Whether the first column is a label, one or several joined, and not a value."""
        return self.description.gives != "value"

    def names(self, taken: Collection[str]) -> list[str]:
        """Names of the columns; one that a table has already gets a number, as "label (2)"."""
        wanted = [VALUE]
        if self.gives_labels:
            labels = self.description.labels
            wanted = [self.label, self.score, *(self.probability + label for label in labels)]
        names: list[str] = []
        for name in wanted:
            names.append(free_name(name, {*taken, *names}))
        return names

    def kinds(self) -> list[str]:
        """What the cells of each column are: `str` or `float`."""
        numbers = ["float"] * (len(self.names(())) - 1)
        return ["str" if self.gives_labels else "float", *numbers]

    def cells(self, prediction: Prediction) -> list[Any]:
        """One row: the label (several joined), its probability, and the probability of each."""
        if isinstance(prediction, ValuePrediction):
            return [prediction.value]
        return [prediction.label, prediction.confidence, *prediction.probabilities.values()]

    def empty(self) -> list[Any]:
        """The row of a text that is empty."""
        return [None] * len(self.names(()))

    def added(
        self, frame: "pd.DataFrame", predictions: Sequence[Prediction | None]
    ) -> "pd.DataFrame":
        """A copy of a table of N rows with these columns to its right, empty where one is None."""
        names = self.names(list(map(str, frame.columns)))
        rows = [self.empty() if found is None else self.cells(found) for found in predictions]
        new = zip(*rows, strict=True) if rows else ([] for _ in names)
        return frame.assign(**{name: list(cells) for name, cells in zip(names, new, strict=True)})
