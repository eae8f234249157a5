"""The models of a server by name, and how another version takes the place of one that answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from malmoi.errors import InputError

if TYPE_CHECKING:
    from malmoi.inference.classifier import Classifier

# The name of the model that answers `/v1/predict` and Label Studio.
DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A model as it was loaded.

    Attributes:
        source: what it was loaded from: a run, a released model, a folder or a Hub id.
        version: tells its files from others.
    """

    name: str
    source: str
    version: str
    classifier: Classifier


class Models:
    """What answers under each name; who was let in keeps what it found.

    All methods are for the event loop's thread.
    """

    def __init__(
        self, models: Mapping[str, ServedModel], load: Callable[[str, str], ServedModel]
    ) -> None:
        """Begin with these, DEFAULT among them; `load` takes a name and a source."""
        self._found, self._load = dict(models), load
        # Of those at the beginning, by which the forms of requests are made.
        self._kinds = {
            each.name: (each.classifier.gives, each.classifier.reads_pairs) for each in self
        }
        self._turn = asyncio.Lock()

    def __getitem__(self, name: str) -> ServedModel:
        """What answers under a name now."""
        return self._found[name]

    def __iter__(self) -> Iterator[ServedModel]:
        """All of them, in the order in which they were given."""
        return iter(self._found.values())

    @property
    def busy(self) -> bool:
        """Whether one is being loaded."""
        return self._turn.locked()

    async def exchange(self, name: str, source: str) -> ServedModel:
        """Load a model in a thread, then let it answer; standard error says what became of it.

        Raises:
            InputError: it cannot be loaded, or is of another kind; the one before goes on.
        """
        async with self._turn:
            before = self[name]
            try:
                found = await asyncio.to_thread(self._load, name, source)
                self._check_kind(name, found.classifier)
            except Exception as error:
                line = " ".join(str(error).split())
                _say(f"{name}: {before.version} goes on; {source} is not taken: {line}")
                if isinstance(error, OSError):  # a name that is too long for one
                    raise InputError(line) from error
                raise
            self._found[name] = found
            same = found.version == before.version
            _say(f"{name}: {found.version}" + (", as before" if same else f" for {before.version}"))
            return found

    async def read_anew(self) -> None:
        """Load each from where it came; what cannot be loaded goes on as it is."""
        for served in list(self):
            try:
                await self.exchange(served.name, served.source)
            except Exception:
                continue  # it was said

    def _check_kind(self, name: str, found: Classifier) -> None:
        gives, reads_pairs = self._kinds[name]
        if found.gives != gives:
            raise InputError(
                "expected a model that gives {expected}, found one that gives {found}; start a "
                "server with it, or give it a name of its own there by --also",
                expected=gives,
                found=found.gives,
            )
        # None is of a model that does not say: it is asked both.
        if found.reads_pairs not in (None, bool(reads_pairs)):
            raise InputError(
                "expected a model that reads {expected}, found one that reads {found}; start a "
                "server with it, or give it a name of its own there by --also",
                expected="pairs" if reads_pairs else "single texts",
                found="pairs" if found.reads_pairs else "single texts",
            )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
