"""A classifier without its linear part: what other programs can load, and be compared with."""

import functools
import shutil
import tempfile
from pathlib import Path

from malmoi.inference.calibration import CALIBRATION
from malmoi.model_folders import LINEAR, LINEAR_WEIGHTS, local_source


@functools.cache
def encoder_alone(model: str) -> Path:
    """A copy of a model's folder, under its name, that has the encoder only.

    Without the temperature, too, which is that of the sum. It goes when the process ends.

    Args:
        model: name, folder or Hub id.

    Raises:
        InputError: there is no such model.
    """
    source = Path(local_source(model))
    copy = Path(tempfile.mkdtemp(dir=_scratch().name)) / source.name
    left_out = shutil.ignore_patterns(LINEAR, LINEAR_WEIGHTS, CALIBRATION)
    return shutil.copytree(source, copy, ignore=left_out)


@functools.cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="malmoi-")
