"""The predictions of many texts, as a list and as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from malmoi.inference.output_columns import OutputColumns
from malmoi.inference.prediction import Prediction, ValuePrediction

if TYPE_CHECKING:
    import pandas as pd

# Rows that a notebook and a terminal show.
_SHOWN = 10


class Predictions(list[Prediction]):
    """A list of N predictions that is shown as a table.

    Args:
        found: the predictions, in the order of the texts.
        columns: what a table of them has.
        index: of the column that the texts are from; None: numbers from 0.
    """

    def __init__(self, found: Iterable[Prediction], columns: OutputColumns, index: Any) -> None:
        super().__init__(found)
        self._columns, self._index = columns, index

    @property
    def label(self) -> list[str]:
        """The label of each text; several are joined."""
        return [one.label for one in self]

    @property
    def confidence(self) -> list[float]:
        """The probability of each label, 0 to 1; of values not a number."""
        return [one.confidence for one in self]

    @property
    def value(self) -> list[float]:
        """The value of each text, of a model of values."""
        return [one.value for one in self if isinstance(one, ValuePrediction)]

    def to_frame(self) -> pd.DataFrame:
        """The columns that `Classifier.predict_frame` adds, with the index of the texts."""
        return self._frame(len(self))

    def _frame(self, rows: int) -> pd.DataFrame:
        import pandas as pd

        cells = [self._columns.cells(one) for one in self[:rows]]
        index = None if self._index is None else self._index[:rows]
        return pd.DataFrame(cells, columns=self._columns.names(()), index=index)

    def __repr__(self) -> str:
        """The first ones, a line each."""
        lines = [
            one.label if isinstance(one, ValuePrediction) else f"{one.label} ({one.confidence:.2f})"
            for one in self[:_SHOWN]
        ]
        more = [f"... {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        return f"<{len(self):,} predictions: {', '.join(lines + more)}>"

    def _repr_html_(self) -> str:
        """The first ones as a table, for a notebook."""
        html: str = self._frame(_SHOWN)._repr_html_()  # type: ignore[operator]
        return f"{html}<p>{len(self):,} predictions</p>" if len(self) > _SHOWN else html
