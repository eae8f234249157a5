"""How good predictions are: the numbers every report of this room is made of.

Legend: N texts, K labels.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from malmoi.inference.tasks import Task, has_values

# 1 to 5, 1점 to 5점; two labels are no scale.
_NUMBERED = re.compile(r"([1-9]\d{0,2})\s?(점|별|개|단계|등급|stars?)?")
_FEWEST_ORDERED = 3


def score(
    expected: Sequence[int], predicted: Sequence[int], labels: Sequence[str]
) -> dict[str, Any]:
    """Scores of `predicted` against `expected`, ready for JSON.

    A label that was never predicted scores 0. One that was never expected is left out of the mean:
    nothing can be right about it, and a fold in which all is right scores 1.

    Args:
        expected: label ids, N of them.
        predicted: label ids, in the same order.
        labels: K names; their places are the ids.

    Returns:
        `accuracy`, `macro_f1` (`mean_over_labels`), `weighted_f1` (weighted by support), all
        fractions; `labels`: name to `f1`, `precision`, `recall`, `support` (texts); and
        `confusion` [K, K]: texts by expected (row) and predicted (column) label; `distances` where
        labels are numbers.
    """
    ids = list(range(len(labels)))
    parts = _parts(expected, predicted, len(labels))
    confusion = confusion_matrix(expected, predicted, labels=ids)
    found = distances(labels, confusion)
    return {
        "accuracy": float(accuracy_score(expected, predicted)),
        **_over_labels(parts, labels),
        "confusion": confusion.tolist(),
        **({"distances": found} if found else {}),
    }


def distances(labels: Sequence[str], confusion: np.ndarray) -> dict[str, float]:
    """How far off mistakes are where all labels are numbers from 1 on, such as stars.

    Args:
        labels: K names.
        confusion: [K, K] texts.

    Returns:
        `mean_distance` over all texts, and `off_by_one`, the fraction of mistakes that are off by
        one; nothing of other labels.
    """
    named = [_NUMBERED.fullmatch(name) for name in labels]
    numbers = np.array([int(found[1]) for found in named if found])
    if len(numbers) < max(len(named), _FEWEST_ORDERED) or numbers.min() != 1:
        return {}
    off = abs(numbers[:, None] - numbers)
    wrong = confusion[off > 0].sum()
    return {
        "mean_distance": float((confusion * off).sum() / confusion.sum()),
        "off_by_one": float(confusion[off == 1].sum() / wrong) if wrong else 0.0,
    }


def score_multi(
    expected: np.ndarray, predicted: np.ndarray, labels: Sequence[str]
) -> dict[str, Any]:
    """Scores of sets of labels, ready for JSON.

    Args:
        expected: [N, K], 1 where the text has the label.
        predicted: [N, K], likewise.
        labels: K names.

    Returns:
        As `score`, without `confusion`; `accuracy` is the fraction of texts of which all labels
        are right; `micro_f1` counts every text and label alike.
    """
    expected, predicted = expected.astype(bool), predicted.astype(bool)
    parts = precision_recall_fscore_support(expected, predicted, average=None, zero_division=0)
    both = int((expected & predicted).sum())
    either = int(expected.sum()) + int(predicted.sum())
    return {
        "accuracy": float((expected == predicted).all(axis=1).mean()),
        "micro_f1": 2 * both / either if either else 0.0,
        **_over_labels(parts, labels),
    }


def macro_f1(expected: Sequence[int], predicted: Sequence[int], num_labels: int) -> float:
    """The macro F1 that `score` gives; a prediction that is no label's id counts as wrong."""
    _, _, f1, support = _parts(expected, predicted, num_labels)
    return mean_over_labels(f1, support)


def mean_over_labels(f1: np.ndarray, support: np.ndarray) -> float:
    """Mean F1 of the labels that were expected at all, of [K] each; 0 where none was."""
    return float(f1[support > 0].mean()) if support.any() else 0.0


def _parts(expected: Sequence[int], predicted: Sequence[int], num_labels: int) -> tuple[Any, ...]:
    """Precision, recall, F1 and support, [K] each."""
    ids = list(range(num_labels))
    parts: tuple[Any, ...] = precision_recall_fscore_support(
        expected, predicted, labels=ids, zero_division=0
    )
    return parts


