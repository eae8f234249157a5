"""What an encoder has to beat: simple classifiers in the same folds, in one table with its price.

A majority vote and two linear models on TF-IDF weights, which are strong on short texts (Wang &
Manning 2012, "Baselines and Bigrams", ACL). Everything that is learned, the vocabulary of n-grams
and the regularisation included, is learned inside the training part of a fold.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from malmoi.errors import InputError
from malmoi.finetune.evaluation.scores import macro_f1
from malmoi.text.morphemes import AnalyserError, analyse

# Stands for an answer that is no label (an LLM's): wrong whatever was expected.
NO_LABEL = -1

# Tried inside each training part. For 20,000 NSMC reviews 0.3 or 1, and 3 or 10, are chosen; for
# 300 memos any of them, with scores that differ by less than 0.04 (measured).
_SVM_C = (0.1, 0.3, 1.0, 3.0)
_REGRESSION_C = (1.0, 3.0, 10.0, 30.0)
_INNER_FOLDS = 3
_LATENCY_TEXTS = 50

Fit = Callable[[list[str], list[int]], Callable[[list[str]], list[int]]]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What one way to classify reached in the folds that all share.

    Attributes:
        name: for the table.
        predictions: label id of each of N texts by what did not train on it; `NO_LABEL` for an
            answer that is none; None where nothing was asked or came back.
        fold_f1: macro F1 of each fold that has predictions
            (`malmoi.finetune.evaluation.scores.macro_f1`).
        train_seconds: all folds together.
        latency_ms: median milliseconds for one text on its own; None if not measured.
        won_per_text: what an endpoint charged for a text; 0 for what runs on this machine.
    """

    name: str
    predictions: list[int | None]
    fold_f1: list[float]
    train_seconds: float
    latency_ms: float | None
    won_per_text: float = 0.0

    @property
    def mean_f1(self) -> float:
        """Mean of `fold_f1`."""
        return float(np.mean(self.fold_f1))

    @property
    def sd_f1(self) -> float | None:
        """Standard deviation of `fold_f1` as a sample (n - 1); None for a single number."""
        return float(np.std(self.fold_f1, ddof=1)) if len(self.fold_f1) > 1 else None

    def summary(self) -> dict[str, Any]:
        """The row of the table, ready for JSON: all but the predictions."""
        return {
            "name": self.name,
            "mean_f1": self.mean_f1,
            "sd_f1": self.sd_f1,
            "fold_f1": self.fold_f1,
            "texts": sum(prediction is not None for prediction in self.predictions),
            "train_seconds": self.train_seconds,
            "latency_ms": self.latency_ms,
            "won_per_text": self.won_per_text,
        }


def majority(
    texts: Sequence[str],
    label_ids: Sequence[int],
    fold_of: Sequence[int],
    num_labels: int,
    seed: int,
) -> Baseline:
    """The most frequent label of the training part for every text.

    Args:
        texts: N of them.
        label_ids: 0 to `num_labels` - 1, one a text.
        fold_of: fold of each text, 1 to K, see `malmoi.finetune.data.folds.assign_folds`.
        num_labels: macro F1 is the mean over all of them, met or not.
        seed: of whatever is random; here nothing.

    Raises:
        InputError: the three lists differ in length, there are fewer than two folds, or a training
            part holds fewer than two labels.
    """

    def fit(train: list[str], expected: list[int]) -> Callable[[list[str]], list[int]]:
        voter = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(train), 1)), expected)
        return lambda some: voter.predict(np.zeros((len(some), 1))).tolist()

    return _in_folds("majority label", fit, texts, label_ids, fold_of, num_labels)


def character_svm(
    texts: Sequence[str],
    label_ids: Sequence[int],
    fold_of: Sequence[int],
    num_labels: int,
    seed: int,
) -> Baseline:
    """TF-IDF of 1 to 4 characters inside eojeols, then a linear support-vector machine.

    N-grams across spaces, or of up to 5 characters, made no difference beyond noise (0.838 against
    0.838 and 0.837 on 20,000 NSMC reviews, measured) and are two to three times as many.

    Args and errors as `majority`; `seed` orders the coordinate descent and the inner folds.
    """

    def fit(train: list[str], expected: list[int]) -> Callable[[list[str]], list[int]]:
        return _fit_linear(
            lambda: TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True),
            lambda c: LinearSVC(C=c, random_state=seed),
            _SVM_C,
            train,
            expected,
            seed,
        )

    return _in_folds("characters, SVM", fit, texts, label_ids, fold_of, num_labels)


def morpheme_regression(
    texts: Sequence[str],
    label_ids: Sequence[int],
    fold_of: Sequence[int],
    num_labels: int,
    seed: int,
) -> Baseline:
    """TF-IDF of Kiwi's morphemes and pairs of them, then logistic regression.

    Args and errors as `majority`; `seed` orders the inner folds. The analysis of a text is part of
    its latency and of the time to train, where it is done once for all folds: Kiwi learns nothing
    from it.
    """
    started = time.monotonic()
    analysed = {text: morpheme_names(text) for text in texts}
    analysis_seconds = time.monotonic() - started

    def fit(train: list[str], expected: list[int]) -> Callable[[list[str]], list[int]]:
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

    return _in_folds(
        "morphemes, logistic regression",
        fit,
        texts,
        label_ids,
        fold_of,
        num_labels,
        seconds_before=analysis_seconds,
    )


CLASSICAL = (majority, character_svm, morpheme_regression)


def classical_baselines(
    texts: Sequence[str],
    label_ids: Sequence[int],
    fold_of: Sequence[int],
    num_labels: int,
    seed: int,
) -> Iterator[Baseline]:
    """Each baseline that needs no encoder and no endpoint, as soon as it is done.

    Args and errors as `majority`.
    """
    for baseline in CLASSICAL:
        yield baseline(texts, label_ids, fold_of, num_labels, seed)


