"""The models on this machine by their names: what a person chooses from, and nothing else.

What is kept, in a project's settings or in an address, is `runs/finetune/NAME` or
`checkpoints/NAME`: it means the same model whatever others come and go and wherever the data of the
project is moved to, and no model that learns while people label is called so. A name is looked up
among the models that were found; it is never taken for a path or a Hub id.
"""

from collections.abc import Sequence
from pathlib import Path

from malmoi.app.model_report import labels_of
from malmoi.labels.label_names import normal_label
from malmoi.model_folders import find_classifiers
from malmoi.paths import home, runs

# With one label in common a model would say it of every text.
FEWEST_IN_COMMON = 2


def available_models() -> list[Path]:
    """Usable models of this project, wherever the app was started, newest first."""
    return find_classifiers()


def other_models() -> list[Path]:
    """Models that are not for the app's pages: of several labels, of pairs, of values."""
    usable = set(available_models())
    return [path for path in find_classifiers(every_task=True) if path not in usable]


def model_name(path: Path) -> str:
    """The name by which a model that was found is kept: see above."""
    place = path.parent if is_run(path) else path
    return place.relative_to(home()).as_posix()


def is_run(path: Path) -> bool:
    """Whether a model was made by a run here; the others are released ones."""
    return path.parent.parent == runs("finetune")


def display_name(path: Path) -> str:
    """What a person calls the model: the name of its run or release."""
    return short_name(model_name(path))


def short_name(name: str) -> str:
    """The last part of a name as it is kept."""
    return name.rpartition("/")[2]


def distinct_names(models: Sequence[Path]) -> dict[str, str]:
    """How models are shown beside each other, by their names; two are never shown alike."""
    names = [model_name(path) for path in models]
    short = [short_name(name) for name in names]
    return {
        name: one if short.count(one) == 1 else f"{one} ({name.rpartition('/')[0]})"
        for name, one in zip(names, short, strict=True)
    }


def stamp(path: Path) -> float:
    """Changes when any file of the model does, so that a retrained model is loaded anew."""
    return max((file.stat().st_mtime for file in path.iterdir() if file.is_file()), default=0.0)


def in_common(labels: Sequence[str], said: Sequence[str]) -> list[str]:
    """Those of a project's labels that a model says, in the project's order and spelling."""
    known = {normal_label(label) for label in said}
    return [label for label in labels if normal_label(label) in known]


def names_for(labels: Sequence[str]) -> dict[str, str]:
    """The models that may suggest labels of a project, newest first: see `distinct_names`."""
    models = available_models()
    shown = distinct_names(models)
    return {
        model_name(path): shown[model_name(path)]
        for path in models
        if len(in_common(labels, labels_of(path))) >= FEWEST_IN_COMMON
    }


def model_named(name: str) -> Path | None:
    """The model that was found under a name; None where there is none now."""
    return next((path for path in available_models() if model_name(path) == name), None)
