"""Parquet and Arrow files as rows, a bounded number of bytes at a time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow
import pyarrow.parquet

from malmoi.errors import InputError
from malmoi.text.reading.arrow_files import class_names, named, open_arrow
from malmoi.text.reading.columns import SAMPLE_ROWS
from malmoi.text.reading.decoding import LONGEST_LINE_BYTES
from malmoi.text.reading.notes import SourceNotes
from malmoi.text.reading.sources import Source, damaged
from malmoi.text.reading.table import Row, Table

PARQUET_BATCH_ROWS = 4096


@contextmanager
def open_parquet(source: Source, notes: SourceNotes) -> Iterator[Table]:
    """Open a Parquet file.

    Raises:
        InputError: here or while reading: it is damaged, or a row is too long.
    """
    notes.form = "parquet"
    with source.open_stored() as stored:
        try:
            file = pyarrow.parquet.ParquetFile(stored, pre_buffer=False)
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(source, "a Parquet file", error) from error
        columns, labels = list(file.schema_arrow.names), class_names(file.schema_arrow)

        def read(picks: Sequence[int], _: Sequence[int]) -> Iterator[Row]:
            names = [columns[pick] for pick in picks]
            if twins := {name for name in names if columns.count(name) > 1}:
                raise InputError(
                    f"{source.shown}: expected different column names, found {', '.join(twins)} "
                    "twice; rename one"
                )
            return _rows(_batches(file, sorted(set(names)), source), names, labels, source)

        sample = _sample(file, columns, labels, source)
        yield Table(columns=columns, sample=sample, read=read)


@contextmanager
def open_arrow_table(source: Source, notes: SourceNotes) -> Iterator[Table]:
    """Open an Arrow file, such as Hugging Face's `save_to_disk` writes.

    Raises:
        InputError: here or while reading: it is damaged.
    """
    notes.form = "arrow"
    with source.open_stored() as stored, open_arrow(source, stored) as (schema, batches):
        columns, labels = list(schema.names), class_names(schema)
        first = next(batches, None)
        sample = []
        if first is not None:
            head = first.slice(0, SAMPLE_ROWS)
            cells = (named(_cells(head, name, source, 1), name, labels) for name in columns)
            sample = list(zip(*cells, strict=True))
            batches = chain([first], batches)
        yield Table(
            columns=columns,
            sample=sample,
            read=lambda picks, _: _rows(batches, [columns[p] for p in picks], labels, source),
        )


def _rows(
    batches: Iterator[Any],
    names: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    source: Source,
) -> Iterator[Row]:
    number = 1
    for batch in batches:
        cells_of = {
            name: named(_cells(batch, name, source, number), name, labels) for name in set(names)
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
    cells = (named(_cells(batch, name, source, 1), name, labels) for name in columns)
    return list(zip(*cells, strict=True))


def _cells(batch: Any, name: str, source: Source, first: int) -> list[object]:
    try:
        cells: list[object] = batch.column(name).to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{source.shown}: expected texts in UTF-8 in rows {first:,} to "
            f"{first + batch.num_rows - 1:,}, found other bytes; write the file again"
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
            raise damaged(source, "a Parquet file", error) from error
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
            f"{source.shown}: expected rows of texts, found some of more than "
            f"{LONGEST_LINE_BYTES >> 20} MiB; put each text in a row of its own"
        )
    return max(1, min(PARQUET_BATCH_ROWS, LONGEST_LINE_BYTES // max(1, longest)))