def score_regression(expected: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Pearson's and Spearman's correlation, mean absolute and squared error; [N] both.

    A correlation with constant predictions does not exist and counts as 0. Of whole numbers, such
    as stars, `rounded_accuracy` is the fraction that is right once predictions are whole, too.
    """
    constant = len(expected) < 2 or np.ptp(expected) == 0 or np.ptp(predicted) == 0
    found = 0.0 if constant else float(stats.pearsonr(expected, predicted).statistic)
    ranked = 0.0 if constant else float(stats.spearmanr(expected, predicted).statistic)
    scores = {
        "pearson": found,
        "spearman": ranked,
        "mean_absolute_error": float(np.mean(abs(expected - predicted))),
        "mean_squared_error": float(np.mean((expected - predicted) ** 2)),
    }
    if is_whole(expected):
        scores["rounded_accuracy"] = float(np.mean(rounded(predicted, expected) == expected))
    return scores


def is_whole(values: np.ndarray) -> bool:
    """Whether all values are whole numbers."""
    return bool((values == np.rint(values)).all())


def rounded(predicted: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Predicted values as whole numbers between the lowest and the highest expected one."""
    return np.rint(np.clip(predicted, expected.min(), expected.max()))


def score_task(
    task: Task,
    targets: np.ndarray,
    probabilities: np.ndarray,
    labels: Sequence[str],
    thresholds: np.ndarray | None = None,
) -> dict[str, Any]:
    """The scores that suit the task.

    Args:
        targets: [N] int label ids, [N, K] 0 and 1 for `multi`, [N] float for values.
        probabilities: [N, K]; [N, 1] predicted values.
        labels: K names.
        thresholds: [K], for `multi`; 0.5 without.
    """
    if has_values(task):
        return score_regression(targets, probabilities[:, 0])
    if task == "multi":
        return score_multi(targets, decide(task, probabilities, thresholds), labels)
    return score(targets.tolist(), decide(task, probabilities).tolist(), labels)


def decide(
    task: Task, probabilities: np.ndarray, thresholds: np.ndarray | None = None
) -> np.ndarray:
    """What [N, K] probabilities come down to, in the shape of the targets of the task."""
    if has_values(task):
        return probabilities[:, 0]
    if task == "multi":
        return (probabilities >= (0.5 if thresholds is None else thresholds)).astype(np.int64)
    return probabilities.argmax(axis=1)


def choose_thresholds(targets: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """The threshold of each label with the highest F1, half way between two probabilities.

    Args:
        targets: [N, K], 0 and 1, of texts that were not trained on.
        probabilities: [N, K].

    Returns:
        [K] float32; 0.5 for a label that no text has. Of equally good ones, the highest.
    """
    thresholds = np.full(targets.shape[1], 0.5, dtype=np.float32)
    for label in range(targets.shape[1]):
        order = np.argsort(-probabilities[:, label], kind="stable")
        sorted_probabilities = probabilities[order, label]
        positives = int(targets[:, label].sum())
        if not positives:
            continue
        hits = np.cumsum(targets[order, label])
        f1 = 2 * hits / (np.arange(1, len(order) + 1) + positives)
        # A threshold cannot stand between equal probabilities.
        below = np.append(sorted_probabilities[1:], 0.0)
        f1[sorted_probabilities == below] = -1
        best = int(f1.argmax())
        thresholds[label] = (sorted_probabilities[best] + below[best]) / 2
    return thresholds


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Many fold scores in four numbers.

    Attributes:
        mean: of all folds of all seeds.
        sd: as a sample (n - 1).
        low: lower end of the 95% interval of the mean.
        high: upper end.
    """

    mean: float
    sd: float
    low: float
    high: float


def summarize(scores: Sequence[float], folds: int, *, lowest: float = 0.0) -> Summary:
    """Mean, deviation and 95% interval of fold scores.

    The folds' training texts overlap, so their scores are not independent and the usual interval
    is too narrow. This one is the corrected resampled t (Nadeau and Bengio 2003, "Inference for
    the Generalization Error", section 5; for repeated k-fold Bouckaert and Frank 2004): variance
    times 1/J + 1/(k - 1), with J scores of k folds each.

    Args:
        scores: J of them, at least two.
        folds: k.
        lowest: what a score can be at worst; at best it is 1. The interval ends there, which two
            folds, whose t is wide, would not see by themselves.
    """
    mean, sd = float(np.mean(scores)), float(np.std(scores, ddof=1))
    quantile = float(stats.t.ppf(0.975, len(scores) - 1))
    half = quantile * sd * math.sqrt(1 / len(scores) + 1 / (folds - 1))
    return Summary(mean=mean, sd=sd, low=max(lowest, mean - half), high=min(1.0, mean + half))


def _over_labels(parts: tuple[Any, ...], labels: Sequence[str]) -> dict[str, Any]:
    precision, recall, f1, support = parts
    texts = int(support.sum())
    return {
        "macro_f1": mean_over_labels(f1, support),
        "weighted_f1": float((f1 * support).sum() / texts) if texts else 0.0,
        "labels": {
            name: {
                "f1": float(f1[place]),
                "precision": float(precision[place]),
                "recall": float(recall[place]),
                "support": int(support[place]),
            }
            for place, name in enumerate(labels)
        },
    }
