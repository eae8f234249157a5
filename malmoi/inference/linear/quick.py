"""A classifier in seconds, from a handful of labels on: a linear one, its encoder not trained.

`python finetune/kfold.py --quick` fits it, and so does whoever labels texts and wants to see at
once what is learnt of them.

Legend: N texts, K labels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malmoi.errors import InputError
from malmoi.files import directory_at_once, write_at_once
from malmoi.inference.calibration import CALIBRATION
from malmoi.inference.classifier import Classifier
from malmoi.inference.learnt_texts import read_learnt, text_keys
from malmoi.inference.linear.alone import ENCODER, open_alone
from malmoi.inference.linear.cross_fitting import (
    fit_linear,
    out_of_fold_logits,
    stack_out_of_fold,
)
from malmoi.inference.linear.fitting import CountedTexts, EncoderName, count_texts
from malmoi.inference.linear.linear_part import LinearPart
from malmoi.inference.linear.morphemes import read_morphemes
from malmoi.inference.linear.stacking import log_frequency
from malmoi.inference.prediction import softmax
from malmoi.progress import Progress, no_progress
from malmoi.text.cleaning.cleaner import clean_batch

if TYPE_CHECKING:
    from malmoi.inference.linear.frozen_encoder import FrozenEncoder
    from malmoi.inference.vectors.sentence_encoder import SentenceEncoder

# Fewer say nothing that could be measured.
FEWEST_TEXTS = 20
_FOLDS = 5
# Texts of which is kept what was read; about 100 MB at a hidden size of 256 (computed).
_MOST_TEXTS = 100_000
# Which encoder helps most is tried on so many texts at most (assumption).
_TEXTS_TO_CHOOSE_BY = 300
# To read more texts by a slower encoder takes three times as long as by the first (assumption).
_MOST_TO_CHOOSE_FOR = 1_000
# An encoder that has learnt more of these texts may know their labels (assumption).
_MOST_LEARNT = 0.01


@dataclass(frozen=True, kw_only=True)
class QuickResult:
    """A classifier, and what it said of each text before it had learnt from it.

    Attributes:
        classifier: of all texts.
        part: its linear part.
        labels: K names.
        label_ids: int64 [N].
        fold_of: int64 [N], from 1.
        probabilities: float32 [N, K], out of fold.
        macro_f1: of these, all texts together.
        weights: by the part that was taken, how much its logits count.
        encoder: that it reads numbers of; None without.
    """

    classifier: Classifier
    part: LinearPart
    labels: list[str]
    label_ids: np.ndarray
    fold_of: np.ndarray
    probabilities: np.ndarray
    macro_f1: float
    weights: dict[str, float]
    encoder: FrozenEncoder | None

    def save(self, folder: Path, facts: dict[str, Any] | None = None) -> None:
        """Write a folder that `Classifier.load` opens, whole or not at all; it must be new."""
        with directory_at_once(folder) as scratch:
            self.part.save(scratch, facts)
            write_at_once(scratch / CALIBRATION, json.dumps({"temperature": 1.0}))
            if self.encoder is not None:
                self.encoder.save(scratch / ENCODER)


class QuickTrainer:
    """Fits again and again as labels come, and reads only what is new.

    It keeps what it read of the 100,000 texts that it met last: their morphemes, and the numbers of
    the encoders, 2 bytes each.
    """

    def __init__(
        self,
        encoders: Sequence[FrozenEncoder] = (),
        *,
        sentences: SentenceEncoder | None = None,
        morphemes: bool = True,
    ) -> None:
        """Nothing is loaded yet.

        Args:
            encoders: whose numbers may help; they are not trained. Of several the one is taken
                that says most of labels held out from it, anew when there are twice as many.
            sentences: whose vectors may help, too.
            morphemes: whether they may help.
        """
        self._encoders = [(encoder, _Remembered(encoder.features)) for encoder in encoders]
        self._sentences, self._takes_morphemes = sentences, morphemes
        self._morphemes = lru_cache(_MOST_TEXTS)(read_morphemes)
        self._numbers: dict[EncoderName, _Remembered] = {}
        self._chosen_by = 0  # texts
        self._encoder: FrozenEncoder | None = None
        if encoders:
            self._encoder, self._numbers["encoder"] = self._encoders[0]
        if sentences is not None:
            self._numbers["sentences"] = _Remembered(sentences)
        # Of the last fit: a task of several labels is fitted once for each, on the same texts.
        self._counted: tuple[list[str], CountedTexts] | None = None

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        *,
        fold_of: np.ndarray | None = None,
        label_names: Sequence[str] | None = None,
        name: str = "quick",
        seed: int = 42,
        progress: Progress = no_progress,
    ) -> QuickResult:
        """Fit a classifier of one label a text, to which all labels count alike, in folds.

        Args:
            texts: N, at least `FEWEST_TEXTS`; they are cleaned.
            labels: N.
            fold_of: int [N], from 1, the fold of each; stratified ones where it is None.
            label_names: K, in the order in which they are wanted; else in that of their names.
            seed: of the folds and fits.
            progress: called after every fit.

        Raises:
            InputError: too few texts, fewer than two labels, or a label that is not named.
        """
        names, label_ids = _checked(texts, labels, label_names)
        clean = clean_batch(list(texts)).texts
        folds = _folds(label_ids, seed) if fold_of is None else np.asarray(fold_of)
        if len(self._encoders) > 1 and len(clean) >= 2 * self._chosen_by:
            self._choose_encoder(clean, label_ids, folds)
        counted = self._count(clean)
        logits = out_of_fold_logits(
            counted,
            label_ids,
            len(names),
            folds,
            balanced=True,
            seed=seed,
            progress=progress,
        )
        stacked = stack_out_of_fold(logits, label_ids, folds, balanced=True)
        part = fit_linear(counted, label_ids, names, stacked.stack, balanced=True, seed=seed)
        part = replace(part, sentence_encoder=self._sentences)
        encoder = None if part.head is None or self._encoder is None else self._encoder
        probabilities = softmax(stacked.logits).astype(np.float32)
        return QuickResult(
            classifier=Classifier(open_alone(part, encoder=encoder), name, linear=part),
            part=part,
            labels=names,
            label_ids=label_ids,
            fold_of=folds,
            probabilities=probabilities,
            macro_f1=macro_f1(label_ids, probabilities.argmax(axis=1), len(names)),
            weights=stacked.stack.weights,
            encoder=encoder,
        )

    def read(self, texts: Sequence[str]) -> None:
        """Read texts ahead of a fit or of `probabilities`, which will be the faster for it."""
        clean = clean_batch(list(texts)).texts
        if self._takes_morphemes:
            for text in clean:
                self._morphemes(text)
        self._numbers_of(clean)

    def probabilities(self, result: QuickResult, texts: Sequence[str]) -> np.ndarray:
        """What a classifier that this trainer fitted says of texts, float32 [N, K].

        As `result.classifier` says, but that nothing is read twice, in this or any earlier call.
        """
        clean = clean_batch(list(texts)).texts
        part = result.part
        if not clean:
            return np.zeros((0, len(part.labels)), dtype=np.float32)
        sentences = None if part.sentences is None else self._numbers["sentences"](clean)
        logits = part.logits(clean, self._morphemes, sentences)
        if part.head is not None:
            read = next(read for encoder, read in self._encoders if encoder is result.encoder)
            logits = part.added(read(clean) @ part.head, logits)
        return softmax(logits).astype(np.float32)

    def _count(self, clean: list[str]) -> CountedTexts:
        if self._counted is None or self._counted[0] != clean:
            counted = count_texts(
                clean,
                morphemes=self._morphemes if self._takes_morphemes else None,
                numbers=self._numbers_of(clean),
            )
            self._counted = clean, counted
        return self._counted[1]

    def _numbers_of(self, clean: list[str]) -> dict[EncoderName, np.ndarray]:
        """What the encoders make of N texts, each float32 [N, D]."""
        return {name: read(clean) for name, read in self._numbers.items() if clean}

    def _choose_encoder(self, clean: list[str], label_ids: np.ndarray, folds: np.ndarray) -> None:
        """Take the encoder that alone says most of some of the texts, out of fold."""
        self._chosen_by, best = len(clean), 0
        if len(clean) <= _MOST_TO_CHOOSE_FOR:
            some = np.arange(0, len(clean), -(-len(clean) // _TEXTS_TO_CHOOSE_BY))
            texts = [clean[place] for place in some]
            losses = [
                np.inf
                if _has_learnt(encoder, texts)
                else _loss(read(texts), label_ids[some], folds[some])
                for encoder, read in self._encoders
            ]
            best = int(np.argmin(losses))
        encoder, read = self._encoders[best]
        if encoder is not self._encoder:
            self._encoder, self._numbers["encoder"], self._counted = encoder, read, None


def _has_learnt(encoder: FrozenEncoder, texts: Sequence[str]) -> bool:
    """Whether it is that of a classifier which has learnt these texts with labels."""
    keys = read_learnt(encoder.source)
    return keys is not None and bool(np.isin(text_keys(texts), keys).mean() > _MOST_LEARNT)


def _loss(numbers: np.ndarray, label_ids: np.ndarray, folds: np.ndarray) -> float:
    """Mean negative log-likelihood of N labels by a linear model of an encoder's [N, D] alone.

    The model gives all labels equal chances; their frequency is added.
    """
    texts = CountedTexts(
        ngrams={}, vocabularies={}, numbers={"encoder": numbers}, texts=len(numbers)
    )
    labels = int(label_ids.max()) + 1
    logits = out_of_fold_logits(texts, label_ids, labels, folds)["encoder"]
    given = softmax(logits + log_frequency(label_ids, labels))[np.arange(len(numbers)), label_ids]
    return float(-np.log(np.maximum(given, 1e-9)).mean())


class _Remembered:
    """An encoder that computes no text twice, of the 100,000 that it met last."""

    def __init__(self, compute: Callable[[list[str]], np.ndarray]) -> None:
        self._compute = compute
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Float32 [N, D] of N texts, N at least 1."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            rows = self._compute(new).astype(np.float16)
            self._known.update(zip(new, rows, strict=True))
        found = np.stack([self._known[text] for text in texts]).astype(np.float32)
        if len(self._known) > _MOST_TEXTS:
            for text in dict.fromkeys(texts):
                self._known[text] = self._known.pop(text)
            for text in list(self._known)[: len(self._known) - _MOST_TEXTS]:
                del self._known[text]
        return found


def _checked(
    texts: Sequence[str], labels: Sequence[str], label_names: Sequence[str] | None
) -> tuple[list[str], np.ndarray]:
    if len(texts) != len(labels):
        raise InputError(
            "expected a label for each of {texts:,} texts, found {labels:,}",
            texts=len(texts),
            labels=len(labels),
        )
    names = sorted(set(labels)) if label_names is None else list(label_names)
    place = {name: id_ for id_, name in enumerate(names)}
    unknown = next((label for label in labels if label not in place), None)
    if unknown is not None:
        raise InputError(
            "expected labels of {names}, found {unknown!r}", names=", ".join(names), unknown=unknown
        )
    present = len(set(labels))
    if len(texts) < FEWEST_TEXTS or present < 2:
        raise InputError(
            "expected at least {fewest} texts with two labels or more, found {texts:,} texts with "
            "{present}; label more",
            fewest=FEWEST_TEXTS,
            texts=len(texts),
            present=present,
        )
    return names, np.array([place[label] for label in labels], dtype=np.int64)


def _folds(label_ids: np.ndarray, seed: int) -> np.ndarray:
    """Folds from 1, each label spread over them as evenly as its number allows; int64 [N]."""
    order = np.random.default_rng(seed).permutation(len(label_ids))
    order = order[np.argsort(label_ids[order], kind="stable")]
    folds = np.empty(len(label_ids), dtype=np.int64)
    folds[order] = np.arange(len(label_ids)) % _FOLDS + 1
    return folds


def macro_f1(expected: np.ndarray, predicted: np.ndarray, labels: int) -> float:
    """Mean F1 of the labels; one that is neither given nor predicted counts 0."""
    scores = []
    for label in range(labels):
        right = int(((expected == label) & (predicted == label)).sum())
        both = int((expected == label).sum() + (predicted == label).sum())
        scores.append(2 * right / both if both else 0.0)
    return float(np.mean(scores))
