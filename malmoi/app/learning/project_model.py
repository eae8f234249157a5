"""The model that a person has chosen for a project: found by its name, loaded once, asked.

Legend: N texts, K labels that model and project have in common.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from malmoi.app.found_models import FEWEST_IN_COMMON, in_common, model_named, stamp
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.learnt_texts import read_learnt, text_keys
from malmoi.labels.label_names import normal_label
from malmoi.labels.project import Project
from malmoi.text.cleaning.cleaner import clean_batch

# Texts whose probabilities are kept; 44 labels of so many are 9 MB.
_MOST_KEPT = 50_000
_MOST_LOADED = 2
# Beside other engines `auto` would measure which is the fastest, for the whole machine, in a
# process that has one thread and a low priority.
_ENGINE = "torch"


@dataclass(frozen=True, kw_only=True)
class ModelProblem:
    """Why a chosen model cannot be asked.

    Attributes:
        kind: it is not there any more; it cannot be read; it has too few labels of the project.
        model: its name.
        detail: of one that cannot be read: an error, by `InputError.as_json`.
    """

    kind: Literal["gone", "broken", "labels"]
    model: str
    detail: dict[str, Any] | None = None


@dataclass(kw_only=True)
class _Loaded:
    """A model in memory, and what it said of the texts that it met last."""

    classifier: Classifier
    learnt: np.ndarray | None
    said: dict[str, np.ndarray] = field(default_factory=dict)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Of all labels of the model, float32 [N, its labels]."""
        new = [text for text in dict.fromkeys(texts) if text not in self.said]
        labels = self.classifier.labels
        for text, found in zip(new, self.classifier.predict(new) if new else (), strict=True):
            row = [found.probabilities[label] for label in labels]
            self.said[text] = np.array(row, dtype=np.float32)
        rows = [self.said[text] for text in texts]
        for text in list(self.said)[: max(0, len(self.said) - _MOST_KEPT)]:
            del self.said[text]
        return np.array(rows, dtype=np.float32).reshape(len(texts), len(labels))


@dataclass(frozen=True, kw_only=True)
class ProjectModel:
    """A model for one project.

    Attributes:
        name: as it is chosen.
        labels: K, in the project's spelling.
    """

    name: str
    labels: Sequence[str]
    loaded: _Loaded

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Float32 [N, K]; the labels that the project lacks are left out, the rest adds up to 1."""
        columns = {
            normal_label(label): column
            for column, label in enumerate(self.loaded.classifier.labels)
        }
        said = self.loaded.probabilities(texts)
        said = said[:, [columns[normal_label(label)] for label in self.labels]]
        # So sure of a label that the project lacks that nothing is left for all others.
        said = np.where(said.sum(axis=1, keepdims=True) > 0, said, 1)
        return np.asarray(said / said.sum(axis=1, keepdims=True), dtype=np.float32)

    def has_learnt(self, texts: Sequence[str]) -> np.ndarray:
        """Which texts are among those that it says it has learnt, bool [N]."""
        if self.loaded.learnt is None or not texts:
            return np.zeros(len(texts), dtype=bool)
        return np.isin(text_keys(clean_batch(list(texts)).texts), self.loaded.learnt)


class ProjectModels:
    """The models of some projects, kept loaded."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[tuple[Path, float], _Loaded] = OrderedDict()

    def of(self, project: Project) -> ProjectModel | ModelProblem | None:
        """The model of a project, or why there is none; None where nobody has chosen one."""
        name = project.settings.model
        if name is None:
            return None
        path = model_named(name)
        if path is None:
            return ModelProblem(kind="gone", model=name)
        try:
            loaded = self._load(path)
        except (InputError, OSError) as error:
            known = error if isinstance(error, InputError) else InputError("{error}", error=error)
            return ModelProblem(kind="broken", model=name, detail=known.as_json())
        labels = in_common(project.label_names, loaded.classifier.labels)
        if len(labels) < FEWEST_IN_COMMON:
            return ModelProblem(kind="labels", model=name)
        return ProjectModel(name=name, labels=labels, loaded=loaded)

    def _load(self, path: Path) -> _Loaded:
        key = (path, stamp(path))
        if key not in self._loaded:
            classifier = Classifier.load(path, _ENGINE)
            self._loaded[key] = _Loaded(classifier=classifier, learnt=read_learnt(path))
        self._loaded.move_to_end(key)
        if len(self._loaded) > _MOST_LOADED:
            self._loaded.popitem(last=False)
        return self._loaded[key]
