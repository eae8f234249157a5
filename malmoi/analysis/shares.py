"""Shares of labels with 95% intervals that hold although a model gave most of the labels.

People's labels of texts that were drawn by chance say how often the model is right; its labels of
all texts say how many there are. With a label that is there or not, prediction-powered inference
whose weight is tuned (PPI++, Angelopoulos, Duchi & Zrnic 2023) is the estimate by strata of what
the model said: of those that it gave the label, and of the others, the share that people give it.
Each stratum has the score interval of Wilson (1927), which is valid for few texts too, and both
are put together by the method of variance estimates recovery (Zou & Donner 2008). Texts that people
have read are known, so the interval of a part that they read whole has no width.

Legend: N texts, K labels, G parts (all texts; a product each; a week each).
"""

import math
from dataclasses import dataclass

import numpy as np

Z_95 = 1.959964
# Draws of the confusion of a model, for intervals without labels of people.
_DRAWS = 400


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """What was said of texts.

    Attributes:
        said: bool [N, K], what the model gave; all False without a model.
        given: bool [N, K], what people gave; counts where `drawn`.
        drawn: bool [N], texts that people read, drawn by chance.
        confusion: texts by given (row) and predicted label, [K, K], out of fold; None: not known.
    """

    said: np.ndarray
    given: np.ndarray
    drawn: np.ndarray
    confusion: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Of each part and label; all float64 [G, K].

    Attributes:
        share: best guess.
        low: of its 95% interval; not a number where nothing is known but what the model says.
        high: of the same.
        said: the share that the model says.
        texts: int64 [G].
        drawn: int64 [G], texts that people read.
    """

    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    said: np.ndarray
    texts: np.ndarray
    drawn: np.ndarray

    def of(self, part: int) -> "Shares":
        """One part alone."""
        return Shares(**{name: found[[part]] for name, found in vars(self).items()})


def wilson(
    right: np.ndarray, texts: np.ndarray, quantile: float = Z_95
) -> tuple[np.ndarray, np.ndarray]:
    """The score interval of shares; 0 to 1 where there are no texts.

    Args:
        right: texts that count, of any shape.
        texts: all, of the same shape.
        quantile: of the normal distribution.
    """
    n = np.maximum(texts, 1e-12)
    share, square = right / n, quantile**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    spread = np.maximum(share * (1 - share), 0) / n + square / (4 * n**2)
    half = quantile * np.sqrt(spread) / (1 + square / n)
    low = np.where(texts > 0, np.maximum(middle - half, 0), 0.0)
    return low, np.where(texts > 0, np.minimum(middle + half, 1), 1.0)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Texts of each part, label and whether the model gave it; all float64 [G, K, 2].

    Attributes:
        texts: all.
        read: those that people read.
        right: of those, the ones that people gave the label.
    """

    texts: np.ndarray
    read: np.ndarray
    right: np.ndarray

    def others(self) -> "Counts":
        """For each part, all other parts together."""
        every = [found.sum(axis=0) - found for found in (self.texts, self.read, self.right)]
        return Counts(texts=every[0], read=every[1], right=every[2])


def counted(labelling: Labelling, parts: np.ndarray, count: int) -> Counts:
    """Count the texts of each part.

    Args:
        labelling: of N texts.
        parts: int64 [N], 0 to G - 1, or -1 of texts in none.
        count: G.
    """
    inside = parts >= 0
    drawn = labelling.drawn[inside]
    codes = parts[inside]
    labels = labelling.said.shape[1]
    found = np.zeros((3, count, labels, 2))
    for label in range(labels):
        cell = 2 * codes + labelling.said[inside, label]
        right = drawn & labelling.given[inside, label]
        for place, chosen in enumerate((slice(None), drawn, right)):
            found[place, :, label] = np.bincount(cell[chosen], minlength=2 * count).reshape(-1, 2)
    return Counts(texts=found[0], read=found[1], right=found[2])


def shares(counts: Counts, confusion: np.ndarray | None = None) -> Shares:
    """The share of each label in each part.

    Args:
        counts: of the parts.
        confusion: of `Labelling`; counts where people have read no text of any part.
    """
    texts, read, right = counts.texts, counts.read, counts.right
    total = texts.sum(axis=2)
    weight = texts / np.maximum(total, 1)[:, :, None]
    said = weight[:, :, 1]
    if not read.any():
        unknown = np.full(said.shape, np.nan)
        share, low, high = said, unknown, unknown
        if confusion is not None:
            share, low, high = _by_confusion(said, total.max(axis=1, initial=0), confusion)
    else:
        low, high = _strata_interval(texts, read, right)
        # A guess by what people say in all parts lies nearly always inside.
        share = np.clip((weight * _given(read, right)).sum(axis=2), low, high)
    return Shares(
        share=share,
        low=low,
        high=high,
        said=said,
        texts=total.max(axis=1, initial=0).astype(np.int64),
        drawn=read.sum(axis=2).max(axis=1, initial=0).astype(np.int64),
    )