def fold_f1(
    expected: Sequence[int],
    predicted: Sequence[int | None],
    fold_of: Sequence[int],
    num_labels: int,
) -> list[float]:
    """Macro F1 of each fold over the texts that have a prediction (not None).

    As the encoder's folds are scored; a fold without any prediction is left out.
    """
    scores = []
    for fold in sorted(set(fold_of)):
        asked = [
            (label, said)
            for label, said, place in zip(expected, predicted, fold_of, strict=True)
            if place == fold and said is not None
        ]
        if asked:
            labels, found = zip(*asked, strict=True)
            scores.append(macro_f1(labels, found, num_labels))
    return scores


def comparison_table(baselines: Sequence[Baseline]) -> str:
    """All results under each other, for a terminal.

    F1 is a fraction, latency in milliseconds for one text, the price in won for one text.
    """
    rows = [
        (
            _with_sample(baseline),
            _f1(baseline.mean_f1, baseline.sd_f1),
            _number(baseline.latency_ms),
            f"{baseline.won_per_text:,.2f}",
        )
        for baseline in baselines
    ]
    header = ("", "macro F1", "ms a text", "won a text")
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        numbers = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join([cells[0].ljust(widths[0]), *numbers])

    return "\n".join([line(header), *map(line, rows)])


def _with_sample(baseline: Baseline) -> str:
    known = sum(prediction is not None for prediction in baseline.predictions)
    total = len(baseline.predictions)
    return baseline.name if known == total else f"{baseline.name} ({known:,} of {total:,} texts)"


def _f1(mean: float, sd: float | None) -> str:
    return f"{mean:.4f}" + (f" ± {sd:.4f}" if sd is not None else " " * 9)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.{2 if value < 100 else 0}f}"


def morpheme_names(text: str) -> list[str]:
    """Morphemes with their tags ("학교/NNG"); a text that Kiwi fails on is cut at spaces."""
    try:
        return [f"{morpheme.form}/{morpheme.tag}" for morpheme in analyse(text)]
    except AnalyserError:
        return text.split()


def _in_folds(
    name: str,
    fit: Fit,
    texts: Sequence[str],
    label_ids: Sequence[int],
    fold_of: Sequence[int],
    num_labels: int,
    *,
    seconds_before: float = 0.0,
) -> Baseline:
    _check(texts, label_ids, fold_of)
    predictions: list[int | None] = [None] * len(texts)
    seconds = seconds_before
    for fold in sorted(set(fold_of)):
        rest = [place for place, other in enumerate(fold_of) if other != fold]
        held_out = [place for place, other in enumerate(fold_of) if other == fold]
        started = time.monotonic()
        predict = fit([texts[place] for place in rest], [label_ids[place] for place in rest])
        seconds += time.monotonic() - started
        found = predict([texts[place] for place in held_out])
        for place, label in zip(held_out, found, strict=True):
            predictions[place] = label
    return Baseline(
        name=name,
        predictions=predictions,
        fold_f1=fold_f1(label_ids, predictions, fold_of, num_labels),
        train_seconds=seconds,
        latency_ms=median_latency_ms(predict, [texts[place] for place in held_out]),
    )


def median_latency_ms(predict: Callable[[list[str]], object], texts: Sequence[str]) -> float:
    """Median milliseconds of `predict([text])` over the first 50 texts, after one to warm up."""
    predict([texts[0]])
    taken = []
    for text in texts[:_LATENCY_TEXTS]:
        started = time.perf_counter()
        predict([text])
        taken.append(time.perf_counter() - started)
    return float(np.median(taken)) * 1000


def _check(texts: Sequence[str], label_ids: Sequence[int], fold_of: Sequence[int]) -> None:
    sizes = (len(texts), len(label_ids), len(fold_of))
    if len(set(sizes)) > 1:
        raise InputError(
            "expected one label and one fold for each text, found {texts:,} texts, {labels:,} "
            "labels and {folds:,} folds",
            texts=sizes[0],
            labels=sizes[1],
            folds=sizes[2],
        )
    folds = sorted(set(fold_of))
    if len(folds) < 2:
        raise InputError(
            "expected at least two folds, found {folds}; raise --folds", folds=len(folds)
        )
    for fold in folds:
        labels = {label for label, other in zip(label_ids, fold_of, strict=True) if other != fold}
        if len(labels) < 2:
            raise InputError(
                "expected at least two labels outside fold {fold}, found {labels}; add texts of "
                "other labels",
                fold=fold,
                labels=len(labels),
            )


def _fit_linear(
    make_vectorizer: Callable[[], TfidfVectorizer],
    make_model: Callable[[float], Any],
    strengths: Sequence[float],
    train: list[Any],
    expected: list[int],
    seed: int,
) -> Callable[[list[Any]], list[int]]:
    """Choose the regularisation by k-fold inside the training part, then fit on all of it."""
    best = _best_strength(make_vectorizer, make_model, strengths, train, expected, seed)
    vectorizer = make_vectorizer()
    model = make_model(best).fit(vectorizer.fit_transform(train), expected)
    return lambda some: [int(label) for label in model.predict(vectorizer.transform(some))]


def _best_strength(
    make_vectorizer: Callable[[], TfidfVectorizer],
    make_model: Callable[[float], Any],
    strengths: Sequence[float],
    train: list[Any],
    expected: list[int],
    seed: int,
) -> float:
    if min(np.unique(expected, return_counts=True)[1]) < _INNER_FOLDS:
        return strengths[len(strengths) // 2]  # nothing to choose by
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
    return strengths[int(np.argmax(scores))]
