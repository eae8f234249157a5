"""Which sheets of a workbook are read, and their rows as those of one table."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from malmoi.errors import InputError
from malmoi.messages import Flag
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.columns import (
    SAMPLE_ROWS,
    TITLE_ROWS,
    ColumnRequest,
    HeaderAgain,
    MovedRows,
    has_text_column,
    header_below,
    plain_name,
    shown_columns,
)
from malmoi.text.reading.notes import BLANK_LINES, HEADERS_AGAIN, HIDDEN, SourceNotes
from malmoi.text.reading.sources import Source
from malmoi.text.reading.table import Row, Table
from malmoi.text.reading.workbooks import Book, ErrorCell, Sheet, holds_something, plain_cell


@contextmanager
def open_sheets(
    source: Source,
    stored: BinaryIO,
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
        stored: its bytes, open for as long as the table.
        request: which columns must be there.
        notes: gets the sheets that are read and those that are not.
        sheet: the only one to read.
        no_header: the first row of each sheet is a row like the others.
        keep_blank: give blank rows too.

    Raises:
        InputError: no sheet has the columns, or there is none of that name.
    """
    notes.form = "workbook"
    book = Book(stored, source)
    try:
        heads = _heads(book, source, sheet, no_header)
        columns, chosen = _chosen(book, heads, request, notes, source, no_header)
        reader = _SheetReader(source, chosen, notes, bad, keep_blank, no_header)
        reader.columns = columns
        sample = reader.sample()
        yield Table(
            columns=reader.columns,
            sample=sample,
            read=reader.read,
            formats=lambda: chosen[0].formats(SAMPLE_ROWS),
        )
    finally:
        book.close()


@dataclass(frozen=True)
class _Head:
    """A sheet that holds something: its header and its first rows."""

    sheet: Sheet
    names: list[str]
    sample: list[Sequence[object]]

    @property
    def plain(self) -> tuple[str, ...]:
        """The header as it is compared."""
        return tuple(map(plain_name, self.names))


def _heads(book: Book, source: Source, sheet: str | None, no_header: bool) -> list[_Head]:
    titles = [one.title for one in book.sheets]
    if sheet is not None and sheet not in titles:
        raise InputError(
            "expected a sheet {sheet!r}, found {titles}; give the right one as {flag}",
            place=source.shown,
            sheet=sheet,
            titles=", ".join(titles),
            flag=Flag("--sheet"),
        )
    heads = []
    for one in book.sheets:
        if one.title == sheet or (sheet is None and one.is_visible):
            filled = (cells for _, cells in one.rows() if holds_something(cells))
            first = next(filled, None)
            if first is None:
                continue
            names = _names(first)
            sample = list(islice(filled, SAMPLE_ROWS))
            if no_header:
                names = [str(number) for number in range(1, len(names) + 1)]
                sample.insert(0, first)
            heads.append(_Head(one, names, sample))
    if not heads:
        raise EmptySourceError("every sheet is empty; expected a header", place=source.shown)
    return heads


def _chosen(
    book: Book,
    heads: list[_Head],
    request: ColumnRequest,
    notes: SourceNotes,
    source: Source,
    no_header: bool,
) -> tuple[list[str], list[Sheet]]:
    """The header that is read, and the sheets that have it; the others are noted.

    Of several headers with the columns it is the one with the most rows below it.

    Raises:
        InputError: no sheet has the columns, or one would be read but for a title above its header.
    """
    fitting: dict[tuple[str, ...], list[_Head]] = {}
    refused: InputError | None = None
    for head in heads:
        alone = len(heads) == 1
        where = source.shown if alone else f"{source.shown}, sheet {head.sheet.title}"
        try:
            request.locate(head.names, where, head.sample)
        except InputError as error:
            below = None if request.any_sheet else header_below(head.sample, request.text)
            if below is not None and not has_text_column(head.names, request.text):
                error = InputError(
                    "{error}; row {below} below it looks like the header: delete what is above it",
                    place=error.place,
                    error=error.reason,
                    below=below,
                )
            refused = refused or error
            continue
        fitting.setdefault(head.plain, []).append(head)
    if not fitting and request.any_sheet:
        fitting[heads[0].plain] = [heads[0]]
    if not fitting:
        assert refused is not None
        if len(heads) == 1:
            raise refused
        shown = "; ".join(f"{h.sheet.title}: {shown_columns(h.names)}" for h in heads[:12])
        raise InputError(
            "{refused} (no sheet has the columns; the sheets and their first rows are {shown})",
            place=refused.place,
            refused=refused.reason,
            shown=shown,
        )
    plain = next(iter(fitting))
    if len(fitting) > 1:
        plain = max(fitting, key=lambda one: sum(h.sheet.filled_rows() for h in fitting[one]))
    chosen = [head for head in heads if head.plain == plain]
    if not no_header:
        titled = [head for head in heads if head.plain not in {plain, *fitting}]
        _refuse_titles(titled, chosen, request, source)
    notes.sheets_left_out += [
        (head.sheet.title, f"first row {shown_columns(head.names[:4])}")
        for head in heads
        if head.plain != plain
    ]
    notes.sheets_left_out += [(one.title, HIDDEN) for one in book.sheets if not one.is_visible]
    if len(book.sheets) > 1:
        notes.sheets = [head.sheet.title for head in chosen]
    return chosen[0].names, [head.sheet for head in chosen]


