"""The texts that nobody has labelled, labelled by a model: what it says, and when it is unsure.

Legend: N texts, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.labelling.fitting import Learnt, learn, learnable, readiness
from malmoi.inference.labelling.opinions import given_matrix
from malmoi.inference.linear.frozen_encoder import encoders_at_hand
from malmoi.inference.linear.quick import FEWEST_TEXTS, QuickTrainer
from malmoi.inference.prediction import LabelsPrediction, Prediction
from malmoi.inference.vectors.sentence_encoder import find_sentence_encoder
from malmoi.labels.access import ProjectAccess
from malmoi.labels.filled_export import Said, Says
from malmoi.labels.projects import read_project
from malmoi.labels.training_texts import LabelledText, labelled_texts, texts_after

LIVE = "live"
# What answers must be right for, so that nobody has to look; where no confidence reaches the first,
# the next (assumption).
_ACCURACIES = (0.95, 0.9, 0.85, 0.8)
# An accuracy of fewer texts is chance (assumption).
_FEWEST_SURE = 20
# Asked at a time.
_TEXTS = 2_000


def model_that_fills(
    access: ProjectAccess, model: str | Classifier, trainer: QuickTrainer | None = None
) -> Says:
    """What labels the texts of a project.

    Args:
        access: of a reviewer.
        model: `LIVE` learns from the labels of the project, as it does while people label; else
            a classifier, or the folder or the name of one.
        trainer: that has read texts of the project, for `LIVE`.

    Raises:
        InputError: there are too few labels to learn from, or there is no such model.
    """
    if model == LIVE:
        return _live(access, trainer or _trainer())
    return _of_classifier(Classifier.load(model) if isinstance(model, str) else model)


def said_of_all(
    access: ProjectAccess, model: str, trainer: QuickTrainer | None = None
) -> dict[int, Said]:
    """What a model says of every text of a project, by their ids.

    Of texts that `LIVE` has learnt it is what it said out of fold; of a classifier, what it says.

    Args:
        access: of a reviewer.
        model: as of `model_that_fills`.
        trainer: as of it.

    Raises:
        InputError: as `model_that_fills`.
    """
    found: dict[int, Said] = {}
    says = model_that_fills(access, model, trainer) if model != LIVE else None
    if says is None:
        learnt, texts = _learnt(access, trainer or _trainer())
        says = _says(learnt, float("inf"))
        own, sure = _decided(learnt.labelled, learnt.least)
        own = own if learnt.gives is None else learnt.gives
        for text, given, score in zip(texts, own, sure, strict=True):
            found[text.text_id] = Said(_names(learnt, given), float(score), True)
    last = 0
    while some := texts_after(access, last, _TEXTS):
        last = max(some)
        new = {text_id: text for text_id, text in some.items() if text_id not in found}
        found |= zip(new, says(list(new.values())) if new else (), strict=True)
    return found


def _live(access: ProjectAccess, trainer: QuickTrainer) -> Says:
    learnt, texts = _learnt(access, trainer)
    given = given_matrix([text.labels for text in texts], learnt.labels)
    own, sure = _decided(learnt.labelled, learnt.least)
    return _says(learnt, _sure_from(sure, (own == given).all(axis=1)))


def _learnt(access: ProjectAccess, trainer: QuickTrainer) -> tuple[Learnt, list[LabelledText]]:
    project = read_project(access)
    is_one = project.kind == "single"
    texts = learnable(labelled_texts(access), project.label_names, is_one=is_one)
    ready = readiness(texts, project.label_names, is_one=is_one)
    if not ready.is_ready:
        raise InputError(
            "expected at least {fewest} labelled texts with two labels or more to learn from, "
            "found {texts:,} with {kinds}; label more",
            fewest=FEWEST_TEXTS,
            texts=len(texts),
            kinds=len(ready.labels),
        )
    return learn(trainer, texts, ready, is_one=is_one), texts


def _says(learnt: Learnt, least: float) -> Says:
    """Ask what was learnt; it is sure of an answer from a confidence on."""

    def says(words: Sequence[str]) -> list[Said]:
        decided, confidence = _decided(learnt.probabilities(words), learnt.least)
        return [
            Said(_names(learnt, one), float(score), bool(score < least))
            for one, score in zip(decided, confidence, strict=True)
        ]

    return says


def _names(learnt: Learnt, given: np.ndarray) -> tuple[str, ...]:
    return tuple(label for label, has in zip(learnt.labels, given, strict=True) if has)


def _trainer() -> QuickTrainer:
    return QuickTrainer(encoders_at_hand(), sentences=find_sentence_encoder())


def _decided(said: np.ndarray, least: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Which labels are given, bool [N, K], and how sure that is, [N].

    Args:
        said: probabilities, [N, K].
        least: from which on each label is given, [K]; None: each text gets the likeliest.
    """
    if least is None:
        return said == said.max(axis=1, keepdims=True), said.max(axis=1)
    decided = said >= least
    return decided, np.where(decided, said, 1 - said).min(axis=1)


def _sure_from(confidence: np.ndarray, right: np.ndarray) -> float:
    """The lowest confidence from which on enough are right; beyond all where none is."""
    order = np.argsort(-confidence, kind="stable")
    counts = np.arange(1, len(order) + 1)
    share = np.cumsum(right[order]) / counts
    for wish in _ACCURACIES:
        places = np.flatnonzero((share >= wish) & (counts >= min(_FEWEST_SURE, len(order))))
        if len(places):
            return float(confidence[order][places[-1]])
    return float("inf")


def _of_classifier(classifier: Classifier) -> Says:
    most = classifier.most_accuracy
    # Of one that nobody has measured, what is likelier wrong than right.
    least = 0.5 if most is None else classifier.threshold(min(_ACCURACIES[0], most))

    def said(found: Prediction) -> Said:
        labels = found.labels if isinstance(found, LabelsPrediction) else (found.label,)
        return Said(labels, found.confidence, found.confidence < least)

    return lambda words: [said(found) for found in classifier.predict(words)]
