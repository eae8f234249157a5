"""Which text is in which fold: even, whole groups, and reproducible."""

import warnings
from collections import Counter

import numpy as np
import pytest

from corpora.errors import InputError
from finetune.folds import assign_folds, near_duplicate_groups, split_off, strata_of

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
    """Of several labels the rarest of the data; of values their tenth."""
    targets = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0], [0, 0, 0]])
    assert strata_of("multi", targets).tolist() == [1, 0, 2, 1, 0]
    values = np.random.default_rng(0).permutation(100) / 7
    tenths = strata_of("pair-regression", values)
    assert np.bincount(tenths).tolist() == [10] * 10
    assert (np.diff(tenths[values.argsort()]) >= 0).all()


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
