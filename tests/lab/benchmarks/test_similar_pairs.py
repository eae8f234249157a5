"""Pairs of similar texts, exactly."""

from itertools import combinations
from random import Random

from lab.benchmarks.text.similar_pairs import find_similar_pairs


def test_similarity_is_the_jaccard_of_trigrams_without_spaces() -> None:
    # abc bcd cde | bcd cde def: two of four
    assert find_similar_pairs(["ab cde", "bcdef", "가나다"], 0.1) == [(0.5, 0, 1)]


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