def _given(read: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How often people give the label, in each stratum of each part; [G, K, 2].

    Where they read few texts of a part, what they say of such texts in all parts counts like four
    more: so far Wilson's interval reaches, and a share of 0 of two texts is no guess. Where they
    read none anywhere, what the model said.
    """
    every, hits = read.sum(axis=0), right.sum(axis=0)
    overall = np.where(every > 0, hits / np.maximum(every, 1), np.array([0.0, 1.0]))
    return np.asarray((right + Z_95**2 * overall) / (read + Z_95**2))


def _strata_interval(
    texts: np.ndarray, read: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of the sum over strata, [G, K]."""
    found = np.where(read > 0, right / np.maximum(read, 1e-12), _given(read, right))
    weight = texts / np.maximum(texts.sum(axis=2, keepdims=True), 1)
    low, high = wilson(right, read)
    # Of a stratum that was read whole nothing is left to guess.
    unread = np.sqrt(np.clip(1 - read / np.maximum(texts, 1), 0, 1))
    share = (weight * found).sum(axis=2)
    below = np.sqrt(((weight * (found - low) * unread) ** 2).sum(axis=2))
    above = np.sqrt(((weight * (high - found) * unread) ** 2).sum(axis=2))
    return np.clip(share - below, 0, 1), np.clip(share + above, 0, 1)


def _by_confusion(
    said: np.ndarray, texts: np.ndarray, confusion: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Adjusted counts (Forman 2008) by the confusion of texts that the model had not learnt.

    The shares p that would make the model say what it says: q = C' p, with C the share of each
    given label that it predicts as each. The interval is that of draws of C (Dirichlet, the
    counts and one half) and of q (Dirichlet, the counts and one text in all), for of few texts the
    model may err more or less often by chance. It holds where the model errs here as it did there,
    which nobody knows.
    """
    rng = np.random.default_rng(0)
    draws = rng.standard_gamma(confusion + 0.5, (_DRAWS, *confusion.shape))
    draws[0] = confusion + 0.5
    rates = draws / draws.sum(axis=2, keepdims=True)
    says = rng.standard_gamma(said * texts[:, None] + 1 / said.shape[1], (_DRAWS, *said.shape))
    says /= says.sum(axis=2, keepdims=True)
    says[0] = said
    inverse = np.linalg.pinv(rates.transpose(0, 2, 1))
    solved = (inverse @ says.transpose(0, 2, 1)).transpose(0, 2, 1)
    solved = np.clip(solved, 0, None)
    solved /= np.maximum(solved.sum(axis=2, keepdims=True), 1e-12)
    low, high = np.quantile(solved, (0.025, 0.975), axis=0)
    return solved[0], np.minimum(low, solved[0]), np.maximum(high, solved[0])


def texts_to_halve(labelling: Labelling) -> tuple[int, float, float] | None:
    """How many more texts drawn by chance halve the widest interval of all texts.

    Returns:
        Their number, half the width now, and half the width then; None where people have read
        none, or all.
    """
    every = len(labelling.drawn)
    counts = counted(labelling, np.zeros(every, dtype=np.int64), 1)
    texts, read, right = counts.texts, counts.read, counts.right
    n = read[0, 0].sum()
    if not 0 < n < every:
        return None
    found = _given(read, right)

    def half(times: float) -> float:
        some = np.minimum(read * times, texts)
        low, high = _strata_interval(texts, some, found * some)
        return float((high - low).max() / 2)

    now, least, most = half(1.0), 1.0, every / n
    # A stratum without a text that people read grows with the others.
    read = np.maximum(read, np.where(texts > 0, 1e-3, 0))
    for _ in range(40):
        middle = (least + most) / 2
        least, most = (middle, most) if half(middle) > now / 2 else (least, middle)
    more = math.ceil(n * (most - 1))
    return more, now, half(most)


def difference(
    first: Shares, second: Shares
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """How much higher shares of the first are, with 95% intervals and p-values; all [G, K].

    By the same recovery of variances; both are of different texts.
    """
    gap = first.share - second.share
    below = np.hypot(first.share - first.low, second.high - second.share)
    above = np.hypot(first.high - first.share, second.share - second.low)
    # The side of the interval that no difference lies on.
    toward = np.maximum(np.where(gap > 0, below, above), 1e-9)
    erfc = np.vectorize(math.erfc, otypes=[float])
    return gap, gap - below, gap + above, erfc(np.abs(gap) / toward * Z_95 / math.sqrt(2))
