"""How far a long stage is: redrawn in place on a terminal, plain lines in a log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console

from malmoi.command_line import is_terminal

SECONDS_BETWEEN_LINES = 10.0


class Progress(Protocol):
    """Told what is going on.

    Args of a call: the stage, the number done in it, and of how many (None: nobody knows yet).
    """

    def __call__(self, stage: str, done: int, total: int | None = None) -> None: ...


def no_progress(stage: str, done: int, total: int | None = None) -> None:
    """Say nothing."""


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Progress on standard output: a line that moves on a terminal, else one every 10 seconds."""
    began = time.monotonic()
    last_line = began

    def line(stage: str, done: int, total: int | None) -> str:
        of = f" of {total:,}" if total is not None else ""
        return f"{stage}: {done:,}{of} texts, {time.monotonic() - began:,.0f} s"

    if is_terminal():
        with Console().status("") as status:
            yield lambda stage, done, total=None: status.update(line(stage, done, total))
        return

    def print_line(stage: str, done: int, total: int | None = None) -> None:
        nonlocal last_line
        now = time.monotonic()
        if now - last_line >= SECONDS_BETWEEN_LINES:
            print(line(stage, done, total), flush=True)
            last_line = now

    yield print_line
