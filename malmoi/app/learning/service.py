"""Learning beside the pages of a server: asked for here, done in a process of its own.

What a page calls returns at once. A round that is due is a job (`malmoi.app.jobs`), one for a
project however often it is asked for. Jobs take turns at the process that learns
(`malmoi.app.learning.worker`).
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from malmoi.app.jobs import Job, Jobs, Key
from malmoi.errors import InputError
from malmoi.inference.labelling.labels_needed import LABELS_A_ROUND
from malmoi.paths import checkpoint

if TYPE_CHECKING:
    from malmoi.labels.access import ProjectAccess

logger = logging.getLogger(__name__)

# `off` where the machine has no memory to spare: people then label without suggestions.
LEARNING_VARIABLE = "MALMOI_LEARNING"
# The phase of a job whose turn it is; before that it waits.
LEARNING = "learning"
_ROOT = Path(__file__).resolve().parents[3]

Kind = Literal["learn", "alike", "vectors"]
# Between two parts of a long job, so that another one gets its turn.
_BREAK_SECONDS = 0.2


class LearningService:
    """The jobs of one server, and the process that does them; safe from several threads."""

    def __init__(self) -> None:
        """Nothing is started until the first job."""
        self._jobs = Jobs()
        self._turn = threading.Lock()  # at the process
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()  # of what follows
        self._since_round: dict[Key, int] = {}
        self._forced: set[Key] = set()

    def count(self, url: str, project_id: int, labels: int) -> None:
        """Take note of new labels; a round is asked for at the first one and after every so many.

        The first, for nobody knows how many were new when the server started; it may find that
        there are too few, and then reads ahead.
        """
        key = _key("learn", url, project_id)
        with self._lock:
            known = key in self._since_round
            new = self._since_round.get(key, 0) + labels
            due = not known or new >= LABELS_A_ROUND
            self._since_round[key] = 0 if due and known else new
        if due:
            self.ask(url, project_id, "learn")

    def ask(self, url: str, project_id: int, kind: Kind, *, forced: bool = False) -> None:
        """Ask for a job, which one that waits already is; one that is at work is done again."""
        key = _key(kind, url, project_id)
        if forced:
            with self._lock:
                self._forced.add(key)
        self._jobs.start(key, self._learn, again=True)

    def state(self, url: str, project_id: int, kind: Kind = "learn") -> Job:
        """What is being done for a project, or was done last on this server.

        Its result is that of the last round, as `malmoi.app.learning.rounds.LearningResult.as_json`
        has it.
        """
        key = _key(kind, url, project_id)
        return self._jobs.of(key) or Job(key=key, ended=0.0)

    def _learn(self, job: Job) -> dict[str, Any]:
        if job.key[0] == "vectors":
            time.sleep(_BREAK_SECONDS)
        with self._turn:
            # Whoever asked while it waited gets this round.
            job.again, job.phase = False, LEARNING
            with self._lock:
                forced, counted = job.key in self._forced, self._since_round.get(job.key, 0)
                self._forced.discard(job.key)
            kind, project_id, url = job.key
            result = self._answer(
                {"job": kind, "url": url, "project": project_id, "forced": forced}
            )
        if "done" in result:
            # The rest of it, after whatever else waits.
            job.done, job.total = result["done"], result["total"]
            job.again = job.again or job.done < job.total
        if "new" in result:
            with self._lock:
                # What was counted here may have been corrections, or saved elsewhere; what came
                # while the round ran may have been too late for it.
                came = max(0, self._since_round.get(job.key, 0) - counted)
                self._since_round[job.key] = result["new"] + came
                job.again = job.again or (came > 0 and result["new"] + came >= LABELS_A_ROUND)
        return result

    def fill(self, job: Job, url: str, project_id: int, texts: int, **more: Any) -> dict[str, Any]:
        """Let the process fill files, within a job of the app; see `rounds.Learner.fill`.

        Raises:
            InputError: as `_answer`.
            StoppedError: somebody has ended the job.
        """
        request = {"job": "fill", "url": url, "project": project_id, "after": 0, **more}
        while True:
            with self._turn:
                result = self._answer(request)
            if "after" not in result:
                return result
            job.report("texts", job.done + result["read"], texts)
            request["after"] = result["after"]
            time.sleep(_BREAK_SECONDS)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the process says; one that died on the way is replaced once.

        Raises:
            InputError: it failed, in one line, or two processes died.
        """
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
                    raise InputError.of_json(reply["error"])
                found: dict[str, Any] = reply["result"]
                return found
            ended = process.wait()
            logger.warning("the process that learns ended with %s; a new one is started", ended)
        raise InputError(
            "the process that learns ended twice, the last time with {ended}; the server's log "
            "says more. Memory may be short: see the free memory of the machine",
            ended=ended,
        )

    def forget(self) -> None:
        """End the process with all that it holds of texts; the next job starts another one."""
        if self._process is not None:
            self._process.terminate()

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


