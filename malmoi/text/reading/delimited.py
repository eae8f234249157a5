"""Tables in text files as rows: CSV with any delimiter, and TSV."""

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from malmoi.errors import InputError
from malmoi.messages import Flag
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.columns import SAMPLE_ROWS, HeaderAgain, MovedRows
from malmoi.text.reading.decoding import TextFile
from malmoi.text.reading.delimiters import Shape, shown_delimiter, unquoted
from malmoi.text.reading.notes import BLANK_LINES, HEADERS_AGAIN, SourceNotes
from malmoi.text.reading.sources import Source
from malmoi.text.reading.spreadsheet_cells import unguarded
from malmoi.text.reading.table import Row, Table

# Long enough for any text; a bound, because an unclosed quote would swallow the whole file.
LONGEST_CSV_FIELD_CHARACTERS = 1 << 24
LONGEST_CSV_ROW_CHARACTERS = 2 * LONGEST_CSV_FIELD_CHARACTERS
# After an unclosed quote the lines behind it are read again; so often, then the file is refused.
_LONG_ROW_LINES = 1_000
_MOST_LONG_ROWS = 20
# A quoted field of a TSV file that goes over more lines than these is a lone quote (assumption).
_JOINED_LINES = 10
_NUMBER = re.compile(r"\s*[-+]?\d+(?:[.,]\d+)*\s*")

Numbered = tuple[int, list[str]]


def delimited_table(
    text: TextFile,
    source: Source,
    shape: Shape,
    notes: SourceNotes,
    bad: BadRows,
    *,
    header: Sequence[str] | None = None,
    keep_blank: bool = False,
) -> Table:
    """The table in a text file.

    Args:
        text: the file, open.
        shape: its delimiter, and whether its first row is a header.
        notes: gets the delimiter and what is counted.
        bad: gets the rows that cannot be read.
        header: names of the columns where no row has them.
        keep_blank: give blank lines, too.

    Raises:
        InputError: there is nothing in it.
    """
    tabs = shape.delimiter == "\t"
    notes.form, notes.delimiter = "table", shown_delimiter(shape.delimiter)
    lines = text.lines(keep_newlines=not tabs)
    if tabs:
        rows = _tsv_rows(((n, line.removesuffix("\n")) for n, line in enumerate(lines, 1)), notes)
    else:
        rows = _csv_rows(lines, shape.delimiter, source, bad)
    first = _first_row(rows, source, notes, bad)
    convert = _tsv_cell if tabs else unguarded
    if header is None and shape.has_header:
        columns = [convert(name) for name in first[1]]
    else:
        columns = list(header or map(str, range(1, len(first[1]) + 1)))
        rows = chain([first], rows)
    advice = (
        "a field cannot contain a tab or a line break; save such texts as .csv"
        if tabs
        else f"quote a field that contains a {shown_delimiter(shape.delimiter)}"
    )
    reader = _Reader(source, columns, notes, bad, keep_blank, advice, convert)
    if header is None and shape.has_header:
        reader.header = HeaderAgain(first[1])
    sample = list(islice(rows, SAMPLE_ROWS))
    reader.look_at(sample)
    return Table(
        columns=columns,
        sample=[[convert(cell) for cell in row] for _, row in sample if not _is_blank(row)],
        read=lambda picks, needed: reader.read(chain(sample, rows), picks, needed),
        text=shape.text,
        label=shape.label,
    )


def _first_row(
    rows: Iterator[Numbered], source: Source, notes: SourceNotes, bad: BadRows
) -> Numbered:
    """The first row that is not blank.

    Raises:
        InputError: there is none, or none that can be read.
    """
    before = bad.count
    first = None
    for line, row in rows:
        if not _is_blank(row):
            first = line, row
            break
        notes.counts[BLANK_LINES] += 1
    if first is None and bad.count > before:
        raise InputError(
            "expected rows parted by {delimiter}s, found none that can be read ({error}); name "
            "what parts the columns by {flag}",
            place=source.shown,
            delimiter=notes.delimiter,
            error=bad.first[-1],
            flag=Flag("--delimiter"),
        )
    if first is None:
        raise EmptySourceError("the file is empty; expected a header and rows", place=source.shown)
    return first


def _is_blank(row: Sequence[str]) -> bool:
    """Whether there is nothing on the line; a line of delimiters is a row of empty cells."""
    return not row or (len(row) == 1 and not row[0].strip(" \ufeff"))


