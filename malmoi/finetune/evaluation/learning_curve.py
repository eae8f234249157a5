"""How the score grows with the training texts: what more labelling would bring."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 1.0)
TrainAndScore = Callable[[list[int], list[int]], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """Scores at one training size.

    Attributes:
        fraction: of the fold's training texts.
        texts: that were trained on, mean over folds.
        scores: macro F1 of each fold measured.
    """

    fraction: float
    texts: float
    scores: list[float]

    @property
    def mean(self) -> float:
        """Mean macro F1."""
        return float(np.mean(self.scores))

    @property
    def sd(self) -> float:
        """Standard deviation over folds as a sample (n - 1); 0 for a single fold."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else 0.0


def learning_curve(
    label_ids: ArrayLike,
    fold_of: ArrayLike,
    train_and_score: TrainAndScore,
    *,
    fractions: Sequence[float] = FRACTIONS,
    folds: Sequence[int] | None = None,
    full_scores: Mapping[int, float] | None = None,
    seed: int = 0,
) -> list[CurvePoint]:
    """Train on growing parts of each fold's training texts and score on the whole held-out fold.

    A smaller part lies within a larger one, and every label keeps its share: what differs between
    two points is the number of texts, not which ones.

    Args:
        label_ids: [N].
        fold_of: [N], fold of each text.
        train_and_score: given the places of the training texts and of the test texts, trains a
            fresh model and returns its macro F1. Called len(folds) x len(fractions) times.
        fractions: of the training texts, each above 0 and at most 1.
        folds: those to measure; by default all.
        full_scores: macro F1 of folds already trained on everything; not trained again then.
        seed: decides which texts come first.

    Returns:
        One point a fraction, from the smallest.
    """
    labels, held = np.asarray(label_ids, dtype=np.int64), np.asarray(fold_of, dtype=np.int64)
    chosen = sorted(set(held.tolist())) if folds is None else list(folds)
    points = []
    for fraction in sorted(fractions):
        sizes, scores = [], []
        for fold in chosen:
            train = stratified_part(labels, np.flatnonzero(held != fold), fraction, seed + fold)
            sizes.append(len(train))
            if fraction == 1 and full_scores is not None and fold in full_scores:
                scores.append(full_scores[fold])
            else:
                scores.append(train_and_score(train, np.flatnonzero(held == fold).tolist()))
        points.append(CurvePoint(fraction=fraction, texts=float(np.mean(sizes)), scores=scores))
    return points


def stratified_part(
    label_ids: NDArray[np.int64], places: NDArray[np.int64], fraction: float, seed: int
) -> list[int]:
    """A part of `places` with the same share of every label, one text of each at least.

    Args:
        label_ids: [N], of all texts.
        places: to choose from.
        fraction: above 0, at most 1; rounded up for each label.
        seed: with the same one, a smaller part lies within a larger one.

    Returns:
        Chosen places, rising.
    """
    random = np.random.default_rng(seed)
    kept: list[int] = []
    for label in np.unique(label_ids[places]):
        order = random.permutation(places[label_ids[places] == label])
        kept += order[: math.ceil(fraction * len(order))].tolist()
    return sorted(kept)
