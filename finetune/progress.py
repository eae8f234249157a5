"""How far a long training is: a bar on a terminal, now and then a line in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from corpora.command_line import is_terminal

# Of a log that somebody follows: often enough to see life, seldom enough to read.
SECONDS_BETWEEN_LINES = 30.0

Advance = Callable[[str], None]


@contextmanager
def training_progress(steps: int) -> Iterator[Advance]:
    """Yield a function to call after each of `steps`, with the name of the current part."""
    if not is_terminal():
        yield _lines(steps)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("", total=steps)
        yield lambda part: bar.update(task, advance=1, description=part)


def _lines(steps: int) -> Advance:
    done = 0
    shown_at = time.monotonic()

    def advance(part: str) -> None:
        nonlocal done, shown_at
        done += 1
        if time.monotonic() - shown_at >= SECONDS_BETWEEN_LINES:
            shown_at = time.monotonic()
            print(f"{part}: step {done:,} of {steps:,} ({done / steps:.0%})", flush=True)

    return advance
