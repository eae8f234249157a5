"""Predictions as columns of a table: `label`, `score` and a probability of every label."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from malmoi.free_names import free_name
from malmoi.inference.description import ModelDescription
from malmoi.inference.prediction import SEPARATOR, LabelsPrediction, Prediction, ValuePrediction

if TYPE_CHECKING:
    import pandas as pd

    from malmoi.text.record import Record

VALUE = "value"
# Why a text has no answer, where some may have none.
UNSURE, UNKNOWN = "확인 필요", "모르는 글"
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
        label, score, probability, check: what the columns are called; `probability` stands before
            every label.
        threshold: the score from which a label is an answer; with it the last column says of every
            other text that a person has to look. None: all are answered.
        top_k: only so many labels have a column of their score, the likeliest of each text;
            None: all have one.
        separator: between several labels of a text; None writes them as a list in JSON, which can
            be read back whatever their names are.
    """

    description: ModelDescription
    label: str = "label"
    score: str = "score"
    probability: str = "prob_"
    check: str = "check"
    threshold: float | None = None
    top_k: int | None = None
    separator: str | None = None

    @property
    def gives_labels(self) -> bool:
        """Whether the first column is a label, one or several joined, and not a value."""
        return self.description.gives != "value"

    def names(self, taken: Collection[str]) -> list[str]:
        """Names of the columns; one that a table has already gets a number, as "label (2)"."""
        wanted = [VALUE]
        if self.gives_labels:
            wanted = [self.label, self.score]
            if self.top_k is None:
                wanted += [self.probability + label for label in self.description.labels]
            for place in range(2, self._ranks + 1):
                wanted += [f"{self.label}_{place}", f"{self.score}_{place}"]
            wanted += [self.check] * (self.threshold is not None)
        names: list[str] = []
        for name in wanted:
            names.append(free_name(name, {*taken, *names}))
        return names

    def kinds(self) -> list[str]:
        """What the cells of each column are: `str` or `float`."""
        if not self.gives_labels:
            return ["float"]
        kinds = ["str", "float"] * self._ranks
        if self.top_k is None:
            kinds += ["float"] * len(self.description.labels)
        return kinds + ["str"] * (self.threshold is not None)

    @property
    def _ranks(self) -> int:
        """How many labels have columns by their rank."""
        return 1 if self.top_k is None else min(self.top_k, len(self.description.labels))

    def cells(self, prediction: Prediction) -> list[Any]:
        """One row: the label (several joined), its probability, and the probability of each."""
        if isinstance(prediction, ValuePrediction):
            return [prediction.value]
        label = prediction.label
        if isinstance(prediction, LabelsPrediction):
            names = list(prediction.labels)
            label = (
                json.dumps(names, ensure_ascii=False)
                if self.separator is None
                else self.separator.join(names)
            )
        cells: list[Any] = [label, prediction.confidence]
        if self.top_k is None:
            cells += prediction.probabilities.values()
        else:
            ranked = sorted(prediction.probabilities.items(), key=lambda item: -item[1])
            cells += [cell for one in ranked[1 : self._ranks] for cell in one]
        if self.threshold is not None:
            unsure = UNSURE if prediction.confidence < self.threshold else None
            cells.append(unsure if prediction.known else UNKNOWN)
        return cells

    def shown(self, label: str) -> str:
        """A cell of labels as people read it."""
        is_list = self.description.gives == "labels" and self.separator is None
        return SEPARATOR.join(json.loads(label)) if is_list else label

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
