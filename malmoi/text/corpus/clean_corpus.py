"""A clean corpus on disk: Parquet parts and `_report.json`, written once and read many times."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from malmoi.errors import InputError
from malmoi.files import directory_at_once, full_disk_as_oserror
from malmoi.progress import Progress, no_progress
from malmoi.text.cleaning.cleaner import CleaningSettings
from malmoi.text.cleaning.spacing import NO_ANALYSIS, Analysis
from malmoi.text.corpus.clean_report import REPORT_NAME, CleaningReport
from malmoi.text.corpus.parquet_parts import ROWS_PER_GROUP, PartWriter, TableWriter
from malmoi.text.corpus.units import (
    PASSING,
    REJECT_SCHEMA,
    TEXT_SCHEMA,
    CleanedUnit,
    Unit,
    UnitCleaner,
    band_name,
    cut_units,
)
from malmoi.text.duplicates.exact import first_occurrences
from malmoi.text.duplicates.near import NearDuplicates, find_near_duplicates
from malmoi.text.reading.layouts import layout_of
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.sources import Source, find_sources
from malmoi.text.record import Record
from malmoi.workers.engines import Engine, keep_results


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningMeans:
    """How the work is done; the clean corpus does not depend on it.

    Attributes:
        engine: "local", or "ray" for a cluster.
        workers: processes of the local engine.
        progress: told what is going on.
    """

    engine: Engine = "local"
    workers: int = 1
    progress: Progress = no_progress


def corpus_hash(path: str | Path) -> str:
    """SHA-256 over what `iter_records(path)` would read: see `sources_hash`.

    Raises:
        InputError: as `iter_records`, for a missing path or a folder without readable files.
    """
    return sources_hash(find_sources(path))


def sources_hash(sources: Iterable[Source]) -> str:
    """SHA-256 over the names and stored bytes of sources, in their order.

    A fetched file counts with the layout by which it is read: the same bytes beside no
    `SOURCE.json` are other texts.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0")
        if layout := layout_of(source):
            digest.update(repr(layout).encode() + b"\0")
        with source.open_stored() as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def write_clean_corpus(
    records: Iterable[Record],
    directory: Path,
    settings: CleaningSettings,
    notes: ReadingNotes | None = None,
    *,
    means: CleaningMeans | None = None,
) -> CleaningReport:
    """Clean `records` into `directory` (Parquet parts + `_report.json`), in one rename.

    Memory is a few units of 10,000 texts, and 16 bytes a text for duplicates.

    Raises:
        InputError: no text was left after cleaning; nothing is written then.
    """
    with directory_at_once(directory, shared=True) as scratch:
        work = scratch / ".work"
        work.mkdir()
        report = build_clean_corpus(records, scratch, work, settings, notes=notes, means=means)
        shutil.rmtree(work)
    return report


def build_clean_corpus(
    records: Iterable[Record],
    directory: Path,
    work: Path,
    settings: CleaningSettings,
    *,
    near: NearDuplicates | None = None,
    analysis: Analysis = NO_ANALYSIS,
    rejects: TableWriter | None = None,
    notes: ReadingNotes | None = None,
    means: CleaningMeans | None = None,
) -> CleaningReport:
    """Clean `records` and write the parts and the report into `directory`.

    First every unit of 10,000 records is cleaned, by itself, into a file in `work`; then the
    keys of all texts are compared, and the texts kept are copied from these files in order.

    Args:
        records: the texts.
        directory: an empty directory for the result.
        work: a directory for the units. Those that are already there are taken as they are: the
            caller knows that they were made of the same records with the same arguments.
        settings: the rules about one text.
        near: how near duplicates are found; None keeps them.
        analysis: what the analyser does to clean texts.
        rejects: where dropped texts go, with `REJECT_SCHEMA`.
        notes: how the files were read, for the report, once all records were taken.
        means: how the work is done.

    Returns:
        The report that was written.

    Raises:
        InputError: no text was left; or as `map_in_order`.
    """
    means = means or CleaningMeans()
    cleaner = UnitCleaner(
        settings=settings, near=near, keep_rejected=rejects is not None, analysis=analysis
    )
    units = _clean_into(work, cut_units(records), cleaner, means)
    report = CleaningReport.of(settings, near, analysis)
    report.reading = None if notes is None else notes.as_json()
    keepers, is_duplicate = _find_keepers(units, settings, near, work, means.progress)
    parts = PartWriter(directory, TEXT_SCHEMA)
    with full_disk_as_oserror(directory):
        _write_texts(units, keepers, is_duplicate, parts, rejects, report, means.progress)
    if report.kept == 0:
        raise InputError(
            "expected texts to keep, found none left of {texts:,} after cleaning (dropped: "
            "{dropped}); texts need at least {least} characters",
            texts=report.read,
            dropped=json.dumps(report.dropped),
            least=settings.min_characters,
        )
    (directory / REPORT_NAME).write_text(report.to_json(), encoding="utf-8")
    return report


def _clean_into(
    work: Path, units: Iterable[Unit], cleaner: UnitCleaner, means: CleaningMeans
) -> list[CleanedUnit]:
    """Clean the units whose files are not there yet."""
    paths = keep_results(
        cleaner,
        ((len(unit.ids), unit) for unit in units),
        work,
        engine=means.engine,
        workers=means.workers,
        on_done=lambda done: means.progress("cleaning", done),
    )
    return [CleanedUnit(path) for path in paths]


