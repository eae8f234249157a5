"""Tables of texts on disk: Parquet parts of a fixed number of rows, or one readable file."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from malmoi.text.reading.spreadsheet_cells import guarded_row

ROWS_PER_PART = 1_000_000
ROWS_PER_GROUP = 10_000


class TableWriter(Protocol):
    """Takes tables of one schema, one after the other."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write what is left."""


class PartWriter:
    """Parquet parts of a million rows, in groups of 10,000, wherever the tables are cut.

    The bytes depend on the rows alone. No rows, no file.
    """

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        self._directory = directory
        self._schema = schema
        self._pending: list[pa.Table] = []
        self._num_pending = 0
        self._num_written = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Append rows; whole groups of them go to disk."""
        self._pending.append(table)
        self._num_pending += len(table)
        if self._num_pending < ROWS_PER_GROUP:
            return
        rows = pa.concat_tables(self._pending)
        whole = len(rows) - len(rows) % ROWS_PER_GROUP
        for start in range(0, whole, ROWS_PER_GROUP):
            self._write_group(rows.slice(start, ROWS_PER_GROUP))
        self._pending = [rows.slice(whole)]
        self._num_pending = len(rows) - whole

    def close(self) -> None:
        if self._num_pending:
            self._write_group(pa.concat_tables(self._pending))
        self._pending, self._num_pending = [], 0
        self._close_part()

    def _write_group(self, rows: pa.Table) -> None:
        if self._writer is None:
            name = f"part-{self._num_written // ROWS_PER_PART:05d}.parquet"
            self._writer = pq.ParquetWriter(
                self._directory / name, self._schema, compression="zstd"
            )
        # One chunk, or the pages would depend on how the rows came.
        self._writer.write_table(rows.combine_chunks())
        self._num_written += len(rows)
        if self._num_written % ROWS_PER_PART == 0:
            self._close_part()

    def _close_part(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()


class FileWriter:
    """One file of lines to read or to open in a spreadsheet: `.jsonl` or `.csv`."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        is_csv = path.suffix == ".csv"
        # Excel takes a CSV file without a byte order mark for one in the system's encoding.
        encoding = "utf-8-sig" if is_csv else "utf-8"
        self._file = path.open("w", encoding=encoding, newline="" if is_csv else None)
        self._write_row: Callable[[dict[str, Any]], Any] = self._write_json
        if is_csv:
            self._rows = csv.writer(self._file)
            self._rows.writerow(guarded_row(schema.names))
            self._write_row = self._write_cells

    def write(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            self._write_row(row)

    def close(self) -> None:
        self._file.close()

    def _write_cells(self, row: dict[str, Any]) -> None:
        self._rows.writerow(guarded_row(row.values()))

    def _write_json(self, row: dict[str, Any]) -> None:
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
