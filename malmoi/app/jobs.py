"""Long work of the app: begun by a click, seen from every page, ended by a button.

A thread of the server does what needs the server (`Jobs`): an upload, a table in memory, the
process that learns. A process of its own does what takes hours (`ProcessJob`); neither the app's
end nor a closed terminal ends it. Both say how far they are in numbers, and what failed in a line.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from malmoi.errors import ERROR_VARIABLE, InputError, UnexpectedError
from malmoi.files import write_at_once
from malmoi.labels.connection import from_any_folder
from malmoi.model_folders import read_json
from malmoi.paths import runs
from malmoi.progress import PROGRESS_VARIABLE

if TYPE_CHECKING:
    from sqlalchemy import Engine

logger = logging.getLogger(__name__)

# Names the work: what kind, of which project, and whose or of which database.
Key = tuple[str, int, str]

_LOG, _PROGRESS, _ERROR, _CANCELLED = "log.txt", "progress.json", "error.json", "cancelled"
# The end of a log that is read: enough for a line of an error.
_TAIL_BYTES = 20_000
# Those that this process started: who is not asked about stays a zombie when it ends.
_STARTED: list[subprocess.Popen[bytes]] = []


class StoppedError(Exception):
    """Somebody has asked for the work to end."""


@dataclass(kw_only=True)
class Job:
    """Work of a thread on its way, or its end.

    Attributes:
        key: names it.
        people: who began it, by all names of theirs.
        keeps: what belongs to it, such as files that must not go before it has ended.
        phase: what is done at the moment.
        done: of it, so far.
        total: of it; None where nobody knows yet.
        ended: seconds since 1970; None while it goes on.
        result: what it gave; None of one that was stopped, or cut off by the end of its server.
        error: why it gave nothing, in one line.
        again: whether it was asked for once more while it goes on.
        stop: set by whoever wants it to end.
    """

    key: Key
    people: set[str] = field(default_factory=set)
    keeps: Any = None
    phase: str = ""
    done: int = 0
    total: int | None = None
    ended: float | None = None
    result: Any = None
    error: InputError | None = None
    again: bool = False
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


class Jobs:
    """The jobs of one server; the latest of each key is kept until somebody has seen it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[Key, Job] = {}

    def start(
        self,
        key: Key,
        work: Callable[[Job], Any],
        *,
        person: str = "",
        keeps: Any = None,
        again: bool = False,
        most_ended: int | None = None,
        recorded: bool = False,
    ) -> Job:
        """Begin work in a thread.

        Args:
            key: names it.
            work: gives the result; it calls `Job.report`.
            person: who begins it.
            keeps: see `Job`.
            again: where work of this key goes on, let it be done once more after that; the result
                of the one before stays until there is another.
            most_ended: jobs of this kind that are kept once they have ended; the oldest go first.
            recorded: a file says that it goes on, so that `of` can tell, after the end of a server,
                what that has cut off.

        Raises:
            InputError: work of this key goes on already.
        """
        job = Job(key=key, keeps=keeps, people={person})
        with self._lock:
            before = self._jobs.get(key)
            if before is not None and before.is_on:
                if not again:
                    raise InputError(
                        "expected no other work of this kind to go on; wait for its end"
                    )
                before.again = True
                return before
            if before is not None and again:
                job.result = before.result
            if most_ended is not None:
                ended = [
                    old for old, one in self._jobs.items() if old[0] == key[0] and not one.is_on
                ]
                for old in ended[: max(0, len(ended) - most_ended + 1)]:
                    del self._jobs[old]
            self._jobs[key] = job
        if recorded:
            server = {"pid": os.getpid(), "command": psutil.Process().cmdline()}
            write_at_once(_record_of(key), json.dumps(server))
        # A daemon: the server must be able to end.
        threading.Thread(target=self._run, args=(job, work), name=key[0], daemon=True).start()
        return job

    def of(self, key: Key) -> Job | None:
        """The latest of this key; one that the end of a server cut off has ended with nothing."""
        with self._lock:
            job = self._jobs.get(key)
        if job is None and (server := read_json(_record_of(key))):
            elsewhere = server["pid"] != os.getpid() and _is_running(**server)
            return None if elsewhere else Job(key=key, ended=0.0)
        return job

    def forget(self, key: Key) -> None:
        """Drop what has ended, with the files that it kept."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or not job.is_on:
                self._jobs.pop(key, None)
                _record_of(key).unlink(missing_ok=True)

    def _run(self, job: Job, work: Callable[[Job], Any]) -> None:
        while True:
            job.again, job.error, job.phase = False, None, ""
            try:
                job.result = work(job)
            except StoppedError:
                pass
            except InputError as error:
                logger.warning("%s of project %s failed: %s", job.key[0], job.key[1], error)
                job.error = error
            except Exception as error:
                logger.exception("unexpected error")
                job.error = UnexpectedError(error)
            with self._lock:
                if not job.again:
                    _record_of(job.key).unlink(missing_ok=True)
                    job.ended = time.time()
                    return


_JOBS = Jobs()


def jobs() -> Jobs:
    """Those of this server."""
    return _JOBS


def import_key(engine: Engine, project_id: int) -> Key:
    """Of the one import that a project of a database can have at a time."""
    return ("import", project_id, from_any_folder(engine.url).render_as_string(hide_password=True))


def _record_of(key: Key) -> Path:
    return runs("jobs") / f"{key[0]}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.json"


@dataclass(frozen=True, kw_only=True)
class ProcessProgress:
    """How far a process is: of which part, done of total, and seconds left where they are known."""

    part: str
    done: int
    total: int | None
    seconds_left: float | None


@dataclass(frozen=True, kw_only=True)
class ProcessJob:
    """A process that was started, or has ended.

    Attributes:
        name: of its folder in `runs/jobs`.
        command: what was run.
        pid: of the process, which leads a session.
        started_at: seconds since 1970.
    """

    name: str
    command: tuple[str, ...]
    pid: int
    started_at: float

    @property
    def folder(self) -> Path:
        """Where it is kept: what it said, and how far it is."""
        return runs("jobs") / self.name

    def is_running(self) -> bool:
        """Whether its process is there, and not one that got its number later."""
        return _is_running(self.pid, self.command)

    @property
    def was_cancelled(self) -> bool:
        """Whether somebody has ended it."""
        return (self.folder / _CANCELLED).exists()

    def said(self) -> list[str]:
        """The last lines of its log."""
        try:
            with (self.folder / _LOG).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
                text = file.read().decode("utf-8", errors="replace")
        except OSError:
            return []
        return [line.rstrip() for line in text.splitlines() if line.strip()]

    def progress(self) -> ProcessProgress | None:
        """What it last wrote; None before that."""
        found = read_json(self.folder / _PROGRESS)
        return ProcessProgress(**found) if found else None

    def error(self) -> InputError | None:
        """Why it failed; None of one that did not, or that was killed."""
        found = read_json(self.folder / _ERROR)
        return InputError.of_json(found) if found else None

    def cancel(self) -> None:
        """Ask it to end; a second time it is ended at once."""
        if not self.is_running():
            return
        is_posix = os.name == "posix"
        number = signal.SIGKILL if is_posix and self.was_cancelled else signal.SIGTERM
        (self.folder / _CANCELLED).touch()
        (os.killpg if is_posix else os.kill)(self.pid, number)


def start_process(name: str, command: Sequence[str], environment: Mapping[str, str]) -> ProcessJob:
    """Start a process in a session of its own, whose folder is `runs/jobs/NAME`."""
    folder = runs("jobs").absolute() / name
    for left in (_CANCELLED, _PROGRESS, _ERROR):
        (folder / left).unlink(missing_ok=True)
    more = {
        PROGRESS_VARIABLE: str(folder / _PROGRESS),
        ERROR_VARIABLE: str(folder / _ERROR),
        "PYTHONUNBUFFERED": "1",
    }
    with (folder / _LOG).open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **environment, **more},
        )
    _STARTED.append(process)
    return ProcessJob(name=name, command=tuple(command), pid=process.pid, started_at=time.time())


def _is_running(pid: int, command: Sequence[str]) -> bool:
    """Whether there is a process of this number that runs this command."""
    _STARTED[:] = [process for process in _STARTED if process.poll() is None]
    try:
        process = psutil.Process(pid)
        # Its first word is the interpreter, which a launcher may name otherwise.
        runs_it = process.cmdline()[1:] == list(command)[1:]
        return runs_it and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