def _find_keepers(
    units: list[CleanedUnit],
    settings: CleaningSettings,
    near: NearDuplicates | None,
    work: Path,
    progress: Progress,
) -> tuple[np.ndarray, np.ndarray]:
    """Which texts are kept.

    Returns:
        keepers [N] int64: for every text that passes the rules about one text, the index of the
        text kept in its place, or its own; is_duplicate [N] bool: whether it is an exact one.
    """
    keys = _concatenated(unit.array("keys") for unit in units)
    own = np.arange(len(keys), dtype=np.int64)
    firsts = first_occurrences(keys) if settings.drop_duplicates else own
    is_first = firsts == own
    if near is None:
        return firsts, ~is_first
    ends = np.cumsum([len(unit.array("keys")) for unit in units])
    firsts_of_units = np.split(is_first, ends[:-1])

    def column(name: str) -> Iterator[np.ndarray]:
        for unit, mask in zip(units, firsts_of_units, strict=True):
            yield unit.array(name)[mask]

    among_firsts = find_near_duplicates(
        lambda band: _concatenated(column(band_name(band))),
        column("sketches"),
        near,
        work,
        lambda done, total: progress("near duplicates", done, total),
    )
    places = np.flatnonzero(is_first)
    own[places] = places[among_firsts]
    # A copy of a near duplicate stands for the text which that one was dropped for.
    return own[firsts], ~is_first


def _concatenated(arrays: Iterable[np.ndarray]) -> np.ndarray:
    parts = list(arrays)
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _write_texts(
    units: list[CleanedUnit],
    keepers: np.ndarray,
    is_duplicate: np.ndarray,
    parts: PartWriter,
    rejects: TableWriter | None,
    report: CleaningReport,
    progress: Progress,
) -> None:
    """Copy the texts kept, and those dropped if they are wanted, and count both."""
    is_kept = keepers == np.arange(len(keepers))
    kept_ids = _IdsOfKept(units, keepers[~is_kept]) if rejects is not None else None
    start = 0
    for unit in units:
        texts = unit.texts
        rows = slice(start, start + len(texts))
        start += len(texts)
        kept = is_kept[rows]
        parts.write(texts.filter(pa.array(kept)))
        reasons = np.where(is_duplicate[rows], "duplicate", "near-duplicate")
        for source, numbers in unit.counts.items():
            report.count(source, "read", sum(numbers.values()))
            for reason, number in numbers.items():
                report.count(source, "kept" if reason == PASSING else reason, number)
        for source, found in unit.analysis_counts.items():
            for what, number in found.items():
                report.count(source, what, number)
        for reason in ("duplicate", "near-duplicate"):
            dropped = texts["source"].filter(pa.array(~kept & (reasons == reason)))
            for source, number in Counter(dropped.to_pylist()).items():
                report.count(source, reason, number)
                report.count(source, "kept", -number)
        if rejects is not None and kept_ids is not None:
            rejects.write(unit.rejects)
            dropped = texts.filter(pa.array(~kept))
            columns = [dropped["id"], dropped["source"], pa.array(reasons[~kept], pa.string())]
            columns += [dropped["text"], kept_ids.of(keepers[rows][~kept])]
            rejects.write(pa.table(columns, schema=REJECT_SCHEMA))
        progress("writing", start, len(keepers))
    parts.close()
    if rejects is not None:
        rejects.close()


class _IdsOfKept:
    """The ids of texts by their index; in memory only those asked for."""

    def __init__(self, units: list[CleanedUnit], indices: np.ndarray) -> None:
        self._indices = np.unique(indices)
        chunks = []
        start = 0
        for unit in units:
            ids = unit.texts["id"]
            first, last = np.searchsorted(self._indices, [start, start + len(ids)])
            chunks.append(ids.take(pa.array(self._indices[first:last] - start)))
            start += len(ids)
        self._ids = pa.chunked_array(
            [part for chunk in chunks for part in chunk.chunks], pa.string()
        )

    def of(self, indices: np.ndarray) -> pa.ChunkedArray:
        """The ids of the texts with these indices."""
        return self._ids.take(pa.array(np.searchsorted(self._indices, indices)))


def is_whole(directory: Path) -> bool:
    """Whether a clean corpus has its report and, by their own count, all texts that it kept."""
    try:
        kept = CleaningReport.read_from(directory).kept
        parts = sorted(directory.glob("part-*.parquet"))
        return kept == sum(pq.read_metadata(part).num_rows for part in parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # ArrowInvalid is one
        return False


def iter_clean_texts(directory: Path) -> Iterator[str]:
    """The texts of a clean corpus, in order, a row group at a time.

    Raises:
        InputError: a file of it is damaged.
    """
    for path in sorted(directory.glob("part-*.parquet")):
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=ROWS_PER_GROUP, columns=["text"]):
                    yield from batch.column(0).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                "cannot read the cleaned texts in {path}: {error}; delete its folder and clean "
                "the texts again (pretrain/run.py does so by itself)",
                path=path,
                error=error,
            ) from error
