"""Fit the parts of a linear classifier; scikit-learn and scipy are imported here only.

Everything that is learnt of labels or of other texts, the vocabulary and its idf included, is
learnt of the texts that a fit is given.

Legend: N texts, n of them to learn from, V n-grams of a vocabulary, D dimensions, K labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from malmoi.inference.linear.bags import (
    Bags,
    Keys,
    character_keys,
    count,
    row_sums,
    taken,
    vocabulary_of,
    weighted,
)
from malmoi.inference.linear.morphemes import ReadMorphemes, morpheme_keys, read_morphemes
from malmoi.inference.linear.parts import NgramName, NgramPart

# Numbers that an encoder which is not trained makes of a text: the frozen one of a classifier of
# ours, and a sentence encoder.
EncoderName = Literal["encoder", "sentences"]
PartName = NgramName | EncoderName

# An n-gram that stands in one text says nothing of others.
_LEAST_COUNT = 2
# Measured on memos and on film reviews, two folds each: 0.1, 0.3, 1 gave 0.894, 0.912, 0.912 and
# 0.831, 0.836, 0.835; 0.5 in five folds 0.2 and 0.1 points more than 0.3. Logistic regression was
# below, and slower.
_SVM_C = 0.5
# Chosen on training texts of headlines, speech acts, moods, hate speech, film and written reviews,
# 50 to 500 labels, five draws: ridge was 2 to 9 points of macro F1 below, unbalanced labels 1 to 9.
_LOGISTIC_C: dict[EncoderName, float] = {"encoder": 3.0, "sentences": 30.0}


@dataclass(frozen=True, kw_only=True)
class CountedTexts:
    """N texts, counted once for every fit; nothing of it depends on labels.

    Attributes:
        ngrams: by the part, bags of a vocabulary of all texts.
        vocabularies: the same, its keys.
        numbers: by the encoder that is not trained, float32 [N, D], what it makes of the texts.
        texts: N.
    """

    ngrams: dict[NgramName, Bags]
    vocabularies: dict[NgramName, np.ndarray]
    numbers: Mapping[EncoderName, np.ndarray] = field(default_factory=dict)
    texts: int

    @property
    def parts(self) -> list[PartName]:
        """What can be fitted."""
        return [*self.ngrams, *self.numbers]


@dataclass(frozen=True, kw_only=True)
class DensePart:
    """A linear model on D numbers that an encoder makes of a text; `weights` float32 [D, K]."""

    name: EncoderName
    weights: np.ndarray

    def logits(self, values: np.ndarray) -> np.ndarray:
        """Float32 [N, K], the bias left out, of `values` [N, D]."""
        return np.asarray(values @ self.weights, dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """One part that has learnt, and its bias, float32 [K]."""

    part: NgramPart | DensePart
    bias: np.ndarray

    def logits(self, bags: Any) -> np.ndarray:
        """Float32 [N, K], each row with mean 0."""
        found = self.part.logits(bags) + self.bias
        return found - found.mean(axis=1, keepdims=True)


def count_texts(
    texts: Sequence[str],
    *,
    morphemes: ReadMorphemes | None = read_morphemes,
    numbers: Mapping[EncoderName, np.ndarray] | None = None,
) -> CountedTexts:
    """Count N clean texts.

    Args:
        texts: clean.
        morphemes: reads them; None where they shall be no part.
        numbers: see `CountedTexts`.
    """
    keys: dict[NgramName, Keys] = {"characters": character_keys(texts)}
    if morphemes is not None:
        keys["morphemes"] = morpheme_keys(texts, morphemes)
    vocabularies = {name: vocabulary_of(found, _LEAST_COUNT) for name, found in keys.items()}
    return CountedTexts(
        ngrams={name: count(found, vocabularies[name]) for name, found in keys.items()},
        vocabularies=vocabularies,
        numbers=numbers or {},
        texts=len(texts),
    )


def inputs_of(texts: CountedTexts, part: PartName, places: np.ndarray) -> Any:
    """What a part reads of some texts; `places` int64 [n], rising."""
    if part == "encoder" or part == "sentences":
        return texts.numbers[part][places]
    return taken(texts.ngrams[part], places)


def fit_part(
    texts: CountedTexts,
    part: PartName,
    places: np.ndarray,
    label_ids: np.ndarray,
    labels: int,
    *,
    balanced: bool = False,
    seed: int = 42,
) -> Fitted:
    """Fit one part on some of the texts.

    Args:
        part: one of `texts.parts`.
        places: int64 [n], rising, those to learn from.
        label_ids: int64 [n], of these.
        labels: K; one that none of these has gets no weight.
        balanced: texts of rare labels count more.
        seed: of the order of the coordinate descent.
    """
    given = inputs_of(texts, part, places)
    if part == "encoder" or part == "sentences":
        weights, bias = _logistic(given, label_ids, labels, part)
        return Fitted(part=DensePart(name=part, weights=weights), bias=bias)
    idf = _idf(given)
    total = np.bincount(given.columns, weights=given.counts, minlength=given.size)
    idf[total < _LEAST_COUNT] = 0
    weights, bias = _svm(_tf_idf(given, idf), label_ids, labels, balanced, seed)
    ngrams = NgramPart(name=part, vocabulary=texts.vocabularies[part], idf=idf, weights=weights)
    return Fitted(part=ngrams, bias=bias)


def _idf(bags: Bags) -> np.ndarray:
    """ln((1 + n) / (1 + texts with it)) + 1, scikit-learn's smoothed idf; float32 [V]."""
    texts_with = np.bincount(bags.columns, minlength=bags.size)
    found = np.log((1 + bags.texts) / (1 + texts_with)) + 1
    return np.asarray(found, dtype=np.float32)


