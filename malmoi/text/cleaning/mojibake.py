"""Text decoded with the wrong encoding: repaired where that is certain, recognised where not."""

import re

import ftfy
from ftfy.badness import is_bad

from malmoi.text.characters import find_hanja, has_hanja

# The 2,350 syllables of KS X 1001, in two bytes of 0xA1 or more; the other 8,822 are rare, but for
# 됬 and the like.
COMMON_SYLLABLES = frozenset(
    character
    for lead in range(0xB0, 0xC9)
    for character in bytes(b for trail in range(0xA1, 0xFF) for b in (lead, trail)).decode("euc-kr")
)
# In UTF-8 read as Latin-1 or Windows-1252 every Hangul syllable begins with one of these letters
# and goes on with something that is not ASCII. The sign × (U+00D7) masks swear words.
_LATIN_LETTERS = "[\u00c2-\u00d6\u00d8-\u00f4]"
_may_be_latin = re.compile(f"{_LATIN_LETTERS}[^\x00-\x7f×÷가-힣ㄱ-ㅣ]").search
_has_latin_letter = re.compile(_LATIN_LETTERS).search


def repair_mojibake(text: str) -> str:
    """`text` with UTF-8 or CP949 that was read as Latin-1 or Windows-1252 turned back.

    What is not a whole text in Latin-1 is left to ftfy's `fix_encoding`
    (https://ftfy.readthedocs.io); nothing else of ftfy is used. A repair with new gaps is none.
    """
    if not _may_be_latin(text):
        return text
    repaired = _read_as_latin(text) or ftfy.fix_encoding(text)
    return text if "\ufffd" in repaired and "\ufffd" not in text else repaired


# Share of common syllables in what is not ASCII, in a text turned back from CP949 (assumption;
# 98% in reviews).
_COMMON_SHARE = 0.8


def _read_as_latin(text: str) -> str | None:
    """What the text was before all of it was read as Latin-1, or None."""
    try:
        stored = text.encode("latin-1")
    except UnicodeEncodeError:
        return None
    for encoding in ("utf-8", "cp949"):
        try:
            decoded = stored.decode(encoding)
        except UnicodeDecodeError:
            continue
        foreign = [c for c in decoded if not c.isascii()]
        common = sum(c in COMMON_SYLLABLES or "ㄱ" <= c <= "ㅣ" for c in foreign)
        # Nothing but UTF-8 looks like UTF-8; in CP949 a word with two accents may be a syllable.
        if encoding == "utf-8" or (common >= 2 and common >= _COMMON_SHARE * len(foreign)):
            return decoded
    return None


# 98.9% of 20,000 reviews in UTF-8 read as CP949 have such a mixture of rare syllables and hanja,
# none of 650,000 sound ones (measured).
_MIXED_SHARE = 0.5
# Two or more U+FFFD, and one in 20 characters: UTF-8 read as EUC-KR has one in four, a character
# that somebody's editor lost is alone (assumption).
_LOST_SHARE = 0.05


def is_mojibake(raw: str, clean: str) -> bool:
    """Whether a text is broken beyond repair.

    Args:
        raw: the text as read; it may hold U+FFFD.
        clean: the same after cleaning, so what could be repaired is.
    """
    if _may_be_latin(clean) and is_bad(clean):
        return True
    repaired_in_part = "\ufffd" in raw or _has_latin_letter(clean)
    if repaired_in_part and repair_mojibake(raw) != raw:
        return True
    lost = raw.count("\ufffd")
    if lost >= 2 and lost >= _LOST_SHARE * len(raw):
        return True
    if not has_hanja(clean):
        return False
    hanja = len(find_hanja(clean))
    hangul = [c for c in clean if "가" <= c <= "힣"]
    rare = sum(c not in COMMON_SYLLABLES for c in hangul)
    return rare > 0 and rare + hanja >= _MIXED_SHARE * (len(hangul) + hanja)
