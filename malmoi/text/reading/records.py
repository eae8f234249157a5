"""Records out of any file or folder that a user may have, in memory that does not grow with it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malmoi.errors import InputError
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.chats import MAC_COLUMNS, is_said
from malmoi.text.reading.columns import (
    PAIR_COLUMNS,
    ColumnPlaces,
    ColumnRequest,
    cell_text,
    distinct_names,
    label_text,
    plain_name,
    shown_columns,
    whole_characters,
)
from malmoi.text.reading.json_rows import refuse_unaccepted
from malmoi.text.reading.layouts import Layout, layout_of
from malmoi.text.reading.notes import ReadingNotes, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source, find_sources, source_of_upload
from malmoi.text.reading.table import Table
from malmoi.text.reading.tables import HeldTable, all_rows, no_rows, open_table, places_in
from malmoi.text.record import Record

if TYPE_CHECKING:
    import pandas as pd

# To be raised when the same files give other records than before.
READER_VERSION = 7


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
    read as `malmoi/text/public/sources` says, with the meaning of its labels, unless columns are
    named here. Memory is that of one batch of rows, but for `.xlsx`, whose strings stand in one
    table that has to be loaded.

    Args:
        path: a file or a folder.
        text_column: the text column, by name or number; by default the fullest and longest of those
            with a name of `malmoi.text.reading.columns.TEXT_COLUMNS` whose cells hold words.
        label_column: the label column; by default the first of `LABEL_COLUMNS`, if there is one.
        need_label: refuse a file without labels.

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
    return iter_requested(sources, request, options, notes)


def iter_whole_rows(
    sources: Sequence[Source],
    options: ReadOptions,
    *,
    pair_column: str | None = None,
    keep_blank: bool = False,
    notes: ReadingNotes | None = None,
    bad: BadRows | None = None,
) -> Iterator[Record]:
    """Stream the rows of sources with the cells of all their columns, without labels.

    Args:
        pair_column: name or number of the column of second texts.
        keep_blank: give rows that hold nothing, too, with the text "", where others follow them.
        bad: gets rows that cannot be read; by default, options say what becomes of them.

    Raises:
        InputError: as `iter_records`; for bad rows once all were seen.
    """
    request = ColumnRequest(
        text=options.text_column,
        pair=pair_column,
        usual_labels=(),
        all_cells=True,
        keep_blank=keep_blank,
    )
    return iter_requested(sources, request, options, notes, bad)


def iter_requested(
    sources: Sequence[Source],
    request: ColumnRequest,
    options: ReadOptions,
    notes: ReadingNotes | None = None,
    bad: BadRows | None = None,
) -> Iterator[Record]:
    """Stream the rows of sources with the columns that are asked for, each file opened once.

    Args:
        options: what the user said of the files.
        bad: gets rows that cannot be read; by default, options say what becomes of them.

    Raises:
        InputError: as `iter_records`; for bad rows once all were seen.
    """
    notes = notes or ReadingNotes()
    is_plain = options == ReadOptions(skip_bad_rows=options.skip_bad_rows)

    def of_source(source: Source, bad: BadRows) -> Iterator[Record]:
        asked = request.label or request.pair or request.any_pair or request.others
        layout = layout_of(source) if is_plain and not asked else None
        if layout is None:
            return _records(source, request, options, notes, bad)
        if request.all_cells:
            laid_out = replace(request, text=layout.texts[0], header=layout.header)
            return _records(source, laid_out, options, notes, bad)
        need_label = request.need_label
        return laid_out_records(source, layout, need_label=need_label, notes=notes, bad=bad)

    bad = bad or BadRows(skip=options.skip_bad_rows)
    return _rows_of_sources(sources, of_source, bad, notes)


def known_pair(source: Source, options: ReadOptions) -> tuple[str, str] | None:
    """The columns of first and second texts by a known pair of names; None of a file without."""
    request = ColumnRequest(text=options.text_column, any_pair=True)
    notes, bad = SourceNotes(source=source.name), BadRows(skip=True)
    try:
        with open_table(source, request, options, notes, bad) as table:
            places = places_in(table, request, source)
            assert places.pair is not None
            names = table.columns[places.text], table.columns[places.pair]
    except InputError:
        return None
    return names if tuple(map(plain_name, names)) in PAIR_COLUMNS else None


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
    # Any header will do: which column is meant is asked later.
    request = ColumnRequest(text=options.text_column, any_sheet=True)
    with open_table(source, request, options, found, bad, keep_blank=True) as table:
        if table.objects is not None:
            held = HeldTable(source)
            objects = []
            keys: set[str] = set()
            for line, row in table.objects:
                where = f"{source.shown}:{line}"
                named = {whole_characters(key): _shown_cell(c, where) for key, c in row.items()}
                keys.update(named)
                held.add(named.values(), columns=len(keys))
                objects.append(named)
            frame = pd.DataFrame(objects, dtype="str").fillna("")
        else:
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


def _rows_of_sources(
    sources: Sequence[Source],
    of_source: Callable[[Source, BadRows], Iterator[Record]],
    bad: BadRows,
    notes: ReadingNotes,
) -> Iterator[Record]:
    """The rows of all sources; what is wrong with any of them is told once all were seen.

    Args:
        sources: in the order of reading.
        of_source: reads one of them, and takes note of its bad rows.
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
        layout: which columns it has.
        need_label: refuse it without labels.
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
    with open_table(source, request, options, found, bad, keep_blank=request.keep_blank) as table:
        if table.columns:  # all that was met may be bad
            places = places_in(table, request, source)
            _note_columns(found, table, places, notes)
            of_table = _records_of_cells if table.objects is None else _records_of_objects
            yield from of_table(table, places, request, source, bad)
    if bad.skip and bad.count > before:
        found.counts["rows that could not be read, left out"] += bad.count - before


