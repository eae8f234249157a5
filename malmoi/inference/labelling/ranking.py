"""Which texts to label next: those that the model is least sure of.

Legend: N texts, K labels.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Uncertainty = Literal["margin", "entropy"]


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


def ranked(probabilities: np.ndarray) -> np.ndarray:
    """Places of the texts, the one to label first at the beginning: by the margin; int64 [N].

    To keep the texts of a batch unlike each other, by their words or by the labels in question,
    saved no labels (docs/scores.md). Those that are nearly the same are kept apart by
    `malmoi.labels.near_duplicates`.

    Args:
        probabilities: of labels, [N, K].
    """
    return np.argsort(-uncertainty(probabilities), kind="stable")


def least_decided(probabilities: np.ndarray) -> np.ndarray:
    """The same of texts with several labels: first where any label is nearest to even; int64 [N].

    One label in doubt is enough for a text to be worth a look, however sure the others are: the
    smallest confidence over the labels, one of the ways that Esuli and Sebastiani compare (2009,
    "Active learning strategies for multi-label text classification").

    Args:
        probabilities: of each label by itself, [N, K].
    """
    distance = np.abs(np.asarray(probabilities, dtype=np.float64) - 0.5).min(axis=1)
    return np.argsort(distance, kind="stable")
