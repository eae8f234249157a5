"""Words that stand in the texts of one label more than in those of the others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malmoi.text.words import find_keywords

# A second or two (measured); more texts would hardly change the first words.
MAX_TEXTS = 10_000
# A word of a single text says nothing about a label (assumption).
_MIN_TEXTS = 2
# Below, labels that made no difference would give as much in one word of twenty.
_MIN_SCORE = 3.84


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelKeyword:
    """A word in its dictionary form.

    Attributes:
        word: verbs and adjectives with 다.
        texts: of the label's analysed texts that have it.
        score: log-likelihood ratio, 3.84 or more; 10.8 has a chance of 0.001 if labels made no
            difference (chi-squared, one degree of freedom).
    """

    word: str
    texts: int
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelKeywords:
    """The words of one label.

    Attributes:
        keywords: by falling score.
        texts: texts of the label that were analysed.
    """

    keywords: list[LabelKeyword]
    texts: int


def label_keywords(
    texts: Sequence[str],
    label_ids: ArrayLike,
    labels: int,
    *,
    count: int = 15,
    max_texts: int = MAX_TEXTS,
) -> list[LabelKeywords]:
    """The most characteristic nouns, verbs and adjectives of each label.

    Ranked by the log-likelihood ratio of having the word, the label's texts against all others
    (Dunning, "Accurate Methods for the Statistics of Surprise and Coincidence", Computational
    Linguistics 1993). Frequency alone would list the same words for every label, a plain ratio
    the rarest.

    Args:
        texts: N.
        label_ids: [N], 0 to `labels` - 1.
        labels: K.
        count: words a label at most.
        max_texts: to analyse in all; beyond, each label's are taken at even distances.

    Returns:
        K of them.
    """
    ids = np.asarray(label_ids, dtype=np.int64)
    counts: list[dict[str, int]] = []
    analysed: list[int] = []
    for label in range(labels):
        places = _evenly(np.flatnonzero(ids == label), max(1, max_texts // labels))
        found = find_keywords((texts[place] for place in places), count=1 << 62)
        words: dict[str, int] = {}
        for keyword in found.keywords:
            # A noun may end in 다 like a verb's dictionary form does (바다); rare, so not added up.
            words[keyword.word] = max(words.get(keyword.word, 0), keyword.texts)
        counts.append(words)
        analysed.append(found.texts)
    total: dict[str, int] = {}
    for words in counts:
        for word, number in words.items():
            total[word] = total.get(word, 0) + number
    return [
        LabelKeywords(keywords=_rank(words, total, number, sum(analysed))[:count], texts=number)
        for words, number in zip(counts, analysed, strict=True)
    ]


def _evenly(places: NDArray[np.int64], most: int) -> list[int]:
    if len(places) <= most:
        return [int(place) for place in places]
    return [int(place) for place in places[np.linspace(0, len(places) - 1, most).astype(int)]]


def _rank(
    words: dict[str, int], total: dict[str, int], texts: int, all_texts: int
) -> list[LabelKeyword]:
    """The label's words that it has more often than the others, by falling score."""
    ranked = []
    for word, number in words.items():
        expected = total[word] * texts / all_texts
        if number < _MIN_TEXTS or number <= expected:
            continue
        score = _log_likelihood_ratio(number, texts, total[word], all_texts)
        if score >= _MIN_SCORE:
            ranked.append(LabelKeyword(word=word, texts=number, score=score))
    return sorted(ranked, key=lambda keyword: (-keyword.score, keyword.word))


def _log_likelihood_ratio(number: int, texts: int, total: int, all_texts: int) -> float:
    """G squared of the 2 x 2 table of having a word and having a label."""
    ratio = 0.0
    for observed, row, column in (
        (number, texts, total),
        (texts - number, texts, all_texts - total),
        (total - number, all_texts - texts, total),
        (all_texts - texts - total + number, all_texts - texts, all_texts - total),
    ):
        if observed > 0:
            ratio += 2 * observed * math.log(observed * all_texts / (row * column))
    return ratio
