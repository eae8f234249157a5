"""Texts as n-grams of one and two morphemes.

Legend: N texts, M n-grams of all texts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import xxhash

from malmoi.inference.linear.bags import Keys

# Odd, so that multiplying loses nothing; 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Gives the morphemes of a text as hashes, uint64.
ReadMorphemes = Callable[[str], np.ndarray]


def read_morphemes(text: str) -> np.ndarray:
    """Hashes of the morphemes of a clean text by MeCab, uint64; safe to use from several threads.

    The text as a whole: eojeol by eojeol classifiers of reviews lose half a point (docs/decisions).
    """
    from malmoi.text.words import mecab_lines

    return np.frombuffer(b"".join(map(_hashes_of, mecab_lines(text))), dtype=np.uint64)


def morpheme_keys(texts: Sequence[str], read: ReadMorphemes = read_morphemes) -> Keys:
    """All n-grams of N clean texts, N at least 1."""
    return keys_of([read(text) for text in texts])


def keys_of(hashes: Sequence[np.ndarray]) -> Keys:
    """All n-grams of N texts, of the hashes of the morphemes of each, uint64."""
    rows = np.repeat(np.arange(len(hashes)), [len(one) for one in hashes])
    single = np.concatenate(hashes)
    together = rows[1:] == rows[:-1]
    pairs = (single[:-1] * _GOLDEN + single[1:])[together]
    return Keys(
        keys=np.concatenate([single, pairs]),
        rows=np.concatenate([rows, rows[1:][together]]),
        texts=len(hashes),
    )


def hash_of(name: str) -> int:
    """64 bits of a morpheme, `form/TAG`."""
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=100_000)
def _hashes_of(line: str) -> bytes:
    """Of the morphemes in a line of MeCab's, uint64."""
    from malmoi.text.words import morphemes_of

    names = (f"{form}/{tag}" for form, tag in morphemes_of(line))
    return b"".join(hash_of(name).to_bytes(8, sys.byteorder) for name in names)
