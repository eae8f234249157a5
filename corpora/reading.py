"""Records out of any file or folder that a user may have, in memory that does not grow with it."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.columns import (
    ColumnPlaces,
    ColumnRequest,
    cell_text,
    has_text_column,
    whole_characters,
)
from corpora.decoding import open_text
from corpora.errors import InputError
from corpora.public.description import Layout
from corpora.public.fetched import layout_of
from corpora.record import Record
from corpora.sources import Source, find_sources, source_of_upload
from corpora.tables import HeldTable, all_rows, first_line, no_rows, open_table, split_tsv

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)


def iter_records(
    path: str | Path,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    need_label: bool = False,
) -> Iterator[Record]:
    """Stream the records of a file, or of every readable file below a folder.

    Rows with an empty text are yielded too: the cleaner counts them. Lines of a plain `.txt` that
    are blank are not texts. A `.txt` whose first line is a tab-separated header with a text column,
    as NSMC's are, is read as TSV. A file of a fetched public source (beside a `SOURCE.json`)
    is read as its module in `corpora.public` says, with the meaning of its labels, unless columns
    are named here. Memory is that of one batch of rows, but for `.xlsx`, whose
    strings stand in one table that has to be loaded.

    Args:
        path: a file or a folder.
        text_column: the text column; by default the first of `corpora.columns.TEXT_COLUMNS`.
        label_column: the label column; by default the first of `LABEL_COLUMNS`, if there is one.
        need_label: refuse a file without labels.

    Raises:
        InputError: at once for a missing path or a folder without readable files; while iterating
            for a file that is empty, damaged, undecodable or malformed, or lacks a column.
    """
    return iter_source_records(
        find_sources(path),
        text_column=text_column,
        label_column=label_column,
        need_label=need_label,
    )


def iter_source_records(
    sources: Sequence[Source],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    need_label: bool = False,
) -> Iterator[Record]:
    """`iter_records` for sources that were already found; they may be of several inputs."""
    request = ColumnRequest(text=text_column, label=label_column, need_label=need_label)
    return _records_of_sources(sources, request)


def load_table(name: str, data: bytes) -> "pd.DataFrame":
    """An uploaded file as a table of strings, empty cells as "".

    Args:
        name: the file's name; its suffix decides the format.
        data: its bytes.

    Returns:
        All columns as `str`. A plain `.txt` has the one column `text`; JSON lines have the union
        of their keys.

    Raises:
        InputError: as `iter_records` does for the same file, or two columns have one name, or the
            table is too large to be held (`corpora.tables.HeldTable`).
    """
    import pandas as pd  # only the app wants tables, and it takes half a second

    source = source_of_upload(name, data)
    file_format = _real_format(source, None)
    held = HeldTable(source)
    if file_format == ".txt":
        texts = []
        for _, text in _lines(source):
            held.add((text,), columns=1)
            texts.append(text)
        return pd.DataFrame({"text": texts}, dtype="str")
    if file_format == ".jsonl":
        objects = []
        keys: set[str] = set()
        for line, row in _json_objects(source):
            where = f"{source.shown}:{line}"
            named = {whole_characters(key): cell_text(cell, where) for key, cell in row.items()}
            keys.update(named)
            held.add(named.values(), columns=len(keys))
            objects.append(named)
        return pd.DataFrame(objects, dtype="str").fillna("")
    columns, rows = all_rows(source, file_format)
    cells = [[cell_text(cell, f"{source.shown}:{n}") for cell in row] for n, row in rows]
    return pd.DataFrame(cells, columns=columns, dtype="str")


def _records_of_sources(sources: Sequence[Source], request: ColumnRequest) -> Iterator[Record]:
    for source in sources:
        layout = layout_of(source) if request.text is None and request.label is None else None
        if layout is None:
            yield from _records(source, request)
        else:
            yield from laid_out_records(source, layout, need_label=request.need_label)


def laid_out_records(
    source: Source, layout: Layout, *, need_label: bool = False
) -> Iterator[Record]:
    """The records of one file of a public source.

    Of pairs, first the one text of all rows and then the other, their columns in their ids.

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
        for record in _records(source, request):
            alone = len(layout.texts) == 1
            yield record if alone else replace(record, id=f"{record.id}:{text}")


