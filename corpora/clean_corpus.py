"""A clean corpus on disk: Parquet parts and `report.json`, written once and read many times."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.atomic import directory_at_once
from corpora.cleaning import Cleaner, CleaningSettings
from corpora.errors import InputError
from corpora.record import Record
from corpora.sources import find_sources

_SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "text", "label", "source")])
_ROWS_PER_PART = 1_000_000
_ROWS_PER_GROUP = 10_000


def corpus_hash(path: str | Path) -> str:
    """SHA-256 over the names and bytes of the files that `iter_records(path)` would read.

    Raises:
        InputError: as `iter_records`, for a missing path or a folder without readable files.
    """
    digest = hashlib.sha256()
    for source in find_sources(path):
        digest.update(source.name.encode() + b"\0")
        with source.open_stored() as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def write_clean_corpus(
    records: Iterable[Record], directory: Path, settings: CleaningSettings
) -> dict[str, object]:
    """Clean `records` into `directory` (Parquet parts + `report.json`), in one rename.

    Memory is one row group of 10,000 texts, and about 80 bytes a distinct text for duplicates.

    Returns:
        The report: texts read and kept, and dropped by reason.

    Raises:
        InputError: no text was left after cleaning; nothing is written then.
    """
    cleaner = Cleaner(settings)
    with directory_at_once(directory, shared=True) as scratch:
        cleaned = cleaner.clean(records)
        part = 0
        while _write_part(cleaned, scratch / f"part-{part:05d}.parquet"):
            part += 1
        report = cleaner.report.to_dict()
        if cleaner.report.kept == 0:
            raise InputError(
                f"expected texts to train on, found none left of {cleaner.report.read} after "
                f"cleaning (dropped: {json.dumps(dict(cleaner.report.dropped))}); "
                f"texts need at least {settings.min_characters} characters"
            )
        (scratch / "report.json").write_text(json.dumps(report, ensure_ascii=False, indent=2))
    return report


def _write_part(records: Iterator[Record], path: Path) -> bool:
    """Write up to a million records; False, and no file, if there were none left."""
    writer: pq.ParquetWriter | None = None
    rows: list[dict[str, str | None]] = []
    written = 0
    try:
        for record in records:
            rows.append({name: getattr(record, name) for name in _SCHEMA.names})
            written += 1
            if len(rows) == _ROWS_PER_GROUP or written == _ROWS_PER_PART:
                writer = writer or pq.ParquetWriter(path, _SCHEMA, compression="zstd")
                writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
                rows.clear()
            if written == _ROWS_PER_PART:
                break
        if rows:
            writer = writer or pq.ParquetWriter(path, _SCHEMA, compression="zstd")
            writer.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
    finally:
        if writer is not None:
            writer.close()
    return written > 0


def iter_clean_texts(directory: Path) -> Iterator[str]:
    """The texts of a clean corpus, in order, a row group at a time."""
    for path in sorted(directory.glob("part-*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS_PER_GROUP, columns=["text"]):
                yield from batch.column(0).to_pylist()
