"""What k-fold has measured of a classifier, beside its weights: temperature, and accuracies by
confidence."""

import json
from pathlib import Path

from malmoi.errors import InputError
from malmoi.model_folders import read_json

CALIBRATION = "calibration.json"


def fitted_temperature(folder: Path) -> float:
    """The fitted temperature of a directory; 1 where none was fitted."""
    path = folder / CALIBRATION
    if not path.is_file():
        return 1.0
    try:
        temperature = float(json.loads(path.read_text(encoding="utf-8"))["temperature"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "expected a temperature in {path}, found {error}; delete the file to go without",
            path=path,
            error=error,
        ) from error
    if not 0 < temperature < float("inf"):
        raise InputError(
            "expected a temperature above 0 in {path}, found {temperature:g}; delete the file to "
            "go without",
            path=path,
            temperature=temperature,
        )
    return temperature


def accepted_confidences(folder: Path) -> dict[float, float]:
    """Wished accuracy to the confidence that reaches it; empty where nothing was measured."""
    accepted = read_json(folder / CALIBRATION).get("accept")
    try:
        return {float(one["accuracy"]): float(one["threshold"]) for one in accepted or ()}
    except (KeyError, TypeError, ValueError):
        return {}
