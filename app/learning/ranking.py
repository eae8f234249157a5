"""Which texts to label next: those that the model is least sure of, and unlike each other.

Legend: N texts, M of them that are looked at for likeness, P of them that are placed, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from malmoi.inference.linear.bags import character_keys, count, vocabulary_of, weighted

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Uncertainty = Literal["margin", "entropy"]
# Looked at for likeness, and placed by it: some pages of texts on the screens of annotators.
_LOOKED_AT, _PLACED = 1_000, 200


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


def ranked(
    texts: Sequence[str],
    unsure: np.ndarray,
    *,
    looked_at: int = _LOOKED_AT,
    placed: int = _PLACED,
) -> np.ndarray:
    """Places of the texts, the one to label first at the beginning; int64 [N].

    One after the other the text is taken whose uncertainty, times its distance to the most similar
    of those taken before it, is highest: greedy k-center (Sener and Savarese 2018, section 5,
    https://arxiv.org/abs/1708.00489), weighed. The distance is 1 less the cosine of the TF-IDF of
    character n-grams. Those that are not placed so follow by uncertainty.

    Args:
        texts: N, clean.
        unsure: [N], see `uncertainty`.
        looked_at: M, the most uncertain.
        placed: P.
    """
    by_uncertainty = np.argsort(-unsure, kind="stable")
    near = by_uncertainty[:looked_at]
    if len(near) < 2:
        return by_uncertainty
    matrix = _tf_idf([texts[place] for place in near])
    distance = np.ones(len(near))
    # Equals above 0, so that of two equally distant ones the less sure is taken.
    weight = unsure[near] + 1e-6
    chosen: list[int] = []
    for _ in range(min(placed, len(near))):
        gain = weight * distance
        gain[chosen] = -1
        best = int(gain.argmax())
        chosen.append(best)
        similar = (matrix @ matrix[best].T).toarray()[:, 0]
        distance = np.minimum(distance, 1 - similar)
    rest = np.setdiff1d(np.arange(len(near)), chosen)  # rising: by uncertainty
    return np.concatenate([near[chosen], near[rest], by_uncertainty[looked_at:]])


def _tf_idf(texts: Sequence[str]) -> csr_matrix:
    """Rows of length 1; [M, n-grams that stand in two texts or more]."""
    from scipy.sparse import csr_matrix

    keys = character_keys(texts)
    bags = count(keys, vocabulary_of(keys, 2))
    with_it = np.bincount(bags.columns, minlength=bags.size)
    idf = np.log((1 + bags.texts) / (1 + with_it)).astype(np.float32)
    values = weighted(bags, idf)
    lengths = np.sqrt(np.bincount(bags.rows, weights=values * values, minlength=bags.texts))
    values = values / np.where(lengths > 0, lengths, 1)[bags.rows]
    return csr_matrix((values, (bags.rows, bags.columns)), shape=(bags.texts, max(1, bags.size)))