class _Reader:
    """Rows of a table of which the header is known: whole ones, and what can be made whole."""

    header: HeaderAgain | None = None

    def __init__(
        self,
        source: Source,
        columns: Sequence[str],
        notes: SourceNotes,
        bad: BadRows,
        keep_blank: bool,
        advice: str,
        convert: Callable[[str], str],
    ) -> None:
        self._source, self._notes, self._bad = source, notes, bad
        self._width, self._keep_blank = len(columns), keep_blank
        self._advice, self._convert = advice, convert
        self._numeric: list[int] = []
        self._sample: list[list[str]] = []

    def look_at(self, sample: Sequence[Numbered]) -> None:
        """Learn from the first rows which columns hold numbers."""
        self._sample = whole = [row for _, row in sample if len(row) == self._width]
        for place in range(self._width):
            filled = [row[place] for row in whole if row[place].strip()]
            if filled and all(map(_NUMBER.fullmatch, filled)):
                self._numeric.append(place)

    def read(
        self, rows: Iterator[Numbered], picks: Sequence[int], needed: Sequence[int]
    ) -> Iterator[Row]:
        convert = self._convert
        moved = MovedRows(self._sample, needed[0])
        for line, row in rows:
            if _is_blank(row):
                if self._keep_blank:
                    yield line, "", ()
                else:
                    self._notes.counts[BLANK_LINES] += 1
                continue
            if row[0].startswith("\ufeff"):  # of a file that was put behind another
                # Quotes behind such a mark are not at the beginning of a field.
                row = [unquoted(row[0][1:]), *row[1:]]
            if self.header is not None and self.header(row):
                # What appending crawlers write at every start.
                self._notes.counts[HEADERS_AGAIN] += 1
                continue
            if len(row) != self._width:
                if not self._can_be_whole(row, needed):
                    self._bad.add(
                        InputError(
                            "expected {width} fields as in the header, found {count}; {advice}",
                            place=f"{self._source.shown}:{line}",
                            width=self._width,
                            count=len(row),
                            advice=self._advice,
                        )
                    )
                    continue
                row = [*row, *[""] * self._width][: self._width]
            if fault := moved.fault(row):
                self._bad.add(InputError(fault, place=f"{self._source.shown}:{line}"))
                continue
            yield line, "", [convert(row[pick]) for pick in picks]

    def _can_be_whole(self, row: Sequence[str], needed: Sequence[int]) -> bool:
        """Whether only empty fields are too many, or only last ones that nobody reads too few.

        A row that a line break has cut in two is short as well: its halves have words where the
        others have numbers.
        """
        if len(row) > self._width:
            return not any(cell.strip() for cell in row[self._width :])
        if max(needed) >= len(row):
            return False
        numbers = [row[place] for place in self._numeric if place < len(row)]
        if not all(_NUMBER.fullmatch(cell) or not cell.strip() for cell in numbers):
            return False
        self._notes.counts["rows that end before their last fields, taken as whole"] += 1
        return True


def _csv_rows(
    text: io.TextIOWrapper, delimiter: str, source: Source, bad: BadRows
) -> Iterator[Numbered]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CSV_FIELD_CHARACTERS))
    again: deque[str] = deque()
    taken: list[str] = []  # lines of the row that is being read

    def lines() -> Iterator[str]:
        # Each line may close a quote and open the next: no field is long, the row never ends.
        held = 0
        while True:
            if not taken:
                held = 0
            line = again.popleft() if again else next(text, None)
            if line is None:
                return
            taken.append(line)
            held += len(line)
            if held > LONGEST_CSV_ROW_CHARACTERS:
                raise InputError(
                    "expected a CSV row, found one of more than {most:,} characters; close the "
                    "quote that opens in it",
                    place=f"{source.shown}:{number}",
                    most=LONGEST_CSV_ROW_CHARACTERS,
                )
            yield line

    number, long_rows = 1, 0
    # strict: otherwise an unclosed quote takes the rest of the file as one field, silently.
    reader = csv.reader(lines(), strict=True, delimiter=delimiter)
    while True:
        taken.clear()
        try:
            row = next(reader, None)
        except csv.Error as error:
            long_rows += len(taken) > _LONG_ROW_LINES
            bad.add(_bad_csv_row(source, number, error))
            if long_rows > _MOST_LONG_ROWS:
                raise InputError(
                    "expected quotes that close, found more than {most} that do not, the last at "
                    "line {number}; repair them",
                    place=source.shown,
                    most=_MOST_LONG_ROWS,
                    number=number,
                ) from error
            # Only the line where the row began is bad; those behind it may be rows of their own.
            again.extendleft(reversed(taken[1:]))
            number += 1
            reader = csv.reader(lines(), strict=True, delimiter=delimiter)
            continue
        if row is None:
            return
        yield number, row
        number += len(taken)


def _bad_csv_row(source: Source, line: int, error: csv.Error) -> InputError:
    if "field limit" in str(error):
        return InputError(
            "expected a CSV row, found a field of more than {most:,} characters; close the quote "
            "that opens it, or take the row out",
            place=f"{source.shown}:{line}",
            most=LONGEST_CSV_FIELD_CHARACTERS,
        )
    return InputError(
        "expected a CSV row, found one with broken quoting ({error}); close the quote and double "
        "the quotes inside a field",
        place=f"{source.shown}:{line}",
        error=error,
    )


def _tsv_rows(lines: Iterator[tuple[int, str]], notes: SourceNotes) -> Iterator[Numbered]:
    """One row a line and no quoting (IANA text/tab-separated-values): NSMC holds lone quotes.

    Save where a quoted field goes on in the next lines, as pandas and Excel write it.
    """
    again: deque[tuple[int, str]] = deque()
    width = 0
    while True:
        item = again.popleft() if again else next(lines, None)
        if item is None:
            return
        number, line = item
        row = line.split("\t")
        width = width or (0 if _is_blank(row) else len(row))
        opened = row and row[-1].startswith('"') and row[-1].count('"') % 2 == 1
        if opened and (len(row) < width or width == 1):
            ahead: list[tuple[int, str]] = []
            while len(ahead) < _JOINED_LINES:
                following = again.popleft() if again else next(lines, None)
                if following is None:
                    break
                ahead.append(following)
                joined = "\n".join([line, *(part for _, part in ahead)]).split("\t")
                fields = [field for field in joined if "\n" in field]
                closed = bool(fields) and all(unquoted(field) != field for field in fields)
                if closed:
                    # One of too many fields is bad as a whole: its halves are no rows.
                    notes.counts["texts that go over several lines, joined"] += 1
                    row, ahead = joined, []
                    break
            again.extendleft(reversed(ahead))
        yield number, row


def _tsv_cell(field: str) -> str:
    return unguarded(unquoted(field))
