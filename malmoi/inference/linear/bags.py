"""Texts as bags of n-grams: 64-bit keys, found and counted in bulk by numpy.

Legend: N texts, M n-grams of all texts, V n-grams of a vocabulary, E different ones of every text,
K labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SPACE = 32
# Characters beyond 16 bits (emoji, rare Hanja) share the 6,400 codes of private use.
_PRIVATE_USE, _PRIVATE_CODES = 0xE000, 0x1900
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
# Of four characters, where one, two, three or all of them are an n-gram.
_BITS_LEFT_OUT = np.array([48, 32, 16, 0], dtype=np.uint64)


@dataclass(frozen=True, kw_only=True)
class Keys:
    """N-grams of N texts, repeats included.

    Attributes:
        keys: uint64 [M].
        rows: int32 [M], the text of each; in no order.
        texts: N.
    """

    keys: np.ndarray
    rows: np.ndarray
    texts: int


@dataclass(frozen=True, kw_only=True)
class Bags:
    """How often the n-grams of a vocabulary stand in N texts.

    Attributes:
        rows: int64 [E], rising.
        columns: int64 [E], places in the vocabulary, rising in each row.
        counts: float32 [E].
        texts: N.
        size: V.
    """

    rows: np.ndarray
    columns: np.ndarray
    counts: np.ndarray
    texts: int
    size: int


def character_keys(texts: Sequence[str]) -> Keys:
    """All n-grams of 1 to 4 characters inside the eojeols of N texts, spaces beside them included.

    As scikit-learn's `char_wb`, but for n-grams of spaces alone, and exact: four characters of 16
    bits fill a key.
    """
    lines = [" ".join(text.lower().split()) for text in texts]
    joined = f" {'  '.join(lines)} "
    if len(joined.encode("utf-16-be", "surrogatepass")) > 2 * len(joined):
        joined = _BEYOND.sub(_in_private_use, joined)
    encoded = (joined + "   ").encode("utf-16-be", "surrogatepass")
    letter = np.frombuffer(encoded, dtype=">u2") != _SPACE
    size = len(joined)
    # The four characters from each one on, as they stand in memory.
    fours = np.ndarray((size,), dtype=">u8", buffer=encoded, strides=(2,)).astype(np.uint64)
    first, second, third = letter[:size], letter[1 : size + 1], letter[2 : size + 2]
    # An n-gram has no space but at its ends, and so nothing of the next text; and some letter.
    shorter, places = np.array([first, first | second, second, second & third]).nonzero()
    sizes = [len(line) + 2 for line in lines]
    return Keys(
        keys=fours[places] >> _BITS_LEFT_OUT[shorter],
        rows=np.arange(len(lines), dtype=np.int32).repeat(sizes)[places],
        texts=len(lines),
    )


def _in_private_use(character: re.Match[str]) -> str:
    return chr(_PRIVATE_USE + ord(character[0]) % _PRIVATE_CODES)


def vocabulary_of(keys: Keys, least: int) -> np.ndarray:
    """The keys that stand at least `least` times in all texts together, rising; uint64 [V]."""
    found, counts = np.unique(keys.keys, return_counts=True)
    return found[counts >= least]


def count(keys: Keys, vocabulary: np.ndarray) -> Bags:
    """Count the n-grams of a vocabulary, uint64 [V] rising, in every text."""
    rows, places = known_ngrams(keys, vocabulary)
    return counted(rows, places, keys.texts, len(vocabulary))


def known_ngrams(keys: Keys, vocabulary: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row of each n-gram that stands in a vocabulary, and its place there."""
    places = np.searchsorted(vocabulary, keys.keys)
    known = vocabulary.take(places, mode="clip") == keys.keys if len(vocabulary) else places < 0
    return keys.rows[known], places[known]


def counted(rows: np.ndarray, columns: np.ndarray, texts: int, size: int) -> Bags:
    """Bags of single n-grams, `rows` and `columns` int [M] in any order."""
    cells = np.sort(rows.astype(np.int64) * size + columns)
    bounds = _bounds(cells)
    row, column = np.divmod(cells[bounds[:-1]], max(1, size))
    return Bags(
        rows=row,
        columns=column,
        counts=(bounds[1:] - bounds[:-1]).astype(np.float32),
        texts=texts,
        size=size,
    )


def _bounds(values: np.ndarray) -> np.ndarray:
    """Where equal values [n] that stand side by side begin, and n; int64."""
    new = np.ones(len(values) + 1, dtype=bool)
    np.not_equal(values[1:], values[:-1], out=new[1:-1])
    return new.nonzero()[0]


def taken(bags: Bags, chosen: np.ndarray) -> Bags:
    """The bags of some texts; `chosen`: int64 [n], rising."""
    new_row = np.full(bags.texts, -1, dtype=np.int64)
    new_row[chosen] = np.arange(len(chosen))
    rows = new_row[bags.rows]
    kept = rows >= 0
    return Bags(
        rows=rows[kept],
        columns=bags.columns[kept],
        counts=bags.counts[kept],
        texts=len(chosen),
        size=bags.size,
    )


def weighted(bags: Bags, idf: np.ndarray) -> np.ndarray:
    """(1 + ln count) * idf of every n-gram of every text; float32 [E]."""
    return (1 + np.log(bags.counts)) * idf[bags.columns]


def row_sums(values: np.ndarray, bags: Bags) -> np.ndarray:
    """`values` [E] or [E, K] added up by text, [N] or [N, K] float32; 0 of a text without any."""
    sums = np.zeros((bags.texts, *values.shape[1:]), dtype=np.float32)
    if len(values):
        starts = _bounds(bags.rows)[:-1]
        sums[bags.rows[starts]] = np.add.reduceat(values, starts, axis=0)
    return sums
