"""Records out of any file or folder that a user may have, in memory that does not grow with it."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from malmoi.errors import InputError
from malmoi.text.public.description import Layout
from malmoi.text.public.fetched import layout_of
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.chats import MAC_COLUMNS, is_chat, is_said, messages, speakers
from malmoi.text.reading.columns import (
    ColumnPlaces,
    ColumnRequest,
    cell_text,
    label_text,
    plain_name,
    shown_columns,
    whole_characters,
)
from malmoi.text.reading.decoding import open_text, shown_encoding
from malmoi.text.reading.delimiters import SAMPLE_LINES, Shape
from malmoi.text.reading.json_rows import json_rows, places_of_keys, refuse_unaccepted, sampled
from malmoi.text.reading.notes import BLANK_LINES, ReadingNotes, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source, find_sources, source_of_upload
from malmoi.text.reading.tables import (
    HeldTable,
    all_rows,
    no_rows,
    open_table,
    places_in,
    shape_of,
)
from malmoi.text.record import Record

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")

# To be raised when the same files give other records than before.
READER_VERSION = 5
_LFS = b"version https://git-lfs.github.com/spec/"


def iter_records(
    path: str | Path,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    need_label: bool = False,
    options: ReadOptions | None = None,
    notes: ReadingNotes | None = None,
) -> Iterator[Record]:
    """Stream the records of a file, or of every readable file below a folder.

    Rows with an empty text are yielded too: the cleaner counts them. Lines of a plain `.txt` that
    are blank are not texts. A `.txt` that is a table, or the saved messages of a chat, is read as
    such (`delimiters`, `chats`). A file of a fetched public source (beside a `SOURCE.json`) is
    read as its module in `malmoi.text.public` says, with the meaning of its labels,
    unless columns are named here. Memory is that of one batch of rows, but for `.xlsx`, whose
    strings stand in one table that has to be loaded.

    Args:
        path: a file or a folder.
        text_column: the text column, by name or number; by default the fullest and longest of those
            with a name of `malmoi.text.reading.columns.TEXT_COLUMNS` whose cells hold words.
        label_column: the label column; by default the first of `LABEL_COLUMNS`, if there is one.
        need_label: refuse a file without labels.
        options: what else the user said of the files; its `text_column` counts where none is given.
        notes: gets how each file is read.

    Raises:
        InputError: at once for a missing path or a folder without readable files; while iterating
            for a file that is empty, damaged, undecodable or malformed, or lacks a column, once all
            files were looked at.
    """
    return iter_source_records(
        find_sources(path),
        text_column=text_column,
        label_column=label_column,
        need_label=need_label,
        options=options,
        notes=notes,
    )


def iter_source_records(
    sources: Sequence[Source],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    need_label: bool = False,
    options: ReadOptions | None = None,
    notes: ReadingNotes | None = None,
) -> Iterator[Record]:
    """`iter_records` for sources that were already found; they may be of several inputs."""
    options = options or ReadOptions()
    if text_column is not None:
        options = replace(options, text_column=text_column)
    request = ColumnRequest(text=options.text_column, label=label_column, need_label=need_label)
    return _records_of_sources(sources, request, options, notes or ReadingNotes())


def load_table(
    name: str,
    data: bytes,
    options: ReadOptions | None = None,
    notes: ReadingNotes | None = None,
    bad: BadRows | None = None,
) -> "pd.DataFrame":
    """An uploaded file as a table of strings, empty cells as "".

    Args:
        name: the file's name; its suffix decides the format.
        data: its bytes.
        options: what the user said of it.
        notes: gets how it is read.
        bad: gets rows that cannot be read; by default, options say what becomes of them.

    Returns:
        All columns as `str`. A plain `.txt` has the one column `text`; JSON has the union of its
        keys.

    Raises:
        InputError: as `iter_records` does for the same file, or two columns have one name, or the
            table is too large to be held (`malmoi.text.reading.tables.HeldTable`).
    """
    import pandas as pd  # only the app wants tables, and it takes half a second

    source, options = source_of_upload(name, data), options or ReadOptions()
    bad = bad or BadRows(skip=options.skip_bad_rows)
    found = SourceNotes(source=name)
    held = HeldTable(source)
    if source.format in (".jsonl", ".json"):
        objects = []
        keys: set[str] = set()
        for line, row in json_rows(source, found, bad):
            where = f"{source.shown}:{line}"
            named = {whole_characters(key): _shown_cell(c, where) for key, c in row.items()}
            keys.update(named)
            held.add(named.values(), columns=len(keys))
            objects.append(named)
        frame = pd.DataFrame(objects, dtype="str").fillna("")
    else:
        shape = shape_of_file(source, options)
        if shape is not None and not shape.delimiter:
            texts = []
            for _, text in texts_of(source, found, shape):
                held.add((text,), columns=1)
                texts.append(text)
            frame = pd.DataFrame({"text": texts}, dtype="str")
        else:
            # Any header will do: which column is meant is asked later.
            request = ColumnRequest(text=options.text_column, any_sheet=True)
            with open_table(source, shape, request, options, found, bad, keep_blank=True) as table:
                columns, rows = all_rows(table, source, bad)
            cells = [[_shown_cell(cell, f"{name}:{n}") for cell in row] for n, row in rows]
            frame = pd.DataFrame(cells, columns=columns, dtype="str")
    bad.raise_all()
    if notes is not None:
        notes.opened(found)
    return frame


def _shown_cell(cell: object, where: str) -> str:
    """A cell of a table that is shown: lists and objects as JSON."""
    if isinstance(cell, list | dict):
        return json.dumps(cell, ensure_ascii=False)
    return cell_text(cell, where)


def _records_of_sources(
    sources: Sequence[Source], request: ColumnRequest, options: ReadOptions, notes: ReadingNotes
) -> Iterator[Record]:
    """The records of all sources; what is wrong with any of them is told once all were seen."""
    plain = request.label is None and options == ReadOptions(skip_bad_rows=options.skip_bad_rows)

    def of_source(source: Source, bad: BadRows) -> Iterator[Record]:
        layout = layout_of(source) if plain else None
        if layout is None:
            return _records(source, request, options, notes, bad)
        need_label = request.need_label
        return laid_out_records(source, layout, need_label=need_label, notes=notes, bad=bad)

    return rows_of_sources(sources, of_source, BadRows(skip=options.skip_bad_rows), notes)


def rows_of_sources(
    sources: Sequence[Source],
    of_source: Callable[[Source, BadRows], Iterator[Row]],
    bad: BadRows,
    notes: ReadingNotes,
) -> Iterator[Row]:
    """The rows of all sources; what is wrong with any of them is told once all were seen.

    Args:
        sources: in the order of reading.
        of_source: reads one of them, and takes note of its bad rows.
        bad: gets what is wrong.
        notes: gets the files that are left out because they are empty.

    Raises:
        InputError: for bad rows and files that cannot be read; where all files are empty.
    """
    empty: list[InputError] = []
    yielded = False
    for source in sources:
        try:
            for row in of_source(source, bad):
                if not bad.stops:
                    yielded = True
                    yield row
        except EmptySourceError as error:
            if len(sources) == 1:
                raise
            empty.append(error)
            notes.left_out.append(str(error))
        except InputError as error:
            if len(sources) == 1 and not bad.count:
                raise
            bad.add_file(error)
    bad.raise_all()
    if empty and not yielded:
        raise empty[0]
    notes.finished()


def laid_out_records(
    source: Source,
    layout: Layout,
    *,
    need_label: bool = False,
    notes: ReadingNotes | None = None,
    bad: BadRows | None = None,
) -> Iterator[Record]:
    """The records of one file of a public source.

    Of pairs, first the one text of all rows and then the other, their columns in their ids.

    Args:
        source: the file.
        layout: which columns it has.
        need_label: refuse it without labels.
        notes: gets how it is read.
        bad: gets rows that cannot be read, for whoever reads other files too; None raises for
            them.

    Raises:
        InputError: as `iter_records`, or a label without a meaning.
    """
    for text in layout.texts:
        request = ColumnRequest(
            text=text,
            label=layout.label,
            need_label=need_label,
            header=layout.header,
            names=layout.names,
        )
        rows = BadRows() if bad is None else bad
        for record in _records(source, request, ReadOptions(text_column=text), notes, rows):
            alone = len(layout.texts) == 1
            if not rows.stops:
                yield record if alone else replace(record, id=f"{record.id}:{text}")
        if bad is None:
            rows.raise_all()


def _records(
    source: Source,
    request: ColumnRequest,
    options: ReadOptions,
    notes: ReadingNotes | None,
    bad: BadRows,
) -> Iterator[Record]:
    found = SourceNotes(source=source.name)
    before = bad.count
    refuse_nothing(source)
    if source.format in (".jsonl", ".json"):
        records = _json_records(source, request, found, notes, bad)
    elif request.header is not None:
        records = _table_records(source, Shape(delimiter="\t"), request, options, found, notes, bad)
    else:
        shape = shape_of_file(source, options)
        if shape is not None and not shape.delimiter:
            records = _line_records(source, shape, request, found, notes)
        else:
            records = _table_records(source, shape, request, options, found, notes, bad)
    yield from records
    if bad.skip and bad.count > before:
        found.counts["rows that could not be read, left out"] += bad.count - before


def shape_of_file(source: Source, options: ReadOptions) -> Shape | None:
    """What kind of table a text file is; None for a file of another kind."""
    if source.format not in (".txt", ".csv", ".tsv"):
        return None
    with open_text(source) as text:
        lines = [line.removesuffix("\n") for line in islice(text, 2 * SAMPLE_LINES)]
    lines = [line for line in lines if line.strip()][:SAMPLE_LINES]
    if source.format == ".txt" and options.delimiter is None and is_chat(lines):
        return Shape(delimiter="", is_chat=True)
    return shape_of(source, lines, options)


def refuse_nothing(source: Source) -> None:
    """Refuse what is no file of its kind at all, and may be left out of a folder."""
    with source.open_stored() as stored:
        head = stored.read(len(_LFS))
    if not head:
        raise EmptySourceError(f"{source.shown}: the file is empty; expected texts in it")
    if head == _LFS:
        raise EmptySourceError(
            f"{source.shown}: expected texts, found a pointer of Git LFS; fetch the file itself "
            "with git lfs pull"
        )


def texts_of(source: Source, found: SourceNotes, shape: Shape) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank, or of each message of a chat.

    Blank lines are counted in `found`.
    """
    empty = True
    with open_text(source) as text:
        found.form, found.encoding = "lines", shown_encoding(text.encoding)
        numbered = ((n, line.removesuffix("\n")) for n, line in enumerate(text, 1))
        lines = _not_blank(numbered, found)
        if shape.is_chat:
            found.form = "chat"
            with open_text(source) as again:
                names = speakers(again)
            lines = messages(numbered, names)
        for number, line in lines:
            empty = False
            yield number, line
    if empty:
        raise EmptySourceError(f"{source.shown}: expected texts, found only blank lines; add texts")


