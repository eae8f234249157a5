"""What a fine-tuning run writes into its folder."""

import csv
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from corpora.errors import InputError
from finetune.examples import Examples
from finetune.folds import CrossValidation

_PACKAGES = ("malmoi", "torch", "transformers", "tokenizers", "scikit-learn", "numpy")


def check_free(directory: Path) -> None:
    """Refuse a place that holds something already.

    Raises:
        InputError: it is a file or a folder that is not empty.
    """
    if directory.is_dir() and any(directory.iterdir()):
        raise InputError(f"{directory} exists already and is not empty; give another --output")
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; give a folder as --output")


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Write `report.json`, with the versions of what computed it."""
    versions = {"python": platform.python_version()}
    versions |= {name: version(name) for name in _PACKAGES}
    text = json.dumps({**report, "versions": versions}, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def write_predictions(path: Path, examples: Examples, result: CrossValidation) -> None:
    """Write every text with its label and what the model that never saw it predicted.

    UTF-8 with BOM, for spreadsheets. The columns `probability LABEL` are fractions.
    """
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        columns = [f"probability {label}" for label in examples.labels]
        writer.writerow(["id", "text", "label", "predicted", "fold", *columns])
        for place, prediction in enumerate(result.predictions):
            writer.writerow(
                [
                    examples.ids[place],
                    examples.texts[place],
                    examples.labels[examples.label_ids[place]],
                    prediction.label,
                    result.fold_of[place],
                    *(f"{prediction.probabilities[label]:.6f}" for label in examples.labels),
                ]
            )
