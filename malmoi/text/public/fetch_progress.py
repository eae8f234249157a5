"""What a fetch shows: a bar for each file on a terminal, plain lines in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from malmoi.command_line import is_terminal

_SECONDS_BETWEEN_LINES = 10.0

Advance = Callable[[int, int | None], None]


class FetchProgress:
    """Says on standard output what happens to which file."""

    def __init__(self) -> None:
        self._terminal = is_terminal()

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, flush=True)

    def kept(self, name: str, note: str) -> None:
        """A file was there and is right, or is a variant that a note describes."""
        self.say(f"{name}: already there, {note or 'and right'}")

    def missing(self, name: str) -> None:
        """A file is not in the mirror."""
        self.say(f"{name}: not in the mirror")

    @contextmanager
    def file(self, name: str, size: int | None) -> Iterator[Advance]:
        """Around the fetch of one file; yields what to call with bytes there and bytes in all."""
        with self._bar(name, size) if self._terminal else self._lines(name) as advance:
            yield advance

    @contextmanager
    def _bar(self, name: str, size: int | None) -> Iterator[Advance]:
        columns = (
            *(TextColumn("{task.description}"), BarColumn(), DownloadColumn()),
            *(TransferSpeedColumn(), TimeRemainingColumn()),
        )
        with Progress(*columns) as progress:
            task = progress.add_task(name, total=size)
            yield lambda there, total: progress.update(task, completed=there, total=total)
            progress.update(task, total=progress.tasks[0].completed or None)

    @contextmanager
    def _lines(self, name: str) -> Iterator[Advance]:
        last = time.monotonic()

        def advance(there: int, total: int | None) -> None:
            nonlocal last
            if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                self.say(f"{name}: {there:,}{f' of {total:,}' if total else ''} bytes")

        yield advance
