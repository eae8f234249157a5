"""Growing parts of the training texts, and the scores they give."""

from collections import Counter
from itertools import pairwise

import numpy as np

from malmoi.finetune.evaluation.learning_curve import learning_curve, stratified_part

LABELS = np.array([0] * 80 + [1] * 40 + [2] * 3)
FOLDS = np.array([*np.arange(80) % 4, *np.arange(40) % 4, 0, 1, 2]) + 1


def test_each_point_trains_on_a_stratified_part_and_the_last_is_known() -> None:
    parts: list[list[int]] = []

    def train_and_score(part: list[int]) -> float:
        parts.append(part)
        return len(part) / 100

    places = np.flatnonzero(FOLDS != 1)
    points = learning_curve(LABELS, places, train_and_score, full_score=0.75, seed=1)
    assert [point.fraction for point in points] == [1 / 8, 1 / 4, 1 / 2, 1]
    assert [point.texts for point in points] == [*map(len, parts), len(places)]
    assert [point.score for point in points] == [*(len(part) / 100 for part in parts), 0.75]
    for part in parts:
        assert set(part) < set(places.tolist())
        counts = Counter(LABELS[part].tolist())
        assert set(counts) == {0, 1, 2}
        assert abs(counts[0] - 2 * counts[1]) <= 1  # rounded up each


def test_a_smaller_part_lies_within_a_larger_one() -> None:
    places = np.flatnonzero(FOLDS != 1)
    parts = [set(stratified_part(LABELS, places, f, 7)) for f in (0.1, 0.3, 0.6, 1.0)]
    assert all(small < large for small, large in pairwise(parts))
    assert parts[-1] == set(places.tolist())
    assert set(stratified_part(LABELS, places, 0.3, 8)) != parts[1]
