"""A classifier for scikit-learn: texts in, labels out, in pipelines and searches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from malmoi import Classifier, InputError, cross_validate

# What cannot be pickled of a fitted one; the files are, instead.
_LOADED = ("classifier_", "_folder")


class MalmoiClassifier(ClassifierMixin, BaseEstimator):
    """One label a text; each `fit` is a `malmoi.cross_validate`, of which nothing is kept on disk.

    It has no numbers as features, so scikit-learn's `check_estimator` leaves out, as of its own
    `TfidfVectorizer`, all checks that fit tables of numbers.

    Attributes:
        classes_: the labels, sorted, K of them.
        classifier_: the `malmoi.Classifier`, to predict, explain and save with.

    Args:
        model: encoder, see `malmoi.cross_validate`.
        quick: fit the linear model alone, in seconds.
        folds: by which confidence and weights are fitted inside.
        random_state: seed of everything.
        settings: keys and flags, see `malmoi.cross_validate`.
    """

    classes_: np.ndarray
    classifier_: Classifier

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        quick: bool = True,
        folds: int = 5,
        random_state: int = 42,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.quick = quick
        self.folds = folds
        self.random_state = random_state
        self.settings = settings

    def fit(self, X: Any, y: Any) -> Self:
        """Learn N texts, a list or a column, with N labels of any type.

        Raises:
            InputError: something is no text, or there are too few of them.
        """
        labels = np.asarray(y)
        texts, classes = _texts(X), np.unique(labels)
        if len(texts) != len(labels):
            raise InputError(
                "expected a label for each of {texts:,} texts, found {labels:,}",
                texts=len(texts),
                labels=len(labels),
            )
        folder = TemporaryDirectory(prefix="malmoi-")
        cross_validate(
            {"text": texts, "label": [str(label) for label in labels.tolist()]},
            "text",
            "label",
            model=self.model,
            quick=self.quick,
            folds=self.folds,
            seed=self.random_state,
            # Who splits by himself leaves some labels few texts.
            settings={"rare": "keep", **(self.settings or {})},
            output=Path(folder.name) / "run",
            progress=False,
        )
        self.classes_ = classes
        self._load(folder)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of N texts, of the type that they were fitted as."""
        check_is_fitted(self)
        places = {str(label): place for place, label in enumerate(self.classes_.tolist())}
        found = self.classifier_.predict(_texts(X), progress=False)
        return self.classes_[[places[one.label] for one in found]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities, [N, K] in the order of `classes_`."""
        check_is_fitted(self)
        names = [str(label) for label in self.classes_.tolist()]
        found = self.classifier_.predict(_texts(X), progress=False)
        rows = [[one.probabilities.get(name, 0.0) for name in names] for one in found]
        return np.array(rows).reshape(len(rows), len(names))

    def __sklearn_tags__(self) -> Any:
        """Texts, one-dimensional."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The parameters, and of a fitted one its files: another process has no such folder."""
        state: dict[str, Any] = dict(super().__getstate__())
        if (folder := state.get("_folder")) is not None:
            place = Path(folder.name) / "run" / "model"
            files = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
            state["_files"] = {str(path.relative_to(place)): files[path] for path in files}
        return {name: value for name, value in state.items() if name not in _LOADED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Write the files somewhere and load them."""
        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            folder = TemporaryDirectory(prefix="malmoi-")
            for name, content in files.items():
                path = Path(folder.name) / "run" / "model" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self._load(folder)

    def _load(self, folder: TemporaryDirectory[str]) -> None:
        """Load what lies in a folder, which is there as long as this is."""
        self.classifier_ = Classifier.load(Path(folder.name) / "run" / "model")
        self._folder = folder


def _texts(X: Any) -> Any:
    """The texts of a list or column, or of a table of one column."""
    values = np.asarray(X, dtype=object)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(
            "expected one column of texts, found an array of the shape {shape}",
            shape=str(values.shape),
        )
    return values.tolist()
