"""Units of work: a few thousand records each, cleaned anywhere, kept as one small Arrow file.

Units are cut from the stream of records by count alone, so that they, and everything made of
them, are the same for any number of workers.
"""

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import xxhash

from malmoi.text.cleaning.cleaner import CleanedBatch, CleaningSettings, clean_batch
from malmoi.text.cleaning.spacing import NO_ANALYSIS, Analysis, analyse_batch
from malmoi.text.duplicates.near import BANDS, NearDuplicates, make_sketches
from malmoi.text.record import Record

# Large enough that starting a unit costs nothing beside cleaning it, small enough that a killed
# run loses little and that 16 units in flight need 100 MB at most (assumption).
RECORDS_PER_UNIT = 10_000
# A unit of long texts is cut earlier: memory does not grow with the length of texts.
CHARACTERS_PER_UNIT = 8_000_000
# A raw text beyond this is a whole file in one line, not worth cleaning first (assumption).
LONGEST_RAW_CHARACTERS = 1_000_000

TEXT_SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "text", "label", "source")])
REJECT_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("id", "source", "reason", "text", "kept_id")]
)
PASSING = "passing"
# What a unit counts beside that, and only if the analyser is used.
AnalysisCount = Literal["before_splitting", "analyser_failed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """Records as columns of equal length, in the order in which they were read."""

    ids: list[str]
    texts: list[str]
    labels: list[str | None]
    sources: list[str]


def cut_units(records: Iterable[Record]) -> Iterator[Unit]:
    """Cut a stream of records into units, by their number and, for long texts, their length."""
    unit, characters = _empty_unit(), 0
    for record in records:
        unit.ids.append(record.id)
        unit.texts.append(record.text)
        unit.labels.append(record.label)
        unit.sources.append(record.source)
        characters += len(record.text)
        if len(unit.ids) == RECORDS_PER_UNIT or characters >= CHARACTERS_PER_UNIT:
            yield unit
            unit, characters = _empty_unit(), 0
    if unit.ids:
        yield unit


def _empty_unit() -> Unit:
    return Unit(ids=[], texts=[], labels=[], sources=[])


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitCleaner:
    """Cleans a unit: a function that can be sent to another process or machine.

    Attributes:
        settings: the rules about one text.
        near: how texts are compared, or None if near duplicates are not looked for.
        keep_rejected: whether dropped texts are kept in the unit's file, for `--rejects`.
        analysis: what the analyser does to clean texts.
    """

    settings: CleaningSettings
    near: NearDuplicates | None = None
    keep_rejected: bool = False
    analysis: Analysis = NO_ANALYSIS

    def __call__(self, unit: Unit) -> bytes:
        """The unit's file, to be read by `CleanedUnit`."""
        batch = _clean(unit.texts, self.settings)
        analysis_counts: dict[str, Counter[str]] = {}
        if self.analysis.is_used:
            unit, batch, analysis_counts = _analyse(unit, batch, self.settings, self.analysis)
        texts, reasons = batch.texts, batch.reasons
        counts: dict[str, Counter[str]] = {}
        passing: list[int] = []
        rejected: list[int] = []
        for row, (source, reason) in enumerate(zip(unit.sources, reasons, strict=True)):
            counts.setdefault(source, Counter())[reason or PASSING] += 1
            (rejected if reason else passing).append(row)
        clean = [texts[row] for row in passing]
        members = {
            "counts": _json_bytes(counts),
            "analysis": _json_bytes(analysis_counts),
            "keys": np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in clean], "u8"),
            "texts": _arrow_file(
                TEXT_SCHEMA,
                [unit.ids[row] for row in passing],
                clean,
                [unit.labels[row] for row in passing],
                [unit.sources[row] for row in passing],
            ),
        }
        if self.near is not None:
            bands, members["sketches"] = make_sketches(clean, self.near)
            members |= {band_name(band): bands[:, band] for band in range(BANDS)}
        if self.keep_rejected:
            # As they were read: the clean form is often empty. Sentences as cleaned.
            members["rejects"] = _arrow_file(
                REJECT_SCHEMA,
                [unit.ids[row] for row in rejected],
                [unit.sources[row] for row in rejected],
                [reasons[row] for row in rejected],
                [unit.texts[row] for row in rejected],
                [None] * len(rejected),
            )
        file = io.BytesIO()
        np.savez(file, **members)  # type: ignore[arg-type]  # every name is ours
        return file.getvalue()


