"""Counts over a corpus of any size: characters, eojeol, scripts, duplicates, labels."""

import unicodedata
from array import array
from collections import Counter
from hashlib import blake2b

import numpy as np

from malmoi.text.record import Record

SCRIPTS = ("Hangul", "lone jamo", "Latin", "digits", "hanja", "emoji", "other")

# Blocks of pictographs (Unicode 16, Blocks.txt): Miscellaneous Technical, Miscellaneous Symbols and
# Dingbats, Miscellaneous Symbols and Arrows, and all of Supplementary Symbols; with VS16 and ZWJ,
# which only emoji use.
_EMOJI_BLOCKS = ((0x2300, 0x23FF), (0x2600, 0x27BF), (0x2B00, 0x2BFF), (0x1F000, 0x1FAFF))
_EMOJI_JOINERS = "\u200d\ufe0f"


def script_of(character: str) -> str:
    """Which of `SCRIPTS` a character that is not white space belongs to."""
    code = ord(character)
    if 0xAC00 <= code <= 0xD7A3:
        return "Hangul"
    if 0x3131 <= code <= 0x318E or 0x1100 <= code <= 0x11FF:
        return "lone jamo"
    if character.isdecimal():
        return "digits"
    if character in _EMOJI_JOINERS or any(low <= code <= high for low, high in _EMOJI_BLOCKS):
        return "emoji"
    name = unicodedata.name(character, "")
    if name.startswith(("LATIN ", "FULLWIDTH LATIN ")):
        return "Latin"
    return "hanja" if name.startswith("CJK ") and "IDEOGRAPH" in name else "other"


class CorpusCounts:
    """Takes records one by one. Memory: 8 bytes a text for duplicates, else flat."""

    def __init__(self) -> None:
        self._lengths: Counter[int] = Counter()
        self._characters: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._eojeol = 0
        self._digests = array("Q")

    def add(self, record: Record) -> None:
        text = record.text
        self._lengths[len(text)] += 1
        self._characters.update(text)
        self._eojeol += len(text.split())
        # A JSON escape may write half of a surrogate pair.
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._digests.append(int.from_bytes(digest, "little"))
        if record.label is not None:
            self._labels[record.label] += 1

    def summary(self) -> dict[str, object]:
        """All counts, for JSON.

        Shares are of the characters that are not white space. A duplicate is a text that equals an
        earlier one, character for character.
        """
        texts = self._lengths.total()
        characters = sum(length * count for length, count in self._lengths.items())
        digests = np.frombuffer(self._digests, dtype=np.uint64)
        return {
            "texts": texts,
            "empty texts": self._lengths[0],
            "characters": characters,
            "characters a text, mean": round(characters / max(texts, 1), 2),
            "characters a text, median": self._quantile(0.5),
            "characters a text, 95th percentile": self._quantile(0.95),
            "eojeol": self._eojeol,
            "eojeol a text, mean": round(self._eojeol / max(texts, 1), 2),
            "share of characters": self._shares(),
            "duplicates": texts - len(np.unique(digests)),
            "labelled texts": self._labels.total(),
            "labels": dict(sorted(self._labels.items(), key=lambda pair: (-pair[1], pair[0]))),
        }

    def _quantile(self, fraction: float) -> int:
        """The smallest length that at least this fraction of the texts does not exceed."""
        below = 0
        for length, count in sorted(self._lengths.items()):
            below += count
            if below >= fraction * self._lengths.total():
                return length
        return 0

    def _shares(self) -> dict[str, float]:
        scripts: Counter[str] = Counter()
        for character, count in self._characters.items():
            if not character.isspace():
                scripts[script_of(character)] += count
        total = max(scripts.total(), 1)
        return {script: round(scripts[script] / total, 6) for script in SCRIPTS}
