"""Kiwi's morphemes and word vectors, which linear parts of version 0.2.0 and older read.

Legend: N texts, V morphemes of Kiwi's model, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np

from malmoi.inference.linear.bags import Keys, counted, row_sums, weighted
from malmoi.inference.linear.morphemes import hash_of, keys_of

_one_at_a_time = Lock()


@dataclass(frozen=True, kw_only=True)
class KiwiTexts:
    """N texts as Kiwi's morphemes, eojeol by eojeol.

    Attributes:
        keys: n-grams.
        ids: int64, of the morphemes of all texts.
        rows: int64, the text of each.
    """

    keys: Keys
    ids: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True)
class VectorPart:
    """A linear model on the mean of the word vectors of a text, weighted by (1 + ln count) * idf.

    Attributes:
        idf: float [V], of morphemes by their ids.
        weights: float [V, K], what the model says of each: the mean is linear, too.
    """

    idf: np.ndarray
    weights: np.ndarray

    def logits(self, texts: KiwiTexts) -> np.ndarray:
        """Float32 [N, K], the bias left out."""
        known = (texts.ids >= 0) & (texts.ids < len(self.idf))
        rows, ids = texts.rows[known], texts.ids[known]
        bags = counted(rows, ids, texts.keys.texts, len(self.idf))
        values = weighted(bags, self.idf.astype(np.float32))
        totals = row_sums(values, bags)
        found = row_sums(self.weights[bags.columns].astype(np.float32) * values[:, None], bags)
        return found / np.where(totals > 0, totals, 1)[:, None]


def read_by_kiwi(texts: Sequence[str]) -> KiwiTexts:
    """Morphemes of N clean texts, N at least 1; safe to use from several threads."""
    from malmoi.text.morphemes import eojeol_morphemes  # Kiwi: seconds, and 0.5 GiB

    with _one_at_a_time:
        found = [[one for word in text.split() for one in eojeol_morphemes(word)] for text in texts]
    hashes = [np.array([hash_of(name) for name, _ in row], dtype=np.uint64) for row in found]
    return KiwiTexts(
        keys=keys_of(hashes),
        ids=np.array([id_ for row in found for _, id_ in row], dtype=np.int64),
        rows=np.repeat(np.arange(len(texts)), [len(row) for row in found]),
    )
