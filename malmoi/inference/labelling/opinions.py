"""What a model says of labelled texts, and how right it is.

Legend: N labelled texts, K labels, P texts to choose from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from malmoi.inference.labelling.ranking import least_decided, ranked


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """What one model says.

    Attributes:
        labels: K names.
        labelled: float32 [N, K], probabilities of texts that are labelled.
        pool: float32 [P, K], of those to choose from.
        is_one: whether a text has one label, and the probabilities of its labels add up to 1; else
            each label is there or not by itself.
        gives: where it is not one, which labels it gives the labelled texts, bool [N, K].
    """

    labels: Sequence[str]
    labelled: np.ndarray
    pool: np.ndarray
    is_one: bool
    gives: np.ndarray | None = None

    def decided(self, labels: Sequence[str]) -> np.ndarray:
        """Which of some labels it gives the labelled texts, bool [N, len(labels)]."""
        if self.is_one:
            own = np.zeros(self.labelled.shape, dtype=bool)
            own[np.arange(len(own)), self.labelled.argmax(axis=1)] = True
        else:
            assert self.gives is not None
            own = self.gives
        found = np.zeros((len(own), len(labels)), dtype=bool)
        place = {label: column for column, label in enumerate(self.labels)}
        for column, label in enumerate(labels):
            if label in place:
                found[:, column] = own[:, place[label]]
        return found

    def order(self) -> np.ndarray:
        """Places of the P texts, the one to label first at the beginning; int64 [P]."""
        return ranked(self.pool) if self.is_one else least_decided(self.pool)

    def doubts(self, given: np.ndarray) -> np.ndarray:
        """How sure it is that people erred, 0 to 1; float64 [N].

        Of one label a text: one less its probability. Of several: the probability that the label
        which it doubts most is wrong, whether that was given or left out.

        Args:
            given: which of its labels people gave to the texts, bool [N, K]; see `given_matrix`.
        """
        said = self.labelled.astype(np.float64)
        if self.is_one:
            return np.asarray(1 - (said * given).sum(axis=1))
        return np.asarray(np.abs(given - said).max(axis=1))


def given_matrix(labels_of_texts: Sequence[Sequence[str]], labels: Sequence[str]) -> np.ndarray:
    """Which labels the texts have, bool [N, K]; others than these are left out."""
    place = {label: column for column, label in enumerate(labels)}
    found = np.zeros((len(labels_of_texts), len(labels)), dtype=bool)
    for row, given in enumerate(labels_of_texts):
        for label in given:
            if label in place:
                found[row, place[label]] = True
    return found


def f1_of_present(given: np.ndarray, decided: np.ndarray) -> float:
    """Macro F1 over the labels that are given at least once, 0 to 1; both bool [N, K].

    A small sample may lack rare labels, which would count 0 for nothing.

    Returns:
        0 where no label is given.
    """
    scores = []
    for label in np.flatnonzero(given.any(axis=0)):
        right = int((given[:, label] & decided[:, label]).sum())
        scores.append(2 * right / int(given[:, label].sum() + decided[:, label].sum()))
    return float(np.mean(scores)) if scores else 0.0


def best_threshold(has: np.ndarray, said: np.ndarray) -> float:
    """The probability from which on to give a label, so that its F1 is the highest, 0 to 1.

    Rare labels seldom reach one half: on 200 texts of KOTE with 42 labels the macro F1 was 0.16 by
    one half and 0.38 by thresholds of the other folds (texts held out: 0.17 and 0.35).

    Args:
        has: bool [N], at least one.
        said: float [N], probabilities of the same texts.
    """
    order = np.argsort(-said, kind="stable")
    right = np.cumsum(has[order])
    f1 = 2 * right / (np.arange(1, len(has) + 1) + has.sum())
    # Between equal probabilities there is no threshold.
    f1[:-1][said[order][:-1] == said[order][1:]] = -1
    last = int(f1.argmax())
    below = said[order[last + 1]] if last + 1 < len(order) else 0.0
    return float((said[order[last]] + below) / 2)
