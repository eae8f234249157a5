"""What every format of files is turned into: a header, its first rows, and a stream of all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

# Number (a line of a text file, a row of a sheet or of a Parquet file), name of the sheet where
# several are read, and cells.
Row = tuple[int, str, Sequence[object]]
# Number of the line where it begins, and content.
JsonRow = tuple[int, dict[str, Any]]


def _no_rows(_: Sequence[int], __: Sequence[int]) -> Iterator[Row]:
    return iter(())


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A header, and a way to stream the rows below it.

    Attributes:
        columns: the header as written; numbers from 1 where there is none; of JSON, the keys of the
            first objects.
        sample: the first rows, whole.
        read: given column positions, and those of them that a row must reach to be whole, yields
            each row with its cells at these positions, none for a row that holds nothing. To be
            called once.
        objects: of JSON, every object with its own keys; to be gone through once, instead of
            calling `read`.
        is_list: one text a line, without columns.
        text: number of the text column from 1, where only the cells tell which it is.
        label: the same of the label column.
        types: of Parquet and Arrow, the type of each column.
        formats: of a workbook, how numbers and dates of a column are shown, by its position.
    """

    columns: list[str]
    sample: Sequence[Sequence[object]]
    read: Callable[[Sequence[int], Sequence[int]], Iterator[Row]] = _no_rows
    objects: Iterator[JsonRow] | None = None
    is_list: bool = False
    text: int | None = None
    label: int | None = None
    types: Sequence["pyarrow.DataType"] = ()
    formats: Callable[[], Mapping[int, str]] = dict
