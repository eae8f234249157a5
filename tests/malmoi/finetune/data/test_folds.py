"""Which text is in which fold: even, whole groups, and reproducible."""

import warnings
from collections import Counter

import numpy as np
import pytest

from malmoi.errors import InputError
from malmoi.finetune.data.folds import (
    absent_kinds,
    assign_folds,
    joined_groups,
    near_duplicate_groups,
    split_off,
    strata_of,
)

LONG = "어제 저녁에 친구와 함께 영화를 보러 갔다가 비를 맞고 집에 돌아와서 라면을 끓여 먹었다"


def labels_and_groups(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """1,000 texts of three labels, 300 of them in groups of 2 to 6."""
    drawn = np.random.default_rng(seed)
    labels = drawn.choice(3, 1_000, p=[0.6, 0.35, 0.05])
    groups = np.arange(1_000)
    place = 0
    while place < 300:
        size = int(drawn.integers(2, 7))
        groups[place : place + size] = place
        place += size
    return labels, groups


@pytest.mark.parametrize("seed", range(5))
def test_groups_stay_whole_and_folds_even(seed: int) -> None:
    labels, groups = labels_and_groups(seed)
    fold_of = np.array(assign_folds(labels, 5, seed, groups))
    assert all(len(set(fold_of[groups == group])) == 1 for group in np.unique(groups))
    for label in range(3):
        counts = np.bincount(fold_of[labels == label], minlength=6)[1:]
        assert counts.max() - counts.min() <= 1, (label, counts)


def test_what_is_spread_evenly() -> None:
    """Of several labels the rarest of the data, none as one more; of values their tenth."""
    targets = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0], [0, 0, 0]])
    assert strata_of("multi", targets).tolist() == [1, 0, 2, 1, 3]
    values = np.random.default_rng(0).permutation(100) / 7
    tenths = strata_of("pair-regression", values)
    assert np.bincount(tenths).tolist() == [10] * 10
    assert (np.diff(tenths[values.argsort()]) >= 0).all()


def test_few_values_are_spread_by_chance() -> None:
    """40 pairs have four values in each tenth, fewer than folds; scikit-learn refuses these."""
    strata = strata_of("pair-regression", np.arange(40) / 8)
    fold_of = assign_folds(strata, 5, 1)
    assert sorted(Counter(fold_of).items()) == [(fold, 8) for fold in range(1, 6)]
    assert fold_of == assign_folds(strata, 5, 1) != assign_folds(strata, 5, 2)


def test_groups_that_cannot_be_even() -> None:
    labels = np.array([0] * 30 + [1] * 10)
    groups = np.array([0] * 12 + list(range(1, 29)))
    fold_of = np.array(assign_folds(labels, 5, 1, groups))
    assert len(set(fold_of[:12])) == 1
    counts = Counter(fold_of[:30].tolist())
    # 12 in one fold, the other 18 spread over the other four.
    assert sorted(counts.values()) == [4, 4, 5, 5, 12]


def test_the_seed_decides_groups_too() -> None:
    labels, groups = labels_and_groups()
    assert assign_folds(labels, 5, 1, groups) == assign_folds(labels, 5, 1, groups)
    assert assign_folds(labels, 5, 1, groups) != assign_folds(labels, 5, 2, groups)


def test_splitting_off_a_part() -> None:
    labels, groups = labels_and_groups()
    places = np.arange(0, 1_000, 2)
    kept, dev = split_off(labels, places, 0.1, 3)
    assert sorted([*kept, *dev]) == places.tolist()
    assert len(dev) == pytest.approx(50, abs=2)
    for label in range(3):
        assert (labels[dev] == label).mean() == pytest.approx(
            (labels[places] == label).mean(), abs=0.02
        )
    kept, dev = split_off(labels, np.arange(1_000), 0.1, 3, groups)
    assert not set(groups[kept]) & set(groups[dev])


def test_a_part_is_rounded_to_the_nearest_of_equal_ones() -> None:
    assert len(split_off(np.zeros(700, dtype=np.int64), np.arange(700), 0.15, 1)[1]) == 100


def test_splitting_off_from_few_texts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept, dev = split_off(np.array([0, 1, 2, 3, 4, 5]), np.arange(6), 0.2, 1)
    assert (len(kept), len(dev)) == (4, 2)
    kept, dev = split_off(np.array([0, 1]), np.arange(2), 0.1, 1)
    assert (len(kept), len(dev)) == (2, 0)


def test_near_duplicates_are_found_over_others() -> None:
    texts = [
        LONG,
        "전혀 다른 글입니다 오늘은 날씨가 맑아요",
        f"{LONG}!",
        f"{LONG}!!",
        "짧다",
        "짧다고",
    ]
    groups = near_duplicate_groups(texts, 0.8)
    assert groups[0] == groups[2] == groups[3]
    assert len(set(groups)) == 4
    assert len(near_duplicate_groups([], 0.8)) == 0


def test_very_many_copies_are_one_group() -> None:
    texts = [f"{LONG} {LONG[: number % 3]}" for number in range(700)]
    assert len(set(near_duplicate_groups(texts, 0.7))) == 1


def test_a_threshold_that_the_bands_cannot_keep() -> None:
    with pytest.raises(InputError, match=r"from 0.7 to 1, found 0.5"):
        near_duplicate_groups([LONG], 0.5)


def test_groups_are_spread_so_that_no_fold_lacks_a_label() -> None:
    # Three large groups of the first two labels, and a rare one in as many groups as folds.
    strata = np.array([0, 1] * 45 + [2, 0] * 3)
    groups = np.array([0] * 30 + [1] * 30 + [2] * 30 + [3, 3, 4, 4, 5, 5])
    for seed in range(20):
        fold_of = np.array(assign_folds(strata, 3, seed, groups))
        assert absent_kinds(strata, fold_of, 3) == []
    # In two groups it cannot be in three folds, and that is said.
    groups[groups == 5] = 4
    fold_of = np.array(assign_folds(strata, 3, 0, groups))
    (absent,) = absent_kinds(strata, fold_of, 3)
    assert absent[1] == 2 and not (strata[fold_of == absent[0]] == 2).any()


@pytest.mark.parametrize("seed", range(30))
def test_mixed_groups_lack_no_label_that_reaches(seed: int) -> None:
    draw = np.random.default_rng(seed)
    groups = draw.integers(0, 20, 150)
    strata = draw.choice(3, 150, p=(0.6, 0.35, 0.05))
    for rare in draw.permutation(20)[:4]:
        strata[np.flatnonzero(groups == rare)[:2]] = 2
    assert absent_kinds(strata, np.array(assign_folds(strata, 4, seed, groups)), 4) == []


def test_two_ways_of_grouping_are_joined() -> None:
    one, other = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])
    joined = joined_groups(one, other)
    assert joined is not None
    assert joined[0] == joined[1] == joined[2]
    assert len({joined[2], joined[3], joined[4]}) == 3
    assert joined_groups(one, None) is one and joined_groups(None, other) is other


def test_texts_without_a_label_are_spread_like_a_label_of_their_own() -> None:
    targets = np.zeros((40, 2))
    targets[:20, 0] = 1
    targets[15:25, 1] = 1
    strata = strata_of("multi", targets)
    assert strata.tolist() == [0] * 15 + [1] * 10 + [2] * 15
    assert np.bincount(assign_folds(strata[25:], 5, 1))[1:].tolist() == [3] * 5