def _records(source: Source, request: ColumnRequest) -> Iterator[Record]:
    file_format = ".tsv" if request.header else _real_format(source, request.text)
    if file_format == ".txt":
        yield from _line_records(source, request)
    elif file_format == ".jsonl":
        yield from _json_records(source, request)
    else:
        yield from _table_records(source, file_format, request)


def _real_format(source: Source, text_column: str | None) -> str:
    """The file's format, with a tab-separated table that is called `.txt` found out."""
    if source.format != ".txt":
        return source.format
    with open_text(source) as text:
        header = split_tsv(first_line(text)[0])
    return ".tsv" if len(header) > 1 and has_text_column(header, text_column) else ".txt"


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank."""
    number = 0
    empty = True
    with open_text(source) as text:
        for number, line in enumerate(text, 1):
            if line and not line.isspace():
                empty = False
                yield number, line.removesuffix("\n")
    if empty:
        raise InputError(f"{source.shown}: expected texts, found only blank lines; add texts")


def _line_records(source: Source, request: ColumnRequest) -> Iterator[Record]:
    if request.wants_label:
        raise InputError(
            f"{source.shown}: expected labels, found a plain list of texts; give a table "
            "(.csv, .tsv, .jsonl, .parquet, .xlsx) with a text column and a label column"
        )
    if request.text is not None:
        logger.warning(
            "%s: a plain list of texts, one a line: its first line names no column %r",
            source.shown,
            request.text,
        )
    for number, line in _lines(source):
        yield Record(id=f"{source.name}:{number}", text=line, source=source.name, line=number)


def _table_records(source: Source, file_format: str, request: ColumnRequest) -> Iterator[Record]:
    empty = True
    with open_table(source, file_format, request.header) as table:
        places = request.locate(table.columns, source.shown)
        # A column that is not there reads the text column instead, and is then ignored.
        picks = [places.text] + [
            places.text if place is None else place for place in (places.label, places.id)
        ]
        for number, (text, label, identifier) in table.read(picks):
            empty = False
            where = f"{source.shown}:{number}"
            yield Record(
                id=_identifier(None if places.id is None else identifier, source, number),
                text=cell_text(text, where),
                label=None if places.label is None else _label(label, where, request),
                source=source.name,
                line=number,
            )
    if empty:
        raise no_rows(source)


def _json_records(source: Source, request: ColumnRequest) -> Iterator[Record]:
    places: ColumnPlaces | None = None
    keys: list[str] = []
    for number, row in _json_objects(source):
        where = f"{source.shown}:{number}"
        # Objects of one file mostly have the same keys; only a change needs another look.
        if places is None or keys != list(row):
            keys = list(row)
            places = request.locate(keys, where)
        text = row[keys[places.text]]
        if text is None:  # what pandas writes for an empty cell
            text = ""
        if not isinstance(text, str):
            raise InputError(
                f"{where}: expected a string in {keys[places.text]!r}, found "
                f"{type(text).__name__}; put the text in quotes"
            )
        yield Record(
            id=_identifier(None if places.id is None else row[keys[places.id]], source, number),
            text=text,
            label=None if places.label is None else _label(row[keys[places.label]], where, request),
            source=source.name,
            line=number,
        )


def _json_objects(source: Source) -> Iterator[tuple[int, dict[str, object]]]:
    advice = "write one JSON object a line"
    for number, line in _lines(source):
        where = f"{source.shown}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{where}: expected a JSON object, found broken JSON ({error}); {advice}"
            ) from error
        if not isinstance(row, dict):
            raise InputError(
                f"{where}: expected a JSON object, found {type(row).__name__}; {advice}"
            )
        yield number, row


def _identifier(cell: object, source: Source, number: int) -> str:
    fallback = f"{source.name}:{number}"
    if cell is None:
        return fallback
    return cell_text(cell, f"{source.shown}:{number}").strip() or fallback


def _label(cell: object, where: str, request: ColumnRequest) -> str | None:
    label = cell_text(cell, where).strip() or None
    return label if label is None or request.names is None else request.names.of(label, where)
