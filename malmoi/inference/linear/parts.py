"""The parts of a linear classifier, ready to predict: bags in, logits out.

Legend: N texts, V n-grams of a vocabulary, K labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from malmoi.inference.linear.bags import Bags, row_sums, weighted

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
        values = weighted(bags, self.idf.astype(np.float32, copy=False))
        lengths = np.sqrt(row_sums(values * values, bags))
        found = row_sums(self.weights[bags.columns].astype(np.float32) * values[:, None], bags)
        return found / np.where(lengths > 0, lengths, 1)[:, None]
