"""Texts as people and machines spoil them, for measuring how much a classifier minds.

Each takes a text and a source of randomness; what is spoilt is then cleaned and tokenised as any
text is, so that a fault which cleaning undoes costs nothing.
"""

import random
import unicodedata
from collections.abc import Callable

# Neighbours on the two-set keyboard (KS X 5002), by its rows.
_ROWS = ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ")
_INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FIRST, _LAST = 0xAC00, 0xD7A3
_TYPO_SHARE = 0.1


def typos(text: str, draw: random.Random) -> str:
    """One syllable in ten with the key beside the right one pressed for its consonant or vowel."""
    return "".join(
        _mistyped(one, draw) if _is_syllable(one) and draw.random() < _TYPO_SHARE else one
        for one in text
    )


def without_spaces(text: str, draw: random.Random) -> str:
    """All in one word."""
    return text.replace(" ", "")


def drawn_out(text: str, draw: random.Random) -> str:
    """ㅋㅋ, ㅠㅠ and signs eight times as long."""
    return "".join(one * 8 if one in "ㅋㅎㅠㅜ!?.~" else one for one in text)


def decomposed(text: str, draw: random.Random) -> str:
    """As macOS names its files (NFD)."""
    return unicodedata.normalize("NFD", text)


def through_cp949(text: str, draw: random.Random) -> str:
    """Saved by an old Windows program: what CP949 lacks becomes a question mark."""
    return text.encode("cp949", errors="replace").decode("cp949")


PERTURBATIONS: dict[str, Callable[[str, random.Random], str]] = {
    "typos": typos,
    "without spaces": without_spaces,
    "drawn out": drawn_out,
    "NFD": decomposed,
    "CP949": through_cp949,
}


def _is_syllable(one: str) -> bool:
    return _FIRST <= ord(one) <= _LAST


def _mistyped(syllable: str, draw: random.Random) -> str:
    code = ord(syllable) - _FIRST
    initial, vowel, final = code // 588, code // 28 % 21, code % 28
    if draw.random() < 0.5:
        initial = _neighbour(initial, _INITIALS, draw)
    else:
        vowel = _neighbour(vowel, _VOWELS, draw)
    return chr(_FIRST + 588 * initial + 28 * vowel + final)


def _neighbour(place: int, letters: str, draw: random.Random) -> int:
    """The place of a letter on a key beside; its own where no key beside has one of its kind."""
    for row in _ROWS:
        if letters[place] in row:
            at = row.index(letters[place])
            near = [one for one in row[max(0, at - 1) : at + 2] if one in letters]
            near.remove(letters[place])
            return letters.index(draw.choice(near)) if near else place
    return place
