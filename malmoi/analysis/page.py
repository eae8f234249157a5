"""A report as one page without scripts and without anything from the network; it prints on A4."""

import time
from typing import Any

import numpy as np
import pandas as pd

from malmoi.analysis.pictures import pictures
from malmoi.analysis.report import Report, rows_of
from malmoi.analysis.templates import rendered
from malmoi.messages import Say, language_of
from malmoi.text.cleaning.personal_data import mask_personal_data

# Texts behind a number of all texts, and behind one of a part.
_MOST_TEXTS, _MOST_OF_PART = 20, 5
# Labels beside each other in a table; all stand in the workbook.
_MOST_LABELS = 8
_MOST_CHANGES = 20
_LONGEST_TEXT = 1_000


def report_page(report: Report, *, language: str = "ko") -> str:
    """The page as HTML.

    Args:
        report: what was found.
        language: `ko` or `en`.
    """
    say = language_of(language)
    blocks = _Blocks(report, say)
    whole = _share_table(report, 0, say, blocks) if report.labels else None
    tables = [_share_table(report, place, say, blocks) for place in range(1, len(report.parts))]
    return rendered(
        "analysis.html",
        language=language,
        title=report.title or say("What the texts say"),
        cards=_cards(report, say),
        notes=notes(report, say),
        pictures={one.name: one for one in pictures(report, say)},
        stands_out=_stands_out(report, say, blocks),
        whole=whole,
        tables=tables if report.labels else [],
        labels=_labels(report, say),
        sample=len(report.sample),
        themes=_themes(report, say),
        most=_MOST_TEXTS,
        blocks=blocks.found,
        made=say(
            "Made by Malmoi, {when}. Shares: prediction-powered inference (Angelopoulos "
            "and others 2023) with Wilson intervals; words: Monroe and others (2008); several "
            "differences: Benjamini and Hochberg (1995).",
            when=time.strftime("%Y-%m-%d %H:%M"),
        ),
    )


def notes(report: Report, say: Say) -> list[str]:
    """How far the figures can be trusted, and what would make them surer."""
    read, texts = int(report.labelling.drawn.sum()), len(report.originals)
    found = []
    if report.labels and read == texts:
        found.append(say("People have read all texts."))
    elif report.labels and read and report.model:
        found.append(
            say(
                "Estimated from {read:text} that people read and from the model's labels of all: "
                "the 95% intervals hold where those texts were drawn by chance.",
                read=read,
            )
        )
    elif report.labels and read:
        found.append(
            say(
                "Estimated from {read:text} that people read: the 95% intervals hold where those "
                "texts were drawn by chance.",
                read=read,
            )
        )
    elif report.labels and report.labelling.confusion is not None:
        found.append(
            say(
                "No person has read these texts. The model's shares are corrected by how it erred "
                "on texts that it had not learnt; that holds where it errs here as it did there. "
                "Labels of some 50 texts drawn by chance would make it sure."
            )
        )
    elif report.labels:
        found.append(
            say(
                "No person has read these texts: the shares are what the model says, and nobody "
                "knows how far they are off. Labels of some 50 texts drawn by chance would tell."
            )
        )
    if report.halving is not None and report.model:
        more, now, then = report.halving
        found.append(
            say(
                "With {more:more text} drawn by chance and read, ±{now:.0%} becomes ±{then:.0%}.",
                more=more,
                now=now,
                then=then,
            )
        )
    if report.learnt:
        found.append(
            say(
                "{learnt:text} that people read do not count: the model has learnt them.",
                learnt=report.learnt,
            )
        )
    if report.blank:
        found.append(say("{blank:row} without a text left out.", blank=report.blank))
    return found


def _cards(report: Report, say: Say) -> list[tuple[str, str]]:
    cards = [(f"{len(report.originals):,}", say("Texts"))]
    if report.labels:
        cards.append((f"{int(report.labelling.drawn.sum()):,}", say("Read by people")))
    if report.model:
        cards.append((report.model, say("Model")))
    dates = [one for one in report.parts if one.period is not None]
    if dates:
        cards.append((f"{dates[0].names[0]} ~ {dates[0].names[-1]}", dates[0].column))
    return cards


class _Blocks:
    """Texts behind the numbers of the page, each block once."""

    def __init__(self, report: Report, say: Say) -> None:
        self.report, self.say = report, say
        self.found: list[dict[str, Any]] = []

    def anchor(self, place: int, part: int, label: int) -> str:
        """Where the texts of a label in a part stand; they are put there at the first call."""
        parts, report = self.report.parts[place], self.report
        anchor = f"texts-{place}-{part}-{label}"
        if any(one["anchor"] == anchor for one in self.found):
            return anchor
        name = report.part_names[place][part]
        mine = report.behind(parts.column, name, report.labels[label])
        most = _MOST_OF_PART if parts.column else _MOST_TEXTS
        title = [name] if parts.column else []
        block = {
            "anchor": anchor,
            "title": " · ".join([*title, report.labels[label]]),
            "count": len(mine),
            "texts": [_shown(report.originals[one]) for one in mine[:most]],
        }
        self.found.append(block)
        return anchor


