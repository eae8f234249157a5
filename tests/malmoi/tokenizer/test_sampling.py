"""The training sample: bounded, even, repeatable; and how words are counted."""

import random

import pytest

from malmoi.errors import InputError
from malmoi.text import morphemes
from malmoi.tokenizer.sampling import MORPHEME_MARK, count_words, mark_morphemes, sample_evenly


def texts(count: int) -> list[str]:
    return [f"{number:06d} 번째 글" for number in range(count)]


def test_everything_is_taken_if_it_fits() -> None:
    sample = sample_evenly(texts(100), max_bytes=10_000)
    assert sample.texts == texts(100)
    assert sample.read == 100


def test_a_large_corpus_is_drawn_evenly_within_the_bound_and_in_order() -> None:
    whole = texts(20_000)
    sample = sample_evenly(whole, max_bytes=50_000)
    size = sum(len(text.encode()) + 1 for text in sample.texts)
    assert 0.8 * 50_000 < size <= 50_000
    assert sample.texts == sorted(sample.texts)
    # Even: each quarter of the corpus gives a quarter of the 2,400 texts, within 5 deviations.
    quarter = [sum(1 for t in sample.texts if int(t[:6]) // 5_000 == part) for part in range(4)]
    expected = len(sample.texts) / 4
    assert all(abs(count - expected) < 5 * expected**0.5 for count in quarter)


def test_the_same_seed_draws_the_same_and_another_draws_others() -> None:
    first, again = (sample_evenly(texts(5_000), max_bytes=9_000) for _ in range(2))
    assert first == again
    other = sample_evenly(texts(5_000), max_bytes=9_000, seed=1)
    assert other.sha256 != first.sha256


def test_long_and_short_texts_are_as_likely() -> None:
    source = random.Random(0)
    mixed = ["가" * source.choice((5, 50)) for _ in range(20_000)]
    sample = sample_evenly(mixed, max_bytes=200_000)
    short = sum(len(text) == 5 for text in sample.texts) / len(sample.texts)
    assert 0.45 < short < 0.55


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="sample of 1 byte or more, found 0"):
        sample_evenly(["가"], max_bytes=0)


def test_words_are_counted_and_long_ones_cut() -> None:
    counts = count_words(["가 나 가", "가\t" + "라" * 250])
    assert counts == {"가": 3, "나": 1, "라" * 100: 2, "라" * 50: 1}


def test_marks_stand_between_morphemes_and_failures_are_counted() -> None:
    broken = "가\ud800나"
    marked, failed = mark_morphemes(["학교에서 갔다", broken, f"가{MORPHEME_MARK}나"])
    assert marked[0].replace(MORPHEME_MARK, "|") == "학교|에서 갔|다"
    assert marked[1] == broken
    assert failed == 1
    # A mark that stands in a text is no mark.
    places = morphemes.morpheme_boundaries("가나")
    assert marked[2].count(MORPHEME_MARK) == len(places)
