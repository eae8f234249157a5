"""Which sheets of a workbook are read, and their rows as those of one table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO

from corpora.bad_rows import BadRows, EmptySourceError
from corpora.columns import SAMPLE_ROWS, ColumnRequest, plain_name, shown_columns
from corpora.errors import InputError
from corpora.reading_notes import HEADERS_AGAIN, SourceNotes
from corpora.sources import Source
from corpora.table import Row, Table
from corpora.workbooks import (
    merged_ranges,
    open_book,
    plain_cell,
    refuse_bare_formulas,
    sheet_rows,
)


@contextmanager
def open_sheets(
    source: Source,
    request: ColumnRequest,
    notes: SourceNotes,
    bad: BadRows,
    *,
    sheet: str | None = None,
    no_header: bool = False,
    keep_blank: bool = False,
) -> Iterator[Table]:
    """Open a workbook: all sheets with the header of the first that has the columns.

    Args:
        source: the workbook.
        request: which columns must be there.
        notes: gets the sheets that are read and those that are not.
        bad: gets rows that cannot be read.
        sheet: the only one to read.
        no_header: the first row of each sheet is a row like the others.
        keep_blank: give blank rows too.

    Raises:
        InputError: no sheet has the columns, or there is none of that name.
    """
    notes.form = "workbook"
    with source.open_stored() as stored:
        book = open_book(stored, source)
        try:
            heads = _heads(book, source, sheet, no_header)
            columns, chosen = _chosen(heads, request, notes, source, no_header)
            reader = _SheetReader(source, stored, chosen, notes, bad, keep_blank, no_header)
            reader.columns = columns
            yield Table(columns=columns, sample=reader.sample(), read=reader.read)
        finally:
            book.close()


def _heads(
    book: Any, source: Source, sheet: str | None, no_header: bool
) -> list[tuple[Any, list[str]]]:
    """Each sheet that holds something, with its header."""
    titles = [one.title for one in book.worksheets]
    if sheet is not None and sheet not in titles:
        raise InputError(
            f"{source.shown}: expected a sheet {sheet!r}, found {', '.join(titles)}; give the "
            "right one as --sheet"
        )
    heads = []
    for one in book.worksheets:
        if sheet is not None and one.title != sheet:
            continue
        rows = sheet_rows(one, source)
        first = next((cells for _, cells in rows if _holds_something(cells)), None)
        if first is not None:
            names = [str(cell) if cell is not None else "" for cell in first]
            while names and not names[-1]:
                names.pop()
            if no_header:
                names = [str(number) for number in range(1, len(names) + 1)]
            heads.append((one, names))
    if not heads:
        raise EmptySourceError(f"{source.shown}: every sheet is empty; expected a header")
    return heads


def _chosen(
    heads: list[tuple[Any, list[str]]],
    request: ColumnRequest,
    notes: SourceNotes,
    source: Source,
    no_header: bool,
) -> tuple[list[str], list[Any]]:
    """The header that is read, and the sheets that have it; the others are noted."""
    taken: list[str] | None = None
    refused: InputError | None = None
    for one, names in heads:
        try:
            # Without rows: what the cells hold is looked at once the sheet is known.
            alone = len(heads) == 1
            request.locate(names, source.shown if alone else f"{source.shown}, sheet {one.title}")
        except InputError as error:
            refused = refused or error
            continue
        taken = names
        break
    if taken is None and request.any_sheet:
        taken = heads[0][1]
    if taken is None:
        assert refused is not None
        if len(heads) == 1:
            raise refused
        shown = "; ".join(f"{one.title}: {shown_columns(names)}" for one, names in heads[:12])
        raise InputError(
            f"{refused} (no sheet has the columns; the sheets and their first rows are {shown})"
        )
    plain = [plain_name(name) for name in taken]
    chosen = []
    for one, names in heads:
        if [plain_name(name) for name in names] == plain:
            chosen.append(one)
        else:
            notes.sheets_left_out.append((one.title, f"first row {shown_columns(names[:4])}"))
    if len(heads) > 1:
        notes.sheets = [one.title for one in chosen]
    return taken, chosen


class _SheetReader:
    """The rows of the chosen sheets, one after another."""

    columns: Sequence[str]

    def __init__(
        self,
        source: Source,
        stored: BinaryIO,
        sheets: Sequence[Any],
        notes: SourceNotes,
        bad: BadRows,
        keep_blank: bool,
        no_header: bool,
    ) -> None:
        self._source, self._stored, self._sheets = source, stored, sheets
        self._notes, self._bad, self._keep_blank = notes, bad, keep_blank
        self._no_header = no_header
        self._has_remarks = False

    def sample(self) -> list[Sequence[object]]:
        """The first rows of the first of these sheets."""
        rows = self._below_header(self._sheets[0])
        found = [cells for _, cells in islice(rows, SAMPLE_ROWS) if _holds_something(cells)]
        # A column without a name, for remarks, is filled often; a row that has moved is one of few.
        beyond = sum(_holds_something(cells[len(self.columns) :]) for cells in found)
        self._has_remarks = beyond > len(found) / 2
        return found

    def read(self, picks: Sequence[int], _: Sequence[int]) -> Iterator[Row]:
        """As `Table.read`."""
        for sheet in self._sheets:
            refuse_bare_formulas(self._source, self._stored, sheet, picks)
            part = sheet.title if len(self._sheets) > 1 else ""
            spread = _Merged(merged_ranges(self._source, self._stored, sheet))
            for number, cells in self._below_header(sheet):
                cells = spread.over(number, cells)
                if not _holds_something(cells):
                    if self._keep_blank:
                        yield number, part, [None] * len(picks)
                elif not self._has_remarks and _holds_something(cells[len(self.columns) :]):
                    where = f"{self._source.shown}{f', sheet {part}' if part else ''}:{number}"
                    self._bad.add(
                        InputError(
                            f"{where}: expected {len(self.columns)} cells as in the header, found "
                            f"something beyond them; move the row's cells back to their columns"
                        )
                    )
                else:
                    yield (
                        number,
                        part,
                        [plain_cell(cells[i]) if i < len(cells) else None for i in picks],
                    )

    def _below_header(self, sheet: Any) -> Iterator[tuple[int, Sequence[object]]]:
        header: list[object] | None = None
        for number, cells in sheet_rows(sheet, self._source):
            if self._no_header:
                yield number, cells
            elif header is None:
                if _holds_something(cells):
                    header = list(cells)
            elif list(cells) == header and len(self.columns) > 1:
                self._notes.counts[HEADERS_AGAIN] += 1
            else:
                yield number, cells


class _Merged:
    """Gives every cell of a merged range the value of its first."""

    def __init__(self, ranges: Sequence[tuple[int, int, int, int]]) -> None:
        # Ranges of one row are titles; those over several rows hold for each of them.
        self._ranges = sorted(one for one in ranges if one[1] > one[0])
        self._open: list[tuple[int, int, int, object]] = []

    def over(self, number: int, cells: Sequence[object]) -> Sequence[object]:
        """The cells of a row, which are asked for in their order."""
        if not self._ranges and not self._open:
            return cells
        while self._ranges and self._ranges[0][0] <= number:
            top, bottom, left, right = self._ranges.pop(0)
            value = cells[left - 1] if top == number and left <= len(cells) else None
            self._open.append((bottom, left, right, value))
        self._open = [one for one in self._open if one[0] >= number]
        filled = list(cells)
        for _, left, right, value in self._open:
            filled += [None] * (right - len(filled))
            for place in range(left - 1, right):
                filled[place] = value if filled[place] is None else filled[place]
        return filled


def _holds_something(row: Sequence[object]) -> bool:
    """Formatting without text leaves rows that hold nothing."""
    return row.count(None) < len(row)
