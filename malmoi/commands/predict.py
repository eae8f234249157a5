"""`malmoi predict INPUT... --model M --output FILE`: a table in, the same table with labels out."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from malmoi.errors import InputError
from malmoi.inference.engine import EngineChoice
from malmoi.model_folders import check_source
from malmoi.text.reading.options import ReadOptions

if TYPE_CHECKING:
    from malmoi.inference.classifier import Classifier
    from malmoi.text.reading.sources import Source
    from malmoi.text.reading.whole_rows import WholeRow

ABOUT = (
    "Label the texts of files: all columns stay, label, score and the probability of every label "
    "are added. A run that was killed goes on where it was when the same command is given again. "
    "`malmoi predict - --model M --output -` labels JSON lines as they come."
)
PIPE = Path("-")
# Raise it whenever the files in the work folder change their form.
_WORK_VERSION = 1
_SHOWN_LABELS = 10


@dataclass(kw_only=True)
class PredictSettings:
    """What is labelled, with what, into what."""

    inputs: tyro.conf.Positional[tuple[Path, ...]]
    """Files and folders of texts (.txt .csv .tsv .jsonl .json .parquet .xlsx, plain, .gz or .zst),
    or - for JSON lines on standard input."""
    model: str
    """A fine-tuned classifier: name of a run or of a released model, directory, or Hub id."""
    output: Path
    """File to write, .csv, .xlsx, .jsonl or .parquet, that must not exist yet; - writes JSON lines
    to standard output."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""
    pair_column: str | None = None
    """Column of the second texts, by name or number, for a model that reads pairs."""
    engine: EngineChoice = "auto"
    """What computes; auto is the fastest that agrees with torch-fp32, measured once a model and
    machine."""
    workers: int = 1
    """Processes. One uses all cores; more pay off on many cores, where reading and cleaning keep
    one busy."""


def main(settings: PredictSettings) -> None:
    """Label all inputs."""
    _check(settings)
    from malmoi.text.reading.sources import find_all_sources

    sources = [] if settings.inputs == (PIPE,) else find_all_sources(settings.inputs)
    if settings.output == PIPE:
        _to_standard_output(settings, sources)
    else:
        _to_file(settings, sources)


def _check(settings: PredictSettings) -> None:
    from malmoi.text.table_writing import check_writable

    if not settings.inputs:
        raise InputError("expected files or folders to label, found none; name at least one, or -")
    if PIPE in settings.inputs and len(settings.inputs) > 1:
        raise InputError("expected - alone, or files, found both; name either")
    if settings.inputs == (PIPE,) and settings.output != PIPE:
        raise InputError(
            f"expected --output - for standard input, found {settings.output}; redirect standard "
            "output to it"
        )
    if settings.workers < 1:
        raise InputError(f"expected --workers of at least 1, found {settings.workers}")
    if settings.output == PIPE:
        if settings.workers > 1:
            raise InputError("expected --workers 1 with --output -, found more; name a file")
    else:
        check_writable(settings.output)
        if settings.output.exists():
            raise InputError(
                f"expected a new file for --output, found {settings.output}; delete it or name "
                "another"
            )
    check_source(settings.model)


def _load(settings: PredictSettings) -> "Classifier":
    from malmoi.inference.classifier import Classifier

    classifier = Classifier.load(
        settings.model, settings.engine, say=lambda line: print(line, file=sys.stderr, flush=True)
    )
    if classifier.reads_pairs and settings.pair_column is None:
        raise InputError(
            f"{settings.model} reads two texts at a time; name the column of the second ones with "
            "--pair-column"
        )
    if classifier.reads_pairs is False and settings.pair_column is not None:
        raise InputError(
            f"{settings.model} reads one text at a time, found --pair-column "
            f"{settings.pair_column}; leave it out"
        )
    return classifier


def _rows(
    settings: PredictSettings, sources: Sequence["Source"], *, quiet: bool = False
) -> Iterable["WholeRow"]:
    from malmoi.text.reading.notes import ReadingNotes
    from malmoi.text.reading.whole_rows import iter_whole_rows

    def say(line: str) -> None:
        print(line, file=sys.stderr if settings.output == PIPE else sys.stdout, flush=True)

    return iter_whole_rows(
        sources,
        settings.reading,
        pair_column=settings.pair_column,
        notes=ReadingNotes(say=None if quiet else say),
    )


def _to_standard_output(settings: PredictSettings, sources: Sequence["Source"]) -> None:
    from malmoi.inference.line_prediction import grouped, label_lines, rows_as_they_come

    classifier = _load(settings)
    if sources:
        groups: Iterable[Sequence[WholeRow]] = grouped(_rows(settings, sources))
    else:
        groups = rows_as_they_come(
            sys.stdin.fileno(),
            settings.reading.text_column,
            settings.pair_column,
            skip_bad_rows=settings.reading.skip_bad_rows,
        )

    def write(lines: str) -> None:
        # JSON is UTF-8, whatever the terminal speaks.
        sys.stdout.buffer.write(lines.encode("utf-8"))
        sys.stdout.buffer.flush()

    label_lines(groups, classifier, write)


def _to_file(settings: PredictSettings, sources: Sequence["Source"]) -> None:
    from malmoi.inference.exported import model_hash
    from malmoi.inference.table_prediction import ROWS_IN_UNIT, label_table, survey_rows
    from malmoi.model_folders import classifier_folder
    from malmoi.progress import shown_progress
    from malmoi.text.cleaning.cleaner import CLEANER_VERSION
    from malmoi.text.corpus.clean_corpus import sources_hash
    from malmoi.text.reading.records import READER_VERSION
    from malmoi.work_folder import work_folder, worth_keeping

    classifier = _load(settings)
    plan = {
        "work_version": _WORK_VERSION,
        "inputs_sha256": sources_hash(sources),
        "reader": READER_VERSION,
        "cleaning": CLEANER_VERSION,
        "reading": asdict(settings.reading),
        "pair_column": settings.pair_column,
        "model": model_hash(classifier_folder(settings.model)),
        "engine": classifier.engine,
        "temperature": classifier.temperature,
        "rows_per_unit": ROWS_IN_UNIT,
    }
    with work_folder(settings.output, plan) as work:
        survey = survey_rows(lambda: _rows(settings, sources), work)
        print(f"{survey.rows:,} rows, {classifier.name} by {classifier.engine}", flush=True)
        with worth_keeping(), shown_progress("rows") as progress:
            labelled = label_table(
                lambda: _rows(settings, sources, quiet=True),
                survey,
                classifier,
                settings.output,
                work,
                model=settings.model,
                workers=settings.workers,
                progress=progress,
            )
    for label, count in list(labelled.labels.items())[:_SHOWN_LABELS]:
        print(f"  {label or '(none)'}: {count:,} ({count / labelled.rows:.1%})")
    if labelled.empty:
        print(f"{labelled.empty:,} rows without a text, left without a label")
    print(f"{labelled.rows:,} rows -> {settings.output}")
