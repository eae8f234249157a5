"""What a fetch says about its files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from malmoi.progress import BYTES, shown_progress

Advance = Callable[[int, int | None], None]


class FetchProgress:
    """Says on standard output what happens to which file."""

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
    def file(self, name: str) -> Iterator[Advance]:
        """Around the fetch of one file; yields what to call with bytes there and bytes in all."""
        with shown_progress(BYTES) as progress:
            yield lambda there, total: progress(name, there, total)
