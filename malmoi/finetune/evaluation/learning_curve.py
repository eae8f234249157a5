"""How the score grows with the training texts: what more labelling would bring."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Of the training texts; the whole of them was trained on already.
FRACTIONS = (1 / 8, 1 / 4, 1 / 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """The score at one training size.

    Attributes:
        fraction: of the fold's training texts.
        texts: that were trained on.
        score: macro F1 on the whole held-out fold.
    """

    fraction: float
    texts: int
    score: float


def learning_curve(
    label_ids: NDArray[np.int64],
    places: NDArray[np.int64],
    train_and_score: Callable[[list[int]], float],
    full_score: float,
    seed: int,
) -> list[CurvePoint]:
    """Train on growing parts of a fold's training texts.

    A smaller part lies within a larger one, and every label keeps its share: what differs between
    two points is the number of texts, not which ones.

    Args:
        label_ids: [N].
        places: of the training texts.
        train_and_score: given the places to train on, trains a fresh model and returns its macro F1
            on the held-out fold.
        full_score: that of the model which was trained on all of `places`.
        seed: decides which texts come first.

    Returns:
        One point a fraction, from the smallest.
    """
    points = []
    for fraction in FRACTIONS:
        part = stratified_part(label_ids, places, fraction, seed)
        score = train_and_score(part)
        points.append(CurvePoint(fraction=fraction, texts=len(part), score=score))
    return [*points, CurvePoint(fraction=1.0, texts=len(places), score=full_score)]


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
