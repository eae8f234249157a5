"""Clean text out of raw text: what one text becomes, and which texts are kept.

The recipe follows KcBERT and KcELECTRA (https://github.com/Beomi/KcELECTRA, "Preprocessing"), but
keeps what they lose: hanja, every emoji, numbers, and spacing where a character was removed.
`clean_text` and `reason_to_drop` say what cleaning is; `clean_batch` does the same faster.
"""

import re
from dataclasses import dataclass
from typing import Literal

from malmoi.errors import InputError
from malmoi.text.characters import (
    fold_repeats,
    has_hangul,
    has_hanja,
    is_repetitive,
    part_at_hanja,
    part_outside_kcbert,
    visible_in_nfc,
)
from malmoi.text.cleaning.fast_path import PlainTexts
from malmoi.text.cleaning.markup import remove_html, remove_portal_masks, remove_urls
from malmoi.text.cleaning.mojibake import is_mojibake, repair_mojibake
from malmoi.text.cleaning.personal_data import KINDS, Kind, mask_personal_data, without_masks

# Raise it whenever the same input would come out differently: run reports carry it.
CLEANER_VERSION = "v3"

Reason = Literal[
    "empty",
    "mojibake",
    "hanja",
    "too-short",
    "too-long",
    "no-hangul",
    "repetitive",
    "duplicate",
    "near-duplicate",
]
REASONS: tuple[Reason, ...] = Reason.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningSettings:
    """What is removed from a text, and which texts are kept.

    Attributes:
        min_characters: shorter texts are dropped. 10: KcELECTRA's README drops texts "of 10
            characters or fewer" in its heading and "under 10" in its explanation; the latter.
        max_characters: longer texts are dropped (assumption: a text of that length is a page or
            a log, not a comment).
        max_repeats: runs of a character are folded to this length, 0 for not at all. 2: KcBERT
            and KcELECTRA (soynlp's `repeat_normalize(num_repeats=2)`, which begins at four of a
            letter or digit; ours at three of anything but a digit, so that ㅋㅋㅋ is ㅋㅋ, too).
        min_distinct: a text whose windows of 4 characters are different in a smaller share is
            repetitive. 0.3: below it were 357 of 620,000 reviews and comments, one word or sign
            over and over; the thousandth smallest share of prose is 0.6 (measured).
        hanja: keep them, put a space for them, or drop the text.
        alphabet: "kcbert" puts a space for what KcBERT's `clean` does not know (all but ASCII,
            Hangul and eight signs; emoji, too), for models of that family.
        need_hangul: drop a text without a Hangul letter.
        fix_mojibake: repair text read with the wrong encoding, and drop what cannot be repaired.
        remove_urls: addresses become spaces.
        remove_html: tags become spaces, entities their characters.
        remove_portal_masks: OOO and ○○ become spaces (KcELECTRA).
        personal_data: the kinds to mask.
        drop_duplicates: drop a text whose cleaned form came before (KcELECTRA).

    Raises:
        InputError: a bound does not hold.
    """

    min_characters: int = 10
    max_characters: int = 10_000
    max_repeats: int = 2
    min_distinct: float = 0.3
    hanja: Literal["keep", "space", "drop-text"] = "keep"
    alphabet: Literal["any", "kcbert"] = "any"
    need_hangul: bool = True
    fix_mojibake: bool = True
    remove_urls: bool = True
    remove_html: bool = True
    remove_portal_masks: bool = True
    personal_data: tuple[Kind, ...] = KINDS
    drop_duplicates: bool = True

    def __post_init__(self) -> None:
        if self.min_characters < 1:
            raise InputError(
                "min_characters must be at least 1, found {least}", least=self.min_characters
            )
        if self.max_characters < self.min_characters:
            raise InputError(
                "max_characters must be at least min_characters ({least}), found {max_characters}",
                least=self.min_characters,
                max_characters=self.max_characters,
            )
        if self.max_repeats < 0:
            raise InputError(
                "max_repeats must be at least 0, found {max_repeats}", max_repeats=self.max_repeats
            )
        if not 0 <= self.min_distinct <= 1:
            raise InputError(
                "min_distinct must be from 0 to 1, found {min_distinct}",
                min_distinct=self.min_distinct,
            )
        unknown = sorted(set(self.personal_data) - set(KINDS))
        if unknown:
            raise InputError(
                "personal_data must be of {kinds}, found {unknown}",
                kinds=", ".join(KINDS),
                unknown=", ".join(unknown),
            )


