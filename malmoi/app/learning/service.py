"""Learning beside the pages of a server: asked for here, done in a process of its own.

What a page calls returns at once. A round that is due is put in a line, once for a project however
often it is asked for, and one thread hands the line to the process (`malmoi.app.learning.worker`).
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from malmoi.app.learning.due import LABELS_A_ROUND
from malmoi.errors import InputError

if TYPE_CHECKING:
    from malmoi.app.visit import OpenProject
    from malmoi.labels.access import ProjectAccess

logger = logging.getLogger(__name__)

# `off` where the machine has no memory to spare: people then label without suggestions.
LEARNING_VARIABLE = "MALMOI_LEARNING"
# Half a gigabyte of a process that nobody has needed for so long is given back.
_IDLE_SECONDS = 900.0
_ROOT = Path(__file__).resolve().parents[3]

Job = Literal["learn", "alike"]
_Key = tuple[str, int, Job]


@dataclass(frozen=True, kw_only=True)
class LearningState:
    """What learning does for a project now, and did last on this server.

    Attributes:
        status: nothing; in line; at work.
        since: of the clock, when the work began, in seconds since 1970; None while idle.
        result: of the last round, as `malmoi.app.learning.rounds.LearningResult.as_json` has it.
        error: why the last one failed, in one line; None where it did not.
    """

    status: Literal["idle", "waiting", "running"] = "idle"
    since: float | None = None
    result: dict[str, Any] | None = None
    error: str | None = None


class LearningService:
    """The line of jobs of one server, and the process that does them; safe from several threads."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Nothing is started until the first job.

        Args:
            idle_seconds: after which the process is ended when nothing is asked of it.
        """
        self._idle_seconds = idle_seconds
        self._changed = threading.Condition()
        self._line: OrderedDict[_Key, bool] = OrderedDict()  # whether somebody asked for it
        self._states: dict[_Key, LearningState] = {}
        self._since_round: dict[_Key, int] = {}
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None

    @property
    def process_id(self) -> int | None:
        """Of the process that learns, while there is one."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def count(self, url: str, project_id: int, labels: int) -> None:
        """Take note of new labels; a round is asked for at the first one and after every so many.

        The first, for nobody knows how many were new when the server started; it may find that
        there are too few, and then reads ahead.
        """
        key: _Key = (url, project_id, "learn")
        with self._changed:
            known = key in self._since_round
            new = self._since_round.get(key, 0) + labels
            due = not known or new >= LABELS_A_ROUND
            self._since_round[key] = 0 if due and known else new
        if due:
            self.ask(url, project_id, "learn")

    def ask(self, url: str, project_id: int, job: Job, *, forced: bool = False) -> None:
        """Put a job in line; one that is there already stays where it is."""
        key: _Key = (url, project_id, job)
        with self._changed:
            self._line[key] = self._line.get(key, False) or forced
            state = self._states.get(key, LearningState())
            if state.status == "idle":
                self._states[key] = replace(state, status="waiting", since=time.time())
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="malmoi-learning", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def state(self, url: str, project_id: int, job: Job = "learn") -> LearningState:
        """What is being done for a project."""
        with self._changed:
            return self._states.get((url, project_id, job), LearningState())

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._line:
                    if not self._changed.wait(self._idle_seconds):
                        self._end_process()
                key, forced = self._line.popitem(last=False)
                before = self._states.get(key, LearningState())
                self._states[key] = replace(before, status="running", since=time.time())
                counted = self._since_round.get(key, 0)
            try:
                after = LearningState(result=self._done(key, forced))
            except InputError as error:
                logger.warning("learning of project %s failed: %s", key[1], error)
                after = LearningState(result=before.result, error=str(error))
            with self._changed:
                if after.error is None and after.result is not None and "new" in after.result:
                    # What was counted here may have been corrections, or saved elsewhere; what came
                    # while the round ran may have been too late for it.
                    came = max(0, self._since_round.get(key, 0) - counted)
                    self._since_round[key] = after.result["new"] + came
                    if came and self._since_round[key] >= LABELS_A_ROUND:
                        self._line.setdefault(key, False)
                if key in self._line:
                    after = replace(after, status="waiting", since=time.time())
                self._states[key] = after

    def _done(self, key: _Key, forced: bool) -> dict[str, Any]:
        """The result of a job; a process that died on the way is replaced once.

        Raises:
            InputError: it failed, in one line, or two processes died.
        """
        url, project_id, job = key
        request = {"job": job, "url": url, "project": project_id, "forced": forced}
        for _ in range(2):
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(f"{json.dumps(request)}\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = ""
            if line:
                reply: dict[str, Any] = json.loads(line)
                if "error" in reply:
                    raise InputError(reply["error"])
                found: dict[str, Any] = reply["result"]
                return found
            ended = process.wait()
            logger.warning("the process that learns ended with %s; a new one is started", ended)
            self._process = None
        raise InputError(
            "the process that learns ended twice, the last time with {ended}; the server's log "
            "says more. Memory may be short: see the free memory of the machine",
            ended=ended,
        )

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            places = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
            # One thread: with more, the small matrices of a fit took ten times as long beside
            # other work (measured, two cores).
            settings = {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "malmoi.app.learning.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **settings},
                text=True,
                encoding="utf-8",
            )
        return self._process

    def _end_process(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None


_SERVICE = LearningService()


def is_on() -> bool:
    """Whether this server learns."""
    return os.environ.get(LEARNING_VARIABLE, "").lower() != "off"


def after_labels(open_project: OpenProject, labels: int = 1) -> None:
    """Say that so many labels were just saved; nothing is read, and it returns at once."""
    if is_on():
        _SERVICE.count(_url(open_project), open_project.access.project_id, labels)


def learn_now(open_project: OpenProject) -> None:
    """Ask for a round, however few labels are new.

    Raises:
        InputError: learning is off, or the person is no member.
    """
    if not is_on():
        raise InputError(
            "expected a server that learns, found {variable}=off; start it without",
            variable=LEARNING_VARIABLE,
        )
    with open_project.access.reading():
        pass
    _SERVICE.ask(_url(open_project), open_project.access.project_id, "learn", forced=True)


def find_alike(access: ProjectAccess) -> None:
    """Ask for the groups of texts that are nearly the same, as after an import.

    Raises:
        AccessError: the person is no admin.
    """
    with access.reading("admin"):
        pass
    if is_on():
        _SERVICE.ask(_url_of(access), access.project_id, "alike")


def after_import(access: ProjectAccess) -> None:
    """Ask for a round after an import: labels may have come with it, or a chosen model suggests.

    Raises:
        AccessError: the person is no admin.
    """
    with access.reading("admin"):
        pass
    if is_on():
        _SERVICE.ask(_url_of(access), access.project_id, "learn")


def state(open_project: OpenProject, job: Job = "learn") -> LearningState:
    """What is being done for a project now, and what was done last on this server."""
    return _SERVICE.state(_url(open_project), open_project.access.project_id, job)


def _url(open_project: OpenProject) -> str:
    return _url_of(open_project.access)


def _url_of(access: ProjectAccess) -> str:
    return access.engine.url.render_as_string(hide_password=False)
