"""Near duplicates: MinHash sketches of texts, and the pairs among them, in bounded memory.

Broder 1997, "On the resemblance and containment of documents" (MinHash); Leskovec, Rajaraman,
Ullman, "Mining of Massive Datasets", chapter 3 (banding), http://www.mmds.org.

A text is its set of character n-grams. Of 112 MinHash values, 14 bands of 8 find candidates, as
FineWeb does (Penedo et al. 2024, section 3.4, https://arxiv.org/abs/2406.17557): two texts of
Jaccard similarity s share a band with probability 1 - (1 - s^8)^14, 0.92 at 0.8 and 0.998 at 0.9.
Unlike there, a candidate is then compared by all 112 values, of which one byte each is kept
(Li and König 2010, "b-bit minwise hashing", https://arxiv.org/abs/0910.3349), so that nothing is
dropped only because two texts shared one band.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from malmoi.errors import InputError
from malmoi.text.duplicates.exact import first_occurrences

BANDS = 14
ROWS = 8
HASHES = BANDS * ROWS
DEFAULT_THRESHOLD = 0.8
DEFAULT_NGRAM_CHARACTERS = 3
_SEED = 1
_TEXTS_PER_SKETCHING = 2_000
_TEXTS_PER_MATCHING = 50_000
_PAIRS_PER_COMPARISON = 1 << 16
# Two different values share their lowest byte one time in 256.
_CHANCE = 1 / 256
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, kw_only=True, slots=True)
class NearDuplicates:
    """When two texts count as near duplicates.

    Attributes:
        threshold: estimated Jaccard similarity from which the later text is dropped. 0.8: Lee et
            al. 2022, "Deduplicating Training Data Makes Language Models Better", section 4.2,
            https://arxiv.org/abs/2107.06499. The estimate's standard error there is 0.04.
        ngram_characters: length of the n-grams. 3 Hangul syllables (assumption: they carry about
            as much as the 5 letters that "Mining of Massive Datasets", section 3.2.2, advises for
            e-mails; n-grams of words, as FineWeb has them, leave too few in a comment).

    Raises:
        InputError: a bound does not hold.
    """

    threshold: float = DEFAULT_THRESHOLD
    ngram_characters: int = DEFAULT_NGRAM_CHARACTERS

    def __post_init__(self) -> None:
        # Below 0.7 the bands would miss more pairs than they find: 0.56 are found at 0.7.
        if not 0.7 <= self.threshold <= 1:
            raise InputError(
                "expected a near-duplicate threshold from 0.7 to 1, found {threshold}",
                threshold=self.threshold,
            )
        if not 1 <= self.ngram_characters <= 20:
            raise InputError(
                "expected n-grams of 1 to 20 characters, found {ngram_characters}",
                ngram_characters=self.ngram_characters,
            )


def make_sketches(texts: list[str], settings: NearDuplicates) -> tuple[np.ndarray, np.ndarray]:
    """The MinHash of each text.

    Returns:
        bands [N, BANDS] uint64, a hash of each band's values; sketches [N, HASHES] uint8, the
        lowest byte of each value.
    """
    # Only here, so that a run without near duplicates does not load it.
    from rensa import RMinHash

    bands = np.empty((len(texts), BANDS), dtype=np.uint64)
    sketches = np.empty((len(texts), HASHES), dtype=np.uint8)
    # The library hands over Python integers: not too many at a time.
    for start in range(0, len(texts), _TEXTS_PER_SKETCHING):
        part = texts[start : start + _TEXTS_PER_SKETCHING]
        grams, offsets = _ngrams(part, settings.ngram_characters)
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(grams, offsets, HASHES, _SEED)
        values = np.array(matrix.to_rows(), dtype=np.uint64)
        stop = start + len(part)
        sketches[start:stop] = values  # keeps the lowest byte
        in_bands = values.reshape(-1, BANDS, ROWS)
        key = np.zeros(in_bands.shape[:2], dtype=np.uint64)
        for row in range(ROWS):
            key = (key ^ in_bands[:, :, row]) * _MIX
            key ^= key >> np.uint64(29)
        bands[start:stop] = key
    return bands, sketches


def _ngrams(texts: list[str], length: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of all n-grams of all texts, uint64, and where each text's begin, [N + 1] uint64.

    A text shorter than an n-gram is one n-gram, filled up with line feeds, which no clean text has.
    """
    padding = "\n" * (length - 1)
    flat = np.frombuffer((padding.join(texts) + padding).encode("utf-32-le"), dtype="<u4")
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    starts = np.cumsum(sizes + length - 1) - (sizes + length - 1)
    windows = len(flat) - length + 1
    hashes = np.zeros(windows, dtype=np.uint64)
    for place in range(length):
        hashes = (hashes ^ flat[place : place + windows]) * _MIX
        hashes ^= hashes >> np.uint64(32)
    # A window that reaches into the padding is an n-gram only as the single one of a short text.
    is_gram = np.zeros(len(flat) + 1, dtype=np.int8)
    counts = np.maximum(sizes - length + 1, 1)
    is_gram[starts] = 1
    is_gram[starts + counts] -= 1
    inside = np.cumsum(is_gram[:windows], dtype=np.int8).astype(bool)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    return hashes[inside], offsets