def _note_columns(
    found: SourceNotes, table: Table, places: ColumnPlaces, notes: ReadingNotes | None
) -> None:
    if not table.is_list:
        columns = table.columns
        found.text, found.passed_over = columns[places.text], places.passed_over
        found.pair = None if places.pair is None else columns[places.pair]
        found.label = None if places.label is None else columns[places.label]
        found.labels_passed_over = places.labels_passed_over
        if _is_mac_chat(table):
            found.form = "chat"
    if notes is not None:
        notes.opened(found)


def _is_mac_chat(table: Table) -> bool:
    return tuple(map(plain_name, table.columns)) == MAC_COLUMNS


def _records_of_cells(
    table: Table, places: ColumnPlaces, request: ColumnRequest, source: Source, bad: BadRows
) -> Iterator[Record]:
    names = distinct_names(table.columns)
    only_said = _is_mac_chat(table) and not request.all_cells
    # A column that is not there reads the text column instead, and is then ignored.
    located = [places.text if p is None else p for p in (places.label, places.id, places.pair)]
    others: Sequence[int] = range(len(names))
    columns = names
    if not request.all_cells:
        others = [*places.others, *(place for _, place in places.optional)]
        columns = [*request.others, *(name for name, _ in places.optional)]
    needed = [places.text] if places.pair is None else [places.text, places.pair]
    if request.wants_label:
        needed += located[:2]
    needed += places.others
    empty, blank = True, list[tuple[int, str]]()
    for number, part, row in table.read([places.text, *located, *others], needed):
        place = f"{part}:{number}" if part else str(number)
        if not row:
            blank.append((number, part))
            continue
        empty = False
        # Those at the end of a sheet have no place; a formatted one has a million of them.
        for above, sheet in blank:
            if sheet == part:
                yield _blank_record(columns, names[places.text], source, above, part, request)
        blank.clear()
        text, mark, identifier, second, *cells = row
        where = f"{source.shown}:{place}"
        try:
            record = Record(
                id=_identifier(None if places.id is None else identifier, source, place),
                text=cell_text(text, where),
                label=None if places.label is None else _label(mark, where, request),
                source=source.name,
                line=number,
                pair=None if places.pair is None else cell_text(second, where),
                cells=dict(zip(columns, cells, strict=True)),
                text_column=names[places.text],
                place=place,
            )
        except InputError as error:
            bad.add(error)
            continue
        if not only_said or is_said(record.text):
            yield record
    if empty and not bad.count:
        raise no_rows(source)


