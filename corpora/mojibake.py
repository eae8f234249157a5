"""Text decoded with the wrong encoding: repaired where that is certain, recognised where not."""

import re

import ftfy
from ftfy.badness import is_bad

from corpora.characters import find_hanja, has_hanja

# In UTF-8 read as Latin-1 or Windows-1252 every Hangul syllable begins with one of these letters
# and goes on with something that is not ASCII. The sign × (U+00D7) masks swear words.
_may_be_latin = re.compile("[\u00c2-\u00d6\u00d8-\u00f4][^\x00-\x7f×÷가-힣ㄱ-ㅣ]").search

# The 2,350 syllables of KS X 1001, in two bytes of 0xA1 or more; the other 8,822 are rare, but for
# 됬 and the like.
COMMON_SYLLABLES = frozenset(
    character
    for lead in range(0xB0, 0xC9)
    for character in bytes(b for trail in range(0xA1, 0xFF) for b in (lead, trail)).decode("euc-kr")
)
_latin_runs = re.compile("[\u00a1-\u00fe]{2,}")


def repair_mojibake(text: str) -> str:
    """`text` with UTF-8 or EUC-KR that was read as Latin-1 or Windows-1252 turned back.

    ftfy's `fix_encoding` (https://ftfy.readthedocs.io) and nothing else of ftfy; a repair with
    gaps is none.
    """
    if not _may_be_latin(text):
        return text
    repaired = _repair_euc_kr(text)
    if repaired is not None:
        return repaired
    repaired = ftfy.fix_encoding(text)
    return text if "\ufffd" in repaired and "\ufffd" not in text else repaired


def _repair_euc_kr(text: str) -> str | None:
    """The text if all its non-ASCII runs are common Hangul in EUC-KR, at least two syllables."""
    if max(text) > "\u00ff":
        return None
    runs = _latin_runs.findall(text)
    if not runs or sum(map(len, runs)) < 4:
        return None
    try:
        decoded = [run.encode("latin-1").decode("euc-kr") for run in runs]
    except UnicodeDecodeError:
        return None
    characters = "".join(decoded)
    if 2 * sum(c in COMMON_SYLLABLES for c in characters) <= len(characters):
        return None
    return _latin_runs.sub(lambda run: run[0].encode("latin-1").decode("euc-kr"), text)


# Of 20,000 reviews in UTF-8 read as CP949, 98.9% have such a mixture of rare syllables and hanja,
# of 650,000 sound ones none (measured).
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
    lost = raw.count("\ufffd")
    if lost >= 2 and lost >= _LOST_SHARE * len(raw):
        return True
    if not has_hanja(clean):
        return False
    hanja = len(find_hanja(clean))
    hangul = [c for c in clean if "가" <= c <= "힣"]
    rare = sum(c not in COMMON_SYLLABLES for c in hangul)
    return rare > 0 and rare + hanja >= _MIXED_SHARE * (len(hangul) + hanja)