def _not_blank(
    numbered: Iterable[tuple[int, str]], found: SourceNotes
) -> Iterator[tuple[int, str]]:
    for number, line in numbered:
        if line and not line.isspace():
            yield number, line
        else:
            found.counts[BLANK_LINES] += 1


def _line_records(
    source: Source,
    shape: Shape,
    request: ColumnRequest,
    found: SourceNotes,
    notes: ReadingNotes | None,
) -> Iterator[Record]:
    if request.wants_label:
        raise InputError(
            f"{source.shown}: expected labels, found a plain list of texts; give a table "
            "(.csv, .tsv, .jsonl, .parquet, .xlsx) with a text column and a label column"
        )
    if request.text is not None:
        raise InputError(
            f"{source.shown}: expected a column {request.text!r}, found a plain list of texts, one "
            "a line; leave out --text-column, or name what parts the columns by --delimiter"
        )
    first = True
    for number, line in texts_of(source, found, shape):
        if first and notes is not None:
            notes.opened(found)
        first = False
        yield Record(id=f"{source.name}:{number}", text=line, source=source.name, line=number)


def _table_records(
    source: Source,
    shape: Shape | None,
    request: ColumnRequest,
    options: ReadOptions,
    found: SourceNotes,
    notes: ReadingNotes | None,
    bad: BadRows,
) -> Iterator[Record]:
    empty = True
    if shape is not None and shape.text is not None and request.text is None:
        # The cells told which it is.
        known = shape.label is not None and request.wants_label
        label = request.label or (str(shape.label) if known else None)
        request = replace(request, text=str(shape.text), label=label)
    with open_table(source, shape, request, options, found, bad) as table:
        places = places_in(table, request, source)
        is_mac_chat = tuple(map(plain_name, table.columns)) == MAC_COLUMNS
        if is_mac_chat:
            found.form = "chat"
        _note_columns(found, table.columns, places, notes)
        # A column that is not there reads the text column instead, and is then ignored.
        picks = [places.text] + [
            places.text if place is None else place for place in (places.label, places.id)
        ]
        needed = picks if request.wants_label else [places.text]
        for number, part, (text, mark, identifier) in table.read(picks, needed):
            empty = False
            place = f"{part}:{number}" if part else str(number)
            where = f"{source.shown}:{place}"
            try:
                record = Record(
                    id=_identifier(None if places.id is None else identifier, source, place),
                    text=cell_text(text, where),
                    label=None if places.label is None else _label(mark, where, request),
                    source=source.name,
                    line=number,
                )
            except InputError as error:
                bad.add(error)
                continue
            if not is_mac_chat or is_said(record.text):
                yield record
    if empty and not bad.count:
        raise no_rows(source)


