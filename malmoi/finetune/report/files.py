"""The files of a fine-tuning run beside its page: `report.json` and `predictions.csv`."""

import csv
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.errors import InputError
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.label_cells import write_list
from malmoi.finetune.evaluation.fold_results import CrossValidation
from malmoi.finetune.evaluation.scores import score, score_multi, score_regression
from malmoi.inference.tasks import has_values
from malmoi.text.reading.spreadsheet_cells import guarded_row

# Version of report.json: raised by a change that a reader of it would notice.
VERSION = 1
_PACKAGES = ("malmoi", "torch", "transformers", "tokenizers", "scikit-learn", "numpy")


def check_free(directory: Path) -> None:
    """Refuse a place that holds something already.

    Raises:
        InputError: it is a file, below a file, or a folder that is not empty.
    """
    if directory.is_dir() and any(directory.iterdir()):
        raise InputError(
            "{directory} exists already and is not empty; move it away or give another --output",
            directory=directory,
        )
    for place in (directory, *directory.parents):
        if place.exists() and not place.is_dir():
            raise InputError("{where} is a file; give a folder as --output", where=place)


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide the numbers."""
    return {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Write `report.json`, with the versions of what computed it."""
    text = json.dumps({**report, "versions": package_versions()}, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def data_facts(examples: Examples) -> dict[str, Any]:
    """What `report.json` says of labelled texts as they were read."""
    return {
        "path": str(examples.path),
        "sha256": examples.sha256,
        "texts": len(examples.texts),
        "per_label": examples.counts,
        "left_out": {
            "unlabelled": examples.unlabelled,
            "repeated": examples.repeats,
            "contradicting": examples.contradictions,
            "empty": examples.empty,
            "rare": examples.rare_texts,
        },
        "contradicting": [
            {name: value for name, value in asdict(one).items() if name != "text"}
            for one in examples.contradicting
        ],
        "rare": dict(examples.rare),
    }


def write_predictions(
    path: Path,
    examples: Examples,
    result: CrossValidation,
    alone: Mapping[str, CrossValidation] | None = None,
) -> None:
    """Write every text with its label and what the model that never saw it predicted.

    UTF-8 with BOM, for spreadsheets, and guarded (`spreadsheet_cells`); of several seeds
    first all texts of the one, then of the other. The columns `probability LABEL` are fractions;
    a regression has none. What a part of the model says alone (`alone`, by its name) stands in the
    last columns, `predicted NAME`.
    """
    parts = alone or {}
    regression = has_values(examples.task)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        pair = [] if examples.pairs is None else ["pair"]
        columns = [] if regression else [f"probability {label}" for label in examples.labels]
        header = ["id", "text", *pair, "label", "predicted", "fold", "seed", *columns]
        header += [f"predicted {name}" for name in parts]
        writer.writerow(guarded_row(header))
        for seed in result.seeds:
            probabilities = result.probabilities(seed)
            predicted = result.predicted(seed)
            fold_of = result.fold_of(seed)
            of_parts = [part.predicted(seed) for part in parts.values()]
            for place, text in enumerate(examples.texts):
                row = [] if regression else [f"{value:.6f}" for value in probabilities[place]]
                cells = [
                    examples.ids[place],
                    text,
                    *([] if examples.pairs is None else [examples.pairs[place]]),
                    examples.label_of(place),
                    shown_prediction(examples, predicted[place]),
                    int(fold_of[place]),
                    seed,
                    *row,
                    *(shown_prediction(examples, said[place]) for said in of_parts),
                ]
                writer.writerow(guarded_row(cells))


def shown_prediction(examples: Examples, predicted: Any) -> str:
    """A prediction as a cell, as `Examples.label_of` has the label."""
    if examples.task == "multi":
        return write_list([examples.labels[index] for index in np.flatnonzero(predicted)])
    if has_values(examples.task):
        return f"{predicted:.4f}"
    return examples.labels[int(predicted)]


def pooled_scores(result: CrossValidation) -> dict[str, Any]:
    """Scores of all held-out predictions together; of several seeds every text counts S times."""
    predicted = np.concatenate([result.predicted(seed) for seed in result.seeds])
    expected = np.concatenate([result.targets for _ in result.seeds])
    if has_values(result.task):
        return score_regression(expected, predicted)
    if result.task == "multi":
        return score_multi(expected, predicted, result.labels)
    return score(expected.tolist(), predicted.tolist(), result.labels)
