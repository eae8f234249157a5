"""Stratified k-fold: train on all folds but one, predict that one, for every fold."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from finetune.classifier import Classifier, Prediction
from finetune.examples import Examples
from finetune.scores import score
from finetune.training import TrainSettings, steps_in, train_classifier

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """What k-fold found out.

    Attributes:
        fold_of: fold of each text, 1 to K.
        predictions: for each text, by the model that did not train on it.
        folds: scores of each fold, see `finetune.scores.score`.
    """

    fold_of: list[int]
    predictions: list[Prediction]
    folds: list[dict[str, Any]]

    @property
    def mean_f1(self) -> float:
        """Mean of the folds' macro F1."""
        return float(np.mean([fold["macro_f1"] for fold in self.folds]))

    @property
    def sd_f1(self) -> float:
        """Standard deviation of the folds' macro F1 as a sample (n - 1)."""
        return float(np.std([fold["macro_f1"] for fold in self.folds], ddof=1))


def assign_folds(label_ids: list[int], folds: int, seed: int) -> list[int]:
    """A fold, 1 to `folds`, for each text; each label is spread evenly, the seed decides how."""
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    fold_of = np.zeros(len(label_ids), dtype=int)
    for fold, (_, held_out) in enumerate(splitter.split(np.zeros(len(label_ids)), label_ids), 1):
        fold_of[held_out] = fold
    return [int(fold) for fold in fold_of]


def total_steps(fold_of: list[int], settings: TrainSettings) -> int:
    """Optimizer steps of all folds and of the last training on everything."""
    texts = len(fold_of)
    folds = range(1, max(fold_of) + 1)
    parts = [steps_in(texts - fold_of.count(fold), settings) for fold in folds]
    return sum(parts) + steps_in(texts, settings)


def cross_validate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: Examples,
    fold_of: list[int],
    settings: TrainSettings,
    *,
    on_fold: Callable[[int, dict[str, Any]], None] | None = None,
    progress: Progress | None = None,
) -> CrossValidation:
    """Train a copy of `model` for every fold and predict that fold with it.

    Args:
        model: untrained, see `finetune.encoders.load_for_classification`; it is not changed.
        tokenizer: its `model_max_length` is what predictions read of a text.
        examples: all texts.
        fold_of: from `assign_folds`.
        settings: of each training.
        on_fold: called with the fold's number and scores when it is done.
        progress: called with (steps done, steps in all) of the current fold.
    """
    predictions: list[Prediction | None] = [None] * len(fold_of)
    scores = []
    for fold in range(1, max(fold_of) + 1):
        rest = [place for place, other in enumerate(fold_of) if other != fold]
        held_out = [place for place, other in enumerate(fold_of) if other == fold]
        trained = copy.deepcopy(model)
        train_classifier(
            trained,
            tokenizer,
            [examples.texts[place] for place in rest],
            [examples.label_ids[place] for place in rest],
            settings,
            progress,
        )
        classifier = Classifier(trained, tokenizer, f"fold {fold}")
        found = classifier.predict([examples.texts[place] for place in held_out])
        for place, prediction in zip(held_out, found, strict=True):
            predictions[place] = prediction
        expected = [examples.label_ids[place] for place in held_out]
        scores.append(score(expected, label_ids(found, examples.labels), examples.labels))
        if on_fold is not None:
            on_fold(fold, scores[-1])
    return CrossValidation(
        fold_of=fold_of,
        predictions=[prediction for prediction in predictions if prediction is not None],
        folds=scores,
    )


def label_ids(predictions: list[Prediction], labels: list[str]) -> list[int]:
    """The id of each predicted label."""
    places = {label: index for index, label in enumerate(labels)}
    return [places[prediction.label] for prediction in predictions]
