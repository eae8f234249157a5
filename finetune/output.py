"""The folder of a fine-tuning run: written beside its place, renamed into it when complete."""

import csv
import errno
import json
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def written_at_once(directory: Path) -> Iterator[Path]:
    """Yield a hidden folder that becomes `directory` if all goes well and vanishes if not.

    Made before the work whose result it takes, so that a place that cannot be written to is found
    in the first second and not in the last.

    Raises:
        InputError: no folder can be made there.
        OSError: errno.ENOSPC when the disk is full, whoever noticed it.
    """
    check_free(directory)
    made = _make_parents(directory.parent)
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        _remove_empty(made)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"cannot write to {directory.parent}: {error.strerror}") from error
    try:
        yield scratch
        scratch.chmod(0o755)  # mkdtemp gives 0o700, which colleagues could not read.
        check_free(directory)
        scratch.rename(directory)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        _remove_empty(made)
        raise


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


def _make_parents(directory: Path) -> list[Path]:
    """Make a folder and its parents; return those that were not there, deepest first."""
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _remove_empty(made)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"cannot make the folder {directory}: {error.strerror}") from error
    return made


def _remove_empty(directories: list[Path]) -> None:
    for directory in directories:
        try:
            directory.rmdir()
        except OSError:
            return  # Someone else put something there meanwhile.
