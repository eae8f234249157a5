"""N-grams as keys: what they are, held against scikit-learn's analyser, and counted."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from malmoi.inference.linear.bags import (
    Bags,
    character_keys,
    count,
    row_sums,
    taken,
    vocabulary_of,
)


def spelt(key: int) -> str:
    """The characters of a key."""
    found = ""
    while key:
        found, key = chr(key & 0xFFFF) + found, key >> 16
    return found


def ngrams(texts: list[str]) -> list[Counter[str]]:
    found = character_keys(texts)
    counts: list[Counter[str]] = [Counter() for _ in texts]
    for key, row in zip(found.keys.tolist(), found.rows.tolist(), strict=True):
        counts[row][spelt(key)] += 1
    return counts


TEXTS = st.lists(st.text("가나다 abAB.\n\u3000", max_size=12), min_size=1, max_size=4)


@given(TEXTS)
def test_ngrams_are_those_of_scikit_learn(texts: list[str]) -> None:
    analyse = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4)).build_analyzer()
    for text, found in zip(texts, ngrams(texts), strict=True):
        # scikit-learn gives a whole short word once for every length beyond it.
        expected = {gram for gram in analyse(text) if gram.strip()}
        assert set(found) == expected


def test_ngrams_of_a_word() -> None:
    (found,) = ngrams(["나비"])
    assert sorted(found) == sorted(["나", "비", " 나", "나비", "비 ", " 나비", "나비 ", " 나비 "])
    assert set(found.values()) == {1}


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_nothing_has_no_ngrams(text: str) -> None:
    assert ngrams([text, "가"])[0] == Counter()
    assert len(character_keys([text]).keys) == 0


def test_emoji_are_characters() -> None:
    once, twice, other = ngrams(["😀", "😀😀", "😱"])
    assert len(once) == 4 and len(twice) == 7
    assert once != other


def test_counting_leaves_out_what_is_not_in_the_vocabulary() -> None:
    keys = character_keys(["가가 나", "다", "가"])
    vocabulary = vocabulary_of(keys, 3)
    assert [spelt(key) for key in vocabulary.tolist()] == ["가"]
    bags = count(keys, vocabulary)
    assert (bags.rows.tolist(), bags.counts.tolist()) == ([0, 2], [2.0, 1.0])
    assert count(keys, vocabulary[:0]).size == 0


def test_rows_are_taken_and_added_up() -> None:
    bags = Bags(
        rows=np.array([0, 0, 2]),
        columns=np.array([0, 1, 1]),
        counts=np.array([1, 2, 3], dtype=np.float32),
        texts=4,
        size=2,
    )
    assert row_sums(bags.counts, bags).tolist() == [3, 0, 3, 0]
    some = taken(bags, np.array([1, 2]))
    assert (some.rows.tolist(), some.columns.tolist(), some.texts) == ([1], [1], 2)
