"""`malmoi predict INPUT... --model M --output FILE`: a table in, the same table with labels out."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from malmoi.errors import InputError
from malmoi.inference.engine import EngineChoice
from malmoi.model_folders import check_classifier
from malmoi.settings import Range
from malmoi.text.reading.options import ReadOptions

if TYPE_CHECKING:
    from malmoi.inference.classifier import Classifier
    from malmoi.inference.table_prediction import Labelled
    from malmoi.text.reading.sources import Source
    from malmoi.text.record import Record

ABOUT = (
    "Label the texts of files: all columns stay, label, score and the probability of every label "
    "are added. A run that was killed goes on where it was when the same command is given again. "
    "`malmoi predict - --model M --output -` labels JSON lines as they come."
)
PIPE = Path("-")
# Raise it whenever the files in the work folder change their form.
_WORK_VERSION = 2
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
    """File to write, .csv, .xlsx, .jsonl, .json or .parquet, those in text also with .gz or
    .zst, that must not exist yet; - writes JSON lines to standard output; with --cluster a
    folder."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""
    pair_column: str | None = None
    """Column of the second texts, by name or number, for a model that reads pairs; found where the
    two are named sentence1 and sentence2, question1 and question2, premise and hypothesis, or text
    and pair."""
    accept: Annotated[float | None, Range(0, 1)] = None
    """Answer where so many answers are right, such as 0.95: the column `check` says 확인 필요 of
    less sure texts, and 모르는 글 of those of which the model knows nothing."""
    top_k: Annotated[int | None, Range(1)] = None
    """The likeliest labels, so many, with their scores, instead of the probability of every one."""
    engine: EngineChoice = "auto"
    """What computes; fastest measures which agrees with torch-fp32 and is the fastest, auto takes
    what was measured, else what suits the processor."""
    workers: Annotated[int | None, Range(1)] = None
    """Processes; by default one, which uses all cores. More pay off on many cores, where reading
    and cleaning keep one busy. With --cluster: cores at most; by default all of it."""
    cluster: Literal["ray"] | None = None
    """Predict on a Ray cluster: Parquet in, a folder of Parquet parts out, both where all nodes see
    them."""
    address: str | None = None
    """host:port of the cluster's head; else what RAY_ADDRESS says, else the cluster of this
    machine, which is started if need be."""


def main(settings: PredictSettings) -> None:
    _check(settings)
    from malmoi.text.reading.sources import find_all_sources

    sources = [] if settings.inputs == (PIPE,) else find_all_sources(settings.inputs)
    if settings.cluster is not None:
        _on_cluster(settings, sources)
    elif settings.output == PIPE:
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
            "expected --output - for standard input, found {output}; redirect standard output to "
            "it",
            output=settings.output,
        )
    if settings.address is not None and settings.cluster is None:
        raise InputError(
            "--address {address} is for --cluster ray; give both or neither",
            address=settings.address,
        )
    if settings.cluster is not None:
        _check_cluster(settings)
    elif settings.output == PIPE:
        if (settings.workers or 1) > 1:
            raise InputError("expected --workers 1 with --output -, found more; name a file")
    else:
        check_writable(settings.output)
    if settings.output != PIPE and settings.output.exists():
        kind = "file" if settings.cluster is None else "folder"
        raise InputError(
            "expected a new {kind} for --output, found {output}; delete it or name another",
            kind=kind,
            output=settings.output,
        )
    check_classifier(settings.model)


def _check_cluster(settings: PredictSettings) -> None:
    from malmoi.text.table_writing import ending, is_written

    if PIPE in (*settings.inputs, settings.output):
        raise InputError("expected files and a folder with --cluster, found -; name them")
    if is_written(settings.output):
        raise InputError(
            "expected a folder for --output with --cluster, found {output}; leave out the ending "
            "{ending}",
            output=settings.output,
            ending=ending(settings.output),
        )
    if (settings.address or "").startswith("ray://"):
        raise InputError(
            "expected host:port of the cluster's head as --address, found {address}, which is for "
            "Ray's client; give the port of ray start --head, as a rule 6379",
            address=settings.address,
        )


