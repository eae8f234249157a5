"""What every format of tables is turned into: a header, its first rows, and a stream of all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# Number (a line of a text file, a row of a sheet or of a Parquet file), name of the sheet where
# several are read, and cells.
Row = tuple[int, str, Sequence[object]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A header, and a way to stream the rows below it.

    Attributes:
        columns: the header as written; numbers from 1 where there is none.
        sample: the first rows, whole.
        read: given column positions, and those of them that a row must reach to be whole, yields
            each row with its cells at these positions. To be called once.
    """

    columns: list[str]
    sample: Sequence[Sequence[object]]
    read: Callable[[Sequence[int], Sequence[int]], Iterator[Row]]
