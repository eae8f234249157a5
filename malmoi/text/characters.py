"""Single characters: which of them show nothing, which repeat, which writing they belong to."""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

# Characters that show nothing: soft hyphen, grapheme joiner, Hangul fillers, zero-width and
# bidirectional controls, variation selectors except VS16 (which makes an emoji of U+2764), the
# replacement character, noncharacters, and halves of surrogate pairs, which no file can hold.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffd\ufffe\uffff\ud800-\udfff"
    "\U000e0100-\U000e01ef"
)
# Control characters part words; str.split takes care of the ones that Python calls white space.
_CONTROL = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
# Joiner and tag characters mean something inside an emoji only.
_TAG = "\U000e0020-\U000e007f"
_SKIN = "\U0001f3fb-\U0001f3ff"
_FLAG_LETTER = "\U0001f1e6-\U0001f1ff"
_PICTURE = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_ONE_EMOJI = f"[{_PICTURE}]\ufe0f?[{_SKIN}]?"

HANGUL = "가-힣ㄱ-ㅣ"
HANJA = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# What KcBERT's `clean` keeps (https://github.com/Beomi/KcBERT, README, "Preprocessing").
KCBERT_ALPHABET = " .,?!/@$%~％·∼()\\x00-\\x7Fㄱ-ㅣ가-힣"

has_hangul = re.compile(f"[{HANGUL}]").search
has_hanja = re.compile(f"[{HANJA}]").search
find_hanja = re.compile(f"[{HANJA}]").findall
part_at_hanja = re.compile(f"[{HANJA}]+").sub
part_outside_kcbert = re.compile(f"[^{KCBERT_ALPHABET}]+").sub

_drop_invisible = re.compile(f"[{_INVISIBLE}]+").sub
_part_at_control = re.compile(f"[{_CONTROL}]").sub
_drop_tags = re.compile(f"(\U0001f3f4[{_TAG}]+)|[{_TAG}]+").sub
_drop_joiners = re.compile(f"(?<![{_PICTURE}\ufe0f])\u200d+|\u200d+(?![{_PICTURE}\u200d])").sub
_has_composed_emoji = re.compile(f"[\u200d\ufe0f{_SKIN}{_FLAG_LETTER}{_TAG}]").search


# As in Unicode's stream-safe text format (UAX #15, section 13): no language stacks more, and the
# time that normalising takes grows with the square of such a run.
MOST_MARKS = 30
# Where combining marks are among Unicode's blocks, other letters included, but none of what Korean
# texts are made of: an exact list would be slower and differ by Python's version.
_MARKS_AND_LETTERS = (
    "\u0300-\u10ff\u135d-\u1dff\u20d0-\u20ff\u2cef-\u2dff\u302a-\u302f\u3099\u309a\ua66f-\uabff"
    "\ufb1e\ufe20-\ufe2f\U000101fd-\U0001efff"
)
_may_have_many_marks = re.compile(f"[{_MARKS_AND_LETTERS}]{{{MOST_MARKS + 1}}}").search
_cut_marks = re.compile(f"[{_MARKS_AND_LETTERS}]{{{MOST_MARKS + 1},}}").sub


# One look for both, as neither is in most texts.
_JAMO = "\u1100-\u11ff"
_odd = re.compile(f"[{_INVISIBLE}{_CONTROL}\u200d{_TAG}{_MARKS_AND_LETTERS}{_JAMO}]").search


def visible_in_nfc(text: str) -> str:
    """`text` in NFC, of a run of more than 30 combining marks the first 30, and without characters
    that show nothing; control characters become spaces, jamo that compose no syllable letters."""
    if not _odd(text):
        return unicodedata.normalize("NFC", text)
    text = _part_at_control(" ", text)
    text = _drop_invisible("", text)
    text = _drop_tags(r"\1", text)
    text = _drop_joiners("", text)
    # After the invisible ones, for a filler between two jamo keeps them from composing.
    return _spell_jamo(_letters, to_nfc(text))


# Jamo that are left in NFC: alone, as phones type ㅋㅋ, or in a syllable of old Hangul (ᄒᆞᆫ).
_spell_jamo = re.compile("([\u1100-\u115e]+[\u1161-\u11a7]+[\u11a8-\u11ff]*)|[\u1100-\u11ff]").sub


def _letters(jamo: re.Match[str]) -> str:
    """The letter of the keyboard for a jamo; a syllable of old Hangul, and what has none, stay."""
    return jamo[0] if jamo[1] else _letter(jamo[0])


@lru_cache(maxsize=256)
def _letter(jamo: str) -> str:
    name = unicodedata.name(jamo, "").rpartition("SEONG ")[2]
    try:
        return unicodedata.lookup(f"HANGUL LETTER {name}")
    except KeyError:
        return jamo


def to_nfc(text: str) -> str:
    """`text` in NFC, in linear time: of a run of more than 30 combining marks the first 30."""
    if _may_have_many_marks(text):
        text = _cut_marks(_first_marks, text)
    return unicodedata.normalize("NFC", text)


