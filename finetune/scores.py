"""How good predictions are: the numbers every report of this room is made of."""

from collections.abc import Sequence
from typing import Any

from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support


def score(
    expected: Sequence[int], predicted: Sequence[int], labels: Sequence[str]
) -> dict[str, Any]:
    """Scores of `predicted` against `expected`, ready for JSON.

    A label that was never predicted, or never expected, scores 0 instead of being left out.

    Args:
        expected: label ids, N of them.
        predicted: label ids, in the same order.
        labels: K names; their places are the ids.

    Returns:
        `accuracy`, `macro_f1` (mean over labels), `weighted_f1` (weighted by support), all
        fractions; `labels`: name to `f1`, `precision`, `recall`, `support` (texts); and
        `confusion` [K, K]: texts by expected (row) and predicted (column) label.
    """
    ids = list(range(len(labels)))
    precision, recall, f1, support = precision_recall_fscore_support(
        expected, predicted, labels=ids, zero_division=0
    )
    texts = int(support.sum())
    return {
        "accuracy": float(accuracy_score(expected, predicted)),
        "macro_f1": float(f1.mean()),
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
        "confusion": confusion_matrix(expected, predicted, labels=ids).tolist(),
    }
