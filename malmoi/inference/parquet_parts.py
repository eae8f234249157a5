"""Parquet files cut into parts of equal numbers of rows, wherever one file ends and another begins.

Parts are cut by rows alone, so that every run, on any number of machines, cuts the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from malmoi.errors import InputError
from malmoi.inference.output_columns import SOURCE
from malmoi.inference.table_prediction import CHARACTERS_IN_UNIT, ROWS_IN_UNIT
from malmoi.text.reading.columns import ColumnRequest, cell_text
from malmoi.text.reading.notes import ReadingNotes, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.parquet_rows import open_parquet
from malmoi.text.reading.sources import Source, damaged

# Parts of a small table: enough of them to keep 100 cores at work.
_WANTED_PARTS = 256
# A minute of work for a core at most, which is what a lost node costs (docs/performance.md).
_MOST_ROWS = 100_000
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Which columns of a file hold what is predicted."""

    text: str
    pair: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRange:
    """Rows of one file that lie together."""

    source: Source
    columns: Columns
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
        """How many rows it has."""
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
        """How many rows there are."""
        return sum(part.rows for part in self.parts)

    @property
    def folders(self) -> list[Path]:
        """Where the files are."""
        ranges = (chosen for part in self.parts for chosen in part.ranges)
        return list(dict.fromkeys(chosen.path.parent for chosen in ranges))


@dataclass(frozen=True, kw_only=True, slots=True)
class RowsOfUnit:
    """Rows that are predicted at once, N of them.

    Attributes:
        table: their columns.
        texts: N.
        pairs: N; None where none were asked for.
    """

    table: pa.Table
    texts: list[str]
    pairs: list[str] | None


