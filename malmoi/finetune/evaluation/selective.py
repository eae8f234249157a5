"""How much a classifier answers where it may say "I do not know", and how much of that is right.

Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks" (NeurIPS 2017,
https://arxiv.org/abs/1705.08500). Legend: N texts, K labels.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

# Accuracies that somebody may wish, in hundredths.
_WISHES = range(50, 100)
# An accuracy of fewer texts than these is chance (assumption).
_FEWEST_TEXTS = 20
_CURVE_POINTS = 40


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """What comes of it where only texts of some confidence are answered.

    Attributes:
        accuracy: that was wished, a fraction.
        threshold: the confidence from which a text is answered.
        share: of the texts, that is answered.
        measured: accuracy of these. Share and accuracy are of texts of each fold by the threshold
            that the other folds ask for, as new texts will have them.
    """

    accuracy: float
    threshold: float
    share: float
    measured: float

    def describe(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


def accepted_shares(
    probabilities: np.ndarray, label_ids: np.ndarray, fold_of: np.ndarray
) -> list[Accepted]:
    """What each wished accuracy costs; those that no confidence reaches are left out.

    Args:
        probabilities: [N, K], each text's by a model that did not train on it, calibrated.
        label_ids: [N], given labels.
        fold_of: [N], two different folds at least.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == label_ids
    found = []
    for wish in (hundredth / 100 for hundredth in _WISHES):
        threshold = _threshold(confidence, right, wish)
        answered = np.zeros(len(right), dtype=bool)
        for fold in np.unique(fold_of):
            inside = fold_of == fold
            least = _threshold(confidence[~inside], right[~inside], wish)
            answered[inside] = False if least is None else confidence[inside] >= least
        if threshold is None or not answered.any():
            continue
        found.append(
            Accepted(
                accuracy=wish,
                threshold=threshold,
                share=float(answered.mean()),
                measured=float(right[answered].mean()),
            )
        )
    return found


def _threshold(confidence: np.ndarray, right: np.ndarray, wish: float) -> float | None:
    """The lowest confidence above which so many are right."""
    order = np.argsort(-confidence, kind="stable")
    counts = np.arange(1, len(order) + 1)
    reached = np.cumsum(right[order]) / counts >= wish
    places = np.flatnonzero(reached & (counts >= min(_FEWEST_TEXTS, len(order))))
    if not len(places):
        return None
    return 0.0 if places[-1] == len(order) - 1 else float(confidence[order][places[-1]])


def answered_curve(probabilities: np.ndarray, label_ids: np.ndarray) -> list[tuple[float, float]]:
    """(share answered, accuracy of these), the surest texts first; arguments as above."""
    order = np.argsort(-probabilities.max(axis=1), kind="stable")
    right = (probabilities.argmax(axis=1) == label_ids)[order]
    accuracy = np.cumsum(right) / np.arange(1, len(right) + 1)
    ends = np.unique(np.linspace(0, len(right), _CURVE_POINTS + 1).astype(int)[1:])
    ends = ends[ends >= min(_FEWEST_TEXTS, len(right))]
    return [(float(end / len(right)), float(accuracy[end - 1])) for end in ends]
