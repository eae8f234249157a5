"""A report as a workbook: 요약, 표, 글."""

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from malmoi.analysis.page import change_sentence, notes
from malmoi.analysis.report import Report, rows_of
from malmoi.files import write_at_once
from malmoi.messages import Say, language_of
from malmoi.text.written_cells import EXCEL_ROWS
from malmoi.text.written_workbooks import WrittenSheet, written_book

_WIDTHS = (24, 24, 18)
_TEXT_WIDTH = 70


def write_workbook(path: Path, report: Report, *, language: str = "ko") -> None:
    """Write the workbook, whole or not at all.

    Args:
        path: a new or an old file.
        report: what was found.
        language: `ko` or `en`.
    """
    write_at_once(path, workbook_bytes(report, language=language))


def workbook_bytes(report: Report, *, language: str = "ko") -> bytes:
    """The workbook, to be sent."""
    say, written = language_of(language), io.BytesIO()
    with written_book(written) as book:
        _write(book, say("Summary"), _summary(report, say), (_TEXT_WIDTH, 12, 12, 12))
        _write(book, say("Tables"), _tables(report, say), _WIDTHS)
        _write(book, say("Texts"), _texts(report, say), (_TEXT_WIDTH, *_WIDTHS))
    return written.getvalue()


def _write(book: Any, name: str, rows: Iterable[Sequence[Any]], widths: Sequence[int]) -> None:
    sheet = WrittenSheet(book, name, widths)
    for row in rows:
        sheet.append(row, ["0.0%" if isinstance(value, float) else None for value in row])


def _summary(report: Report, say: Say) -> Iterator[Sequence[Any]]:
    yield [report.title or say("What the texts say")]
    yield from ([note] for note in notes(report, say))
    if report.labels:
        yield []
        yield [say("Label"), say("Share"), say("Low end"), say("High end")]
        whole = report.shares[report.shares["column"] == ""]
        for one in rows_of(whole):
            yield [one.label, float(one.share), float(one.low), float(one.high)]
        yield []
        yield [say("What stands out")]
        yield from ([change_sentence(one, say)] for one in rows_of(report.changes))
    if len(report.themes):
        yield []
        yield [say("What the texts are about"), say("Share"), say("Low end"), say("High end")]
        for one in rows_of(report.themes):
            name = f"{one.label}: {one.theme}" if one.label else one.theme
            yield [name, float(one.share), float(one.low), float(one.high)]


def _tables(report: Report, say: Say) -> Iterator[Sequence[Any]]:
    yield [
        *(say("Column"), say("Value"), say("Label"), say("Texts"), say("Read by people")),
        *(say("The model says"), say("Share"), say("Low end"), say("High end")),
    ]
    for one in rows_of(report.shares):
        yield [
            *(one.column or say("All texts"), one.part, one.label, int(one.texts), int(one.read)),
            *(float(one.said), float(one.share), float(one.low), float(one.high)),
        ]
    yield []
    yield [say("Column"), say("Value"), say("Label"), say("Words"), say("Texts")]
    for word in rows_of(report.words):
        place = word.column or say("All texts")
        yield [place, word.part, word.label, word.word, int(word.texts)]


def _texts(report: Report, say: Say) -> Iterator[Sequence[Any]]:
    table = report.texts
    own = [name for name in table.columns[4:]]
    yield [say("Text"), say("Label"), say("Whose label"), say("Confidence"), *own]
    whose = {"person": say("a person"), "model": say("the model"), "": ""}
    columns = (table[name].head(EXCEL_ROWS - 1).tolist() for name in table)
    for text, label, by, confidence, *cells in zip(*columns, strict=True):
        yield [text, label, whose[by], confidence, *cells]
