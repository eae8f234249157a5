"""Texts whose given label is probably wrong, by confident learning.

Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels" (JAIR
2021, https://arxiv.org/abs/1911.00068), section 3.1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True, slots=True)
class LikelyError:
    """A text to look at again.

    Attributes:
        place: its index.
        suggested: the label id that the model would give.
        self_confidence: probability of the label that it has.
        confidence: probability of the suggested one.
    """

    place: int
    suggested: int
    self_confidence: float
    confidence: float


def find_likely_errors(probabilities: ArrayLike, label_ids: ArrayLike) -> list[LikelyError]:
    """The texts that the confident joint counts under another label, most doubtful first.

    A label's threshold is the mean probability that the texts given this label have of it (eq. 2).
    A text counts under the likeliest of the labels whose threshold it reaches (eq. 1); where that
    is not the given label, and the model predicts it too, the text is reported. A model that is
    unsure of a label everywhere has a low threshold for it, so rare and hard labels get no more
    reports than easy ones.

    Args:
        probabilities: [N, K], each text's by a model that did not train on it: one that did has
            learnt the wrong labels too.
        label_ids: [N], 0 to K - 1; a label that no text has is never suggested.
    """
    given = np.asarray(probabilities, dtype=np.float64)
    labels = np.asarray(label_ids, dtype=np.int64)
    rows = np.arange(len(labels))
    own = given[rows, labels]
    counts = np.bincount(labels, minlength=given.shape[1])
    sums = np.bincount(labels, weights=own, minlength=given.shape[1])
    thresholds = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    reached = np.where(given >= thresholds, given, -1.0)
    confident = reached.argmax(axis=1)
    reported = (
        (reached.max(axis=1) >= 0) & (confident != labels) & (confident == given.argmax(axis=1))
    )
    places = np.flatnonzero(reported)
    return [
        LikelyError(
            place=int(place),
            suggested=int(confident[place]),
            self_confidence=float(own[place]),
            confidence=float(given[place, confident[place]]),
        )
        for place in places[np.argsort(own[places], kind="stable")]
    ]
