"""What Kiwi makes of texts, eojeol by eojeol, so that an eojeol that came before costs nothing.

An eojeol by itself gets the morphemes that it gets in its sentence, nearly always; a classifier
of such morphemes is as good (docs/decisions).

Legend: N texts, M n-grams of all texts.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import xxhash

from malmoi.inference.linear.bags import Bags, Keys, counted

# Eojeols that are remembered; the oldest are forgotten. About 100 MB (computed: 400 bytes each).
_MOST_EOJEOLS = 250_000
# That a classifier keeps of those that it learnt from: about a megabyte.
_MOST_KEPT = 50_000
# Odd, so that multiplying loses nothing; 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


# (hash of the name, Kiwi's id or -1) of each morpheme of an eojeol.
_Morphemes = tuple[tuple[int, int], ...]


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


@dataclass(frozen=True, kw_only=True)
class EojeolTable:
    """Eojeols and their morphemes, to be kept with a classifier; both as hashes.

    Attributes:
        words: uint64 [W], of the eojeols.
        sizes: uint16 [W], morphemes of each.
        places: uint32, of all morphemes, eojeol by eojeol, their places in the next two.
        hashes: uint64 [U], of the different morphemes.
        ids: int32 [U], Kiwi's; -1 of those without a vector.
    """

    words: np.ndarray
    sizes: np.ndarray
    places: np.ndarray
    hashes: np.ndarray
    ids: np.ndarray


class EojeolReader:
    """Remembers what Kiwi made of eojeols; safe to use from several threads."""

    def __init__(self, table: EojeolTable | None = None) -> None:
        """Kiwi is loaded when the first eojeol comes that is not in `table`."""
        self._known: dict[int, _Morphemes] = {}
        self._lock = threading.Lock()
        if table is not None:
            pairs = list(zip(table.hashes.tolist(), table.ids.tolist(), strict=True))
            every = [pairs[place] for place in table.places.tolist()]
            ends = np.cumsum(table.sizes.astype(np.int64)).tolist()
            starts = [0, *ends[:-1]] if ends else []
            for word, start, end in zip(table.words.tolist(), starts, ends, strict=True):
                self._known[word] = tuple(every[start:end])

    def __call__(self, texts: Sequence[str]) -> MorphemeTexts:
        """Morphemes of N texts."""
        eojeols = [text.split() for text in texts]
        words = [[_hash(word) for word in row] for row in eojeols]
        with self._lock:
            new = {
                word: eojeol
                for row, spelt in zip(words, eojeols, strict=True)
                for word, eojeol in zip(row, spelt, strict=True)
                if word not in self._known
            }
            self._read(new)
            found = [[self._known[word] for word in row] for row in words]
            self._forget(words)
        sizes = [sum(map(len, row)) for row in found]
        every = [pair for row in found for word in row for pair in word]
        rows = np.repeat(np.arange(len(texts)), sizes)
        single = np.array([hash_ for hash_, _ in every], dtype=np.uint64)
        ids = np.array([id_ for _, id_ in every], dtype=np.int64)
        together = rows[1:] == rows[:-1]
        pairs = (single[:-1] * _GOLDEN + single[1:])[together]
        return MorphemeTexts(
            keys=Keys(
                keys=np.concatenate([single, pairs]),
                rows=np.concatenate([rows, rows[1:][together]]),
                texts=len(texts),
            ),
            ids=ids[ids >= 0],
            id_rows=rows[ids >= 0],
        )

    def table_of(self, texts: Sequence[str], most: int = _MOST_KEPT) -> EojeolTable:
        """The `most` eojeols that stand most often in texts."""
        counts = Counter(chain.from_iterable(text.split() for text in texts))
        spelt = {_hash(eojeol): eojeol for eojeol, _ in counts.most_common(most)}
        with self._lock:
            self._read({word: each for word, each in spelt.items() if word not in self._known})
            known = {word: self._known[word] for word in spelt}
            self._forget([list(spelt)])
        place: dict[tuple[int, int], int] = {}
        places = [place.setdefault(pair, len(place)) for word in known.values() for pair in word]
        return EojeolTable(
            words=np.array(list(known), dtype=np.uint64),
            sizes=np.array([len(word) for word in known.values()], dtype=np.uint16),
            places=np.array(places, dtype=np.uint32),
            hashes=np.array([hash_ for hash_, _ in place], dtype=np.uint64),
            ids=np.array([id_ for _, id_ in place], dtype=np.int32),
        )

    def _read(self, new: dict[int, str]) -> None:
        if not new:
            return
        from malmoi.text.morphemes import eojeol_morphemes  # Kiwi: seconds, and 0.5 GiB

        for word, morphemes in zip(new, eojeol_morphemes(list(new.values())), strict=True):
            self._known[word] = tuple((_hash(name), id_) for name, id_ in morphemes)

    def _forget(self, used: Sequence[Sequence[int]]) -> None:
        """Keep those that were used last, once there are too many."""
        spare = len(self._known) - _MOST_EOJEOLS
        if spare <= 0:
            return
        for word in dict.fromkeys(chain.from_iterable(used)):
            self._known[word] = self._known.pop(word)
        for word in list(self._known)[:spare]:
            del self._known[word]


def _hash(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))