def _tf_idf(bags: Bags, idf: np.ndarray) -> Any:
    from scipy.sparse import csr_matrix

    values = weighted(bags, idf)
    lengths = np.sqrt(row_sums(values * values, bags))
    values = values / np.where(lengths > 0, lengths, 1)[bags.rows]
    starts = np.searchsorted(bags.rows, np.arange(bags.texts + 1))
    return csr_matrix((values, bags.columns, starts), shape=(bags.texts, bags.size))


def _svm(
    matrix: Any, label_ids: np.ndarray, labels: int, balanced: bool, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.svm import LinearSVC

    if len(present := np.unique(label_ids)) == 1:  # a fold that holds all of the other labels
        return _of_one_label(matrix.shape[1], present, labels)
    weight = "balanced" if balanced else None
    model = LinearSVC(C=_SVM_C, random_state=seed, class_weight=weight).fit(matrix, label_ids)
    return _for_all_labels(model.coef_, model.intercept_, model.classes_, labels)


def _of_one_label(size: int, present: np.ndarray, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights [V, K] and bias [K] that always say the only label there was."""
    bias = np.full(labels, -1.0, dtype=np.float32)
    bias[present] = 1.0
    return np.zeros((size, labels), dtype=np.float32), bias


def _for_all_labels(
    coefficients: np.ndarray, intercepts: np.ndarray, present: np.ndarray, labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights [V, K] and bias [K] of a model that may not have met every label."""
    coefficients, intercepts = np.atleast_2d(coefficients), np.atleast_1d(intercepts)
    if len(coefficients) == 1:  # of two labels: for the second
        coefficients = np.concatenate([-coefficients, coefficients]) / 2
        intercepts = np.concatenate([-intercepts, intercepts]) / 2
    weights = np.zeros((coefficients.shape[1], labels), dtype=np.float32)
    bias = np.full(labels, -1.0, dtype=np.float32)  # what a machine says of what is not its label
    weights[:, present] = coefficients.T
    bias[present] = intercepts
    return weights, bias


def _logistic(
    values: np.ndarray, label_ids: np.ndarray, labels: int, part: EncoderName
) -> tuple[np.ndarray, np.ndarray]:
    """Logistic regression of labels that count alike, on rows of length 1 or so."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    if len(present := np.unique(label_ids)) == 1:
        return _of_one_label(values.shape[1], present, labels)
    mean, scale = np.zeros(1, np.float32), np.ones(1, np.float32)
    if part == "encoder":
        mean, scale = values.mean(axis=0), (values.std(axis=0) + 1e-6) * values.shape[1] ** 0.5
    strength = _LOGISTIC_C[part]
    model = LogisticRegression(C=strength, class_weight="balanced", max_iter=1_000)
    # Products as small as these wait for a second thread longer than they take.
    with threadpool_limits(1):
        model.fit((values - mean) / scale, label_ids)
    weights, bias = _for_all_labels(model.coef_ / scale, model.intercept_, model.classes_, labels)
    return weights, bias - (mean * weights.T).sum(axis=1)