def cut_parts(
    sources: Sequence[Source],
    options: ReadOptions,
    pair_column: str | None = None,
    notes: ReadingNotes | None = None,
) -> Cut:
    """Look at the end of every file, where Parquet says what is in it, and cut the rows in parts.

    Args:
        sources: Parquet files that every machine finds under the same path.
        options: what the user said of them.
        pair_column: name or number of the column of second texts.
        notes: gets how each file is read.

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
        if rows:
            files.append(RowRange(source=source, columns=columns, first=0, rows=rows))
    if not files:
        raise InputError("expected Parquet files with rows, found none; add texts")
    if len(sources) > 1 and SOURCE not in schema.names:
        schema = schema.insert(0, pa.field(SOURCE, pa.string()))
    notes.finished()
    size = _rows_in_part(sum(file.rows for file in files))
    cut = list(_cut(files, size))
    names = (f"part-{number:05d}.parquet" for number in range(len(cut)))
    parts = (Part(name=name, ranges=tuple(ranges)) for name, ranges in zip(names, cut, strict=True))
    return Cut(schema=schema, parts=tuple(parts))


def _look_at(
    source: Source, options: ReadOptions, pair_column: str | None, notes: ReadingNotes
) -> tuple[pa.Schema, Columns, int]:
    """Its columns, those with texts, and how many rows there are."""
    if source.format != ".parquet":
        raise InputError(
            f"{source.shown}: expected a Parquet file with --cluster, found another kind; convert "
            "it, or leave out --cluster"
        )
    found = SourceNotes(source=source.name)
    with open_parquet(source, found) as table:
        names = table.columns
        twins = sorted({name for name in names if names.count(name) > 1})
        if twins:
            raise InputError(
                f"{source.shown}: expected different column names, found {', '.join(twins)} "
                "twice; rename one"
            )
        places = ColumnRequest(text=options.text_column).locate(names, source.shown, table.sample)
        pair = None
        if pair_column is not None:
            pair = names[ColumnRequest(text=pair_column).locate(names, source.shown).text]
    columns = Columns(text=names[places.text], pair=pair)
    found.text, found.passed_over = columns.text, places.passed_over
    notes.opened(found)
    assert source.path is not None
    with pq.ParquetFile(source.path, pre_buffer=False) as file:
        return _plain(file.schema_arrow), columns, file.metadata.num_rows


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
            f"{source.shown}: expected the columns that the files before it have, found another "
            f"type ({reason}); write all files with the same types"
        ) from error


def _rows_in_part(rows: int) -> int:
    """Whole units, as many as keep the number of parts within bounds."""
    units = -(-rows // (ROWS_IN_UNIT * _WANTED_PARTS))
    return min(units * ROWS_IN_UNIT, _MOST_ROWS)


def _cut(files: Sequence[RowRange], size: int) -> Iterator[list[RowRange]]:
    """The rows of all files by `size`; the last ones are what is left."""
    ranges: list[RowRange] = []
    wanted = size
    for file in files:
        first = 0
        while first < file.rows:
            rows = min(wanted, file.rows - first)
            ranges.append(
                RowRange(source=file.source, columns=file.columns, first=first, rows=rows)
            )
            first, wanted = first + rows, wanted - rows
            if not wanted:
                yield ranges
                ranges, wanted = [], size
    if ranges:
        yield ranges


def read_units(part: Part, schema: pa.Schema, *, skip_bad_rows: bool) -> Iterator[RowsOfUnit]:
    """Read a part by units, in the memory of one.

    Args:
        part: of `cut_parts`.
        schema: of the same.
        skip_bad_rows: leave out rows whose text is none.

    Raises:
        InputError: a file is damaged or gone, has fewer rows than when the parts were cut, or a
            cell of texts holds something else.
    """
    tables: list[pa.Table] = []
    texts: list[str] = []
    pairs: list[str] = []
    characters = 0
    for chosen in part.ranges:
        for table, number in _tables(chosen, schema):
            kept, found, seconds = _texts(table, chosen, number, skip_bad_rows)
            table = table if len(kept) == len(table) else table.take(pa.array(kept, pa.int64()))
            begin = 0
            for place, text in enumerate(found):
                texts.append(text)
                if seconds is not None:
                    pairs.append(seconds[place])
                characters += len(text) + (len(seconds[place]) if seconds is not None else 0)
                if len(texts) == ROWS_IN_UNIT or characters >= CHARACTERS_IN_UNIT:
                    tables.append(table.slice(begin, place + 1 - begin))
                    yield _unit(tables, texts, pairs, chosen)
                    begin, characters = place + 1, 0
                    tables, texts, pairs = [], [], []
            tables.append(table.slice(begin))
    if texts:
        yield _unit(tables, texts, pairs, part.ranges[-1])


def _unit(
    tables: list[pa.Table], texts: list[str], pairs: list[str], chosen: RowRange
) -> RowsOfUnit:
    return RowsOfUnit(
        table=pa.concat_tables(tables).combine_chunks(),
        texts=texts,
        pairs=None if chosen.columns.pair is None else pairs,
    )


def _texts(
    table: pa.Table, chosen: RowRange, first: int, skip_bad_rows: bool
) -> tuple[list[int], list[str], list[str] | None]:
    """Places of the rows that are kept, their texts, and their second texts."""
    columns = [chosen.columns.text]
    if chosen.columns.pair is not None:
        columns.append(chosen.columns.pair)
    try:
        cells = [table.column(name).to_pylist() for name in columns]
    except UnicodeDecodeError as error:
        raise InputError(
            f"{chosen.source.shown}: expected texts in UTF-8 in rows {first:,} to "
            f"{first + len(table) - 1:,}, found other bytes; write the file again"
        ) from error
    kept: list[int] = []
    found: list[list[str]] = [[] for _ in columns]
    for place, row in enumerate(zip(*cells, strict=True)):
        try:
            texts = [cell_text(cell, f"{chosen.source.shown}:{first + place}") for cell in row]
        except InputError:
            if not skip_bad_rows:
                raise
            continue
        kept.append(place)
        for column, text in zip(found, texts, strict=True):
            column.append(text)
    return kept, found[0], found[1] if len(found) > 1 else None


def _tables(chosen: RowRange, schema: pa.Schema) -> Iterator[tuple[pa.Table, int]]:
    """The rows of a range, with the number of the first, counted from 1, of each table."""
    if not chosen.path.exists():
        raise InputError(
            f"{chosen.source.shown}: found on the machine of the command, not on every node; put "
            "it into a folder that all nodes share under one path"
        )
    try:
        with pq.ParquetFile(chosen.path, pre_buffer=False) as file:
            sizes = [
                file.metadata.row_group(number).num_rows
                for number in range(file.metadata.num_row_groups)
            ]
            groups, at = [], 0
            end = chosen.first + chosen.rows
            start = end
            for number, size in enumerate(sizes):
                if size and at < end and at + size > chosen.first:
                    groups.append(number)
                    start = min(start, at)
                at += size
            if at < end:
                raise InputError(
                    f"{chosen.source.shown}: expected {end:,} rows or more, as at the first look, "
                    f"found {at:,}; the file changed meanwhile: give the command again"
                )
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=groups):
                first, stop = max(start, chosen.first), min(start + len(batch), end)
                if first < stop:
                    rows = batch.slice(first - start, stop - first)
                    yield _cast(pa.Table.from_batches([rows]), schema, chosen), first + 1
                start += len(batch)
                if start >= end:
                    break
    except (pa.ArrowException, OSError) as error:
        raise damaged(chosen.source, "a Parquet file", error) from error


def _cast(table: pa.Table, schema: pa.Schema, chosen: RowRange) -> pa.Table:
    """The columns of all files: those that this one has not are empty, but for that of its name.

    Raises:
        InputError: a cell does not fit the type that the column has in all files together.
    """
    there = set(table.column_names)
    columns = []
    for field in schema:
        if field.name == SOURCE and field.name not in there:
            columns.append(pa.repeat(chosen.source.name, len(table)))
            continue
        if field.name not in there:
            columns.append(pa.nulls(len(table), field.type))
            continue
        try:
            columns.append(table.column(field.name).cast(field.type))
        except pa.ArrowException as error:
            raise InputError(
                f"{chosen.source.shown}: expected cells of {field.type} in column {field.name!r}, "
                f"as all files together have it, found others ({' '.join(str(error).split())[:120]}"
                "); write all files with the same types"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)