def find_near_duplicates(
    read_band: Callable[[int], np.ndarray],
    sketches: Iterator[np.ndarray],
    settings: NearDuplicates,
    work: Path,
    progress: Callable[[int, int], None],
) -> np.ndarray:
    """For every text the earliest kept text that it nearly equals, or itself.

    In the order of the texts, each is compared with the first text of each of its bands, or with
    the text that one was dropped for: what is dropped is similar to a text that is kept. On disk
    are HASHES + 8 * BANDS bytes a text, in memory a few arrays of 8 bytes a text (ten million texts
    in all: `lab/benchmarks/results/cleaning_scale.json`).

    Args:
        read_band: gives the keys of one band, [N] uint64.
        sketches: the sketches of all texts in order, [n, HASHES] uint8 each.
        work: folder for scratch files.
        progress: told the texts matched and their number.

    Returns:
        [N] int64 indices; a text is kept where its own index stands.
    """
    sketch_file = work / "sketches.bin"
    with sketch_file.open("wb") as file:
        for block in sketches:
            file.write(np.ascontiguousarray(block).data)
    size = 0
    for band in range(BANDS):
        firsts = first_occurrences(read_band(band))
        size = len(firsts)
        # Not tofile(), whose error does not say that the disk is full.
        (work / f"band-{band}.bin").write_bytes(np.ascontiguousarray(firsts).data)
    keepers = np.arange(size, dtype=np.int64)
    for start in range(0, size, _TEXTS_PER_MATCHING):
        stop = min(size, start + _TEXTS_PER_MATCHING)
        candidates = np.stack(
            [
                np.fromfile(work / f"band-{band}.bin", np.int64, stop - start, offset=8 * start)
                for band in range(BANDS)
            ],
            axis=1,
        )
        # Mapped anew for each block, so that pages once touched do not stay with the process.
        mapped = np.memmap(sketch_file, np.uint8, "r", shape=(size, HASHES))
        _match_block(start, candidates, mapped, keepers, settings.threshold)
        del mapped
        progress(stop, size)
    sketch_file.unlink(missing_ok=True)
    for band in range(BANDS):
        (work / f"band-{band}.bin").unlink()
    return keepers


def _match_block(
    start: int,
    candidates: np.ndarray,
    sketches: np.ndarray,
    keepers: np.ndarray,
    threshold: float,
) -> None:
    """Set `keepers` for the texts from `start` on; candidates [n, BANDS] int64."""
    own = np.arange(start, start + len(candidates))
    is_other = candidates != own[:, None]
    pending = is_other.any(axis=1)
    # A candidate of this block must have its own keeper first. The earliest pending text has none
    # such, so every round settles at least one; of repeated and changed reviews the first round
    # settled 98% and the second the rest (measured).
    while pending.any():
        rows = np.flatnonzero(pending)
        local = candidates[rows] - start
        waits = (local >= 0) & is_other[rows] & pending[np.maximum(local, 0)]
        rows = rows[~waits.any(axis=1)]
        targets = np.sort(np.where(is_other[rows], keepers[candidates[rows]], -1), axis=1)
        # The same text is the candidate of many bands: compare with it once.
        targets[:, 1:][targets[:, 1:] == targets[:, :-1]] = -1
        which, column = np.nonzero(targets >= 0)
        for first in range(0, len(which), _PAIRS_PER_COMPARISON):
            block = slice(first, first + _PAIRS_PER_COMPARISON)
            mine, theirs = own[rows[which[block]]], targets[which[block], column[block]]
            equal = (sketches[mine] == sketches[theirs]).mean(axis=1)
            similar = (equal - _CHANCE) / (1 - _CHANCE) >= threshold
            np.minimum.at(keepers, mine[similar], theirs[similar])
        pending[rows] = False
