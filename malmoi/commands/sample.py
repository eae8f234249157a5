"""`malmoi sample PATH`: texts before and after cleaning, side by side."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table
from rich.text import Text

from malmoi.command_line import is_terminal
from malmoi.settings import Range
from malmoi.text.cleaning.cleaner import clean_text, reason_to_drop
from malmoi.text.corpus.sample import draw
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_records
from malmoi.text.record import Record

ABOUT = "Show texts drawn at random before and after cleaning, and why a text would be dropped."

# Petitions run to thousands of characters (assumption: this much shows what cleaning does).
_SHOWN_CHARACTERS = 300


@dataclass(kw_only=True)
class SampleSettings:
    """What is drawn."""

    path: tyro.conf.Positional[Path]
    """File or folder of texts."""
    size: Annotated[int, Range(1)] = 10
    """Texts to show."""
    seed: int = 0
    """Another seed draws other texts."""
    changed_only: bool = False
    """Draw only from texts that cleaning changes or drops."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BeforeAfter:
    """A text before and after cleaning, and the reason for which it is dropped, if it is.

    Duplicates are not known here: a sample sees one text at a time.
    """

    record: Record
    after: str
    reason: str | None

    @property
    def changed(self) -> bool:
        """Whether cleaning changes or drops it."""
        return self.reason is not None or self.after != self.record.text


def main(settings: SampleSettings) -> None:
    records: Iterable[Record] = iter_records(
        settings.path,
        options=settings.reading,
        notes=ReadingNotes(say=lambda line: print(line, file=sys.stderr)),
    )
    if is_terminal():
        records = track(records, description="reading", transient=True)
    if settings.changed_only:
        changed = (comparison for comparison in compare(records) if comparison.changed)
        drawn = draw(changed, settings.size, settings.seed)
    else:
        drawn = list(compare(draw(records, settings.size, settings.seed)))
    if not drawn:
        print("cleaning changes no text of it")
    elif is_terminal():
        _print_table(drawn)
    else:
        _print_lines(drawn)


def compare(records: Iterable[Record]) -> Iterator[BeforeAfter]:
    """Clean texts one by one."""
    for record in records:
        after = clean_text(record.text)
        reason = reason_to_drop(record.text, after)
        yield BeforeAfter(record=record, after=after, reason=reason)


def _print_table(drawn: list[BeforeAfter]) -> None:
    names = ("id", "before", "after", "dropped")
    table = Table(*(Column(name, overflow="fold") for name in names), show_lines=True)
    for comparison in drawn:
        shown = (comparison.record.id, comparison.record.text, comparison.after)
        # Text, not str: brackets in a text are no markup.
        table.add_row(*(Text(_visible(part)) for part in shown), comparison.reason or "")
    Console().print(table)


def _print_lines(drawn: list[BeforeAfter]) -> None:
    for comparison in drawn:
        print(f"before  {_visible(comparison.record.text)}")
        if comparison.reason is not None:
            print(f"dropped ({comparison.reason})")
        else:
            print(f"after   {_visible(comparison.after)}")


def _visible(text: str) -> str:
    """On one line, what shows nothing written as an escape, a long text cut."""
    cut = text[:_SHOWN_CHARACTERS]
    # repr's idea of what can be shown, but for the joiners inside emoji and the quotes.
    shown = "".join(
        c if c.isprintable() or c in "\u200d\ufe0f" else c.encode("unicode_escape").decode()
        for c in cut
    )
    more = len(text) - len(cut)
    return f"{shown} … ({more:,} more characters)" if more else shown