def _json_records(
    source: Source,
    request: ColumnRequest,
    found: SourceNotes,
    notes: ReadingNotes | None,
    bad: BadRows,
) -> Iterator[Record]:
    rows = json_rows(source, found, bad)
    first, keys, sample = sampled(rows)
    if not first:
        if bad.count:
            return
        raise EmptySourceError(f"{source.shown}: expected JSON objects, found none; add texts")
    places = places_of_keys(keys, f"{source.shown}:{first[0][0]}", sample, request, source)
    _note_columns(found, keys, places, notes)
    last, again = 0, 0
    for number, row in chain(first, rows):
        # Several objects may stand in one line.
        again = again + 1 if number == last else 0
        last = number
        place = f"{number}.{again}" if again else str(number)
        try:
            record = _json_record(number, place, row, keys, places, request, source)
        except InputError as error:
            bad.add(error)
            continue
        yield record


def _json_record(
    number: int,
    place: str,
    row: dict[str, Any],
    keys: Sequence[str],
    places: ColumnPlaces,
    request: ColumnRequest,
    source: Source,
) -> Record:
    where = f"{source.shown}:{place}"
    if keys[places.text] not in row:
        # Another kind of object: its own keys say what is what.
        keys = list(row)
        places = request.locate(keys, where)
    text = row[keys[places.text]]
    if text is None or text != text:  # what pandas writes for an empty cell: null, or NaN
        text = ""
    if not isinstance(text, str):
        name = keys[places.text]
        inner = [key for key in row if key.startswith(f"{name}.")]
        advice = f"name one of {', '.join(inner)} by --text-column" if inner else "put it in quotes"
        raise InputError(
            f"{where}: expected a string in {name!r}, found {type(text).__name__}; {advice}"
        )
    label = None if places.label is None else row.get(keys[places.label])
    if request.wants_label and places.label is not None and keys[places.label] not in row:
        raise InputError(
            f"{where}: no label column: expected the key {keys[places.label]!r}, found the columns "
            f"{shown_columns(list(row))}; add it, or leave the row out"
        )
    if request.wants_label:
        refuse_unaccepted(row, f"{where}: ")
    return Record(
        id=_identifier(None if places.id is None else row.get(keys[places.id]), source, place),
        text=text,
        label=_label(label, where, request),
        source=source.name,
        line=number,
    )


def _note_columns(
    found: SourceNotes,
    columns: Sequence[str],
    places: ColumnPlaces,
    notes: ReadingNotes | None,
) -> None:
    found.text, found.passed_over = columns[places.text], places.passed_over
    found.label = None if places.label is None else columns[places.label]
    found.labels_passed_over = places.labels_passed_over
    if notes is not None:
        notes.opened(found)


def _identifier(cell: object, source: Source, place: object) -> str:
    fallback = f"{source.name}:{place}"
    if cell is None:
        return fallback
    return cell_text(cell, f"{source.shown}:{place}").strip() or fallback


def _label(cell: object, where: str, request: ColumnRequest) -> str | None:
    """The label, where a caller may want it: what nobody asks for need not be right."""
    try:
        label = label_text(cell, where)
    except InputError:
        if request.wants_label:
            raise
        return None
    return label if label is None or request.names is None else request.names.of(label, where)
