"""Growing parts of the training texts, and the scores they give."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from malmoi.finetune.evaluation.learning_curve import learning_curve, stratified_part

LABELS = np.array([0] * 80 + [1] * 40 + [2] * 3)
FOLDS = np.array([*np.arange(80) % 4, *np.arange(40) % 4, 0, 1, 2]) + 1


def test_each_point_trains_on_a_stratified_part_and_scores_the_whole_fold() -> None:
    calls: list[tuple[list[int], list[int]]] = []

    def train_and_score(train: list[int], test: list[int]) -> float:
        calls.append((train, test))
        return len(train) / 100

    points = learning_curve(LABELS, FOLDS, train_and_score)
    assert [point.fraction for point in points] == [1 / 8, 1 / 4, 1 / 2, 1]
    assert all(len(point.scores) == 4 for point in points)
    assert [point.texts for point in points] == sorted(point.texts for point in points)
    assert points[-1].texts == 123 * 3 / 4
    assert points[-1].mean == pytest.approx(points[-1].texts / 100)
    for train, test in calls:
        assert not set(train) & set(test)
        assert set(test) == set(np.flatnonzero(FOLDS[test[0]] == FOLDS))
        counts = Counter(LABELS[train].tolist())
        assert set(counts) == {0, 1, 2}
        assert abs(counts[0] - 2 * counts[1]) <= 1  # rounded up each


def test_a_smaller_part_lies_within_a_larger_one() -> None:
    places = np.flatnonzero(FOLDS != 1)
    parts = [set(stratified_part(LABELS, places, f, 7)) for f in (0.1, 0.3, 0.6, 1.0)]
    assert all(small < large for small, large in pairwise(parts))
    assert parts[-1] == set(places.tolist())
    assert set(stratified_part(LABELS, places, 0.3, 8)) != parts[1]


def test_scores_that_are_known_are_not_measured_again() -> None:
    trained: list[int] = []

    def train_and_score(train: list[int], test: list[int]) -> float:
        trained.append(len(train))
        return 0.5

    points = learning_curve(
        LABELS, FOLDS, train_and_score, fractions=(0.5, 1), folds=[2], full_scores={2: 0.75}
    )
    assert len(trained) == 1
    assert points[-1].scores == [0.75]
    assert points[-1].sd == 0
