"""The models on this machine by their names: what a person chooses from, and nothing else.

A name is looked up among the models that were found; it is never taken for a path or a Hub id.
"""

from collections.abc import Sequence
from pathlib import Path

from app.model_report import labels_of
from malmoi.inference.classifier import find_classifiers
from malmoi.labels.names import normal_label

# With one label in common a model would say it of every text.
FEWEST_IN_COMMON = 2


def available_models() -> list[Path]:
    """Usable models of this project, wherever the app was started, newest first."""
    return find_classifiers()


def display_name(path: Path) -> str:
    """What a person calls the model: the name of its run or release."""
    return path.parent.name if path.name == "model" else path.name


def distinct_names(models: Sequence[Path]) -> dict[Path, str]:
    """Names to choose by; Streamlit would take one of two equal names for the other."""
    names = [display_name(path) for path in models]
    return {
        path: name if names.count(name) == 1 else f"{name} ({path})"
        for path, name in zip(models, names, strict=True)
    }


def stamp(path: Path) -> float:
    """Changes when any file of the model does, so that a retrained model is loaded anew."""
    return max((file.stat().st_mtime for file in path.iterdir() if file.is_file()), default=0.0)


def in_common(labels: Sequence[str], said: Sequence[str]) -> list[str]:
    """Those of a project's labels that a model says, in the project's order and spelling."""
    known = {normal_label(label) for label in said}
    return [label for label in labels if normal_label(label) in known]


def names_for(labels: Sequence[str]) -> list[str]:
    """The names of the models that may suggest labels of a project, newest first."""
    return [
        name
        for path, name in distinct_names(available_models()).items()
        if len(in_common(labels, labels_of(path))) >= FEWEST_IN_COMMON
    ]


def model_named(name: str) -> Path | None:
    """The model that was found under a name; None where there is none now."""
    names = distinct_names(available_models())
    return next((path for path, known in names.items() if known == name), None)
