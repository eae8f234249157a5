"""What Kiwi makes of texts, eojeol by eojeol, so that an eojeol that came before costs nothing.

An eojeol by itself gets the morphemes that it gets in its sentence, nearly always; a classifier
of such morphemes is as good (docs/decisions).

Legend: N texts, M n-grams of all texts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from malmoi.inference.linear.bags import Bags, Keys, counted

# Eojeols that are remembered; the oldest are forgotten. About 100 MB (computed: 400 bytes each).
_MOST_EOJEOLS = 250_000
# Odd, so that multiplying loses nothing; 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, kw_only=True)
class MorphemeTexts:
    """Texts as morphemes.

    Attributes:
        keys: n-grams of one and two morphemes.
        ids: Kiwi's ids of the morphemes that have a vector, int64, of all texts.
        id_rows: int64, the text of each.
    """

    keys: Keys
    ids: np.ndarray
    id_rows: np.ndarray

    def bags_of_ids(self, size: int) -> Bags:
        """How often each of `size` morphemes stands in every text; ids beyond are left out."""
        known = self.ids < size
        return counted(self.id_rows[known], self.ids[known], self.keys.texts, size)


class EojeolReader:
    """Remembers what Kiwi made of eojeols; safe to use from several threads."""

    def __init__(self) -> None:
        """Kiwi is loaded when the first eojeol comes."""
        self._known: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> MorphemeTexts:
        """Morphemes of N texts."""
        eojeols = [text.split() for text in texts]
        with self._lock:
            self._read({word for words in eojeols for word in words if word not in self._known})
            found = [[self._known[word] for word in words] for words in eojeols]
            self._forget()
        hashes = [hash_ for words in found for word in words for hash_ in word[0]]
        sizes = [sum(len(word[0]) for word in words) for words in found]
        rows = np.repeat(np.arange(len(texts)), sizes)
        ids = [id_ for words in found for word in words for id_ in word[1]]
        id_sizes = [sum(len(word[1]) for word in words) for words in found]
        single = np.array(hashes, dtype=np.uint64)
        together = rows[1:] == rows[:-1]
        pairs = (single[:-1] * _GOLDEN + single[1:])[together]
        return MorphemeTexts(
            keys=Keys(
                keys=np.concatenate([single, pairs]),
                rows=np.concatenate([rows, rows[1:][together]]),
                texts=len(texts),
            ),
            ids=np.array(ids, dtype=np.int64),
            id_rows=np.repeat(np.arange(len(texts)), id_sizes),
        )

    def _read(self, new: set[str]) -> None:
        if not new:
            return
        from malmoi.text.morphemes import eojeol_morphemes  # Kiwi: seconds, and 0.5 GiB

        words = sorted(new)
        for word, morphemes in zip(words, eojeol_morphemes(words), strict=True):
            hashes = tuple(_hash(name) for name, _ in morphemes)
            ids = tuple(id_ for _, id_ in morphemes if id_ >= 0)
            self._known[word] = (hashes, ids)

    def _forget(self) -> None:
        spare = len(self._known) - _MOST_EOJEOLS
        if spare > 0:
            for word in list(self._known)[:spare]:
                del self._known[word]


def _hash(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))
