"""Many texts at once as one array of code points.

N texts of together C characters, each followed by a line feed, are one array [C + N] of code
points. A table gives every code point a byte of flags; the flags of a text, joined by OR, tell
whether it needs anything but folding and single spaces. The table knows 60,000 harmless characters;
all others, whatever Unicode makes of them, send their text to the one-by-one rules.
"""

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from malmoi.text.characters import (
    COUNTED,
    is_repetitive,
    part_at_hanja,
    part_outside_kcbert,
    tells_by_length,
)
from malmoi.text.cleaning.markup import URL_SIGNS
from malmoi.text.cleaning.mojibake import COMMON_SYLLABLES
from malmoi.text.cleaning.personal_data import AT_SIGNS, FEWEST_DIGITS, SPELLED_ONE, SPELLED_ZERO

if TYPE_CHECKING:
    from malmoi.text.cleaning.cleaner import CleaningSettings, Reason

_OTHER, _SPACE, _DIGIT, _HANGUL, _HANJA, _RARE, _ZERO, _ONE = (1 << bit for bit in range(8))

# What people write, but for letters with accents (mojibake begins with them), joined emoji, and
# what NFC changes or joins with its neighbour.
_HARMLESS = (
    (0x20, 0x7E),
    (0xA0, 0xBF),
    (0xD7, 0xD7),
    (0xF7, 0xF7),
    (0x2000, 0x205F),  # punctuation
    (0x20A0, 0x20BF),  # currencies
    (0x2100, 0x2BFF),  # letter-like, numbers, arrows, mathematics, boxes, signs
    (0x3000, 0x33FF),  # CJK punctuation, kana, jamo, units
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xFF01, 0xFFEE),  # full and half width
    (0x1F300, 0x1F3FA),  # emoji without skins
    (0x1F400, 0x1FAFF),
)
_NOT_HARMLESS = "\u00ad\u3164\uffa0\u200d" + "＠Ｏ○◯〇" + "０１２３４５６７８９"


@lru_cache(maxsize=1)
def _characters() -> NDArray[np.uint8]:
    """Flags of every code point, [0x110000], whatever the settings."""
    table = np.full(0x110000, _OTHER, np.uint8)
    for first, last in _HARMLESS:
        for code in range(first, last + 1):
            character = chr(code)
            if unicodedata.category(character) not in ("Cf", "Cn", "Mn", "Mc") and (
                unicodedata.is_normalized("NFC", character)
            ):
                table[code] = 0
    for character in _NOT_HARMLESS:
        table[ord(character)] = _OTHER
    for code in (*range(0x3001), 0xFEFF):
        if chr(code).isspace():
            table[code] = _SPACE
    table[ord("0") : ord("9") + 1] |= _DIGIT
    table[0x3131:0x3164] |= _HANGUL
    table[0xAC00:0xD7A4] |= _HANGUL | _RARE
    table[[ord(c) for c in COMMON_SYLLABLES]] &= 0xFF ^ _RARE
    table[0x3400:0x4DC0] |= _HANJA
    table[0x4E00:0xA000] |= _HANJA
    table[[ord(c) for c in SPELLED_ZERO]] |= _ZERO
    table[[ord(c) for c in SPELLED_ONE]] |= _ONE
    return table


@lru_cache(maxsize=1)
def _counted() -> NDArray[np.bool_]:
    """Whether a code point is one of `COUNTED`, [0x110000]."""
    table = np.zeros(0x110000, np.bool_)
    table[[ord(c) for c in COUNTED]] = True
    return table


@lru_cache(maxsize=4)
def _table(settings: "CleaningSettings") -> NDArray[np.uint8]:
    table = _characters().copy()
    if settings.remove_html:
        table[[ord("<"), ord("&")]] |= _OTHER
    if "email" in settings.personal_data:
        table[ord("@")] |= _OTHER
    for replaces, part in (
        (settings.hanja == "space", part_at_hanja),
        (settings.alphabet == "kcbert", part_outside_kcbert),
    ):
        if replaces:
            for code in np.flatnonzero(~table & _OTHER):
                if part(" ", chr(code)) != chr(code):
                    table[code] = _SPACE
    return table