def _load(
    settings: PredictSettings, sources: Sequence["Source"]
) -> tuple["Classifier", PredictSettings]:
    """The classifier, and the settings with both columns where it reads pairs."""
    from malmoi.inference.classifier import Classifier
    from malmoi.text.reading.records import known_pair

    classifier = Classifier.load(settings.model, settings.engine)
    accept = settings.accept
    threshold = None if accept is None else classifier.threshold(accept)
    classifier.columns = replace(classifier.columns, threshold=threshold, top_k=settings.top_k)
    if classifier.reads_pairs and settings.pair_column is None:
        found = known_pair(sources[0], settings.reading) if sources else None
        if found is None:
            raise InputError(
                "{model} reads two texts at a time; name the column of the second ones with "
                "--pair-column",
                model=settings.model,
            )
        reading = replace(settings.reading, text_column=found[0])
        return classifier, replace(settings, reading=reading, pair_column=found[1])
    if classifier.reads_pairs is False and settings.pair_column is not None:
        raise InputError(
            "{model} reads one text at a time, found --pair-column {pair_column}; leave it out",
            model=settings.model,
            pair_column=settings.pair_column,
        )
    return classifier, settings


def _rows(
    settings: PredictSettings, sources: Sequence["Source"], *, quiet: bool = False
) -> Iterable["Record"]:
    from malmoi.inference.output_columns import with_sheet, with_source
    from malmoi.text.reading.notes import ReadingNotes
    from malmoi.text.reading.records import iter_whole_rows

    def say(line: str) -> None:
        print(line, file=sys.stderr if settings.output == PIPE else sys.stdout, flush=True)

    rows = iter_whole_rows(
        sources,
        settings.reading,
        pair_column=settings.pair_column,
        keep_blank=True,
        notes=ReadingNotes(say=None if quiet else say),
    )
    rows = map(with_sheet, rows)
    return map(with_source, rows) if len(sources) > 1 else rows


