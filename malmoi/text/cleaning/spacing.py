"""What Kiwi does to clean texts when it is asked for: sentences, and spaces put right.

Texts are cleaned, cut into sentences, cleaned, spaced and cleaned again: the analyser sees clean
text, no number is cut in two before it is masked, and what comes out is stable under cleaning.
Kiwi is imported only when one of both is asked for.
"""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from malmoi.text.cleaning.cleaner import (
    CleanedBatch,
    CleaningSettings,
    Reason,
    clean_batch,
    clean_text,
)
from malmoi.text.cleaning.personal_data import hide_masks

_blank_lines = re.compile(r"\n\s*\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Analysis:
    """What is asked of the analyser (Kiwi).

    Attributes:
        split_sentences: make a text of each sentence, with ids ID:1, ID:2 and so on; the rules
            about one text then hold for each. By Kiwi: 0.5 GiB a worker, 1,900 reviews a second
            and core (measured).
        correct_spacing: put the spaces of each text (or sentence) right, before its length is
            judged and before duplicates are looked for. By Kiwi: 0.5 GiB a worker, 1,700 reviews
            a second and core (measured).
    """

    split_sentences: bool = False
    correct_spacing: bool = False

    @property
    def is_used(self) -> bool:
        """Whether anything is asked of it."""
        return self.split_sentences or self.correct_spacing

    def describe(self) -> dict[str, Any] | None:
        """Both options and the analyser's version, for reports; None if it is not used."""
        if not self.is_used:
            return None
        from malmoi.text.morphemes import analyser_version

        return asdict(self) | {"analyser": analyser_version()}


NO_ANALYSIS = Analysis()


@dataclass(kw_only=True, slots=True)
class AnalysedTexts:
    """Clean texts, or their sentences, as columns of equal length.

    Attributes:
        texts: clean texts, also of dropped ones.
        reasons: why each is dropped, or None.
        origins: index of the text that each was made of, rising.
        sentences: its number in that text from 1, or None for a text left whole.
        failed: rows that the analyser failed on; they are as they were before it.
    """

    texts: list[str]
    reasons: list[Reason | None]
    origins: list[int]
    sentences: list[int | None]
    failed: set[int]


def analyse_batch(
    raw: list[str], batch: CleanedBatch, settings: CleaningSettings, analysis: Analysis
) -> AnalysedTexts:
    """Split and space clean texts, as `analysis` says.

    Empty texts and mojibake are left alone. Spaces are put right only in texts that pass the
    rules or are too short: more of them may make up for that, and what else a text is dropped for
    is not worth the time.

    Args:
        raw: the texts as read.
        batch: what `clean_batch` made of them.
        settings: those that they were cleaned with.
        analysis: what is asked for.
    """
    found = AnalysedTexts(
        texts=batch.texts[:],
        reasons=batch.reasons[:],
        origins=list(range(len(raw))),
        sentences=[None] * len(raw),
        failed=set(),
    )
    if analysis.split_sentences:
        found = _split(raw, found, settings)
    if analysis.correct_spacing:
        _correct_spacing(found, settings)
    return found


def _split(raw: list[str], whole: AnalysedTexts, settings: CleaningSettings) -> AnalysedTexts:
    """`whole` with its texts cut into sentences."""
    from malmoi.text.morphemes import AnalyserError

    found = AnalysedTexts(texts=[], reasons=[], origins=[], sentences=[], failed=set())
    changed: list[int] = []
    for origin, (text, reason) in enumerate(zip(whole.texts, whole.reasons, strict=True)):
        cut: list[str] = []
        if text and reason != "mojibake":
            try:
                cut = _sentences(_paragraphs(raw[origin], text, settings))
            except AnalyserError:
                found.failed.add(len(found.texts))
        if cut != [text]:
            changed += range(len(found.texts), len(found.texts) + len(cut))
        found.sentences += range(1, len(cut) + 1) if cut else [None]
        cut = cut or [text]
        found.texts += cut
        found.reasons += [reason] * len(cut)
        found.origins += [origin] * len(cut)
    _clean_again(found, changed, settings)
    return found


def _paragraphs(raw: str, clean: str, settings: CleaningSettings) -> list[str]:
    """The parts of a clean text between the blank lines of the raw one: Kiwi ends sentences there.

    The whole text where cleaning the parts gives anything else, such as an account number that
    only the word above the blank line tells from other numbers.
    """
    if not _blank_lines.search(raw):
        return [clean]
    parts = [clean_text(part, settings) for part in _blank_lines.split(raw)]
    parts = [part for part in parts if part]
    return parts if " ".join(parts) == clean else [clean]


def _sentences(paragraphs: Iterable[str]) -> list[str]:
    from malmoi.text.morphemes import split_sentences

    sentences: list[str] = []
    for paragraph in paragraphs:
        place = 0
        # Kiwi would take the end of a mask for that of a sentence.
        for sentence in split_sentences(hidden := hide_masks(paragraph)):
            place = hidden.index(sentence, place)
            sentences.append(paragraph[place : place + len(sentence)])
            place += len(sentence)
    return sentences


def _correct_spacing(found: AnalysedTexts, settings: CleaningSettings) -> None:
    from malmoi.text.morphemes import AnalyserError

    changed: list[int] = []
    for row, (text, reason) in enumerate(zip(found.texts, found.reasons, strict=True)):
        if row in found.failed or not (reason is None or reason == "too-short"):
            continue
        try:
            spaced = _spaced(text)
        except AnalyserError:
            found.failed.add(row)
            continue
        if spaced != text:
            found.texts[row] = spaced
            changed.append(row)
    _clean_again(found, changed, settings)


def _spaced(text: str) -> str:
    from malmoi.text.morphemes import AnalyserError, correct_spacing

    # Kiwi would write [주민 번호].
    hidden = correct_spacing(hide_masks(text))
    letters = iter("".join(text.split()))
    spaced = "".join(c if c.isspace() else next(letters) for c in hidden)
    if hide_masks(spaced) != hidden:
        raise AnalyserError(f"Kiwi put a space into a mask of {text[:40]!r}")
    return spaced


def _clean_again(found: AnalysedTexts, rows: list[int], settings: CleaningSettings) -> None:
    batch = clean_batch([found.texts[row] for row in rows], settings)
    for row, text, reason in zip(rows, batch.texts, batch.reasons, strict=True):
        found.texts[row], found.reasons[row] = text, reason