def _refuse_titles(
    left_out: Sequence[_Head], chosen: Sequence[_Head], request: ColumnRequest, source: Source
) -> None:
    """Refuse a book that has a sheet which is left out only for a title above its header.

    Such a sheet has the header of those that are chosen, or another with the columns and more rows.
    """
    rows_read: int | None = None
    for head in left_out:
        where = f"{source.shown}, sheet {head.sheet.title}"
        widest = len(list(filter(None, head.names)))
        for below, row in enumerate(head.sample[:TITLE_ROWS], 1):
            names = _names(row)
            alike = tuple(map(plain_name, names)) == chosen[0].plain
            width = len(list(filter(None, names)))
            if not alike and width > widest and request.fits(names, head.sample[below:]):
                if rows_read is None:
                    rows_read = sum(one.sheet.filled_rows() for one in chosen)
                alike = head.sheet.filled_rows() - below > rows_read
            widest = max(widest, width)
            if alike:
                raise InputError(
                    "expected the header in the first row, found {columns}; row {below} below it "
                    "looks like the header: delete what is above it, or name the sheet that is to "
                    "be read with {flag}",
                    place=where,
                    columns=shown_columns(head.names[:4]),
                    below=below,
                    flag=Flag("--sheet"),
                )


def _names(row: Sequence[object]) -> list[str]:
    """The names in a header, without the empty cells at its end."""
    names = [str(cell) if cell is not None else "" for cell in row]
    while names and not names[-1]:
        names.pop()
    return names


