"""Which texts to label next: those that the model is least sure of, not all of one kind.

Legend: N texts, K labels.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Uncertainty = Literal["margin", "entropy"]
# Five batches of 20: within so many a less certain text may come before a more certain one.
_BLOCK = 100


def uncertainty(probabilities: np.ndarray, kind: Uncertainty = "margin") -> np.ndarray:
    """How unsure a model is, 0 to 1; float64 [N] of probabilities [N, K].

    Args:
        probabilities: of labels.
        kind: 1 less the distance of the two most likely labels (Scheffer et al. 2001, "Active
            hidden Markov models"), or the entropy as a share of the highest there can be.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    if kind == "margin":
        ordered = np.sort(values, axis=1)
        return 1 - (ordered[:, -1] - ordered[:, -2])
    safe = np.clip(values, 1e-12, 1)
    return np.asarray(-(safe * np.log(safe)).sum(axis=1) / np.log(values.shape[1]))


def ranked(probabilities: np.ndarray, block: int = _BLOCK) -> np.ndarray:
    """Places of the texts, the one to label first at the beginning; int64 [N].

    By the margin; and in each block the pairs of labels between which the model wavers take turns,
    so that a batch is not all of the pair that it knows least. Unlikeness of the texts themselves
    (k-center of TF-IDF, `benchmarks/quality/active.py`) cost labels instead of saving them; texts
    that are nearly the same are kept apart by `malmoi.labels.near_duplicates`.

    Args:
        probabilities: of labels, [N, K].
        block: texts in which turns are taken.
    """
    values = np.asarray(probabilities)
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(-uncertainty(values), kind="stable")
    pairs = np.sort(np.argsort(-values[order], axis=1, kind="stable")[:, :2], axis=1)
    turns: dict[tuple[int, int, int], int] = {}
    keys = []
    for place, (one, other) in enumerate(pairs.tolist()):
        kind = (place // block, one, other)
        turns[kind] = turns.get(kind, -1) + 1
        keys.append((place // block, turns[kind], place))
    return order[[place for _, _, place in sorted(keys)]]
