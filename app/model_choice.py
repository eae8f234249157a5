"""Which model the app predicts with: finding, choosing and loading it once."""

import json
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier, find_classifiers
from malmoi.labels.tasks import task_named
from malmoi.model_folders import LINEAR, is_linear_alone

# What a visitor without a task of their own most likely has.
_FIRST_TASK = "reviews"
_WARM_UP = "첫 글을 기다리게 하지 않으려고 미리 한 번 돌립니다."


def available_models() -> list[Path]:
    """Usable models of this project, wherever the app was started, newest first."""
    return find_classifiers()


def preferred(models: Sequence[Path]) -> int:
    """Place of the model to start with: the newest of reviews, else the newest."""
    try:
        task = task_named(_FIRST_TASK)
    except InputError:
        return 0  # the page of the task says what is wrong with it
    for place, path in enumerate(models):
        if task is not None and set(_labels_of(path)) == set(task.label_names):
            return place
    return 0


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


def mean_f1(path: Path) -> float | None:
    """Mean macro F1 over the folds of the run that made the model, 0 to 1; None if not known."""
    for folder in (path.parent, path):  # a run has its report above, a released model beside
        try:
            report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
            return float(report["mean_f1"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def stamp(path: Path) -> float:
    """Changes when any file of the model does, so that a retrained model is loaded anew."""
    return max((file.stat().st_mtime for file in path.iterdir() if file.is_file()), default=0.0)


@st.cache_resource(
    max_entries=2,
    show_spinner="모델을 읽는 중입니다… 처음 한 번은 가장 빠른 계산 방식을 재느라 30초쯤 걸립니다.",
)
def load_model(path: str, changed: float) -> Classifier:
    """Load a model once for all sessions.

    Args:
        path: its directory.
        changed: its `stamp`; part of the cache key only.

    Raises:
        InputError: the directory is damaged or holds something else.
    """
    classifier = Classifier.load(path)
    classifier.predict([_WARM_UP])
    return classifier


def _labels_of(path: Path) -> list[str]:
    """Labels as the configuration names them, without loading any weights."""
    try:
        if is_linear_alone(path):
            return list(json.loads((path / LINEAR).read_text(encoding="utf-8"))["labels"])
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        return list(config["id2label"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        # Loading it will say what is wrong; choosing a default need not.
        return []
