"""`malmoi evaluate MODEL FILE`: how good a classifier is on labelled texts."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from malmoi.inference.engine import EngineChoice
from malmoi.model_folders import check_classifier
from malmoi.text.reading.options import ReadOptions

if TYPE_CHECKING:
    from malmoi.finetune.data.source import DataPlace
    from malmoi.finetune.scoring import Evaluation
    from malmoi.inference.classifier import Classifier
    from malmoi.inference.tasks import Task

ABOUT = (
    "Score a classifier on labelled texts that it has not learnt: report.json, report.html and "
    "predictions.csv as of finetune/kfold.py, with 95% intervals, confusions and the worst "
    "mistakes. Any stock classifier of transformers or ONNX will do; `malmoi compare` reads the "
    "folder."
)


@dataclass(kw_only=True)
class EvaluationSettings:
    """What is scored, on what."""

    model: tyro.conf.Positional[str]
    """A fine-tuned classifier: name of a run or of a released model, directory, or Hub id."""
    data: tyro.conf.Positional[Path]
    """File or folder of labelled texts."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""
    label_column: str | None = None
    """Column of the labels or values, if it has an unusual name."""
    pair_column: str | None = None
    """Column of the second texts, for a model that reads pairs; by default sentence2, question2 or
    pair."""
    label_separator: str | None = None
    """What stands between the labels of one cell, for a model of several; by default a comma."""
    skip_unlabelled: bool = False
    """Leave out rows whose label cell is empty."""
    output: Path | None = None
    """Folder to write; by default runs/evaluate/ with the names of model and data and the time."""
    engine: EngineChoice = "auto"
    """What computes, see `malmoi predict`."""


def _task_of(classifier: "Classifier", paired: bool) -> "Task":
    """What a classifier was trained for; a stock one that is given pairs reads them."""
    if classifier.gives == "value":
        return "pair-regression" if paired else "value"
    if paired:
        return "pair"
    return "multi" if classifier.gives == "labels" else "single"


def main(settings: EvaluationSettings) -> None:
    """Read the texts, ask the classifier, and write what came of it.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    check_classifier(settings.model)
    from malmoi.finetune.report.files import check_free
    from malmoi.inference.classifier import Classifier
    from malmoi.paths import runs

    classifier = Classifier.load(settings.model, settings.engine)
    named = f"{classifier.name.replace('/', '-')}-{settings.data.resolve().name.split('.')[0]}"
    output = settings.output or runs("evaluate") / f"{named}-{time.strftime('%Y%m%d-%H%M%S')}"
    check_free(output)
    asked(classifier, settings.data, settings, output)
    print(f"report: {output}")


def asked(
    classifier: "Classifier",
    place: "DataPlace",
    settings: EvaluationSettings,
    output: Path | None,
) -> "Evaluation":
    """What a classifier says of labelled texts.

    Args:
        settings: how they are read.
        output: a new folder to write; None writes nothing.

    Raises:
        InputError: the texts cannot be used.
    """
    from malmoi.files import directory_at_once
    from malmoi.finetune.data.reading import read_test
    from malmoi.finetune.data.row_format import RowFormat
    from malmoi.finetune.report.terminal import print_data
    from malmoi.finetune.scoring import evaluate, print_evaluation, write_evaluation
    from malmoi.text.reading.notes import ReadingNotes

    form = RowFormat(
        task=_task_of(classifier, classifier.reads_pairs or settings.pair_column is not None),
        reading=settings.reading,
        pair_column=settings.pair_column,
        label_column=settings.label_column,
        label_separator=settings.label_separator,
        skip_unlabelled=settings.skip_unlabelled,
    )
    notes = ReadingNotes(say=lambda line: print(line, flush=True))
    examples = read_test(place, classifier.labels, form, notes)
    print_data(examples)
    found = evaluate(classifier, examples)
    print_evaluation(found)
    if output is not None:
        with directory_at_once(output) as scratch:
            write_evaluation(scratch, found)
    return found
