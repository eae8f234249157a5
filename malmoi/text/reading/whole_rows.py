"""Rows of any file with all their columns, for who writes them again with more beside."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from malmoi.errors import InputError
from malmoi.text.public.fetched import layout_of
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.columns import PAIR_COLUMNS, ColumnRequest, cell_text, whole_characters
from malmoi.text.reading.delimiters import Shape
from malmoi.text.reading.json_rows import json_rows, places_of_keys, sampled
from malmoi.text.reading.notes import ReadingNotes, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import refuse_nothing, rows_of_sources, shape_of_file, texts_of
from malmoi.text.reading.sources import Source
from malmoi.text.reading.tables import no_rows, open_table, places_in

# The one column of a plain list of texts.
LINE_COLUMN = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeRow:
    """One row.

    Attributes:
        cells: by column, in the order of the file: texts, numbers, dates, lists.
        text: of the text column.
        pair: of the pair column; None where none was asked for.
        text_column: which of the cells the text is.
        source: name of the file.
        place: in it: a line, or a sheet and a row ("12", "sheet:12").
    """

    cells: Mapping[str, Any]
    text: str
    pair: str | None = None
    text_column: str = LINE_COLUMN
    source: str = ""
    place: str = ""


def iter_whole_rows(
    sources: Sequence[Source],
    options: ReadOptions,
    *,
    pair_column: str | None = None,
    notes: ReadingNotes | None = None,
    bad: BadRows | None = None,
) -> Iterator[WholeRow]:
    """Stream the rows of sources, read as `malmoi.text.reading.records` reads them.

    Args:
        sources: files.
        options: what the user said of them.
        pair_column: name or number of the column of second texts.
        notes: gets how each file is read.
        bad: gets rows that cannot be read; by default, options say what becomes of them.

    Raises:
        InputError: as `malmoi.text.reading.records.iter_records`; for bad rows once all were seen.
    """
    notes = notes or ReadingNotes()

    def of_source(source: Source, bad: BadRows) -> Iterator[WholeRow]:
        return _rows(source, options, pair_column, notes, bad)

    bad = bad or BadRows(skip=options.skip_bad_rows)
    return rows_of_sources(sources, of_source, bad, notes)


def known_pair(source: Source, options: ReadOptions) -> tuple[str, str] | None:
    """The columns of first and second texts by a known pair of names; None of a file without."""
    for text, pair in PAIR_COLUMNS:
        if options.text_column not in (None, text):
            continue
        try:
            rows = iter_whole_rows([source], replace(options, text_column=text), pair_column=pair)
            next(iter(rows), None)
        except InputError:
            continue
        return text, pair
    return None


def _rows(
    source: Source,
    options: ReadOptions,
    pair_column: str | None,
    notes: ReadingNotes,
    bad: BadRows,
) -> Iterator[WholeRow]:
    found = SourceNotes(source=source.name)
    refuse_nothing(source)
    plain = options == ReadOptions(skip_bad_rows=options.skip_bad_rows)
    layout = layout_of(source) if plain else None
    request = ColumnRequest(text=options.text_column)
    if layout is not None:
        request = replace(request, text=layout.texts[0], header=layout.header)
        if len(layout.texts) > 1:
            pair_column = pair_column or layout.texts[1]
    before = bad.count
    if source.format in (".jsonl", ".json"):
        yield from _json(source, request, pair_column, found, notes, bad)
    else:
        laid_out = request.header is not None
        shape = Shape(delimiter="\t") if laid_out else shape_of_file(source, options)
        if shape is not None and not shape.delimiter:
            if options.text_column is not None or pair_column is not None:
                raise InputError(
                    f"{source.shown}: expected columns, found a plain list of texts, one a line; "
                    "leave out the names of columns, or name what parts them by --delimiter"
                )
            for place, (number, text) in enumerate(texts_of(source, found, shape)):
                if not place:
                    notes.opened(found)
                yield WholeRow(
                    cells={LINE_COLUMN: text}, text=text, source=source.name, place=str(number)
                )
            return
        yield from _table(source, shape, options, request, pair_column, found, notes, bad)
    if bad.skip and bad.count > before:
        found.counts["rows that could not be read, left out"] += bad.count - before


def _table(
    source: Source,
    shape: Shape | None,
    options: ReadOptions,
    request: ColumnRequest,
    pair_column: str | None,
    found: SourceNotes,
    notes: ReadingNotes,
    bad: BadRows,
) -> Iterator[WholeRow]:
    if shape is not None and shape.text is not None and request.text is None:
        request = replace(request, text=str(shape.text))  # the cells told which it is
    empty = True
    with open_table(source, shape, request, options, found, bad) as table:
        places = places_in(table, request, source)
        text = places.text
        pair = None
        if pair_column is not None:
            pair = ColumnRequest(text=pair_column).locate(table.columns, source.shown).text
        names = distinct_names(table.columns)
        found.text, found.passed_over = table.columns[text], places.passed_over
        found.pair = None if pair is None else table.columns[pair]
        notes.opened(found)
        needed = [text] if pair is None else [text, pair]
        for number, part, cells in table.read(range(len(names)), needed):
            empty = False
            place = f"{part}:{number}" if part else str(number)
            where = f"{source.shown}:{place}"
            try:
                yield WholeRow(
                    cells=dict(zip(names, cells, strict=True)),
                    text=cell_text(cells[text], where),
                    pair=None if pair is None else cell_text(cells[pair], where),
                    text_column=names[text],
                    source=source.name,
                    place=place,
                )
            except InputError as error:
                bad.add(error)
    if empty and not bad.count:
        raise no_rows(source)


def _json(
    source: Source,
    request: ColumnRequest,
    pair_column: str | None,
    found: SourceNotes,
    notes: ReadingNotes,
    bad: BadRows,
) -> Iterator[WholeRow]:
    rows = json_rows(source, found, bad)
    first, keys, sample = sampled(rows)
    if not first:
        if bad.count:
            return
        raise EmptySourceError(f"{source.shown}: expected JSON objects, found none; add texts")
    at_first = f"{source.shown}:{first[0][0]}"
    places = places_of_keys(keys, at_first, sample, request, source)
    text_key = keys[places.text]
    pair_request, pair_key = ColumnRequest(text=pair_column), None
    if pair_column is not None:
        pair_key = keys[pair_request.locate(keys, at_first).text]
    found.text, found.passed_over, found.pair = text_key, places.passed_over, pair_key
    notes.opened(found)
    for number, row in chain(first, rows):
        where = f"{source.shown}:{number}"
        try:
            yield WholeRow(
                cells={whole_characters(key): cell for key, cell in own_cells(row).items()},
                text=text_of_object(row, text_key, request, where),
                pair=(
                    None if pair_key is None else text_of_object(row, pair_key, pair_request, where)
                ),
                text_column=whole_characters(text_key),
                source=source.name,
                place=str(number),
            )
        except InputError as error:
            bad.add(error)


def text_of_object(row: Mapping[str, Any], key: str, request: ColumnRequest, where: str) -> str:
    """The text of a JSON object; of one without the key, what its own keys say.

    Raises:
        InputError: it has none, or something that is no text.
    """
    if key not in row:
        keys = list(row)
        key = keys[request.locate(keys, where).text]
    return cell_text(row[key], where)


def own_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without the cells that `malmoi.text.reading.nested` has added for what is inside."""

    def is_inner(key: str) -> bool:
        parts = key.split(".")
        for number in range(1, len(parts)):
            outer, inner = row.get(".".join(parts[:number])), ".".join(parts[number:])
            if isinstance(outer, dict) and inner in outer and outer[inner] is row[key]:
                return True
        return False

    return {key: cell for key, cell in row.items() if not is_inner(key)}


def distinct_names(columns: Sequence[str]) -> list[str]:
    """The columns as cells name them: one without a name by its place, a name that comes again with
    a number behind."""
    names: list[str] = []
    for number, column in enumerate(columns, 1):
        name = column.strip("\ufeff ") or f"column {number}"
        free, again = name, 2
        while free in names:
            free, again = f"{name} ({again})", again + 1
        names.append(free)
    return names
