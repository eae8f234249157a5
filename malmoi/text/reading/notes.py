"""What was read and how: which sheet, column, delimiter and encoding, and what was left out."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

_SHOWN = 12
# Why a sheet is not read.
HIDDEN = "hidden"
# What is counted on the way.
BLANK_LINES = "blank lines, left out"
HEADERS_AGAIN = "headers repeated inside the files, left out"


@dataclass(kw_only=True)
class SourceNotes:
    """How one file was read.

    Attributes:
        source: the path as the user wrote it.
        form: what kind of file it turned out to be: lines, chat, table, json, workbook, parquet.
        encoding: of a text file.
        delimiter: of a table in text, as `--delimiter` names it.
        part: the key of the list that is read, of a JSON file that is one object.
        sheets: of a workbook, those that are read.
        sheets_left_out: the others that hold something, and why.
        text: the column of the texts.
        passed_over: other columns that could have been it by their name, and why they are not.
        pair: the column of the second texts.
        label: the column of the labels.
        labels_passed_over: other columns that could have been it by their name, and why they are
            not.
        counts: rows by what is special about them: headers repeated inside the file, rows that end
            before their last fields, texts that go over several lines, bad rows left out.
    """

    source: str
    form: str = ""
    encoding: str | None = None
    delimiter: str | None = None
    part: str | None = None
    sheets: list[str] = field(default_factory=list)
    sheets_left_out: list[tuple[str, str]] = field(default_factory=list)
    text: str | None = None
    passed_over: tuple[tuple[str, str], ...] = ()
    pair: str | None = None
    label: str | None = None
    labels_passed_over: tuple[tuple[str, str], ...] = ()
    counts: Counter[str] = field(default_factory=Counter)

    def decision(self) -> str:
        """How it is read, in one line."""
        parts = []
        if self.form == "lines":
            parts.append("one text a line")
        elif self.form == "chat":
            parts.append("messages of a chat, without names and times")
        if self.part is not None:
            parts.append(f"the list {self.part!r} in it")
        if self.sheets:
            parts.append(f"sheet{'s'[: len(self.sheets) > 1]} {', '.join(self.sheets[:_SHOWN])}")
        if self.sheets_left_out:
            left = "; ".join(f"{name} ({why})" for name, why in self.sheets_left_out[:_SHOWN])
            parts.append(f"not read: {left}")
        if self.text is not None:
            parts.append(f"texts from column {self.text!r}")
        if self.passed_over:
            parts.append(_not(self.passed_over))
        if self.pair is not None:
            parts.append(f"second texts from {self.pair!r}")
        if self.label is not None:
            parts.append(f"labels from {self.label!r}")
        if self.labels_passed_over:
            parts.append(_not(self.labels_passed_over))
        if self.delimiter is not None:
            parts.append(f"parted by {self.delimiter}s")
        if self.encoding is not None and self.encoding != "UTF-8":
            parts.append(self.encoding)
        return ", ".join(parts)


def _not(passed_over: Iterable[tuple[str, str]]) -> str:
    return "not " + ", ".join(f"{name!r} ({why})" for name, why in passed_over)


class ReadingNotes:
    """How all files of a run were read, said as they are opened.

    Args:
        say: prints a line; None says nothing.
    """

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.sources: list[SourceNotes] = []
        self.left_out: list[str] = []
        """Files of a folder that hold no text, and why."""
        self._say = say
        self._said: Counter[str] = Counter()
        self._finished = self._left_out_said = self._alike = 0

    def opened(self, notes: SourceNotes) -> None:
        """A file was looked at; said where no other was read just so."""
        self.sources.append(notes)
        decision = notes.decision()
        self._said[decision] += 1
        if self._say is not None and self._said[decision] == 1 and len(self._said) <= _SHOWN:
            self._say(f"reading {notes.source}: {decision}")

    def finished(self) -> None:
        """All was read: say what was counted on the way."""
        if self._say is None:
            return
        # One of these may see several readings: what was said of the first is not said again.
        sources, self._finished = self.sources[self._finished :], len(self.sources)
        left_out, self._left_out_said = self.left_out[self._left_out_said :], len(self.left_out)
        alike = sum(count - 1 for count in self._said.values()) - self._alike
        self._alike += alike
        if alike:
            self._say(f"read {alike:,} more files in the same ways")
        total = sum((notes.counts for notes in sources), Counter[str]())
        for what, count in total.items():
            self._say(f"{count:,} {what}")
        if left_out:
            count = len(left_out)
            first = "; ".join(left_out[:3])
            more = f"; and {count - 3:,} more" if count > 3 else ""
            self._say(f"warning: left out {count:,} files without texts: {first}{more}")

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        kept = [
            {name: value for name, value in vars(notes).items() if value} for notes in self.sources
        ]
        return {"files": kept, "left_out": self.left_out}
