"""The parts of a linear classifier, ready to predict: bags in, logits out.

Legend: N texts, V n-grams of a vocabulary, K labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from malmoi.inference.linear.bags import Bags, Keys, counted, known_ngrams, row_sums, weighted

NgramName = Literal["characters", "morphemes"]


@dataclass(frozen=True, kw_only=True)
class NgramPart:
    """A linear model on the TF-IDF of n-grams: sublinear counts, each text of length 1.

    Attributes:
        name: what its n-grams are made of.
        vocabulary: uint64 [V], keys, rising.
        idf: float [V].
        weights: float [V, K].
    """

    name: NgramName
    vocabulary: np.ndarray
    idf: np.ndarray
    weights: np.ndarray

    def logits(self, bags: Bags) -> np.ndarray:
        """Float32 [N, K], the bias left out."""
        return _logits(bags, self.idf, self.weights)


class NgramTable:
    """The n-grams of all parts of a classifier in one table: half the calls of numpy."""

    def __init__(self, parts: Sequence[NgramPart]) -> None:
        """Put one part behind the other."""
        self._vocabularies = {part.name: part.vocabulary for part in parts}
        self._idf = np.concatenate([part.idf for part in parts]).astype(np.float32)
        self._weights = np.concatenate([part.weights for part in parts]).astype(np.float32)

    def logits(self, keys: Mapping[NgramName, Keys], texts: int) -> np.ndarray:
        """What each of P parts says of N texts, float32 [P, N, K], the biases left out."""
        rows, columns, size = [], [], 0
        for number, (name, vocabulary) in enumerate(self._vocabularies.items()):
            known, places = known_ngrams(keys[name], vocabulary)
            rows.append(known + number * texts)
            columns.append(places + size)
            size += len(vocabulary)
        parts = len(self._vocabularies)
        bags = counted(np.concatenate(rows), np.concatenate(columns), parts * texts, size)
        return _logits(bags, self._idf, self._weights).reshape(parts, texts, -1)


def _logits(bags: Bags, idf: np.ndarray, weights: np.ndarray) -> np.ndarray:
    values = weighted(bags, idf.astype(np.float32, copy=False))
    lengths = np.sqrt(row_sums(values * values, bags))
    found = row_sums(weights[bags.columns].astype(np.float32, copy=False) * values[:, None], bags)
    return found / np.where(lengths > 0, lengths, 1)[:, None]
