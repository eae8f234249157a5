"""Which texts to label next: those that the model is least sure of.

Legend: N texts, K labels.
"""

from __future__ import annotations

import numpy as np


def ranked(probabilities: np.ndarray) -> np.ndarray:
    """Places of the texts, the one to label first at the beginning; int64 [N].

    That is the one whose two most likely labels are nearest to each other, by the margin (Scheffer
    et al. 2001, "Active hidden Markov models"). To keep the texts of a batch unlike each other, by
    their words or by the labels in question, saved no labels (docs/scores.md). Those that are
    nearly the same are kept apart by `malmoi.labels.near_duplicates`.

    Args:
        probabilities: of labels, [N, K].
    """
    ordered = np.sort(np.asarray(probabilities, dtype=np.float64), axis=1)
    return np.argsort(ordered[:, -1] - ordered[:, -2], kind="stable")


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
