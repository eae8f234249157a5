"""Tables in memory as a source of rows, read like a file: of pandas, Arrow, Polars, or columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from malmoi.errors import InputError
from malmoi.text.reading.columns import SAMPLE_ROWS
from malmoi.text.reading.notes import SourceNotes
from malmoi.text.reading.sources import Source
from malmoi.text.reading.table import Row, Table

# What messages and ids call it.
TABLE = "table"


def check_columns(frame: Any, named: Sequence[str]) -> None:
    """Refuse a DataFrame without these columns.

    Raises:
        InputError: one is not there, or several have its name.
    """
    for column in named:
        if column not in frame.columns:
            raise InputError(
                "expected a column {column!r} in the table, found {columns:, }",
                column=column,
                columns=list(frame.columns),
            )
        if (count := list(frame.columns).count(column)) > 1:
            raise InputError(
                "expected one column {column!r} in the table, found {count}; rename the others",
                column=column,
                count=count,
            )


def source_of_table(data: object, named: Sequence[str] = ()) -> Source:
    """A table in memory as a source; rows are counted from 1.

    Args:
        data: a DataFrame of pandas or what has `to_pandas` (Arrow, Polars, datasets), columns by
            their names, or a list of rows as dictionaries.
        named: columns that it must have.

    Raises:
        InputError: it is something else, or it has no rows, or not these columns.
    """
    import pandas as pd

    frame: Any = data
    if hasattr(frame, "to_pandas"):
        frame = frame.to_pandas()
    elif isinstance(frame, Mapping) or (
        isinstance(frame, list) and frame and all(isinstance(row, Mapping) for row in frame)
    ):
        try:
            frame = pd.DataFrame(frame)
        except ValueError as error:
            raise InputError(
                "expected columns of one length, found others ({error}); make them equal",
                error=error,
            ) from error
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            "expected a table (DataFrame) or the path of a file, found {kind}; make one with "
            "pandas.DataFrame",
            kind=type(data).__name__,
        )
    if frame.empty:
        raise InputError("expected rows, found an empty table; add texts")
    check_columns(frame, named)
    return Source(name=TABLE, shown=TABLE, frame=frame)


def frame_table(frame: Any, notes: SourceNotes) -> Table:
    """The rows of a DataFrame as those of a file; `notes` gets the form."""
    notes.form = "table"

    def cells(place: int, rows: int | None = None) -> list[object]:
        column = frame.iloc[:rows, place]
        missing = column.isna().tolist()
        return [
            None if is_missing else _plain(cell)
            for cell, is_missing in zip(column.tolist(), missing, strict=True)
        ]

    def read(picks: Sequence[int], _: Sequence[int]) -> Iterator[Row]:
        columns = {pick: cells(pick) for pick in set(picks)}
        rows = zip(*(columns[pick] for pick in picks), strict=True)
        return ((number, "", row) for number, row in enumerate(rows, 1))

    places = range(len(frame.columns))
    return Table(
        columns=[str(name) for name in frame.columns],
        sample=list(zip(*(cells(place, SAMPLE_ROWS) for place in places), strict=True)),
        read=read,
    )


def _plain(cell: Any) -> object:
    """A cell as JSON would have it: an array is a list, a set of labels too."""
    if isinstance(cell, set | frozenset | tuple):
        return list(cell)
    return cell.tolist() if hasattr(cell, "tolist") else cell
