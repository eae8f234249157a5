"""Long work of the server for its visitors: it goes on when they change the page or come back.

A thread and no process: what is done here waits for the database and the disk. An import that dies
with the server goes on where it stopped once the same files are given again.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from malmoi.errors import InputError

logger = logging.getLogger(__name__)

# Names the work: what kind, of which project, and whose where each person has their own.
Key = tuple[str, int, str]


class StoppedError(Exception):
    """Somebody has asked for the work to end."""


@dataclass(kw_only=True)
class Running:
    """Work on its way, or its end.

    Attributes:
        phase: what is done at the moment.
        done: of it, so far.
        total: of it; None where nobody knows yet.
        began: by `time.monotonic`, seconds.
        ended: the same; None while it goes on.
        result: what it gave.
        error: why it gave nothing.
        keeps: files that must not go before it has ended.
        person: who began it.
    """

    phase: str = ""
    done: int = 0
    total: int | None = None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    result: Any = None
    error: InputError | None = None
    keeps: Any = None
    person: str = ""
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def is_on(self) -> bool:
        """Whether it goes on."""
        return self.ended is None

    def report(self, phase: str, done: int, total: int | None) -> None:
        """Say how far it is.

        Raises:
            StoppedError: it is to end here.
        """
        self.phase, self.done, self.total = phase, done, total
        if self.stop.is_set():
            raise StoppedError

    def wait(self, seconds: float) -> bool:
        """Wait for the end, for so long at most; whether it has come."""
        end = time.monotonic() + seconds
        while self.is_on and time.monotonic() < end:
            time.sleep(0.02)
        return not self.is_on


class Works:
    """All work of this server; the latest of each key is kept until somebody has seen it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: dict[Key, Running] = {}

    def start(
        self, key: Key, work: Callable[[Running], Any], *, keeps: Any = None, person: str = ""
    ) -> Running:
        """Begin work in a thread.

        Raises:
            InputError: work of this key goes on already.
        """
        running = Running(keeps=keeps, person=person)
        with self._lock:
            before = self._works.get(key)
            if before is not None and before.is_on:
                raise InputError("expected no other work of this kind to go on; wait for its end")
            self._works[key] = running
        # A daemon: the server must be able to end.
        threading.Thread(target=_run, args=(running, work), name=key[0], daemon=True).start()
        return running

    def of(self, key: Key) -> Running | None:
        """The latest of this key."""
        with self._lock:
            return self._works.get(key)

    def forget(self, key: Key) -> None:
        """Drop what has ended, with the files that it kept."""
        with self._lock:
            found = self._works.get(key)
            if found is not None and not found.is_on:
                del self._works[key]


def _run(running: Running, work: Callable[[Running], Any]) -> None:
    try:
        running.result = work(running)
    except StoppedError:
        pass
    except InputError as error:
        running.error = error
    except Exception as error:
        logger.exception("unexpected error")
        running.error = InputError(
            "unexpected {kind}; the log says more", kind=type(error).__name__
        )
    finally:
        running.ended = time.monotonic()


@st.cache_resource(show_spinner=False)
def works() -> Works:
    """Those of this server."""
    return Works()


def import_key(project_id: int) -> Key:
    """Of the one import that a project can have at a time."""
    return ("import", project_id, "")
