"""The texts that nobody has labelled, labelled by a model: what it says, and when it is unsure.

Legend: N texts, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.labelling.fitting import learn, learnable, readiness
from malmoi.inference.labelling.opinions import given_matrix
from malmoi.inference.linear.quick import FEWEST_TEXTS, QuickTrainer
from malmoi.inference.prediction import LabelsPrediction, Prediction
from malmoi.inference.vectors.sentence_encoder import find_sentence_encoder
from malmoi.labels.access import ProjectAccess
from malmoi.labels.filled_export import Said, Says
from malmoi.labels.projects import read_project
from malmoi.labels.training_texts import labelled_texts
from malmoi.model_folders import find_encoder

LIVE = "live"
# What answers must be right for, so that nobody has to look; where no confidence reaches the first,
# the next (assumption).
_ACCURACIES = (0.95, 0.9, 0.85, 0.8)
# An accuracy of fewer texts is chance (assumption).
_FEWEST_SURE = 20


def model_that_fills(
    access: ProjectAccess, model: str, trainer: QuickTrainer | None = None
) -> Says:
    """What labels the texts of a project.

    Args:
        access: of a reviewer.
        model: `LIVE` learns from the labels of the project, as it does while people label; else
            the folder or the name of a classifier.
        trainer: that has read texts of the project, for `LIVE`.

    Raises:
        InputError: there are too few labels to learn from, or there is no such model.
    """
    if model == LIVE:
        return _live(access, trainer or _trainer())
    return _of_classifier(Classifier.load(model))


def _live(access: ProjectAccess, trainer: QuickTrainer) -> Says:
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
    learnt = learn(trainer, texts, ready, is_one=is_one)
    given = given_matrix([text.labels for text in texts], learnt.labels)
    own, sure = _decided(learnt.labelled, learnt.least)
    right = (own == given).all(axis=1)
    least = _sure_from(sure, right)

    def says(words: Sequence[str]) -> list[Said]:
        decided, confidence = _decided(learnt.probabilities(words), learnt.least)
        return [
            Said(
                tuple(label for label, given in zip(learnt.labels, one, strict=True) if given),
                float(score),
                bool(score < least),
            )
            for one, score in zip(decided, confidence, strict=True)
        ]

    return says


def _trainer() -> QuickTrainer:
    try:
        place = find_encoder()
    except InputError:  # n-grams, morphemes and word vectors are enough
        return QuickTrainer(sentences=find_sentence_encoder())
    from malmoi.inference.linear.frozen_encoder import FrozenEncoder

    return QuickTrainer(FrozenEncoder.load(place), sentences=find_sentence_encoder())


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