def _first_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in run[0]:
        # A few marks count as none themselves but are made of some (U+0F73).
        first = unicodedata.normalize("NFD", character)[0]
        marks = marks + 1 if unicodedata.combining(first) else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return "".join(kept)


# Signs that rate and count. A longer run of them is ornament (assumption: no scale has more steps).
_RATING_SIGNS = "★☆⭐🌟●○◎■□▪▫◆◇▲△♥♡*$"
_LONGEST_RATING = 10
# No word and no shout: AAA, III, WWW. Longer runs of a letter are shouts; OOO hides a word.
_GRADE = 3
# Small letters that people type for AAA, III (lll) and XXX.
_SMALL_GRADES = "ailx"
_ROMAN_SIGNS = "ⅠⅩⅭⅯⅰⅹⅽⅿ"
# What numbers in letters are typed with, and so what may be told by how often it stands there.
COUNTED = frozenset(
    f"{_RATING_SIGNS}{_ROMAN_SIGNS}+ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
_LONGEST_ROMAN = 15  # MMMDCCCLXXXVIII
_is_roman_or_size = re.compile(
    "M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})|X{1,5}[LS]", re.IGNORECASE
).fullmatch
_is_after_grade = re.compile("등?급|컵").match
_is_after_letter = re.compile("[A-Za-z0-9]").match


def tells_by_length(text: str, start: int, end: int) -> bool:
    """Whether a run of one of `COUNTED` would mean something else if it were shorter.

    III is not II, AAA급 not AA급, ★★★ not ★★, A+++ not A++; goooood and ******************** are.

    Args:
        start, end: of the whole run in it.
    """
    sign, length = text[start], end - start
    if sign in _RATING_SIGNS:
        return length <= _LONGEST_RATING
    if sign in _ROMAN_SIGNS:
        return length <= _GRADE
    if sign == "+":
        return length == 3 and _is_after_letter(text, start - 1) is not None if start else False
    if length > _LONGEST_RATING:
        return False
    first, last = start, end
    while first and start - first <= _LONGEST_ROMAN and _is_letter(text[first - 1]):
        first -= 1
    while last < len(text) and last - end <= _LONGEST_ROMAN and _is_letter(text[last]):
        last += 1
    if last - first > length:  # a part of a word
        word = text[first:last]
        return (word.isupper() or word.islower()) and _is_roman_or_size(word) is not None
    if _is_after_grade(text, end):
        return True
    return length <= _GRADE and sign != "O" and (sign.isupper() or sign in _SMALL_GRADES)


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


@lru_cache(maxsize=8)
def _folders(max_repeats: int) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """Functions that fold runs of one character, and of one composed emoji."""
    # Digits stay: 10000000 is not 100. So do spaces, which are collapsed elsewhere. Looking back
    # only once a run is found, and expanding it by a function, takes a quarter of the time of
    # ([^\d\s])\1{2,} with a template (measured).
    runs = re.compile(rf"(.)\1{{{max_repeats}}}(?<![\d\s])\1*")
    # The longest joined emoji has 10 parts at most (Unicode's emoji-zwj-sequences.txt has 5); the
    # bound keeps the time linear on an endless chain.
    emojis = re.compile(
        f"((?:[{_FLAG_LETTER}]{{2}}|\U0001f3f4[{_TAG}]+|{_ONE_EMOJI}(?:\u200d{_ONE_EMOJI}){{0,9}}))"
        rf"\1{{{max_repeats},}}"
    )

    def shorten(run: re.Match[str]) -> str:
        if run[1] in COUNTED and tells_by_length(run.string, run.start(), run.end()):
            return run[0]
        return run[1] * max_repeats

    return lambda text: runs.sub(shorten, text), lambda text: emojis.sub(shorten, text)


def fold_repeats(text: str, max_repeats: int) -> str:
    """Runs of more than `max_repeats` of one character or emoji cut to that many.

    Digits and spaces stay, and what `tells_by_length`.
    """
    fold_characters, fold_emojis = _folders(max_repeats)
    text = fold_characters(text)
    return fold_emojis(text) if _has_composed_emoji(text) else text


_WINDOW = 4


def is_repetitive(text: str, min_distinct: float) -> bool:
    """Whether less than a share of a text's windows of 4 characters are different.

    The share is 1, or nearly so, for prose, and near 0 for one word said over and over.

    Args:
        text: any text; one shorter than a window is not repetitive.
        min_distinct: share from 0 to 1.
    """
    windows = len(text) - _WINDOW + 1
    enough = min_distinct * windows
    # Every character but the first three ends a window for the first time: most texts are through
    # with one set of characters, most others with the windows of their first part.
    if windows < 1 or len(set(text)) - _WINDOW + 1 >= enough:
        return False
    return all(
        len({text[i : i + _WINDOW] for i in range(part)}) < enough
        for part in (min(windows, int(1.3 * enough) + 1), windows)
    )
