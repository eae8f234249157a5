"""Clean text out of raw text: what one text becomes, and which texts are kept.

The recipe follows KcBERT and KcELECTRA (https://github.com/Beomi/KcELECTRA, "Preprocessing"), but
keeps what they lose: hanja, every emoji, and spacing where a character was removed.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from corpora.errors import InputError

# Raise it whenever the same input would come out differently: run reports carry it.
CLEANER_VERSION = "v1"

Reason = Literal["empty", "too-short", "too-long", "duplicate", "near-duplicate"]
REASONS: tuple[Reason, ...] = ("empty", "too-short", "too-long", "duplicate", "near-duplicate")

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

_odd = re.compile(f"[{_INVISIBLE}{_CONTROL}\u200d{_TAG}]").search
_drop_invisible = re.compile(f"[{_INVISIBLE}]+").sub
_part_at_control = re.compile(f"[{_CONTROL}]").sub
_drop_tags = re.compile(f"(\U0001f3f4[{_TAG}]+)|[{_TAG}]+").sub
_drop_joiners = re.compile(f"(?<![{_PICTURE}\ufe0f])\u200d+|\u200d+(?![{_PICTURE}\u200d])").sub

# An address ends where Hangul begins (a particle follows it without a space) and does not take the
# full stop or bracket after it.
_URL_CHARACTER = r"[\w\-.~:/?#\[\]@!$&'()*+,;=%]"
_drop_urls = re.compile(
    rf"(?:(?:https?|ftp)://|(?<![a-z0-9.])www\.(?=[a-z0-9])){_URL_CHARACTER}*[\w/#=~&%\-]",
    re.ASCII | re.IGNORECASE,
).sub

_has_composed_emoji = re.compile(f"[\u200d\ufe0f{_SKIN}{_FLAG_LETTER}{_TAG}]").search


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
        return run[1] * max_repeats

    return lambda text: runs.sub(shorten, text), lambda text: emojis.sub(shorten, text)


def clean_text(text: str, max_repeats: int = 2) -> str:
    """Clean one text; never raises.

    NFC; nothing invisible; no addresses; runs of more than `max_repeats` of the same character or
    emoji folded to that many, digits excepted; single spaces, none at the ends.

    Args:
        text: any text.
        max_repeats: what soynlp's `repeat_normalize(num_repeats=2)` and KcBERT do: "ㅋㅋㅋㅋ"
            becomes "ㅋㅋ".
    """
    if _odd(text):
        text = _part_at_control(" ", text)
        text = _drop_invisible("", text)
        text = _drop_tags(r"\1", text)
        text = _drop_joiners("", text)
    # After the invisible ones, for a filler between two jamo keeps them from composing.
    text = unicodedata.normalize("NFC", text)
    if "://" in text or "ww." in text or "WW." in text:
        text = _drop_urls(" ", text)
    fold_characters, fold_emojis = _folders(max_repeats)
    text = fold_characters(text)
    if _has_composed_emoji(text):
        text = fold_emojis(text)
    return " ".join(text.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningSettings:
    """What is kept.

    Attributes:
        min_characters: shorter texts are dropped. 10: KcELECTRA's README drops texts "of 10
            characters or fewer" in its heading and "under 10" in its explanation; the latter.
        max_characters: longer texts are dropped (assumption: a text of that length is a page or
            a log, not a comment).
        max_repeats: runs of a character are folded to this length (KcBERT; soynlp's
            `repeat_normalize(num_repeats=2)`).
        drop_duplicates: drop a text whose cleaned form came before (KcELECTRA).

    Raises:
        InputError: a bound does not hold.
    """

    min_characters: int = 10
    max_characters: int = 10_000
    max_repeats: int = 2
    drop_duplicates: bool = True

    def __post_init__(self) -> None:
        if self.min_characters < 1:
            raise InputError(f"min_characters must be at least 1, found {self.min_characters}")
        if self.max_characters < self.min_characters:
            raise InputError(
                f"max_characters must be at least min_characters ({self.min_characters}), "
                f"found {self.max_characters}"
            )
        if self.max_repeats < 1:
            raise InputError(f"max_repeats must be at least 1, found {self.max_repeats}")


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanedBatch:
    """What became of a batch of texts.

    Attributes:
        texts: the clean texts, those of dropped ones too.
        reasons: why each is dropped by a rule about one text; None for one that passes.
    """

    texts: list[str]
    reasons: list[Reason | None]


def clean_batch(texts: list[str], settings: CleaningSettings) -> CleanedBatch:
    """Clean many texts and say which fail a rule about one text; duplicates are not looked for."""
    cleaned = [clean_text(text, settings.max_repeats) for text in texts]
    return CleanedBatch(texts=cleaned, reasons=[_reason_to_drop(t, settings) for t in cleaned])


def _reason_to_drop(text: str, settings: CleaningSettings) -> Reason | None:
    if not text:
        return "empty"
    if len(text) < settings.min_characters:
        return "too-short"
    if len(text) > settings.max_characters:
        return "too-long"
    return None
