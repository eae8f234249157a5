"""Pairs of similar texts, exactly."""

from itertools import combinations
from random import Random

import pytest

from benchmarks.text.similar_pairs import find_similar_pairs
from malmoi.errors import InputError


def test_similarity_is_the_jaccard_of_trigrams_without_spaces() -> None:
    # abc bcd cde | bcd cde def: two of four
    assert find_similar_pairs(["ab cde", "bcdef", "가나다"], 0.1) == [(0.5, 0, 1)]


def test_short_texts_are_compared_whole() -> None:
    assert find_similar_pairs(["굿", "굿 ", "굿굿"], 0.1) == [(1.0, 0, 1)]


def test_as_comparing_all_pairs() -> None:
    random = Random(3)
    texts = ["".join(random.choices("가나", k=random.randint(3, 8))) for _ in range(40)]
    sets = [{text[i : i + 3] for i in range(len(text) - 2)} for text in texts]
    expected = {
        (len(sets[i] & sets[j]) / len(sets[i] | sets[j]), i, j)
        for i, j in combinations(range(40), 2)
    }
    found = find_similar_pairs(texts, 0.3)
    assert set(found) == {pair for pair in expected if pair[0] >= 0.3}
    assert [pair[0] for pair in found] == sorted((pair[0] for pair in found), reverse=True)


@pytest.mark.parametrize("at_least", [0, 1.1, -1])
def test_a_bound_out_of_range(at_least: float) -> None:
    with pytest.raises(
        InputError, match=f"expected a similarity above 0 up to 1, found {at_least}"
    ):
        find_similar_pairs(["가"], at_least)


def test_an_ngram_without_characters() -> None:
    with pytest.raises(InputError, match="expected n-grams of at least 1 character, found 0"):
        find_similar_pairs(["가"], 0.5, 0)