def _blank_record(
    columns: Sequence[str],
    text_column: str,
    source: Source,
    number: int,
    part: str,
    request: ColumnRequest,
) -> Record:
    place = f"{part}:{number}" if part else str(number)
    return Record(
        id=f"{source.name}:{place}",
        text="",
        source=source.name,
        line=number,
        pair=None if request.pair is None and not request.any_pair else "",
        cells=dict.fromkeys(columns),
        text_column=text_column,
        place=place,
    )


def _records_of_objects(
    table: Table, places: ColumnPlaces, request: ColumnRequest, source: Source, bad: BadRows
) -> Iterator[Record]:
    assert table.objects is not None
    last, again = 0, 0
    for number, row in table.objects:
        # Several objects may stand in one line.
        again = again + 1 if number == last else 0
        last = number
        place = f"{number}.{again}" if again else str(number)
        try:
            yield _record_of_object(number, place, row, table.columns, places, request, source)
        except InputError as error:
            bad.add(error)


def _record_of_object(
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
    label = None if places.label is None else row.get(keys[places.label])
    if request.wants_label:
        if places.label is not None and keys[places.label] not in row:
            raise _missing_key(row, keys[places.label], "label", where)
        refuse_unaccepted(row, where)
    others = [keys[other] for other in places.others]
    for name, kind in zip(others, request.others.values(), strict=True):
        if name not in row:
            raise _missing_key(row, name, kind, where)
    if request.all_cells:
        cells = {whole_characters(key): cell for key, cell in _own_cells(row).items()}
    else:
        cells = {asked: row[name] for asked, name in zip(request.others, others, strict=True)}
        cells |= {asked: row.get(keys[place]) for asked, place in places.optional}
    return Record(
        id=_identifier(None if places.id is None else row.get(keys[places.id]), source, place),
        text=text_of_object(row, keys[places.text], where),
        label=_label(label, where, request),
        source=source.name,
        line=number,
        pair=None if places.pair is None else text_of_object(row, keys[places.pair], where),
        cells=cells,
        text_column=whole_characters(keys[places.text]),
        place=place,
    )


def _missing_key(row: Mapping[str, Any], name: str, kind: str, where: str) -> InputError:
    return InputError(
        "no {kind} column: expected the key {name!r}, found the columns {columns}; add it, or "
        "leave the row out",
        place=where,
        kind=kind,
        name=name,
        columns=shown_columns(list(row)),
    )


def text_of_object(row: Mapping[str, Any], key: str, where: str) -> str:
    """The text that an object has under a key.

    Raises:
        InputError: it has none there, or something that is no text.
    """
    if key not in row:
        raise _missing_key(row, key, "text", where)
    if isinstance(row[key], list | dict):
        inner = [name for name in row if name.startswith(f"{key}.")]
        advice = f"name one of {', '.join(inner)} by --text-column" if inner else "put it in quotes"
        raise InputError(
            "expected a string in {key!r}, found {found}; {advice}",
            place=where,
            key=key,
            found=type(row[key]).__name__,
            advice=advice,
        )
    return cell_text(row[key], where)


def _own_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without the cells that `malmoi.text.reading.nested` has added for what is inside."""

    def is_inner(key: str) -> bool:
        parts = key.split(".")
        for number in range(1, len(parts)):
            outer, inner = row.get(".".join(parts[:number])), ".".join(parts[number:])
            if isinstance(outer, dict) and inner in outer and outer[inner] is row[key]:
                return True
        return False

    return {key: cell for key, cell in row.items() if not is_inner(key)}


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