class _SheetReader:
    """The rows of the chosen sheets, one after another."""

    columns: Sequence[str]

    def __init__(
        self,
        source: Source,
        sheets: Sequence[Sheet],
        notes: SourceNotes,
        bad: BadRows,
        keep_blank: bool,
        no_header: bool,
    ) -> None:
        self._source, self._sheets = source, sheets
        self._notes, self._bad, self._keep_blank = notes, bad, keep_blank
        self._no_header = no_header
        self._has_remarks = False
        self._sample: list[Sequence[object]] = []

    def sample(self) -> list[Sequence[object]]:
        """The first rows of the first of these sheets; columns without a name are known then."""
        rows = self._below_header(self._sheets[0].rows(), Counter())
        found = [cells for _, cells in islice(rows, SAMPLE_ROWS) if holds_something(cells)]
        # A column without a name, for remarks, is filled often; a row that has moved is one of few.
        beyond = sum(holds_something(cells[len(self.columns) :]) for cells in found)
        self._has_remarks = beyond > len(found) / 2
        width = len(self.columns)
        while sum(holds_something(cells[width : width + 1]) for cells in found) > len(found) / 2:
            width += 1
        self.columns = [*self.columns, *[""] * (width - len(self.columns))]
        self._sample = found
        return found

    def read(self, picks: Sequence[int], needed: Sequence[int]) -> Iterator[Row]:
        moved = MovedRows(self._sample, needed[0])
        for sheet in self._sheets:
            if (bare := sheet.bare_formula(picks)) is not None:
                raise InputError(
                    "expected a value, found a formula without its result; open the file in a "
                    "spreadsheet program and save it",
                    place=f"{self._source.shown}:{bare}",
                )
            part = sheet.title if len(self._sheets) > 1 else ""
            self._refuse_wide_header(sheet, needed[0] + 1)
            spread = _Merged(sheet.marks.merged)
            rows = self._below_header(sheet.rows_with_errors(), self._notes.counts)
            for number, cells in rows:
                where = f"{self._source.shown}{f', sheet {part}' if part else ''}:{number}"
                # A row that lies in merged cells alone is the rest of the one above it.
                is_blank = not holds_something(cells)
                cells = spread.over(number, cells)
                if is_blank:
                    if self._keep_blank:
                        yield number, part, ()
                    continue
                if holds_something(cells[len(self.columns) :]):
                    if not self._has_remarks:
                        self._bad.add(
                            InputError(
                                "expected {cells} cells as in the header, found something beyond "
                                "them; move the row's cells back to their columns",
                                place=where,
                                cells=len(self.columns),
                            )
                        )
                        continue
                    self._notes.counts[
                        "rows with cells beyond the last column, which are not read"
                    ] += 1
                if errors := [cells[i] for i in needed if _is_error(cells, i)]:
                    self._bad.add(
                        InputError(
                            "expected a value, found the error {error}; correct the cell or its "
                            "formula",
                            place=where,
                            error=errors[0],
                        )
                    )
                elif fault := moved.fault(cells):
                    self._bad.add(InputError(fault, place=where))
                else:
                    yield (
                        number,
                        part,
                        [plain_cell(cells[i]) if i < len(cells) else None for i in picks],
                    )

    def _refuse_wide_header(self, sheet: Sheet, column: int) -> None:
        """Refuse a header of two rows: which of the columns below the wide cell is meant?"""
        if self._no_header:
            return
        header = next((number for number, cells in sheet.rows() if holds_something(cells)), 0)
        for top, bottom, left, right in sheet.marks.merged:
            if top <= header <= bottom and left <= column <= right and right > left:
                raise InputError(
                    "expected a name for each column, found one over {columns} columns; unmerge "
                    "it and keep one row of names",
                    place=f"{self._source.shown}:{header}",
                    columns=right - left + 1,
                )

    def _below_header(
        self, rows: Iterator[tuple[int, Sequence[object]]], counts: Counter[str]
    ) -> Iterator[tuple[int, Sequence[object]]]:
        """Those of these rows that are below the header, without repetitions of it."""
        again: HeaderAgain | None = None
        blank = 0
        for number, cells in rows:
            if not holds_something(cells):
                # A formatted sheet has a million of them below its last row.
                blank += (again is not None or self._no_header) and not self._keep_blank
            elif blank:
                counts[BLANK_LINES] += blank
                blank = 0
            if self._no_header:
                yield number, cells
            elif again is None:
                if holds_something(cells):
                    again = HeaderAgain(cells)
            elif again(cells):
                counts[HEADERS_AGAIN] += 1
            else:
                yield number, cells


class _Merged:
    """Gives each row of a merged range the value of its first cell, in the column of that cell.

    What stands over several columns says nothing about the others: it may be a note below a table.
    """

    def __init__(self, ranges: Sequence[tuple[int, int, int, int]]) -> None:
        # Ranges of one row are titles; those over several rows hold for each of them.
        self._ranges = sorted(one for one in ranges if one[1] > one[0])
        self._open: list[tuple[int, int, object]] = []

    def over(self, number: int, cells: Sequence[object]) -> Sequence[object]:
        """The cells of a row, which are asked for in their order."""
        if not self._ranges and not self._open:
            return cells
        while self._ranges and self._ranges[0][0] <= number:
            top, bottom, left, _ = self._ranges.pop(0)
            value = cells[left - 1] if top == number and left <= len(cells) else None
            self._open.append((bottom, left, value))
        self._open = [one for one in self._open if one[0] >= number]
        filled = list(cells)
        for _, left, value in self._open:
            filled += [None] * (left - len(filled))
            if filled[left - 1] is None:
                filled[left - 1] = value
        return filled


def _is_error(cells: Sequence[object], place: int) -> bool:
    return place < len(cells) and isinstance(cells[place], ErrorCell)
