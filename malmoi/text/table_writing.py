"""A table written row by row, in memory that does not grow, in the formats that are read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from malmoi.errors import InputError
from malmoi.text.reading.columns import whole_characters
from malmoi.text.written_cells import EXCEL_ROWS, CutCells, cell_of_text, csv_cell
from malmoi.text.written_workbooks import WrittenSheet, written_book

WRITTEN = (".csv", ".xlsx", ".jsonl", ".parquet", ".json")
# Behind the ending of a format in text.
COMPRESSED = (".gz", ".zst")
# Of columns: the types of their cells. Anything else is `str`.
KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "datetime": (datetime,),
    "date": (date,),
    "str": (str,),
}
# A cell that its row has not: an object of JSON is written without the key, elsewhere it is empty.
ABSENT = math.nan
_IN_TEXT = (".csv", ".jsonl", ".json")
_PARQUET_ROWS = 10_000

WriteRow = Callable[[Sequence[Any]], None]


def check_writable(path: Path, rows: int | None = None, *, what: str = "--output") -> None:
    """Refuse an output of a kind that is not written, or that cannot hold so many rows.

    Args:
        path: of the output.
        rows: to be written, without the header.
        what: the path is, for messages.

    Raises:
        InputError: it is one of these.
    """
    if not is_written(path):
        raise InputError(
            "expected {what} with the ending {endings} (those in text also with .gz or .zst "
            "behind it), found {path}",
            what=what,
            endings=", ".join(WRITTEN),
            path=path,
        )
    if path.suffix.lower() == ".xlsx" and rows is not None and rows >= EXCEL_ROWS:
        raise InputError(
            "an Excel sheet holds {most:,} rows with its header, found {rows:,} to write; let the "
            "name end with .csv, .jsonl or .parquet",
            most=EXCEL_ROWS,
            rows=rows,
        )


def is_written(path: Path) -> bool:
    """Whether the ending of a path names a format that is written."""
    kind, compression = _endings(path)
    return kind in _IN_TEXT or (kind in WRITTEN and not compression)


def ending(path: Path) -> str:
    """What decides the format: `.csv`, or `.csv.gz`."""
    return "".join(_endings(path))


def _endings(path: Path) -> tuple[str, str]:
    """The ending of the format, and that of the compression or ""."""
    last = path.suffix.lower()
    return (path.with_suffix("").suffix.lower(), last) if last in COMPRESSED else (last, "")


@contextmanager
def table_writer(
    path: Path, columns: Sequence[str], kinds: Sequence[Any], *, cuts: CutCells | None = None
) -> Iterator[WriteRow]:
    """Yield a function that writes a row; the file is whole when the context ends.

    Args:
        path: its ending decides the format.
        columns: the header.
        kinds: of each column one of `KINDS`; for Parquet also a type of pyarrow, for workbooks how
            numbers and dates are shown.
        cuts: counts the cells that a workbook cannot hold whole.
    """
    writers: dict[str, Callable[..., AbstractContextManager[WriteRow]]] = {
        ".csv": _csv,
        ".xlsx": partial(_xlsx, cuts=cuts),
        ".jsonl": _jsonl,
        ".json": _json,
        ".parquet": _parquet,
    }
    with writers[_endings(path)[0]](path, columns, kinds) as write:
        yield write


@contextmanager
def _text_file(path: Path, encoding: str = "utf-8") -> Iterator[IO[str]]:
    """A file of text, compressed where its ending says so; the same bytes for the same rows."""
    compression = _endings(path)[1]
    with path.open("wb") as stored:
        packed: Any = stored
        if compression == ".gz":
            packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=stored, mtime=0)
        elif compression == ".zst":
            import zstandard

            packed = zstandard.ZstdCompressor().stream_writer(stored, closefd=False)
        with io.TextIOWrapper(packed, encoding=encoding, newline="") as file:
            yield file


@contextmanager
def _csv(path: Path, columns: Sequence[str], kinds: Sequence[Any]) -> Iterator[WriteRow]:
    """In UTF-8 with a byte order mark, without which Excel shows broken Hangul.

    Rows end as RFC 4180 has it: with a bare line feed, Python 3.11 would not quote a lone carriage
    return, which cuts a row in two.
    """
    with _text_file(path, "utf-8-sig") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow([csv_cell(name) for name in columns])
        yield lambda row: writer.writerow([csv_cell(cell_of_text(cell)) for cell in row])


@contextmanager
def _xlsx(
    path: Path, columns: Sequence[str], kinds: Sequence[Any], *, cuts: CutCells | None
) -> Iterator[WriteRow]:
    formats = [None if kind in KINDS or not kind else kind for kind in kinds]
    with written_book(path) as book:
        sheet = WrittenSheet(book, "malmoi", cuts=cuts)
        sheet.append(columns)
        yield lambda row: sheet.append(row, formats)


@contextmanager
def _jsonl(path: Path, columns: Sequence[str], kinds: Sequence[Any]) -> Iterator[WriteRow]:
    with _text_file(path) as file:
        yield lambda row: print(json_line(_object(columns, row)), file=file)


@contextmanager
def _json(path: Path, columns: Sequence[str], kinds: Sequence[Any]) -> Iterator[WriteRow]:
    """An array of objects, one a line."""
    with _text_file(path) as file:
        before = "["

        def write(row: Sequence[Any]) -> None:
            nonlocal before
            file.write(f"{before}\n{json_line(_object(columns, row))}")
            before = ","

        yield write
        file.write("\n]\n" if before == "," else "[]\n")


def _object(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    cells = zip(columns, row, strict=True)
    return {name: cell for name, cell in cells if cell is not ABSENT}


def json_line(row: dict[str, Any]) -> str:
    """An object as a line of JSON lines: whole characters, dates as texts, NaN as null."""
    try:
        line = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:  # NaN or an infinity, which JSON has not
        line = json.dumps(_finite(row), ensure_ascii=False, default=str)
    return whole_characters(line)


def _finite(value: Any) -> Any:
    """The value with null for every number that JSON cannot write, however deep."""
    if isinstance(value, dict):
        return {key: _finite(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(cell) for cell in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


@contextmanager
def _parquet(path: Path, columns: Sequence[str], kinds: Sequence[Any]) -> Iterator[WriteRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "datetime": pa.timestamp("us"),
        "date": pa.date32(),
    }
    schema = pa.schema(
        [
            (name, kind if isinstance(kind, pa.DataType) else types.get(kind, pa.string()))
            for name, kind in zip(columns, kinds, strict=True)
        ]
    )
    as_kind: dict[str, type] = {"int": int, "float": float, "bool": bool}
    rows: list[list[Any]] = []
    with pq.ParquetWriter(path, schema) as writer:

        def flush() -> None:
            arrays = [
                pa.array([row[place] for row in rows], type=field.type)
                for place, field in enumerate(schema)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            rows.clear()

        def of_kind(cell: Any, kind: Any) -> Any:
            if isinstance(kind, pa.DataType) or kind in ("datetime", "date"):
                return cell
            text = cell_of_text(cell)
            return text if text is None else as_kind.get(kind, str)(text)

        def write(row: Sequence[Any]) -> None:
            rows.append([of_kind(cell, kind) for cell, kind in zip(row, kinds, strict=True)])
            if len(rows) >= _PARQUET_ROWS:
                flush()

        yield write
        flush()
