"""Where this project's data is: models, runs and the label database, wherever one stands."""

import os
from pathlib import Path

HOME_VARIABLE = "MALMOI_HOME"
_SOURCES = Path(__file__).resolve().parents[1]


def home() -> Path:
    """The folder that holds `checkpoints/`, `runs/` and the samples in `corpora/`.

    `MALMOI_HOME` where it is set, else the repository that this file lies in, else (installed
    without one) the current folder. `Path()` where that is the current folder, so that the places
    shown to a person there are short.
    """
    given = os.environ.get(HOME_VARIABLE)
    if given:
        found = Path(given).expanduser()
    elif (_SOURCES / "pyproject.toml").is_file():
        found = _SOURCES
    else:
        return Path()
    return Path() if found.resolve() == Path.cwd() else found


def runs(kind: str) -> Path:
    """Where runs of a kind are kept, such as `pretrain` or `finetune`."""
    return home() / "runs" / kind


def checkpoint(name: str) -> Path:
    """A released model."""
    return home() / "checkpoints" / name


def sample(name: str) -> Path:
    """A sample corpus of the project."""
    return home() / "corpora" / name


def label_database() -> Path:
    """The app's own SQLite file."""
    return home() / "runs" / "labels.db"
