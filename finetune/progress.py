"""How far a long training is: a bar on a terminal, now and then a line in a log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from malmoi.command_line import is_terminal

# Of a log that somebody follows: often enough to see life, seldom enough to read.
SECONDS_BETWEEN_LINES = 30.0


class CountSteps(Protocol):
    """Takes steps just done, with the name of the part they belong to."""

    def __call__(self, part: str, steps: int = 1) -> None: ...


@contextmanager
def training_progress(steps: int) -> Iterator[CountSteps]:
    """Yield a function to call after one or several of `steps`."""
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
        yield lambda part, steps=1: bar.update(task, advance=steps, description=part)


def _lines(steps: int) -> CountSteps:
    all_steps = steps
    done = skipped = 0
    began: float | None = None
    shown_at = time.monotonic()

    def advance(part: str, steps: int = 1) -> None:
        nonlocal done, skipped, began, shown_at
        now = time.monotonic()
        done += steps
        if steps > 1 or began is None:  # of an earlier run, or saved by early stopping
            skipped += steps
            began = began or now
        if now - shown_at >= SECONDS_BETWEEN_LINES:
            shown_at = now
            left = ""
            if done > skipped:
                each = (now - began) / (done - skipped)
                left = f", about {duration(each * (all_steps - done))} left"
            print(
                f"{part}: step {done:,} of {all_steps:,} ({done / all_steps:.0%}){left}", flush=True
            )

    return advance


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "12 min", "3.5 h", "4.2 days"."""
    for size, unit, digits in ((86_400, "days", 1), (3_600, "h", 1), (60, "min", 0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds:.0f} s"
