"""Any file as a table: lists of texts, chats, CSV, TSV, JSON, Excel, Parquet and Arrow, each
streamed, each with its own line numbers."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import BinaryIO

from malmoi.errors import InputError
from malmoi.messages import Flag
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.chats import is_chat, messages, speakers
from malmoi.text.reading.columns import (
    SAMPLE_ROWS,
    ColumnPlaces,
    ColumnRequest,
    has_text_column,
    header_below,
    shown_columns,
)
from malmoi.text.reading.decoding import UNDECODED, TextFile, shown_encoding
from malmoi.text.reading.delimited import delimited_table
from malmoi.text.reading.delimiters import (
    SAMPLE_LINES,
    Shape,
    delimiter_of_table,
    headerless_shape,
    named_delimiter,
    shape_of_lines,
)
from malmoi.text.reading.formats import HEAD_BYTES, TEXT_FORMATS, refuse_another_kind
from malmoi.text.reading.frames import frame_table
from malmoi.text.reading.json_rows import json_table
from malmoi.text.reading.nested import texts_inside
from malmoi.text.reading.notes import BLANK_LINES, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sheets import open_sheets
from malmoi.text.reading.sources import Source
from malmoi.text.reading.table import Table
from malmoi.text.reading.workbooks import SHEET_COLUMNS
from malmoi.text.record import LINE_COLUMN

_LFS = b"version https://git-lfs.github.com/spec/"
# What one table held in memory may be (assumptions): as many columns as a sheet has, 32 of them for
# a full sheet, and a few times the characters of the largest upload.
MOST_COLUMNS = SHEET_COLUMNS
MOST_CELLS = 1 << 25
MOST_CHARACTERS = 1 << 28


@contextmanager
def open_table(
    source: Source,
    request: ColumnRequest,
    options: ReadOptions,
    notes: SourceNotes,
    bad: BadRows,
    *,
    keep_blank: bool = False,
) -> Iterator[Table]:
    """Open a file of any format as a table; it is opened once.

    Args:
        request: the columns that a sheet of a workbook must have to be read, and the header of a
            file without one.
        keep_blank: give rows below the header that hold nothing, too.

    Raises:
        InputError: here or while reading: the file is empty, damaged or malformed.
    """
    if source.frame is not None:
        yield frame_table(source.frame, notes)
        return
    with source.open_stored() as stored:
        _refuse_nothing(source, stored)
        if source.format in TEXT_FORMATS:
            with source.unpacked(stored) as stream:
                text = TextFile(stream, source, skip_undecoded=bad.skip)
                notes.encoding = shown_encoding(text.encoding)
                try:
                    table = _text_table(text, source, request, options, notes, bad, keep_blank)
                    yield table if text.undecoded is None else _decoded(table, text.undecoded, bad)
                finally:
                    text.close()
        elif source.format == ".xlsx":
            with open_sheets(
                source,
                stored,
                request,
                notes,
                bad,
                sheet=options.sheet,
                no_header=options.no_header,
                keep_blank=keep_blank,
            ) as table:
                yield table
        else:
            # A tenth of a second that other files do without.
            from malmoi.text.reading.arrow_tables import arrow_table, parquet_table

            table_of = arrow_table if source.format == ".arrow" else parquet_table
            yield table_of(source, stored, notes)


def _refuse_nothing(source: Source, stored: BinaryIO) -> None:
    """Refuse what is no file of its kind at all, and may be left out of a folder."""
    head = stored.read(HEAD_BYTES)
    stored.seek(0)
    if not head:
        raise EmptySourceError("the file is empty; expected texts in it", place=source.shown)
    if head.startswith(_LFS):
        raise EmptySourceError(
            "expected texts, found a pointer of Git LFS; fetch the file itself with git lfs pull",
            place=source.shown,
        )
    refuse_another_kind(head, source.name, source.shown)


def _text_table(
    text: TextFile,
    source: Source,
    request: ColumnRequest,
    options: ReadOptions,
    notes: SourceNotes,
    bad: BadRows,
    keep_blank: bool,
) -> Table:
    if source.format in (".jsonl", ".json"):
        return json_table(text, source, notes, bad, request.text)
    if request.header is not None:
        shape = Shape(delimiter="\t")
    else:
        lines = [line.removesuffix("\n") for line in islice(text.lines(), 2 * SAMPLE_LINES)]
        lines = [line for line in lines if line.strip()][:SAMPLE_LINES]
        shape = _shape(source, lines, options)
    if not shape.delimiter:
        return _list_table(text, source, shape, notes, keep_blank)
    return delimited_table(
        text, source, shape, notes, bad, header=request.header, keep_blank=keep_blank
    )


def _decoded(table: Table, error: InputError, bad: BadRows) -> Table:
    """The rows of a table whose cells have decoded, as far as they are read.

    Args:
        table: of a file in which some bytes do not decode.
        error: what says so.
        bad: gets the other rows.

    Raises:
        InputError: its header has not decoded.
    """

    def is_whole(number: int, cells: Iterable[object]) -> bool:
        if not any(isinstance(cell, str) and UNDECODED.search(cell) for cell in cells):
            return True
        place, _, _ = (error.place or "").rpartition(":")
        bad.add(InputError(error.reason, place=f"{place}:{number}"))
        return False

    if any(map(UNDECODED.search, table.columns)):
        raise error
    return replace(
        table,
        read=lambda picks, needed: (
            row for row in table.read(picks, needed) if is_whole(row[0], row[2])
        ),
        objects=table.objects
        and (row for row in table.objects if is_whole(row[0], row[1].values())),
    )


def _shape(source: Source, lines: Sequence[str], options: ReadOptions) -> Shape:
    """What kind of table a text file is; without a delimiter, it is one text a line.

    Args:
        lines: its first lines that are not blank.

    Raises:
        InputError: it is a table whose text column cannot be told.
    """
    text = options.text_column
    given = None if options.delimiter is None else named_delimiter(options.delimiter)
    if source.format == ".txt":
        if given is None and is_chat(lines, source.shown):
            return Shape(delimiter="", is_chat=True)
        if given is None and not options.no_header:
            return shape_of_lines(lines, text, source.shown)
        if given is None:
            given = delimiter_of_table(lines, "\t", text)
    elif given is None:
        given = delimiter_of_table(lines, "\t" if source.format == ".tsv" else ",", text)
    if options.no_header and given:
        return headerless_shape(lines, given, text, source.shown, certain=True)
    return Shape(delimiter=given)


def _list_table(
    text: TextFile, source: Source, shape: Shape, notes: SourceNotes, keep_blank: bool
) -> Table:
    """One text a line that is not blank, or one a message of a chat; blank lines are counted."""
    if shape.is_chat:
        notes.form = "chat"
        names = speakers(text.lines())
        texts = messages(_numbered(text), names)
    else:
        notes.form = "lines"
        texts = _lines(text, notes, keep_blank)
    sample = list(islice(texts, SAMPLE_ROWS))
    if not any(line for _, line in sample):
        raise EmptySourceError(
            "expected texts, found only blank lines; add texts", place=source.shown
        )
    return Table(
        columns=[LINE_COLUMN],
        sample=[[line] for _, line in sample if line],
        read=lambda picks, _: (
            (n, "", [line] * len(picks) if line else ()) for n, line in chain(sample, texts)
        ),
        is_list=True,
    )


def _numbered(text: TextFile) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.lines(), 1):
        yield number, line.removesuffix("\n")


def _lines(text: TextFile, notes: SourceNotes, keep_blank: bool) -> Iterator[tuple[int, str]]:
    """Numbered lines; blank ones are counted and left out, or empty."""
    for number, line in _numbered(text):
        if line and not line.isspace():
            yield number, line
        elif keep_blank:
            yield number, ""
        else:
            notes.counts[BLANK_LINES] += 1


def places_in(table: Table, request: ColumnRequest, source: Source) -> ColumnPlaces:
    """Where a table has the columns that are asked for.

    Raises:
        InputError: they are not there; a row below that looks like the header is named.
    """
    if table.is_list:
        _refuse_columns_of_list(request, source)
        return ColumnPlaces(text=0, label=None, id=None)
    if table.text is not None and request.text is None:
        # The cells told which it is.
        known = table.label is not None and request.wants_label
        label = request.label or (str(table.label) if known else None)
        request = replace(request, text=str(table.text), label=label)
    try:
        return request.locate(table.columns, source.shown, table.sample)
    except InputError as error:
        if table.objects is not None:
            _refuse_texts_inside(table, request, source)
        if has_text_column(table.columns, request.text):
            raise
        if table.objects is not None:
            # Such an object may be a file about the others.
            if source.format != ".json" or request.text is not None:
                raise
            raise EmptySourceError(
                "no text column: name one of {columns} with --text-column",
                place=source.shown,
                columns=shown_columns(table.columns),
            ) from error
        below = header_below(table.sample, request.text)
        if below is None:
            raise
        raise InputError(
            "{error}; row {below} below it looks like the header: delete what is above that",
            place=error.place,
            error=error.reason,
            below=below,
        ) from error


def _refuse_texts_inside(table: Table, request: ColumnRequest, source: Source) -> None:
    """Name the paths to texts where no column has them; a row of each item is made by such a path.

    Raises:
        InputError: there are some.
    """
    if ColumnRequest(text=request.text).fits(table.columns, table.sample):
        return
    rows = (dict(zip(table.columns, row, strict=True)) for row in table.sample)
    if paths := texts_inside(rows):
        raise InputError(
            "no text column: the texts are inside objects or lists; name where by --text-column, "
            "as one of {paths:, }",
            place=source.shown,
            paths=[f"{path} ({text})" for path, text in paths.items()],
        )


def _refuse_columns_of_list(request: ColumnRequest, source: Source) -> None:
    if request.wants_label:
        raise InputError(
            "expected labels, found a plain list of texts; give a table (.csv, .tsv, .jsonl, "
            ".parquet, .xlsx) with a text column and a label column",
            place=source.shown,
        )
    if request.text is not None or request.pair is not None or request.any_pair:
        raise InputError(
            "expected a column {column!r}, found a plain list of texts, one a line; leave out "
            "--text-column, or name what parts the columns by {flag}",
            place=source.shown,
            column=request.text or request.pair,
            flag=Flag("--delimiter"),
        )


def no_rows(source: Source) -> EmptySourceError:
    """The error for a header with nothing below it."""
    return EmptySourceError(
        "expected rows below the header, found none; add texts", place=source.shown
    )


def _refuse_twins(columns: Sequence[str], source: Source) -> None:
    twins = [name for name, count in Counter(columns).items() if count > 1]
    if twins:
        raise InputError(
            "expected different column names, found {twins} twice; rename one",
            place=source.shown,
            twins=shown_columns(twins),
        )


class HeldTable:
    """Counts what of a table is in memory: a small compressed file may hold any number of cells."""

    def __init__(self, source: Source) -> None:
        self._shown = source.shown
        self._rows = self._characters = 0

    def add(self, cells: Collection[object], *, columns: int, rows: int = 1) -> None:
        """Count rows of cells.

        Args:
            cells: those of the last of these rows; the others are blank.
            columns: of the whole table, as far as it is known.
            rows: how many they are.

        Raises:
            InputError: it has become too large.
        """
        self._rows += rows
        self._characters += sum(len(cell) for cell in cells if isinstance(cell, str))
        if columns > MOST_COLUMNS:
            raise InputError(
                "expected at most {most:,} columns, found {columns:,}; leave only those that are "
                "needed",
                place=self._shown,
                most=MOST_COLUMNS,
                columns=columns,
            )
        if self._rows * columns > MOST_CELLS or self._characters > MOST_CHARACTERS:
            raise InputError(
                "expected a table of at most {cells:,} cells and {characters:,} characters, found "
                "more; split it into several files",
                place=self._shown,
                cells=MOST_CELLS,
                characters=MOST_CHARACTERS,
            )


def all_rows(
    table: Table, source: Source, bad: BadRows
) -> tuple[list[str], list[tuple[str, Sequence[object]]]]:
    """A whole table in memory: its header, unnamed columns numbered, and its rows.

    Returns:
        The names, and the place ("12", "sheet:12") and cells of each row.

    Raises:
        InputError: as `open_table`, or two columns have one name, or there are no rows, or it is
            too large (`HeldTable`).
    """
    held = HeldTable(source)
    stripped = [name.strip("\ufeff ") for name in table.columns]
    columns = [name or f"column {number}" for number, name in enumerate(stripped, 1)]
    held.add(columns, columns=len(columns))
    _refuse_twins(columns, source)
    # Blank rows keep their place, for whoever pastes a column back; those at the end have none, and
    # a formatted sheet has a million of them, so they are only counted.
    rows: list[tuple[str, Sequence[object]]] = []
    blank = 0
    for number, part, cells in table.read(range(len(columns)), [0]):
        if not cells:
            blank += 1
            continue
        held.add(cells, columns=len(columns), rows=blank + 1)
        place = f"{part}:{number}" if part else str(number)
        rows += [(place, [None] * len(columns))] * blank
        rows.append((place, cells))
        blank = 0
    bad.raise_all()
    if not rows:
        raise no_rows(source)
    return columns, rows