def _to_standard_output(settings: PredictSettings, sources: Sequence["Source"]) -> None:
    from malmoi.inference.standard_input import rows_as_they_come
    from malmoi.inference.table_prediction import json_lines, units_of

    classifier, settings = _load(settings, sources)
    if sources:
        units: Iterable[Sequence[Record]] = units_of(_rows(settings, sources))
    else:
        units = rows_as_they_come(
            sys.stdin.fileno(),
            settings.reading.text_column,
            settings.pair_column,
            skip_bad_rows=settings.reading.skip_bad_rows,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    for unit in units:
        # JSON is UTF-8, whatever the terminal speaks.
        sys.stdout.buffer.write(json_lines(unit, classifier).encode("utf-8"))
        sys.stdout.buffer.flush()


def _to_file(settings: PredictSettings, sources: Sequence["Source"]) -> None:
    from malmoi.inference.table_prediction import kept_columns, label_table, survey_rows
    from malmoi.progress import shown_progress
    from malmoi.work_folder import work_folder, worth_keeping

    classifier, settings = _load(settings, sources)
    with work_folder(settings.output, _plan(settings, sources, classifier)) as work:
        survey = survey_rows(lambda: _rows(settings, sources), work)
        print(f"{survey.rows:,} rows, {classifier.name} by {classifier.engine}", flush=True)
        with worth_keeping(), shown_progress("rows") as progress:
            labelled = label_table(
                lambda: _rows(settings, sources, quiet=True),
                survey,
                classifier,
                settings.output,
                work,
                kept=kept_columns(sources, settings.reading, settings.output, settings.pair_column),
                model=settings.model,
                workers=settings.workers or 1,
                progress=progress,
            )
    _say(labelled, settings)


def _on_cluster(settings: PredictSettings, sources: Sequence["Source"]) -> None:
    from malmoi.inference.cluster_prediction import PARTS, label_on_cluster
    from malmoi.inference.parquet_parts import cut_parts
    from malmoi.inference.shipped_model import ship_model
    from malmoi.model_folders import classifier_folder
    from malmoi.progress import shown_progress
    from malmoi.text.reading.notes import ReadingNotes
    from malmoi.work_folder import work_folder, worth_keeping
    from malmoi.workers.ray_cluster import check_nodes, cluster_cores, joined_cluster

    cut = cut_parts(
        sources,
        settings.reading,
        settings.pair_column,
        ReadingNotes(say=lambda line: print(line, flush=True)),
    )
    named = "RAY_ADDRESS" if settings.address is None else "--address"
    # Joined before anything is computed or deleted.
    with joined_cluster(settings.address, named=named) as ray:
        classifier, _ = _load(settings, ())
        plan = {"parts": len(cut.parts), **_plan(settings, sources, classifier)}
        with work_folder(settings.output, plan) as work:
            with worth_keeping(), shown_progress("rows") as progress:
                check_nodes(ray, [work.resolve(), *cut.folders])
                model = ship_model(classifier_folder(settings.model), classifier)
                print(
                    f"{cut.rows:,} rows in {len(cut.parts):,} parts, {classifier.name} by "
                    f"{classifier.engine} ({model.num_bytes / 1e6:,.0f} MB to each node) on "
                    f"{cluster_cores(ray):,} cores",
                    flush=True,
                )
                labelled = label_on_cluster(
                    cut,
                    model,
                    classifier.columns,
                    work,
                    workers=settings.workers,
                    skip_bad_rows=settings.reading.skip_bad_rows,
                    progress=progress,
                )
            (work / PARTS).rename(settings.output)
    if left_out := cut.rows - labelled.rows:
        print(f"{left_out:,} rows that could not be read, left out")
    _say(labelled, settings)


def _plan(
    settings: PredictSettings, sources: Sequence["Source"], classifier: "Classifier"
) -> dict[str, Any]:
    """All that finished units depend on."""
    from malmoi.inference.onnx_exports import model_hash
    from malmoi.inference.table_prediction import ROWS_IN_UNIT
    from malmoi.model_folders import classifier_folder
    from malmoi.text.cleaning.cleaner import CLEANER_VERSION
    from malmoi.text.corpus.clean_corpus import sources_hash
    from malmoi.text.reading.records import READER_VERSION

    return {
        "work_version": _WORK_VERSION,
        "inputs_sha256": sources_hash(sources),
        "reader": READER_VERSION,
        "cleaning": CLEANER_VERSION,
        "reading": asdict(settings.reading),
        "pair_column": settings.pair_column,
        "model": model_hash(classifier_folder(settings.model)),
        "engine": classifier.engine,
        "temperature": classifier.temperature,
        "columns": asdict(classifier.columns),
        "rows_per_unit": ROWS_IN_UNIT,
    }


def _say(labelled: "Labelled", settings: PredictSettings) -> None:
    from malmoi.inference.output_columns import UNKNOWN, UNSURE

    labels = labelled.labels.most_common()
    for label, count in labels[:_SHOWN_LABELS]:
        print(f"  {label or '(none)'}: {count:,} ({count / labelled.rows:.1%})")
    # Of several labels a text, every combination is one.
    if rest := sum(count for _, count in labels[_SHOWN_LABELS:]):
        print(f"  (others): {rest:,} ({rest / labelled.rows:.1%})")
    if settings.accept is not None:
        answered = labelled.rows - labelled.empty - labelled.unsure - labelled.unknown
        print(
            f"{answered:,} rows answered ({answered / max(1, labelled.rows):.1%}), "
            f"{labelled.unsure:,} to be checked ({UNSURE}), {labelled.unknown:,} of which the "
            f"model knows nothing ({UNKNOWN})"
        )
    if labelled.empty:
        print(f"{labelled.empty:,} rows without a text, left without a label")
    if labelled.cuts.count:
        print(labelled.cuts.line)
    print(f"{labelled.rows:,} rows -> {settings.output}")
