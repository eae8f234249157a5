"""First occurrences, and near duplicates against a comparison of every pair."""

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi.errors import InputError
from malmoi.text.duplicates import exact as duplicates
from malmoi.text.duplicates import near as near_duplicates
from malmoi.text.duplicates.exact import first_occurrences
from malmoi.text.duplicates.near import NearDuplicates, find_near_duplicates, make_sketches

KEYS = st.sampled_from([0, 1, 2**8, 2**56, 2**63, 2**64 - 1, 0xABCDEF0123456789])


@given(st.lists(KEYS | st.integers(0, 2**64 - 1)), st.sampled_from([1, 3, 1_000]))
def test_first_occurrences_are_those_of_a_dictionary(keys: list[int], per_sort: int) -> None:
    before = duplicates._KEYS_PER_SORT
    duplicates._KEYS_PER_SORT = per_sort
    try:
        found = first_occurrences(np.array(keys, dtype=np.uint64))
    finally:
        duplicates._KEYS_PER_SORT = before
    first: dict[int, int] = {}
    assert found.tolist() == [first.setdefault(key, n) for n, key in enumerate(keys)]


def keepers_of(texts: list[str], work: Path, settings: NearDuplicates) -> np.ndarray:
    bands, sketches = make_sketches(texts, settings)
    blocks = iter(np.array_split(sketches, 3))
    keepers = find_near_duplicates(
        lambda band: bands[:, band].copy(), blocks, settings, work, lambda done, total: None
    )
    assert not list(work.iterdir())
    return keepers


def varied(comments: list[str], seed: int) -> list[str]:
    """Each comment, and copies of it with some syllables changed, shuffled."""
    draw = random.Random(seed)
    syllables = "".join(comments)
    texts = []
    for comment in comments:
        texts.append(comment)
        for _ in range(draw.randint(0, 3)):
            copy = list(comment)
            for _ in range(draw.randint(1, 1 + len(copy) // 12)):
                copy[draw.randrange(len(copy))] = draw.choice(syllables)
            texts.append("".join(copy))
    draw.shuffle(texts)
    return texts


@pytest.mark.parametrize("block", [50_000, 97])
def test_near_duplicates_agree_with_comparing_every_pair(
    comments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(near_duplicates, "_TEXTS_PER_MATCHING", block)
    texts = varied([comment for comment in comments if len(comment) >= 10][:2_000], seed=1)
    keepers = keepers_of(texts, tmp_path, NearDuplicates())
    kept = keepers == np.arange(len(texts))
    assert kept[keepers].all() and (keepers <= np.arange(len(texts))).all()
    grams = [{text[i : i + 3] for i in range(len(text) - 2)} for text in texts]
    holders = defaultdict(list)
    similar_ones = similar_found = 0
    for index, own in enumerate(grams):
        shared: dict[int, int] = defaultdict(int)
        for gram in own:
            for other in holders[gram]:
                shared[other] += 1
        nearest = max(
            (n / (len(own) + len(grams[other]) - n) for other, n in shared.items() if kept[other]),
            default=0.0,
        )
        if nearest < 0.65:  # four standard errors below the threshold
            assert kept[index], texts[index]
        if nearest >= 0.9:
            similar_ones += 1
            similar_found += not kept[index]
        for gram in own:
            holders[gram].append(index)
    assert similar_ones > 50
    assert similar_found >= 0.97 * similar_ones


def test_short_and_equal_texts(tmp_path: Path) -> None:
    texts = ["가", "나", "가", "가나다", "가나라", "가나다", "가나", "a" * 30, "a" * 29]
    # The last two have the same single n-gram.
    assert keepers_of(texts, tmp_path, NearDuplicates()).tolist() == [0, 1, 0, 3, 4, 3, 6, 7, 7]
    assert keepers_of([], tmp_path, NearDuplicates()).tolist() == []


def test_a_sketch_does_not_depend_on_the_texts_beside_it(comments: list[str]) -> None:
    whole = make_sketches(comments[:50], NearDuplicates())
    single = make_sketches(comments[7:8], NearDuplicates())
    assert all(np.array_equal(a[7:8], b) for a, b in zip(whole, single, strict=True))


@pytest.mark.parametrize("wrong", [{"threshold": 0.5}, {"threshold": 80}, {"ngram_characters": 0}])
def test_bounds(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"found {next(iter(wrong.values()))}"):
        NearDuplicates(**wrong)  # type: ignore[arg-type]
