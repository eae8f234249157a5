"""How far long work is: a bar on a terminal, now and then a plain line in a log."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bar

from malmoi.command_line import is_terminal
from malmoi.files import write_at_once

# In a log that somebody follows: often enough to see life, seldom enough to read.
SECONDS_BETWEEN_LINES = 15.0
# Names a file that says the same as JSON, for who started the command: `part`, `done`, `total` (or
# null), `seconds_left` (or null).
PROGRESS_VARIABLE = "MALMOI_PROGRESS"
_SECONDS_BETWEEN_WRITES = 1.0
BYTES = "bytes"


class Progress(Protocol):
    """What long work calls to say how far it is.

    Args of a call: the part, the number done in all, and of how many (None: nobody knows yet).
    `skipped` of those done took no time now, since an earlier run did them.
    """

    def __call__(
        self, part: str, done: int, total: int | None = None, *, skipped: int = 0
    ) -> None: ...


def no_progress(part: str, done: int, total: int | None = None, *, skipped: int = 0) -> None:
    """Say nothing."""


@contextmanager
def shown_progress(unit: str = "texts") -> Iterator[Progress]:
    """Progress on standard output; `unit` is what is counted, `BYTES` in KB and MB."""
    if not is_terminal():
        yield _Lines(unit)
        return
    counted: tuple[ProgressColumn, ...] = (
        (DownloadColumn(), TransferSpeedColumn())
        if unit == BYTES
        else (TextColumn("{task.fields[count]}"),)
    )
    columns = (TextColumn("{task.description}"), BarColumn(), *counted)
    with Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), transient=unit != BYTES) as bar:
        task = bar.add_task("", total=None, count="")

        def show(part: str, done: int, total: int | None = None, *, skipped: int = 0) -> None:
            bar.update(task, description=part, completed=done, total=total)
            bar.update(task, count=f"{_of(done, total)} {unit}")

        yield show
        # What nobody knew the size of is whole when it has ended well.
        bar.update(task, total=bar.tasks[0].completed or None)


class _Lines:
    """At most one line every `SECONDS_BETWEEN_LINES`, and more often a file."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._began = self._said = time.monotonic()
        self._file = os.environ.get(PROGRESS_VARIABLE)
        self._wrote = 0.0
        # When the first was done, and how many then; what comes before is no measure of the rest.
        self._first: tuple[float, int] | None = None

    def __call__(self, part: str, done: int, total: int | None = None, *, skipped: int = 0) -> None:
        now, own = time.monotonic(), done - skipped
        if self._first is None and own:
            self._first = now, own
        left = None
        if total and self._first is not None and own > self._first[1]:
            left = (now - self._first[0]) / (own - self._first[1]) * (total - done)
        if self._file and now - self._wrote >= _SECONDS_BETWEEN_WRITES:
            self._wrote = now
            found = {"part": part, "done": done, "total": total, "seconds_left": left}
            write_at_once(Path(self._file), json.dumps(found))
        if now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            spent = duration(now - self._began)
            shown = "" if left is None else f", about {duration(left)} left"
            print(f"{part}: {_of(done, total)} {self._unit}, {spent}{shown}", flush=True)


def _of(done: int, total: int | None) -> str:
    if not total:
        return f"{done:,}"
    return f"{done:,} of {total:,} ({done / total:.0%})"


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "12 min", "3.5 h", "4.2 days"."""
    number, unit = rounded_time(seconds)
    return f"{number} {unit}"


def rounded_time(seconds: float) -> tuple[str, str]:
    """Seconds as a number and its unit: `s`, `min`, `h` or `days`."""
    for size, unit, digits in ((86_400, "days", 1), (3_600, "h", 1), (60, "min", 0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{digits}f}", unit
    return f"{seconds:.0f}", "s"
