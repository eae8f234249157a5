"""Parquet and Arrow files as rows, a bounded number of bytes at a time."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, BinaryIO

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from malmoi.errors import InputError
from malmoi.messages import Phrase
from malmoi.text.reading.columns import SAMPLE_ROWS
from malmoi.text.reading.decoding import LONGEST_LINE_BYTES
from malmoi.text.reading.notes import SourceNotes
from malmoi.text.reading.sources import Source, damaged
from malmoi.text.reading.table import Row, Table

PARQUET_BATCH_ROWS = 4096
_FILE_MAGIC = b"ARROW1"


def parquet_table(source: Source, stored: BinaryIO, notes: SourceNotes) -> Table:
    """The table in a Parquet file.

    Args:
        stored: the file, open for as long as the table.
        notes: gets its form.

    Raises:
        InputError: here or while reading: it is damaged, or a row is too long.
    """
    notes.form = "parquet"
    try:
        file = pyarrow.parquet.ParquetFile(stored, pre_buffer=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(source, Phrase("a Parquet file"), error) from error
    columns, labels = list(file.schema_arrow.names), _class_names(file.schema_arrow)

    def read(picks: Sequence[int], _: Sequence[int]) -> Iterator[Row]:
        names = [columns[pick] for pick in picks]
        if twins := {name for name in names if columns.count(name) > 1}:
            raise InputError(
                "expected different column names, found {twins} twice; rename one",
                place=source.shown,
                twins=", ".join(twins),
            )
        return _rows(_batches(file, sorted(set(names)), source), names, labels, source)

    return Table(
        columns=columns,
        sample=_sample(file, columns, labels, source),
        read=read,
        types=_types(file.schema_arrow, labels),
    )


def arrow_table(source: Source, stored: BinaryIO, notes: SourceNotes) -> Table:
    """The table in an Arrow file, such as Hugging Face's `save_to_disk` writes.

    Args:
        stored: the file, open for as long as the table.
        notes: gets its form.

    Raises:
        InputError: here or while reading: it is damaged.
    """
    notes.form = "arrow"
    schema, batches = _read_arrow(source, stored)
    columns, labels = list(schema.names), _class_names(schema)
    first = next(batches, None)
    sample = []
    if first is not None:
        head = first.slice(0, SAMPLE_ROWS)
        cells = (_named(_cells(head, name, source, 1), name, labels) for name in columns)
        sample = list(zip(*cells, strict=True))
        batches = chain([first], batches)
    return Table(
        columns=columns,
        sample=sample,
        read=lambda picks, _: _rows(batches, [columns[p] for p in picks], labels, source),
        types=_types(schema, labels),
    )


def _types(schema: pyarrow.Schema, labels: Mapping[str, Sequence[str]]) -> list[pyarrow.DataType]:
    """The type of each column as its cells are given: names where the file has their places."""
    return [
        _type_of_names(field.type)
        if labels.get(field.name)
        else field.type.value_type
        if pyarrow.types.is_dictionary(field.type)
        else field.type
        for field in schema
    ]


def _type_of_names(places: pyarrow.DataType) -> pyarrow.DataType:
    """The type of cells once `_named` has put names for places, alone or in lists."""
    if hasattr(places, "value_field"):
        return pyarrow.list_(_type_of_names(places.value_type))
    return pyarrow.string() if pyarrow.types.is_integer(places) else places


def _rows(
    batches: Iterator[Any],
    names: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    source: Source,
) -> Iterator[Row]:
    number = 1
    for batch in batches:
        cells_of = {
            name: _named(_cells(batch, name, source, number), name, labels) for name in set(names)
        }
        for cells in zip(*(cells_of[name] for name in names), strict=True):
            yield number, "", cells
            number += 1


def _sample(
    file: Any, columns: list[str], labels: Mapping[str, Sequence[str]], source: Source
) -> list[Sequence[object]]:
    """The first rows; none where they cannot be had so."""
    if len(set(columns)) < len(columns) or not columns:
        return []
    try:
        batch = next(_batches(file, columns, source, SAMPLE_ROWS), None)
    except InputError:  # some column that nobody asks for holds too much; whoever reads it says so
        return []
    if batch is None:
        return []
    cells = (_named(_cells(batch, name, source, 1), name, labels) for name in columns)
    return list(zip(*cells, strict=True))


def _cells(batch: Any, name: str, source: Source, first: int) -> list[object]:
    try:
        cells: list[object] = batch.column(name).to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(
            "expected texts in UTF-8 in rows {first:,} to {last:,}, found other bytes; write the "
            "file again",
            place=source.shown,
            first=first,
            last=first + batch.num_rows - 1,
        ) from error
    return cells


def _batches(
    file: Any, names: list[str], source: Source, most: int = PARQUET_BATCH_ROWS
) -> Iterator[Any]:
    rows = min(most, _rows_a_batch(file, names, source))
    batches = file.iter_batches(batch_size=rows, columns=names)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(source, Phrase("a Parquet file"), error) from error
        if batch is None:
            return
        yield batch


def _rows_a_batch(file: Any, names: list[str], source: Source) -> int:
    """How many rows to read at once; less than `PARQUET_BATCH_ROWS` where cells are long."""
    picked = set(names)
    longest = 0  # bytes a row, on average over a row group
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        columns = (group.column(place) for place in range(group.num_columns))
        sizes = (
            column.total_uncompressed_size
            for column in columns
            # A column of lists has a path of several parts, and so has one with a dot in its name.
            if {path := column.path_in_schema, path.split(".")[0]} & picked
        )
        longest = max(longest, sum(sizes) // max(1, group.num_rows))
    if longest > LONGEST_LINE_BYTES:
        raise InputError(
            "expected rows of texts, found some of more than {most} MiB; put each text in a row "
            "of its own",
            place=source.shown,
            most=LONGEST_LINE_BYTES >> 20,
        )
    return max(1, min(PARQUET_BATCH_ROWS, LONGEST_LINE_BYTES // max(1, longest)))


def _read_arrow(source: Source, stored: BinaryIO) -> tuple[pyarrow.Schema, Iterator[Any]]:
    """The schema of an Arrow file, in either of its two layouts, and its batches of rows.

    Raises:
        InputError: here or while reading: it is damaged, or none.
    """
    what = Phrase("an Arrow file")
    try:
        is_file = stored.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        stored.seek(0)
        reader = pyarrow.ipc.open_file(stored) if is_file else pyarrow.ipc.open_stream(stored)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(source, what, error) from error

    def batches() -> Iterator[Any]:
        try:
            if is_file:
                yield from (reader.get_batch(n) for n in range(reader.num_record_batches))
            else:
                yield from reader
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(source, what, error) from error

    return reader.schema, batches()


def _class_names(schema: pyarrow.Schema) -> dict[str, list[str]]:
    """The names of each column that the library `datasets` calls a ClassLabel, or lists of them.

    They stand beside the columns; the cells hold their places only.
    """
    try:
        about = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = about["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    found = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        while isinstance(feature, dict) and "feature" in feature:
            feature = feature["feature"]  # a Sequence or a List of them
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            found[column] = [str(name) for name in feature.get("names") or ()]
    return found


def _named(cells: Sequence[Any], column: str, names: Mapping[str, Sequence[str]]) -> Sequence[Any]:
    """Cells of a column with the names for the places; -1, no label, is None.

    A place that has no name is its number as text.
    """
    known = names.get(column)
    if not known:
        return cells

    def name(cell: Any) -> Any:
        if isinstance(cell, list):
            return [name(one) for one in cell]
        if isinstance(cell, int):
            return None if cell == -1 else known[cell] if 0 <= cell < len(known) else str(cell)
        return cell

    return [name(cell) for cell in cells]
