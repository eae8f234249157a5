"""Texts as bags of n-grams: 64-bit keys, found and counted in bulk by numpy.

Legend: N texts, M n-grams of all texts, V n-grams of a vocabulary, E different ones of every text,
K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SPACE = 32
# Characters beyond 16 bits (emoji, rare Hanja) share the 6,400 codes of private use.
_PRIVATE_USE, _PRIVATE_CODES = 0xE000, 0x1900


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
    joined = f" {'  '.join(lines)} ".encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, dtype="<u4")
    if int(codes.max()) > 0xFFFF:
        codes = np.where(codes > 0xFFFF, _PRIVATE_USE + codes % _PRIVATE_CODES, codes)
    codes = codes.astype(np.uint64)
    sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 2
    row_of = np.repeat(np.arange(len(lines), dtype=np.int32), sizes)
    letter = codes != _SPACE
    # An n-gram has no space but at its ends, and so nothing of the next text; and some letter.
    whole = (letter, letter[:-1] | letter[1:], letter[1:-1], letter[1:-2] & letter[2:-1])
    keys, rows = [], []
    packed = codes
    for length, inside in enumerate(whole, 1):
        if length > 1:
            packed = (packed[:-1] << np.uint64(16)) | codes[length - 1 :]
        keys.append(packed[inside])
        rows.append(row_of[: len(packed)][inside])
    return Keys(keys=np.concatenate(keys), rows=np.concatenate(rows), texts=len(lines))


def vocabulary_of(keys: Keys, least: int) -> np.ndarray:
    """The keys that stand at least `least` times in all texts together, rising; uint64 [V]."""
    found, counts = np.unique(keys.keys, return_counts=True)
    return found[counts >= least]


def count(keys: Keys, vocabulary: np.ndarray) -> Bags:
    """Count the n-grams of a vocabulary, uint64 [V] rising, in every text."""
    size = len(vocabulary)
    if not size:
        nothing = np.zeros(0, dtype=np.int64)
        empty = nothing.astype(np.float32)
        return Bags(rows=nothing, columns=nothing, counts=empty, texts=keys.texts, size=0)
    places = np.searchsorted(vocabulary, keys.keys)
    places[places == size] = 0
    known = vocabulary[places] == keys.keys
    return counted(keys.rows[known], places[known], keys.texts, size)


def counted(rows: np.ndarray, columns: np.ndarray, texts: int, size: int) -> Bags:
    """Bags of single n-grams, `rows` and `columns` int [M] in any order."""
    cells, counts = np.unique(rows.astype(np.int64) * size + columns, return_counts=True)
    return Bags(
        rows=cells // max(1, size),
        columns=cells % max(1, size),
        counts=counts.astype(np.float32),
        texts=texts,
        size=size,
    )


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
        starts = np.flatnonzero(np.diff(bags.rows, prepend=-1))
        sums[bags.rows[starts]] = np.add.reduceat(values, starts, axis=0)
    return sums
