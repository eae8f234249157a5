"""Cells of CSV files that a spreadsheet program must show as they are, and never run.

Excel takes a cell that begins with =, +, - or @ for a formula, quoted or not. Such a cell is
written with a zero-width space in front: nothing is seen of it, cleaning drops it, and every
reader of this project takes it away again. One that begins so already gets another, so what was
written comes back to the character.
"""

import re
from collections.abc import Iterable

MARK = "\u200b"
# Spreadsheets skip what cannot be seen, and take the full-width signs of East Asian keyboards too.
_RUNS = re.compile(r"[\s\x01-\x1f\u200b]*[=+\-@＝＋－＠]|\u200b*[\t\r]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def guarded(cell: str) -> str:
    """The cell as a CSV file for people holds it; a plain number such as -5 stays one.

    NUL is left out: a file that holds it is no text file, for our readers as for others.
    """
    cell = cell.replace("\x00", "")
    return MARK + cell if _RUNS.match(cell) and not _NUMBER.fullmatch(cell) else cell


def guarded_row(cells: Iterable[object]) -> list[object]:
    """A row for a `csv.writer`: texts guarded, everything else as it is."""
    return [guarded(cell) if isinstance(cell, str) else cell for cell in cells]


def unguarded(cell: str) -> str:
    """What `guarded` was given; a cell that it did not write loses no more than such a mark."""
    return cell[1:] if cell.startswith(MARK) and _RUNS.match(cell, 1) else cell
