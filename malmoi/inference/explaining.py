"""Which words carried a decision: each word (eojeol) is left out once, and the rest predicted.

The weight of a word is what the decision loses without it (Li et al. 2016, "Understanding Neural
Networks through Representation Erasure", section 3). It asks the whole predictor, so it holds for
every engine and for whatever else has a part in the answer; gradient times input needs torch and
names words that matter less (lab/benchmarks/results/explanations.json).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import takewhile

from malmoi.errors import InputError
from malmoi.inference.prediction import LabelsPrediction, Prediction, ValuePrediction

# Characters looked at first, then twice as many until the model reads no further.
_FIRST_CHARACTERS = 1000
# Words that are left out in turn.
_MOST_WORDS = 512
# Characters of all texts that are predicted for one explanation, which bounds its time.
_MOST_CHARACTERS = 2_000_000
# A probability of 0 or 1 has no log-odds; float32 holds no nearer one.
_LEAST = 1e-9

# What is printed of an explanation.
_SHOWN_WORDS = 5
# Colours of the pages of k-fold, for the label and against it.
_FOR, _AGAINST = "31, 111, 235", "214, 90, 24"

_words = re.compile(r"\S+").finditer
# A text, or the two texts of a pair.
Texts = tuple[str, ...]
PredictAll = Callable[[Sequence[Texts]], list[Prediction]]


@dataclass(frozen=True)
class ExplainedWord:
    """A word between spaces.

    Attributes:
        text: as it was written.
        start, end: its place in the text as it was given, in characters.
        weight: how much lower the explained label's log-odds are without it, or the value; below 0
            where the word spoke against the label.
        second: whether it is a word of the second text of a pair.
    """

    text: str
    start: int
    end: int
    weight: float
    second: bool = False


@dataclass(frozen=True, repr=False)
class Explanation:
    """What carried a prediction.

    Attributes:
        label: whose weights they are; of a value its name.
        score: its probability, 0 to 1, or the value.
        words: in their order, the first text before the second one.
        cut: whether the text has words that are not explained: an encoder does not read them, or
            there are more than `explain` leaves out in turn.
        predicted: the label that the text gets, several joined, "" where none reaches its
            threshold; of a value its name.
    """

    label: str
    score: float
    words: tuple[ExplainedWord, ...]
    cut: bool
    predicted: str

    def __repr__(self) -> str:
        """The label, and the words that weigh most."""
        heaviest = sorted(self.words, key=lambda word: -abs(word.weight))[:_SHOWN_WORDS]
        said = ", ".join(f"{word.text} {word.weight:+.2f}" for word in heaviest)
        return f"<Explanation of {self.label} ({self.score:.2f}): {said}>"

    def _repr_html_(self) -> str:
        """The words for a notebook: blue for the label, orange against it."""
        largest = max((abs(word.weight) for word in self.words), default=0.0) or 1.0
        shown = [
            f'<span style="background: rgba({_FOR if word.weight > 0 else _AGAINST}, '
            f'{0.6 * abs(word.weight) / largest:.2f}); border-radius: 3px; padding: 1px 3px" '
            f'title="{word.weight:+.2f}">{escape(word.text)}</span>'
            for word in self.words
        ]
        second = sum(not word.second for word in self.words)
        if second < len(shown):
            shown.insert(second, "<br>")
        cut = " …" if self.cut else ""
        return f"<p><b>{escape(self.label)}</b> {self.score:.3f}</p><p>{' '.join(shown)}{cut}</p>"


def explain(
    predict: PredictAll,
    texts: Texts,
    labels: Sequence[str],
    label: str | None,
    *,
    reads_all: bool = False,
) -> Explanation:
    """Explain a prediction by words left out.

    Args:
        texts: the text, or the two texts, as they were written.
        label: the one to explain; None for the likeliest one.
        reads_all: a text counts to its end, as for a linear part, however little an encoder reads.

    Raises:
        InputError: there is no such label.
    """
    if label is not None and label not in labels:
        raise InputError(
            "expected a label of {labels} to explain, found {label!r}",
            labels=", ".join(labels),
            label=label,
        )
    (prediction,) = predict([texts])
    whole = reads_all or not prediction.cut
    read = max(map(len, texts)) if whole else _characters_read(predict, texts)
    if isinstance(prediction, ValuePrediction):
        chosen, score, predicted = labels[0], prediction.value, labels[0]
    else:
        chances = prediction.probabilities
        chosen = label or max(chances, key=chances.__getitem__)
        score, predicted = chances[chosen], prediction.label
    # Without a word, what follows moves up.
    base = tuple(text[: 2 * read] for text in texts)
    words = [
        (number, word)
        for number, text in enumerate(texts)
        for word in takewhile(lambda word: word.start() < read, _words(text))
    ]
    most = min(_MOST_WORDS, max(1, _MOST_CHARACTERS // max(1, sum(map(len, base)))))
    full, *without = (
        _evidence(found, chosen)
        for found in predict([base, *(_without(base, *place) for place in words[:most])])
    )
    explained = tuple(
        ExplainedWord(word[0], word.start(), word.end(), full - left, second=number == 1)
        for (number, word), left in zip(words, without, strict=False)
    )
    cut = (prediction.cut and not reads_all) or len(words) > most
    return Explanation(chosen, score, explained, cut, predicted)


def _characters_read(predict: PredictAll, texts: Texts) -> int:
    """A number of characters that an encoder reads no further than, of texts that it cuts."""
    read = _FIRST_CHARACTERS
    while read < max(map(len, texts)):
        (prediction,) = predict([tuple(text[:read] for text in texts)])
        if prediction.cut:
            break
        read *= 2
    return read


def _without(base: Texts, number: int, word: re.Match[str]) -> Texts:
    left = base[number][: word.start()] + base[number][word.end() :]
    return tuple(left if place == number else text for place, text in enumerate(base))


def _evidence(prediction: Prediction, label: str) -> float:
    """The value, or the log-odds of a label against all others, in nats."""
    if isinstance(prediction, ValuePrediction):
        return prediction.value
    probability = prediction.probabilities[label]
    if isinstance(prediction, LabelsPrediction):
        others = 1 - probability
    else:  # as a sum it keeps its digits where the label is all but certain
        others = sum(p for name, p in prediction.probabilities.items() if name != label)
    return math.log(max(probability, _LEAST)) - math.log(max(others, _LEAST))
