"""Cards that are open on this server: their texts come back when they close, and none is taken away
that is on a screen."""

import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.leasing import return_leases

# After which a card that said nothing counts as gone, such as of a browser that was killed.
_HERE_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class _Card:
    """An open card, and the texts that come next on it."""

    access: ProjectAccess
    texts: Sequence[int]
    moment: float

    def is_of(self, access: ProjectAccess, *, person: bool) -> bool:
        """Whether it shows this project; with `person`, to the same one."""
        own = str(self.access.engine.url), self.access.project_id
        same = own == (str(access.engine.url), access.project_id)
        return same and (not person or self.access.person.name == access.person.name)


_cards: dict[str, _Card] = {}
_lock = threading.Lock()


def new_card() -> str:
    """A name for a card that nobody can guess: who knows it may close it."""
    return secrets.token_urlsafe(16)


def note_card(card: str, access: ProjectAccess, texts: Sequence[int]) -> None:
    """Take note that a card is open, with the texts that come next on it."""
    now = time.monotonic()
    with _lock:
        for name in [one for one, its in _cards.items() if now - its.moment > _HERE_SECONDS]:
            del _cards[name]
        _cards[card] = _Card(access=access, texts=texts, moment=now)


def on_screens(access: ProjectAccess) -> set[int]:
    """The texts of a project that somebody looks at, or will in a moment."""
    with _lock:
        return {
            text for its in _cards.values() if its.is_of(access, person=False) for text in its.texts
        }


def close_card(card: str) -> None:
    """Give the texts of a card back, unless the same person has another one open."""
    with _lock:
        closed = _cards.pop(card, None)
        if closed is None or any(one.is_of(closed.access, person=True) for one in _cards.values()):
            return
    # Who was taken out meanwhile, or whose project is gone, holds none any more. Where the database
    # cannot be reached nobody is there to be told, and leases end by themselves.
    with suppress(InputError):
        return_leases(closed.access)