def band_name(band: int) -> str:
    """What a unit's file calls the keys of a band."""
    return f"band-{band}"


class CleanedUnit:
    """A unit's file. Each part of it is read, and its checksum verified, when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Texts by source, and within it by the reason to drop them, or `PASSING`."""
        found: dict[str, dict[str, int]] = json.loads(self.array("counts").tobytes())
        return found

    @property
    def analysis_counts(self) -> dict[str, dict[AnalysisCount, int]]:
        """By source, the texts before splitting and those that the analyser failed on.

        A text that could not be split counts once; so does a sentence whose spaces could not be
        put right. Empty if the analyser was not used.
        """
        found: dict[str, dict[AnalysisCount, int]] = json.loads(self.array("analysis").tobytes())
        return found

    @property
    def texts(self) -> pa.Table:
        """The texts that pass every rule about one text, with `TEXT_SCHEMA`."""
        return self._table("texts")

    @property
    def rejects(self) -> pa.Table:
        """The others, with `REJECT_SCHEMA`."""
        return self._table("rejects")

    def array(self, name: str) -> np.ndarray:
        """`keys` or a `band_name` [N] uint64, or `sketches` [N, HASHES] uint8, of `texts`."""
        with np.load(self._path) as members:
            array: np.ndarray = members[name]
        return array

    def _table(self, name: str) -> pa.Table:
        return pa.ipc.open_file(pa.py_buffer(self.array(name))).read_all()


def _clean(texts: list[str], settings: CleaningSettings) -> CleanedBatch:
    # Nearly always no text is that long.
    overlong = [row for row, text in enumerate(texts) if len(text) > LONGEST_RAW_CHARACTERS]
    if overlong:
        texts = texts[:]
        for row in overlong:
            texts[row] = ""
    batch = clean_batch(texts, settings)
    for row in overlong:
        batch.reasons[row] = "too-long"
    return batch


def _analyse(
    unit: Unit, batch: CleanedBatch, settings: CleaningSettings, analysis: Analysis
) -> tuple[Unit, CleanedBatch, dict[str, Counter[str]]]:
    """The unit and its clean texts, by sentences if they are split, and the `AnalysisCount`s."""
    found = analyse_batch(unit.texts, batch, settings, analysis)
    counts = {source: Counter[str]() for source in dict.fromkeys(unit.sources)}
    if analysis.split_sentences:
        for source, number in Counter(unit.sources).items():
            counts[source]["before_splitting"] = number
    for row in found.failed:
        counts[unit.sources[found.origins[row]]]["analyser_failed"] += 1
    split = Unit(
        ids=[
            unit.ids[origin] if number is None else f"{unit.ids[origin]}:{number}"
            for origin, number in zip(found.origins, found.sentences, strict=True)
        ],
        texts=[
            unit.texts[origin] if number is None else text
            for origin, number, text in zip(
                found.origins, found.sentences, found.texts, strict=True
            )
        ],
        labels=[unit.labels[origin] for origin in found.origins],
        sources=[unit.sources[origin] for origin in found.origins],
    )
    return split, CleanedBatch(texts=found.texts, reasons=found.reasons), counts


def _json_bytes(value: object) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def _arrow_file(schema: pa.Schema, *columns: Sequence[str | None]) -> np.ndarray:
    """Columns of strings as the bytes of an Arrow file, uint8."""
    sink = pa.BufferOutputStream()
    arrays = [_strings(column) for column in columns]
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def _strings(values: Sequence[str | None]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        # Half of a surrogate pair, which "\\ud83d" in JSON gives, has no UTF-8.
        whole = [value and value.encode("utf-8", "backslashreplace").decode() for value in values]
        return pa.array(whole, pa.string())
