"""One fold after the other: what each gives, kept on disk as soon as it is there.

Legend: N texts, n texts of one fold, K labels.
"""

import io
import json
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from malmoi.devices import choose_device
from malmoi.files import directory_at_once, write_at_once
from malmoi.finetune.evaluation.scores import Summary, decide, score_task, summarize
from malmoi.finetune.plan import TrainingPlan
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.finetune.training.fit import OnStep, TrainingData, TrainingOutcome, steps_in, train
from malmoi.inference.tasks import Task, has_values, main_score
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.transformers_models import save_model

# The folder and the file of the last training, on all texts, in the work folder.
MODEL = "model"
_MODEL_FACTS = "model.json"


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


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that the trainings of a run share.

    Attributes:
        source: the encoder, see `malmoi.finetune.training.encoders.encoder_source`.
        random_weights: start from the encoder's shape only.
        keep_head: start from a finished classifier, see `load_for_classification`.
        tokenizer: saved with the model.
        data: all texts.
        training: how each goes.
        folds: how many.
        fold_of: for every seed the fold of each text, int64 [N] from 1; the first seed is also
            that of the last training.
        device: see `malmoi.devices.choose_device`.
    """

    source: str
    random_weights: bool
    tokenizer: PreTrainedTokenizerBase
    data: TrainingData
    training: TrainingPlan
    folds: int
    fold_of: dict[int, np.ndarray]
    keep_head: bool = False
    device: str = "auto"

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """(seed, fold) of every training; fold 0, the last, is the one on all texts."""
        measured = [(seed, fold) for seed in self.fold_of for fold in range(1, self.folds + 1)]
        return [*measured, (next(iter(self.fold_of)), 0)]

    def train_places(self, seed: int, fold: int) -> np.ndarray:
        """Places of the texts that a training may look at."""
        return np.flatnonzero(self.fold_of[seed] != fold)

    def steps(self, seed: int, fold: int) -> int:
        """Optimizer steps of a training, if it is not stopped early."""
        texts = len(self.train_places(seed, fold))
        fraction = self.training.dev_fraction
        if fraction:
            texts -= texts // max(2, round(1 / fraction))
        return steps_in(texts, self.training)

    def new_model(self, seed: int) -> PreTrainedModel:
        """An untrained model."""
        return load_for_classification(
            self.source,
            self.data.labels,
            dropout=self.training.dropout,
            seed=seed,
            random_weights=self.random_weights,
            tokenizer=self.tokenizer,
            task=self.data.task,
            keep_head=self.keep_head,
        )


def result_path(work: Path, seed: int, fold: int) -> Path:
    """Where a training leaves its result when it is done."""
    return work / f"seed-{seed}-fold-{fold}.npz" if fold else work / MODEL


def model_facts(work: Path) -> dict[str, Any]:
    """What the last training decided: `epochs`, `best_epoch`, `dev_texts` and `thresholds`."""
    facts: dict[str, Any] = json.loads((work / _MODEL_FACTS).read_text(encoding="utf-8"))
    return facts


def run_job(
    experiment: Experiment,
    seed: int,
    fold: int,
    work: Path,
    progress: OnStep | None = None,
    device: torch.device | None = None,
) -> None:
    """Train once and leave the result in `work` (`result_path`); fold 0 leaves the model.

    Args:
        seed: one of `experiment.fold_of`.
        fold: from 1, or 0 for all texts.
        progress: see `malmoi.finetune.training.fit.train`.
        device: instead of the experiment's.

    Raises:
        InputError: the loss became infinite or NaN.
    """
    began = time.monotonic()
    device = device or choose_device(experiment.device)
    model = experiment.new_model(seed)
    data = experiment.data
    places = experiment.train_places(seed, fold)
    outcome = train(model, data, places, experiment.training, progress, seed=seed, device=device)
    if not fold:
        _keep_model(experiment, model, outcome, work)
        return
    held_out = np.flatnonzero(experiment.fold_of[seed] == fold)
    tokens = DeviceTokens(data.tokens, device)
    found = predict_probabilities(model, tokens, held_out, data.task, device)
    FoldResult(
        seed=seed,
        fold=fold,
        places=held_out,
        probabilities=found,
        thresholds=outcome.thresholds,
        scores=score_task(
            data.task, data.targets[held_out], found, data.labels, outcome.thresholds
        ),
        epochs=outcome.epochs,
        best_epoch=outcome.best_epoch,
        seconds=time.monotonic() - began,
    ).save(result_path(work, seed, fold))


def _keep_model(
    experiment: Experiment, model: PreTrainedModel, outcome: TrainingOutcome, work: Path
) -> None:
    facts: dict[str, Any] = {
        "epochs": outcome.epochs,
        "best_epoch": outcome.best_epoch,
        "dev_texts": outcome.dev_texts,
    }
    if outcome.thresholds is not None:
        facts["thresholds"] = [round(float(value), 6) for value in outcome.thresholds]
        # In the order of the labels, for whoever predicts with the model.
        model.config.thresholds = facts["thresholds"]
    write_at_once(work / _MODEL_FACTS, json.dumps(facts))
    with directory_at_once(work / MODEL) as scratch:
        save_model(model, experiment.tokenizer, scratch)
