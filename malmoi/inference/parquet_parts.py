"""Parquet files cut into parts of equal numbers of rows, wherever one file ends and another begins.

Parts are cut by rows alone, so that every run, on any number of machines, cuts the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from malmoi.errors import InputError
from malmoi.inference.output_columns import SOURCE
from malmoi.inference.table_prediction import ROWS_IN_UNIT
from malmoi.messages import Phrase
from malmoi.text.reading.arrow_tables import parquet_table
from malmoi.text.reading.columns import ColumnRequest, cell_text
from malmoi.text.reading.notes import ReadingNotes, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source, damaged

# Parts of a small table: enough of them to keep 100 cores at work.
_WANTED_PARTS = 256
# A minute of work for a core at most, which is what a lost node costs (docs/performance.md).
_MOST_ROWS = 100_000
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRange:
    """Rows of one file that lie together.

    Attributes:
        source: the file.
        columns: of the texts, and of the second texts where the model reads pairs.
        first: number of the first row, from 0.
        rows: how many.
    """

    source: Source
    columns: tuple[str, ...]
    first: int
    rows: int

    @property
    def path(self) -> Path:
        """The file, whatever folder one stands in."""
        assert self.source.path is not None  # uploads are no flags
        return self.source.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Rows that are predicted together, and the file that they become."""

    name: str
    ranges: tuple[RowRange, ...]

    @property
    def rows(self) -> int:
        return sum(chosen.rows for chosen in self.ranges)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """All parts of an input.

    Attributes:
        schema: columns of all files together, in the order in which they were met.
        parts: in the order of the rows.
    """

    schema: pa.Schema
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def folders(self) -> list[Path]:
        """Where the files are."""
        ranges = (chosen for part in self.parts for chosen in part.ranges)
        return list(dict.fromkeys(chosen.path.parent for chosen in ranges))


class PartRow(NamedTuple):
    """A row of a part; `cells` are one row of all columns, with their types."""

    cells: pa.RecordBatch
    text: str
    pair: str | None = None