@lru_cache(maxsize=4)
def _signs(settings: "CleaningSettings") -> tuple[str, ...]:
    """Strings that send their text to the one-by-one rules."""
    signs = ["["] if settings.need_hangul else []  # every mask begins with it
    signs += URL_SIGNS if settings.remove_urls else ()
    signs += ["OOO"] if settings.remove_portal_masks else []
    signs += [sign for sign in AT_SIGNS if len(sign) > 1] if settings.personal_data else []
    return tuple(signs)


class PlainTexts:
    """Texts of which those that need no rule but folding and single spaces are cleaned at once.

    Attributes:
        texts: the plain ones clean, the others as they were.
        reasons: why the plain ones are dropped, or None.
        others: indices of the texts that need more.
    """

    def __init__(self, texts: list[str], settings: "CleaningSettings") -> None:
        self.texts = list(texts)
        self.reasons: list[Reason | None] = [None] * len(texts)
        self.others: list[int] = []
        if not texts:
            return
        # A line feed after every text, for no segment of reduceat may be empty.
        joined = "\n".join((*texts, ""))
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        self._ends = np.cumsum(lengths + 1)
        self._codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        self._flags = _table(settings).take(self._codes)
        self._space = self._flags & _SPACE != 0
        self._space[self._ends - 1] = True
        self._starts = self._ends - lengths - 1
        any_flags = np.bitwise_or.reduceat(self._flags, self._starts)
        repeated = self._repeated(joined, settings.max_repeats)
        other = self._need_more(any_flags, settings)
        if settings.max_repeats == 1:  # folding may then make a sign (골뱅뱅이)
            other[self._text_of(repeated)] = True
        self.others = np.flatnonzero(other).tolist()
        lengths = self._clean(lengths, repeated, other)
        self._judge(lengths, any_flags, ~other, settings)

    def _text_of(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Indices of the texts that characters at these places belong to."""
        return np.searchsorted(self._ends, places, side="right")

    def _repeated(self, joined: str, max_repeats: int) -> NDArray[np.intp]:
        """Places of characters that come after `max_repeats` of the same and are to go."""
        if not max_repeats:
            return np.zeros(0, np.intp)
        run = self._codes[1:] == self._codes[:-1]
        for _ in range(1, max_repeats):
            run = run[1:] & run[:-1]
        places = np.flatnonzero(run) + max_repeats
        places = places[self._flags[places] & (_DIGIT | _SPACE) == 0]
        counted = _counted()[self._codes[places]]
        return (
            places[~self._tells(joined, places, counted, max_repeats)] if counted.any() else places
        )

    def _tells(
        self,
        joined: str,
        places: NDArray[np.intp],
        counted: NDArray[np.bool_],
        max_repeats: int,
    ) -> NDArray[np.bool_]:
        """Which of these places of repeated characters belong to runs that tell by their length."""
        tells = np.zeros(len(places), np.bool_)
        which = np.flatnonzero(counted)
        # No two runs touch: the first characters of each have no place.
        begins = np.flatnonzero(np.diff(places[which], prepend=-2) != 1)
        ends = np.append(begins[1:], len(which)) - 1
        firsts, lasts = places[which[begins]].tolist(), places[which[ends]].tolist()
        told = [
            tells_by_length(joined, first - max_repeats, last + 1)
            for first, last in zip(firsts, lasts, strict=True)
        ]
        tells[which] = np.repeat(told, ends - begins + 1)
        return tells

    def _need_more(
        self, any_flags: NDArray[np.uint8], settings: "CleaningSettings"
    ) -> NDArray[np.bool_]:
        other = any_flags & _OTHER != 0
        if settings.fix_mojibake:  # in UTF-8 read as CP949 both occur
            other |= any_flags & (_RARE | _HANJA) == _RARE | _HANJA
        if settings.personal_data:
            digits = self._text_of(np.flatnonzero(self._flags & _DIGIT))
            other |= np.bincount(digits, minlength=len(other)) >= FEWEST_DIGITS
            zero, one = self._flags & _ZERO != 0, self._flags & _ONE != 0
            spelled = np.flatnonzero(zero[:-2] & one[1:-1] & zero[2:])
            other[self._text_of(spelled)] = True
        for sign in _signs(settings):
            other[self._text_of(_places(self._codes, sign))] = True
        return other

    def _clean(
        self, lengths: NDArray[np.int64], repeated: NDArray[np.intp], other: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Fold and set single spaces in the texts that are not `other`; their new lengths."""
        space, line_feeds = self._space, self._ends - 1
        drop = np.zeros(len(space), np.bool_)
        np.logical_and(space[1:], space[:-1], out=drop[1:])
        drop[0] = space[0]
        drop[repeated] = True
        # What is left of the white space at an end stands after the last visible character.
        trailing = line_feeds[space[line_feeds - 1]]
        if len(trailing):
            begins = np.flatnonzero(space[1:] & ~space[:-1]) + 1
            before = np.searchsorted(begins, trailing, side="right") - 1
            drop[begins[before[before >= 0]]] = True
        drop[line_feeds] = False
        fewer = np.bincount(self._text_of(np.flatnonzero(drop)), minlength=len(lengths))
        other_space = np.flatnonzero(space & (self._codes != ord(" ")) & ~drop)
        changed = fewer > 0
        in_text = self._text_of(other_space)
        changed[in_text[other_space != line_feeds[in_text]]] = True
        which = np.flatnonzero(changed & ~other)
        lengths = lengths - fewer
        if len(which):
            kept = np.where(space, np.uint32(ord(" ")), self._codes)[~drop]
            joined = kept.tobytes().decode("utf-32-le", "surrogatepass")
            ends = np.cumsum(lengths + 1)[which] - 1
            starts = ends - lengths[which]
            for index, start, end in zip(
                which.tolist(), starts.tolist(), ends.tolist(), strict=True
            ):
                self.texts[index] = joined[start:end]
        return lengths

    def _judge(
        self,
        lengths: NDArray[np.int64],
        any_flags: NDArray[np.uint8],
        plain: NDArray[np.bool_],
        settings: "CleaningSettings",
    ) -> None:
        rules: list[tuple[Reason, NDArray[np.bool_]]] = [
            ("empty", lengths == 0),
            ("hanja", (any_flags & _HANJA != 0) & (settings.hanja == "drop-text")),
            ("too-short", lengths < settings.min_characters),
            ("too-long", lengths > settings.max_characters),
            ("no-hangul", (any_flags & _HANGUL == 0) & settings.need_hangul),
        ]
        for reason, holds in rules:
            for index in np.flatnonzero(plain & holds).tolist():
                self.reasons[index] = reason
            plain = plain & ~holds
        if settings.min_distinct:
            # Each different character but three ends a window of its own (`is_repetitive`), and
            # hashed to 64 bits there are not more of them: most texts need no closer look.
            suspect = plain & (self._distinct() < settings.min_distinct * (lengths - 3) + 3)
            for index in np.flatnonzero(suspect).tolist():
                if is_repetitive(self.texts[index], settings.min_distinct):
                    self.reasons[index] = "repetitive"

    def _distinct(self) -> NDArray[np.uint8]:
        """At most the number of different visible characters of each text."""
        # Knuth's multiplicative hash, six bits of it (The Art of Computer Programming 3, 6.4).
        hashed = self._codes * np.uint32(2654435761)
        hashed >>= np.uint32(26)
        bits = (~self._space).astype(np.uint64) << hashed
        return np.bitwise_count(np.bitwise_or.reduceat(bits, self._starts))


def _places(codes: NDArray[np.uint32], sign: str) -> NDArray[np.intp]:
    """Where a string stands in an array of code points, twice as fast as str.find."""
    places = np.flatnonzero(codes[: len(codes) - len(sign) + 1] == ord(sign[0]))
    for step, character in enumerate(sign[1:], 1):
        places = places[codes[places + step] == ord(character)]
    return places
