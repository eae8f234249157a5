"""Simple classifiers in the folds of an encoder: a majority vote and two linear models.

The linear ones weigh by TF-IDF and are strong on short texts (Wang & Manning 2012, "Baselines and
Bigrams", ACL). Everything that is learned, the vocabulary of n-grams and the regularisation
included, is learned inside the training part of a fold.
"""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from malmoi.finetune.baselines.baseline import Baseline, fold_f1, median_latency_ms
from malmoi.text.morphemes import AnalyserError, analyse

# Tried inside each training part. For 20,000 NSMC reviews 0.3 or 1, and 3 or 10, are chosen; for
# 300 memos any of them, with scores that differ by less than 0.04 (measured).
_SVM_C = (0.1, 0.3, 1.0, 3.0)
_REGRESSION_C = (1.0, 3.0, 10.0, 30.0)
_INNER_FOLDS = 3

Predict = Callable[[list[Any]], list[int]]
# Learns texts and their label ids.
Fit = Callable[[list[str], list[int]], Predict]
# Gets all texts, of which nothing may be learned here, and a seed.
Classifying = Callable[[Sequence[str], int], Fit]


def majority(texts: Sequence[str], seed: int) -> Fit:
    """The most frequent label of the training part for every text."""

    def fit(train: list[str], expected: list[int]) -> Predict:
        voter = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(train), 1)), expected)
        return lambda some: voter.predict(np.zeros((len(some), 1))).tolist()

    return fit


def character_svm(texts: Sequence[str], seed: int) -> Fit:
    """TF-IDF of 1 to 4 characters inside eojeols, then a linear support-vector machine.

    N-grams across spaces, or of up to 5 characters, made no difference beyond noise (0.838 against
    0.838 and 0.837 on 20,000 NSMC reviews, measured) and are two to three times as many. The seed
    orders the coordinate descent and the inner folds.
    """
    return lambda train, expected: _fit_linear(
        lambda: TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True),
        lambda c: LinearSVC(C=c, random_state=seed),
        _SVM_C,
        train,
        expected,
        seed,
    )


def morpheme_regression(texts: Sequence[str], seed: int) -> Fit:
    """TF-IDF of Kiwi's morphemes and pairs of them, then logistic regression.

    The seed orders the inner folds. The analysis of a text is part of its latency and of the time
    to train, where it is done once for all folds: Kiwi learns nothing from it.
    """
    analysed = {text: morpheme_names(text) for text in texts}

    def fit(train: list[str], expected: list[int]) -> Predict:
        predict = _fit_linear(
            lambda: TfidfVectorizer(
                analyzer=lambda names: [*names, *map(" ".join, pairwise(names))],
                sublinear_tf=True,
            ),
            lambda c: LogisticRegression(C=c, max_iter=1000),
            _REGRESSION_C,
            [analysed[text] for text in train],
            expected,
            seed,
        )
        # A single text is timed, so it is analysed again.
        return lambda some: predict(
            [morpheme_names(some[0])] if len(some) == 1 else [analysed[text] for text in some]
        )

    return fit


def in_folds(
    name: str,
    classifying: Classifying,
    texts: Sequence[str],
    label_ids: Sequence[int],
    fold_of: Sequence[int],
    num_labels: int,
    seed: int,
) -> Baseline:
    """Train outside each fold and predict inside it.

    Args:
        classifying: what to measure.
        texts: N of them.
        label_ids: 0 to `num_labels` - 1, one a text.
        fold_of: fold of each text, 1 to K, see `malmoi.finetune.data.folds.assign_folds`.
        num_labels: macro F1 is the mean over all of them, met or not.
        seed: of whatever is random.
    """
    started = time.monotonic()
    fit = classifying(texts, seed)
    seconds = time.monotonic() - started
    predictions: list[int | None] = [None] * len(texts)
    for fold in sorted(set(fold_of)):
        rest = [place for place, other in enumerate(fold_of) if other != fold]
        held_out = [place for place, other in enumerate(fold_of) if other == fold]
        started = time.monotonic()
        predict = fit([texts[place] for place in rest], [label_ids[place] for place in rest])
        seconds += time.monotonic() - started
        for place, label in zip(held_out, predict([texts[p] for p in held_out]), strict=True):
            predictions[place] = label
    return Baseline(
        name=name,
        predictions=predictions,
        fold_f1=fold_f1(label_ids, predictions, fold_of, num_labels),
        train_seconds=seconds,
        latency_ms=median_latency_ms(predict, [texts[place] for place in held_out]),
    )


def morpheme_names(text: str) -> list[str]:
    """Morphemes with their tags ("학교/NNG"); a text that Kiwi fails on is cut at spaces."""
    try:
        return [f"{morpheme.form}/{morpheme.tag}" for morpheme in analyse(text)]
    except AnalyserError:
        return text.split()


def _fit_linear(
    make_vectorizer: Callable[[], TfidfVectorizer],
    make_model: Callable[[float], Any],
    strengths: Sequence[float],
    train: list[Any],
    expected: list[int],
    seed: int,
) -> Predict:
    """Choose the regularisation by k-fold inside the training part, then fit on all of it."""
    best = strengths[len(strengths) // 2]
    # Of a label with fewer texts there is nothing to choose by.
    if min(np.unique(expected, return_counts=True)[1]) >= _INNER_FOLDS:
        predicted = np.zeros((len(strengths), len(train)), dtype=int)
        splitter = StratifiedKFold(_INNER_FOLDS, shuffle=True, random_state=seed)
        for rest, held_out in splitter.split(np.zeros(len(train)), expected):
            vectorizer = make_vectorizer()
            rest_weights = vectorizer.fit_transform([train[place] for place in rest])
            held_out_weights = vectorizer.transform([train[place] for place in held_out])
            rest_expected = [expected[place] for place in rest]
            for row, strength in enumerate(strengths):
                model = make_model(strength).fit(rest_weights, rest_expected)
                predicted[row, held_out] = model.predict(held_out_weights)
        scores = [f1_score(expected, row, average="macro") for row in predicted]
        best = strengths[int(np.argmax(scores))]
    vectorizer = make_vectorizer()
    model = make_model(best).fit(vectorizer.fit_transform(train), expected)
    return lambda some: [int(label) for label in model.predict(vectorizer.transform(some))]
