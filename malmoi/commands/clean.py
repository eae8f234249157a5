"""`malmoi clean INPUT... --output DIR`: any Korean text in, a clean corpus out."""

import shutil
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from malmoi.errors import InputError
from malmoi.files import sync_tree
from malmoi.progress import shown_progress
from malmoi.settings import Range
from malmoi.text.cleaning.cleaner import CLEANER_VERSION, CleaningSettings
from malmoi.text.cleaning.spacing import Analysis
from malmoi.text.corpus.clean_corpus import CleaningMeans, build_clean_corpus, sources_hash
from malmoi.text.corpus.clean_report import CleaningReport
from malmoi.text.corpus.rejects import check_rejects, rejects_writer
from malmoi.text.corpus.units import RECORDS_PER_UNIT
from malmoi.text.duplicates.near import (
    DEFAULT_NGRAM_CHARACTERS,
    DEFAULT_THRESHOLD,
    NearDuplicates,
)
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import READER_VERSION, iter_source_records
from malmoi.text.reading.sources import Source, find_all_sources
from malmoi.work_folder import work_folder
from malmoi.workers.engines import Engine
from malmoi.workers.local import available_cores

ABOUT = (
    "Clean texts and drop duplicates: Parquet parts and _report.json. A run that was killed goes "
    "on where it was when the same command is given again."
)
# Raise it whenever the files in the work folder change their form.
_WORK_VERSION = 2


@dataclass(kw_only=True)
class CleanSettings:
    """What is cleaned, into what."""

    inputs: tyro.conf.Positional[tuple[Path, ...]]
    """Files and folders of texts (.txt .csv .tsv .jsonl .parquet .xlsx, plain, .gz or .zst)."""
    output: Path
    """Directory to write; must not exist yet."""
    rejects: Path | None = None
    """Write the dropped texts, with reason, to this .jsonl or .csv file, or as Parquet parts to
    this folder."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""
    workers: Annotated[int, Range(1)] = field(default_factory=available_cores)
    """Processes that clean. The output does not depend on it."""
    engine: Engine = "local"
    """Where to clean: in processes of this machine, or on the Ray cluster that RAY_ADDRESS names
    (one on this machine, if it names none), whose nodes need this project installed."""
    near_duplicates: bool = False
    """Drop near duplicates too (MinHash)."""
    near_threshold: float = DEFAULT_THRESHOLD
    """Jaccard similarity of character n-grams from which a text is a near duplicate, 0.7 to 1."""
    near_ngram_characters: int = DEFAULT_NGRAM_CHARACTERS
    """Length of these n-grams."""
    analysis: Annotated[Analysis, tyro.conf.arg(name="")] = field(default_factory=Analysis)
    """What Kiwi does to the texts."""
    cleaning: Annotated[CleaningSettings, tyro.conf.arg(name="")] = field(
        default_factory=CleaningSettings
    )
    """The rules about one text."""


def main(settings: CleanSettings) -> None:
    """Clean the inputs and write the directory in one rename."""
    near = _check(settings)
    sources = find_all_sources(settings.inputs)
    paths = [source.path for source in sources if source.path is not None]
    # A link that leads nowhere is refused where it is opened, in one line.
    size = sum(path.stat().st_size for path in paths if path.exists())
    print(f"cleaning {len(sources):,} files, {size / 1e6:,.1f} MB", flush=True)
    plan = {
        "work_version": _WORK_VERSION,
        "cleaning": CLEANER_VERSION,
        "inputs_sha256": sources_hash(sources),
        "reader": READER_VERSION,
        "reading": asdict(settings.reading),
        "settings": asdict(settings.cleaning),
        "near_duplicates": near and asdict(near),
        "analysis": settings.analysis.describe(),
        "keeps_rejected": settings.rejects is not None,
        "records_per_unit": RECORDS_PER_UNIT,
    }
    report = _clean(settings, near, sources, plan)
    print(report.summary())
    for source, counter in report.sources.items() if len(report.sources) <= 20 else ():
        print(f"  {source}: {counter['kept']:,} of {counter['read']:,}")
    print(f"cleaning {report.cleaning} -> {settings.output}")


def _check(settings: CleanSettings) -> NearDuplicates | None:
    if not settings.inputs:
        raise InputError("expected files or folders to clean, found none; name at least one")
    if settings.output.exists():
        raise InputError(
            "expected a new directory for --output, found {output}; delete it or name another",
            output=settings.output,
        )
    if settings.rejects is not None:
        check_rejects(settings.rejects, settings.output)
    near = NearDuplicates(
        threshold=settings.near_threshold, ngram_characters=settings.near_ngram_characters
    )
    return near if settings.near_duplicates else None


def _clean(
    settings: CleanSettings,
    near: NearDuplicates | None,
    sources: list[Source],
    plan: dict[str, Any],
) -> CleaningReport:
    with work_folder(settings.output, plan) as work, ExitStack() as stack:
        units = work / "units"
        units.mkdir(exist_ok=True)
        if before := len(list(units.glob("*.npz"))):
            print(f"going on from {before:,} finished units of {RECORDS_PER_UNIT:,} texts")
        result = work / "output"
        shutil.rmtree(result, ignore_errors=True)
        result.mkdir()
        rejects = None
        if settings.rejects is not None:
            rejects = stack.enter_context(rejects_writer(settings.rejects))
        progress = stack.enter_context(shown_progress())
        notes = ReadingNotes(say=lambda line: print(line, flush=True))
        report = build_clean_corpus(
            iter_source_records(sources, options=settings.reading, notes=notes),
            result,
            units,
            settings.cleaning,
            near=near,
            analysis=settings.analysis,
            rejects=rejects,
            notes=notes,
            means=CleaningMeans(
                engine=settings.engine, workers=settings.workers, progress=progress
            ),
        )
        stack.close()  # the rejects first: the output says that all is done
        sync_tree(result)
        result.rename(settings.output)
    return report