DEFAULTS = CleaningSettings()


def clean_text(text: str, settings: CleaningSettings = DEFAULTS) -> str:
    """Clean one text; never raises.

    NFC; nothing invisible; single spaces, none at the ends; at most 30 combining marks in a row;
    the rest as `settings` say. Cleaning a clean text changes nothing, but where digits stood in
    columns: between them white space other than one space parts numbers, and it becomes one.
    """
    # What one step removes may bring together what an earlier step looks for (a zero-width space
    # in an address), so it goes on until nothing changes: twice, as a rule.
    kinds = settings.personal_data
    passes = 0
    while True:
        cleaned = _clean_once(text, settings, kinds)
        if cleaned == text:
            cleaned = " ".join(text.split())
            if cleaned == text:
                return text
            # Digits that white space parted look like one number from here on.
            kinds = tuple(kind for kind in kinds if kind == "email")
        text = cleaned
        passes += 1
        if passes % _MOST_PASSES == 0 and settings.remove_html:
            text = _part_at_html_signs(" ", text)


# Entities inside entities would otherwise take a pass for each of thousands of levels; pages that
# were escaped again and again need three (assumption).
_MOST_PASSES = 10
_part_at_html_signs = re.compile("[&<]+").sub


def _clean_once(text: str, settings: CleaningSettings, kinds: tuple[Kind, ...]) -> str:
    """One pass over a text; white space stays, for it tells columns of digits from a number."""
    if settings.fix_mojibake:
        text = repair_mojibake(text)
    if settings.remove_html:
        text = remove_html(text)
    text = visible_in_nfc(text)
    if settings.hanja == "space":
        text = part_at_hanja(" ", text)
    if settings.alphabet == "kcbert":
        text = part_outside_kcbert(" ", text)
    if settings.remove_urls:
        text = remove_urls(text)
    if kinds:
        text = mask_personal_data(text, kinds)
    if settings.remove_portal_masks:
        text = remove_portal_masks(text)
    if settings.max_repeats:
        text = fold_repeats(text, settings.max_repeats)
    return text


def reason_to_drop(raw: str, clean: str, settings: CleaningSettings = DEFAULTS) -> Reason | None:
    """Why a text is dropped, or None; duplicates are not looked for.

    Args:
        raw: the text as read.
        clean: what `clean_text` made of it.
        settings: those that it was cleaned with.
    """
    if not clean:
        return "empty"
    if settings.fix_mojibake and is_mojibake(raw, clean):
        return "mojibake"
    if settings.hanja == "drop-text" and has_hanja(clean):
        return "hanja"
    if len(clean) < settings.min_characters:
        return "too-short"
    if len(clean) > settings.max_characters:
        return "too-long"
    if settings.need_hangul and not has_hangul(without_masks(clean)):
        return "no-hangul"
    if is_repetitive(clean, settings.min_distinct):
        return "repetitive"
    return None


@dataclass(kw_only=True, slots=True)
class CleanedBatch:
    """Clean texts in the order given, also those to drop, and why each is dropped, or None."""

    texts: list[str]
    reasons: list[Reason | None]


def clean_batch(texts: list[str], settings: CleaningSettings = DEFAULTS) -> CleanedBatch:
    """`clean_text` and `reason_to_drop` of each text, several times as fast (measured).

    All texts are looked at as one array of code points. Those that need no more than folding and
    single spaces (98.9% of reviews, 94% of comments and petitions, measured) get that there; the
    others go one by one.
    Best with some thousand texts: less do not repay the array, more fall out of the cache.
    """
    batch = PlainTexts(texts, settings)
    for index in batch.others:
        batch.texts[index] = clean_text(texts[index], settings)
        batch.reasons[index] = reason_to_drop(texts[index], batch.texts[index], settings)
    return CleanedBatch(texts=batch.texts, reasons=batch.reasons)
