"""What k-fold found out: of every text, what a model said that had not trained on it.

Legend: N texts, n texts of one fold, K labels.
"""

import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.files import write_at_once
from malmoi.finetune.evaluation.scores import Summary, decide, score_task, summarize
from malmoi.inference.tasks import Task, has_values, main_score


@dataclass(frozen=True, kw_only=True)
class FoldResult:
    """What the model of one fold said about the texts that it did not train on.

    Attributes:
        seed: of the fold's split and training.
        fold: from 1.
        places: [n] int64, which of the examples were held out, rising.
        probabilities: [n, K] float32; [n, 1] predicted values for a regression.
        thresholds: [K] float32 for `multi`, else None.
        scores: see `malmoi.finetune.evaluation.scores.score_task`.
        seconds: for training and prediction.
        epochs: that were run; none by a linear model.
        best_epoch: whose weights predicted.
    """

    seed: int
    fold: int
    places: np.ndarray
    probabilities: np.ndarray
    scores: dict[str, Any]
    seconds: float
    thresholds: np.ndarray | None = None
    epochs: int = 0
    best_epoch: int = 0

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        facts = {
            name: getattr(self, name)
            for name in ("seed", "fold", "scores", "epochs", "best_epoch", "seconds")
        }
        arrays: dict[str, Any] = {"places": self.places, "probabilities": self.probabilities}
        if self.thresholds is not None:
            arrays["thresholds"] = self.thresholds
        buffer = io.BytesIO()
        np.savez(buffer, facts=np.array(json.dumps(facts)), **arrays)
        write_at_once(path, buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> "FoldResult":
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(
                places=arrays["places"],
                probabilities=arrays["probabilities"],
                thresholds=arrays.get("thresholds"),
                **json.loads(str(arrays["facts"])),
            )


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """What k-fold found out, once or several times with other seeds.

    Attributes:
        task: what was learned.
        labels: K names.
        targets: [N] or [N, K], see `malmoi.finetune.data.examples.Examples.targets`.
        folds: how many.
        seeds: S of them; every text is predicted once with each.
        results: S times `folds`, seed by seed, fold by fold.
    """

    task: Task
    labels: list[str]
    targets: np.ndarray
    folds: int
    seeds: tuple[int, ...]
    results: list[FoldResult]

    @classmethod
    def of_one_fit(
        cls,
        labels: list[str],
        targets: np.ndarray,
        seed: int,
        fold_of: np.ndarray,
        probabilities: np.ndarray,
        seconds: float,
    ) -> "CrossValidation":
        """What a model of one label a text gave that was fitted in all folds in one go.

        Args:
            labels: K names.
            targets: int64 [N].
            seed: of the split.
            fold_of: int64 [N], from 1.
            probabilities: float32 [N, K], of each text by what did not learn from it.
            seconds: that a fold took.
        """
        folds = int(fold_of.max())
        results = []
        for fold in range(1, folds + 1):
            places = np.flatnonzero(fold_of == fold)
            found = probabilities[places]
            results.append(
                FoldResult(
                    seed=seed,
                    fold=fold,
                    places=places,
                    probabilities=found,
                    scores=score_task("single", targets[places], found, labels),
                    seconds=seconds,
                )
            )
        return cls(
            task="single",
            labels=labels,
            targets=targets,
            folds=folds,
            seeds=(seed,),
            results=results,
        )

    @property
    def fold_scores(self) -> list[float]:
        """Main score of every fold: macro F1, of a regression Spearman's correlation."""
        return [result.scores[main_score(self.task)] for result in self.results]

    @cached_property
    def summary(self) -> Summary:
        """Mean, deviation and 95% interval of `fold_scores`."""
        lowest = -1.0 if has_values(self.task) else 0.0
        return summarize(self.fold_scores, self.folds, lowest=lowest)

    @property
    def mean_score(self) -> float:
        """Mean of the folds' main scores."""
        return self.summary.mean

    @property
    def sd_score(self) -> float:
        """Standard deviation of the folds' main scores as a sample (n - 1)."""
        return self.summary.sd

    def of_seed(self, seed: int) -> list[FoldResult]:
        """The folds of one seed, in order."""
        return [result for result in self.results if result.seed == seed]

    def fold_of(self, seed: int) -> np.ndarray:
        """The fold, from 1, in which each text was held out; int64 [N]."""
        folds = np.zeros(len(self.targets), dtype=np.int64)
        for result in self.of_seed(seed):
            folds[result.places] = result.fold
        return folds

    def probabilities(self, seed: int) -> np.ndarray:
        """Probabilities of each text, by the model that did not train on it; float32 [N, K]."""
        found = np.zeros((len(self.targets), len(self.labels)), dtype=np.float32)
        for result in self.of_seed(seed):
            found[result.places] = result.probabilities
        return found

    def predicted(self, seed: int) -> np.ndarray:
        """Decisions in the shape of the targets, each fold with its own thresholds."""
        found = np.zeros(self.targets.shape, dtype=np.float64)
        for result in self.of_seed(seed):
            found[result.places] = decide(self.task, result.probabilities, result.thresholds)
        return found if has_values(self.task) else found.astype(np.int64)