def _shown(text: str) -> str:
    masked = mask_personal_data(text)
    return masked if len(masked) <= _LONGEST_TEXT else f"{masked[:_LONGEST_TEXT]} …"


def _share_table(report: Report, place: int, say: Say, blocks: _Blocks) -> dict[str, Any]:
    """A row a part, a cell a label."""
    parts, found = report.parts[place], report.found[place]
    common = np.argsort(-report.found[0].share[0], kind="stable")[:_MOST_LABELS]
    labels = sorted(common.tolist())
    rows = []
    for part in range(len(parts.names)):
        if not found.texts[part]:
            continue
        read = int(found.drawn[part])
        rows.append(
            {
                "name": report.part_names[place][part] or say("All texts"),
                "texts": int(found.texts[part]),
                "read": say("{read:,} read", read=read) if read else "",
                "cells": [
                    {
                        "share": f"{found.share[part, label]:.0%}",
                        "interval": _interval(found.low[part, label], found.high[part, label]),
                        "anchor": blocks.anchor(place, part, label),
                    }
                    for label in labels
                ],
            }
        )
    hidden = len(report.labels) - len(labels)
    by_time = parts.period is not None
    return {
        "id": f"part-{place}",
        "title": say("Shares over time")
        if by_time
        else say("Shares by {column}", column=parts.column),
        "column": parts.column,
        "picture": "over-time" if by_time else f"by-{place}",
        "labels": [(name := report.labels[label], report.color_of[name]) for label in labels],
        "rows": rows,
        "left_out": say("{hidden:rarer label} in the workbook only.", hidden=hidden)
        if hidden
        else "",
    }


def _interval(low: float, high: float) -> str:
    return "" if low != low or low == high else f"{100 * low:.0f}~{100 * high:.0f}"


def _stands_out(report: Report, say: Say, blocks: _Blocks) -> list[dict[str, Any]] | None:
    """The sentences about changes; None where there is nothing to compare."""
    if not report.labels or len(report.parts) == 1:
        return None
    found = []
    for one in rows_of(report.changes.head(_MOST_CHANGES)):
        place = [parts.column for parts in report.parts].index(one.column)
        found.append(
            {
                "up": one.difference > 0,
                "anchor": blocks.anchor(
                    place, report.part_names[place].index(one.part), report.labels.index(one.label)
                ),
                "said": change_sentence(one, say),
                "words": ", ".join(_words(report, one.column, one.part, one.label)["word"][:6]),
            }
        )
    return found


def change_sentence(change: Any, say: Say) -> str:
    """A row of `Report.changes` in words."""
    other = say("{other:.0%} elsewhere", other=change.other)
    if change.compared:
        other = say("{other:.0%} in {compared}", other=change.other, compared=change.compared)
    return say(
        "{label}, {part}: {share:.0%}, {elsewhere} ({low:+.0f} to {high:+.0f} points)",
        label=change.label,
        part=change.part,
        share=change.share,
        elsewhere=other,
        low=100 * change.low,
        high=100 * change.high,
    )


def _words(report: Report, column: str, part: str, label: str) -> pd.DataFrame:
    words = report.words
    mine = (words["column"] == column) & (words["part"] == part) & (words["label"] == label)
    return words[mine]


def _labels(report: Report, say: Say) -> list[dict[str, Any]]:
    found = []
    examples = report.examples
    for label in report.labels:
        words = _words(report, "", "", label)
        mine = examples[examples["label"] == label]
        kinds = [
            (say("Texts that stand for it"), mine[mine["kind"] == "typical"]["text"]),
            (say("Texts that the model is surest of"), mine[mine["kind"] == "extreme"]["text"]),
        ]
        if len(words) or len(mine):
            found.append(
                {
                    "name": label,
                    "color": report.color_of[label],
                    "words": list(zip(words["word"], words["texts"], strict=True)),
                    "examples": [(title, list(map(_shown, texts))) for title, texts in kinds],
                }
            )
    return found


def _themes(report: Report, say: Say) -> list[dict[str, Any]]:
    groups = []
    for label, themes in report.themes.groupby("label", sort=False):
        shown = [
            {
                "name": one.theme,
                "share": f"{one.share:.0%}",
                "interval": _interval(one.low, one.high),
                "examples": list(map(_shown, one.examples)),
            }
            for one in rows_of(themes)
        ]
        named = say("Within the label {label}", label=label) if label else ""
        groups.append({"label": named, "themes": shown})
    return groups
