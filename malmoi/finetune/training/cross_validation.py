"""One fold after the other: what each gives, kept on disk as soon as it is there.

Legend: N texts, n texts of one fold, K labels.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from malmoi.devices import choose_device
from malmoi.files import directory_at_once, write_at_once
from malmoi.finetune.evaluation.fold_results import FoldResult
from malmoi.finetune.evaluation.scores import score_task
from malmoi.finetune.plan import TrainingPlan
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.finetune.training.fit import OnStep, TrainingData, TrainingOutcome, steps_in, train
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.transformers_models import save_model

# The folder and the file of the last training, on all texts, in the work folder.
MODEL = "model"
_MODEL_FACTS = "model.json"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that the trainings of a run share.

    Attributes:
        source: the encoder, see `malmoi.model_folders.encoder_source`.
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