def _key(kind: Kind, url: str, project_id: int) -> Key:
    return (kind, project_id, url)


_SERVICE = LearningService()


def is_on() -> bool:
    """Whether this server learns."""
    return os.environ.get(LEARNING_VARIABLE, "").lower() != "off"


def after_labels(access: ProjectAccess, labels: int = 1) -> None:
    """Say that so many labels were just saved; nothing is read, and it returns at once."""
    if is_on():
        _SERVICE.count(_url(access), access.project_id, labels)


def learn_now(access: ProjectAccess) -> None:
    """Ask for a round, however few labels are new.

    Raises:
        InputError: learning is off, or the person is no member.
    """
    if not is_on():
        raise InputError(
            "expected a server that learns, found {variable}=off; start it without",
            variable=LEARNING_VARIABLE,
        )
    with access.reading():
        pass
    _SERVICE.ask(_url(access), access.project_id, "learn", forced=True)


def after_import(access: ProjectAccess) -> None:
    """Ask for a round, then for the groups of texts that are nearly the same, then for vectors.

    Labels may have come with an import, and where a chosen model suggests, somebody waits for it.

    Raises:
        AccessError: the person is no admin.
    """
    with access.reading("admin"):
        pass
    if is_on():
        for kind in ("learn", "alike", "vectors"):
            _SERVICE.ask(_url(access), access.project_id, kind)


def reads_meaning() -> bool:
    """Whether this server can tell which texts are alike in meaning."""
    from malmoi.inference.vectors.sentence_encoder import NAME

    return is_on() and checkpoint(NAME).is_dir()


def ask_for_vectors(access: ProjectAccess) -> Job:
    """How far the vectors of a project's texts are; those that are missing are asked for.

    Args:
        access: of a member, to a project some of whose texts have no vector.
    """
    key = _url(access), access.project_id
    if is_on() and not _SERVICE.state(*key, "vectors").is_on:
        _SERVICE.ask(*key, "vectors")
    return _SERVICE.state(*key, "vectors")


def vectors_of(access: ProjectAccess) -> Job:
    """How far the vectors of a project's texts are; nothing is asked for."""
    return _SERVICE.state(_url(access), access.project_id, "vectors")


def fill(
    job: Job, access: ProjectAccess, model: str, files: Sequence[Path], texts: int
) -> dict[str, Any]:
    """Label the texts of a project that nobody has; see `malmoi.labels.filled_export.Filled`.

    Args:
        job: says how far it is.
        access: of a reviewer.
        model: see `malmoi.inference.labelling.filling.model_that_fills`.
        files: to be written.

    Raises:
        InputError: as `malmoi.app.learning.rounds.Learner.fill`.
        StoppedError: somebody has ended the job.
    """
    more = {"model": model, "files": [str(file.absolute()) for file in files]}
    return _SERVICE.fill(job, _url(access), access.project_id, texts, **more)


def forget() -> None:
    """Let go of all that was read of texts: something was erased for good."""
    _SERVICE.forget()


def state(access: ProjectAccess) -> Job:
    """What is being done for a project now, or was done last on this server."""
    return _SERVICE.state(_url(access), access.project_id)


def _url(access: ProjectAccess) -> str:
    return access.engine.url.render_as_string(hide_password=False)
