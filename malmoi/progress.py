"""How far long work is: a bar on a terminal, now and then a plain line in a log."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

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
# What somebody waits for without a bar.
_SECONDS_WITHOUT_BAR = 2.0

# Called with how many are done, and how many there are.
OnBatch = Callable[[int, int], None]


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


def in_notebook() -> bool:
    """Whether what is printed goes to the kernel of a notebook."""
    return type(sys.stdout).__module__.startswith("ipykernel.")


@contextmanager
def progress_of_batches(wanted: OnBatch | bool | None) -> Iterator[OnBatch | None]:
    """What a loop calls after every batch; shown only once it has taken some seconds.

    Args:
        wanted: whether to show it, None: where somebody is there to look; or what to call instead.
    """
    if wanted is None:
        # Threads are of a server or of the app, whose users look elsewhere.
        is_main = threading.current_thread() is threading.main_thread()
        wanted = is_main and (in_notebook() or is_terminal())
    if callable(wanted) or not wanted:
        yield wanted or None
        return
    began, shows = time.monotonic(), list[Progress]()
    with ExitStack() as stack:

        def on_batch(done: int, total: int) -> None:
            if not shows and time.monotonic() - began > _SECONDS_WITHOUT_BAR:
                shows.append(stack.enter_context(shown_progress()))
            for show in shows:
                show("predicting", done, total)

        yield on_batch


@contextmanager
def shown_progress(unit: str = "texts") -> Iterator[Progress]:
    """Progress on standard output; `unit` is what is counted, `BYTES` in KB and MB."""
    if in_notebook():
        from tqdm.auto import tqdm

        with tqdm(unit=f" {unit}", leave=False, dynamic_ncols=True) as bar:
            yield lambda part, done, total=None, *, skipped=0: _draw(bar, part, done, total)
        return
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


def _draw(bar: Any, part: str, done: int, total: int | None) -> None:
    if total != bar.total:
        bar.total = total
        bar.refresh()
    if part != bar.desc.removesuffix(": "):
        bar.set_description(part, refresh=False)
    bar.update(done - bar.n)


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