def cut_parts(
    sources: Sequence[Source],
    options: ReadOptions,
    pair_column: str | None = None,
    notes: ReadingNotes | None = None,
) -> Cut:
    """Look at the end of every file, where Parquet says what is in it, and cut the rows in parts.

    Args:
        sources: Parquet files that every machine finds under the same path.
        pair_column: name or number of the column of second texts.

    Raises:
        InputError: a file is no Parquet file, is damaged or has no such column; a column is of
            different types in different files; there are no rows.
    """
    notes = notes or ReadingNotes()
    files: list[RowRange] = []
    schema = pa.schema([])
    for given in sources:
        assert given.path is not None
        source = replace(given, path=given.path.resolve())
        found, columns, rows = _look_at(source, options, pair_column, notes)
        schema = _joined(schema, found, source)
        files.append(RowRange(source=source, columns=columns, first=0, rows=rows))
    if not any(file.rows for file in files):
        raise InputError("expected Parquet files with rows, found none; add texts")
    if len(sources) > 1 and SOURCE not in schema.names:
        schema = schema.insert(0, pa.field(SOURCE, pa.string()))
    notes.finished()
    rows = sum(file.rows for file in files)
    # Whole units, as many as keep the number of parts within bounds.
    size = min(-(-rows // (ROWS_IN_UNIT * _WANTED_PARTS)) * ROWS_IN_UNIT, _MOST_ROWS)
    parts = (
        Part(name=f"part-{number:05d}.parquet", ranges=tuple(_between(files, first, first + size)))
        for number, first in enumerate(range(0, rows, size))
    )
    return Cut(schema=schema, parts=tuple(parts))


def _look_at(
    source: Source, options: ReadOptions, pair_column: str | None, notes: ReadingNotes
) -> tuple[pa.Schema, tuple[str, ...], int]:
    """Its columns, those of texts, and how many rows there are."""
    if source.format != ".parquet":
        raise InputError(
            "expected a Parquet file with --cluster, found another kind; convert it, or leave out "
            "--cluster",
            place=source.shown,
        )
    found = SourceNotes(source=source.name)
    with source.open_stored() as stored:
        table = parquet_table(source, stored, found)
        names = table.columns
        twins = sorted({name for name in names if names.count(name) > 1})
        if twins:
            raise InputError(
                "expected different column names, found {twins} twice; rename one",
                place=source.shown,
                twins=", ".join(twins),
            )
        request = ColumnRequest(text=options.text_column, pair=pair_column)
        places = request.locate(names, source.shown, table.sample)
        columns = [names[places.text]]
        if places.pair is not None:
            found.pair = names[places.pair]
            columns.append(found.pair)
    found.text, found.passed_over = columns[0], places.passed_over
    notes.opened(found)
    assert source.path is not None
    with pq.ParquetFile(source.path, pre_buffer=False) as file:
        return _plain(file.schema_arrow), tuple(columns), file.metadata.num_rows


def _plain(schema: pa.Schema) -> pa.Schema:
    """Without what only the whole file means: pandas' index, and codes of categories."""
    return pa.schema(
        [
            pa.field(field.name, field.type.value_type)
            if pa.types.is_dictionary(field.type)
            else pa.field(field.name, field.type)
            for field in schema
        ]
    )


def _joined(before: pa.Schema, found: pa.Schema, source: Source) -> pa.Schema:
    try:
        return pa.unify_schemas([before, found], promote_options="permissive")
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            "expected the columns that the files before it have, found another type ({reason}); "
            "write all files with the same types",
            place=source.shown,
            reason=reason,
        ) from error


def _between(files: Sequence[RowRange], begin: int, end: int) -> Iterator[RowRange]:
    """What lies between two of the rows of all files, counted from 0."""
    start = 0
    for file in files:
        first, stop = max(begin - start, 0), min(end - start, file.rows)
        if first < stop:
            yield replace(file, first=first, rows=stop - first)
        start += file.rows


def rows_of_part(part: Part, schema: pa.Schema, *, skip_bad_rows: bool) -> Iterator[PartRow]:
    """Read a part, in memory that does not grow with it.

    Args:
        part: of `cut_parts`.
        schema: of the same.
        skip_bad_rows: leave out rows whose text is none.

    Raises:
        InputError: a file is damaged or gone, has fewer rows than when the parts were cut, or a
            cell of texts holds something else.
    """
    for chosen in part.ranges:
        for first, batch in _batches(chosen):
            where = f"{chosen.source.shown}:"
            cells = _with_columns(batch, schema, chosen.source)
            try:
                texts = [batch.column(name).to_pylist() for name in chosen.columns]
            except UnicodeDecodeError as error:
                raise InputError(
                    "expected texts in UTF-8 in rows {first:,} to {last:,}, found other bytes; "
                    "write the file again",
                    place=chosen.source.shown,
                    first=first + 1,
                    last=first + len(batch),
                ) from error
            for place, row in enumerate(zip(*texts, strict=True)):
                try:
                    found = [cell_text(cell, f"{where}{first + place + 1}") for cell in row]
                except InputError:
                    if not skip_bad_rows:
                        raise
                    continue
                yield PartRow(cells.slice(place, 1), *found)


def _batches(chosen: RowRange) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a range, each time with the number of the first of them, from 0."""
    if not chosen.path.exists():
        raise InputError(
            "found on the machine of the command, not on every node; put it into a folder that "
            "all nodes share under one path",
            place=chosen.source.shown,
        )
    end = chosen.first + chosen.rows
    try:
        with pq.ParquetFile(chosen.path, pre_buffer=False) as file:
            groups = range(file.metadata.num_row_groups)
            sizes = [file.metadata.row_group(group).num_rows for group in groups]
            ends = list(accumulate(sizes))
            if not ends or ends[-1] < end:
                raise InputError(
                    "expected {end:,} rows or more, as at the first look, found {sizes:,}; the "
                    "file changed meanwhile: give the command again",
                    place=chosen.source.shown,
                    end=end,
                    sizes=sum(sizes),
                )
            wanted = [group for group in groups if ends[group] > chosen.first]
            at = ends[wanted[0]] - sizes[wanted[0]]
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=wanted):
                first, stop = max(at, chosen.first), min(at + len(batch), end)
                if first < stop:
                    yield first, batch.slice(first - at, stop - first)
                at += len(batch)
                if at >= end:
                    return
    except (pa.ArrowException, OSError) as error:
        raise damaged(chosen.source, Phrase("a Parquet file"), error) from error


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema, source: Source) -> pa.RecordBatch:
    """The columns of all files: those that this one has not are empty, but for that of its name.

    Raises:
        InputError: a cell does not fit the type that the column has in all files together.
    """
    there = {SOURCE: pa.repeat(source.name, len(batch))}
    there |= dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = []
    for field in schema:
        try:
            columns.append(there.get(field.name, pa.nulls(len(batch))).cast(field.type))
        except pa.ArrowException as error:
            raise InputError(
                "expected cells of {type} in column {name!r}, as all files together have it, "
                "found others ({error}); write all files with the same types",
                place=source.shown,
                type=field.type,
                name=field.name,
                error=" ".join(str(error).split())[:120],
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
