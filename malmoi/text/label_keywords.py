"""Words that stand in some texts more than in others: of a label, a product, a theme."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malmoi.text.words import content_words

# A second or two (measured); more texts would hardly change the first words.
MAX_TEXTS = 10_000
# A word of a single text says nothing about a label (assumption).
_MIN_TEXTS = 2
# Below, labels that made no difference would give as much in one word of forty.
_MIN_SCORE = 1.96
# Words that the prior weighs as much as, of a few texts half as much as all of them: it pulls the
# log-odds of rare words to 0 (assumption).
_PRIOR_WORDS = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelKeyword:
    """A word in its dictionary form.

    Attributes:
        word: verbs and adjectives with 다.
        texts: of the label's analysed texts that have it.
        score: log-odds over their standard error, 1.96 or more; 3.3 has a chance of 0.001 if
            labels made no difference.
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


@dataclass(frozen=True, kw_only=True)
class WordTable:
    """Which words N texts have.

    Attributes:
        words: V of them, nouns, verbs and adjectives in their dictionary form.
        ids: int64 [M], the words of all texts, each once a text.
        rows: int64 [M], the text of each.
        texts: N.
    """

    words: Sequence[str]
    ids: np.ndarray
    rows: np.ndarray
    texts: int

    def scores(self, inside: np.ndarray, outside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted log-odds of each word with an informative Dirichlet prior.

        Monroe, Colaresi & Quinn, "Fightin' Words" (Political Analysis 2008), equations 15 to 22;
        counted once a text, so that one text that repeats a word does not carry it. The prior is
        how often a word stands in all texts.

        Args:
            inside: bool [N], the texts whose words are wanted.
            outside: bool [N], those that they are compared with.

        Returns:
            Scores float64 [V], positive for words of `inside`; and how many texts of `inside` have
            each, int64 [V].
        """
        size = len(self.words)
        mine = np.bincount(self.ids[inside[self.rows]], minlength=size)
        others = np.bincount(self.ids[outside[self.rows]], minlength=size)
        every = np.bincount(self.ids, minlength=size)
        weight = min(_PRIOR_WORDS, every.sum() / 2)
        prior = every * (weight / max(1, every.sum()))

        def log_odds(counts: np.ndarray) -> np.ndarray:
            rest = counts.sum() + weight - counts - prior
            return np.asarray(np.log((counts + prior) / np.maximum(rest, 1e-9)))

        spread = np.sqrt(1 / (mine + prior) + 1 / (others + prior))
        return (log_odds(mine) - log_odds(others)) / spread, mine

    def standing_out(
        self, inside: np.ndarray, outside: np.ndarray | None = None, count: int = 15
    ) -> list[LabelKeyword]:
        """The words that some texts have more than others, by falling score.

        Args:
            inside: bool [N].
            outside: bool [N]; None: all others.
            count: words at most.
        """
        if not self.words:
            return []
        scores, texts = self.scores(inside, ~inside if outside is None else outside)
        wanted = np.flatnonzero((scores >= _MIN_SCORE) & (texts >= _MIN_TEXTS))
        ranked = sorted(wanted.tolist(), key=lambda place: (-scores[place], self.words[place]))
        return [
            LabelKeyword(
                word=self.words[place], texts=int(texts[place]), score=float(scores[place])
            )
            for place in ranked[:count]
        ]


def word_table(texts: Iterable[str]) -> WordTable:
    """Read the words of N texts, about a tenth of a millisecond a text."""
    known: dict[str, int] = {}
    ids: list[int] = []
    rows: list[int] = []
    number = 0
    for number, text in enumerate(texts, start=1):
        words = sorted({word for word, _ in content_words(text)})
        ids += [known.setdefault(word, len(known)) for word in words]
        rows += [number - 1] * len(words)
    return WordTable(
        words=list(known),
        ids=np.array(ids, dtype=np.int64),
        rows=np.array(rows, dtype=np.int64),
        texts=number,
    )


def label_keywords(
    texts: Sequence[str],
    label_ids: ArrayLike,
    labels: int,
    *,
    count: int = 15,
    max_texts: int = MAX_TEXTS,
) -> list[LabelKeywords]:
    """The most characteristic nouns, verbs and adjectives of each label (`WordTable.scores`).

    Frequency alone would list the same words for every label, a plain ratio the rarest.

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
    most = max(1, max_texts // max(1, labels))
    places = [one for label in range(labels) for one in _evenly(np.flatnonzero(ids == label), most)]
    table, chosen = word_table(texts[place] for place in places), ids[places]
    return [
        LabelKeywords(
            keywords=table.standing_out(chosen == label, count=count),
            texts=int((chosen == label).sum()),
        )
        for label in range(labels)
    ]


def _evenly(places: NDArray[np.int64], most: int) -> list[int]:
    if len(places) <= most:
        return [int(place) for place in places]
    return [int(place) for place in places[np.linspace(0, len(places) - 1, most).astype(int)]]
