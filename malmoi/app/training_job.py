"""Training as a process of its own: started here, and found again by whoever looks, later too.

A job is a folder in `runs/jobs`: `job.json` says what was started, `log.txt` what it said. The
process has a session of its own, so that neither the app's end nor a closed terminal ends it. Where
the labels are is told to it in its environment: the password of a database stands neither on a
command line nor in a file.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock

from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.labels.access import ProjectAccess
from malmoi.labels.database import DATABASE_VARIABLE, as_part, without_password
from malmoi.labels.projects import read_project
from malmoi.model_folders import has_weights, is_linear_alone, read_json
from malmoi.paths import runs

_RECORD, _LOG, _CANCELLED = "job.json", "log.txt", "cancelled"
# The end of a log that is read: enough for a line of an error.
_TAIL_BYTES = 20_000
# As `malmoi.progress` writes it: "fold 1: 120 of 1,000 (12%) steps, 40 s, about 3 min left".
_PROGRESS = re.compile(r"(?P<part>.+?): (?P<done>[\d,]+) of (?P<total>[\d,]+) \(\d+%\) .*")
_LEFT = re.compile(r"about (.+) left$")
# Those that this process started, so that they leave no zombie.
_STARTED: dict[int, subprocess.Popen[bytes]] = {}

JobStatus = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class JobProgress:
    """How far a job is: of which part, done of total, and how long it will take in words."""

    part: str
    done: int
    total: int
    left: str


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A training that was started.

    Attributes:
        name: of its folder.
        database: whose labels, without a password.
        project: its id there.
        command: what was run.
        output: folder of the run that it makes.
        quick: whether only the linear model is fitted.
        pid: of the process, which leads a session.
        process_start: tells it from a later process of the same number; "" where nobody knows.
        started_at: seconds since 1970.
    """

    name: str
    database: str
    project: int
    command: tuple[str, ...]
    output: str
    quick: bool
    pid: int
    process_start: str
    started_at: float

    @property
    def folder(self) -> Path:
        """Where the job is kept."""
        return runs("jobs") / self.name

    @property
    def model(self) -> Path:
        """The classifier that it makes."""
        return Path(self.output) / "model"

    def status(self) -> JobStatus:
        """What has become of it."""
        if self.is_running():
            return "running"
        if (Path(self.output) / "report.json").is_file() and (
            has_weights(self.model) or is_linear_alone(self.model)
        ):
            return "done"
        return "cancelled" if (self.folder / _CANCELLED).exists() else "failed"

    def is_running(self) -> bool:
        """Whether its process is there, and not one that got its number later."""
        own = _STARTED.get(self.pid)
        if own is not None and own.poll() is not None:
            del _STARTED[self.pid]
            return False
        return _is_alive(self.pid) and _process_start(self.pid) == self.process_start

    def said(self) -> list[str]:
        """The last lines of its log."""
        return _tail(self.folder / _LOG)

    def progress(self) -> JobProgress | None:
        """By its last line about it; None before the first."""
        for line in reversed(self.said()):
            if found := _PROGRESS.fullmatch(line):
                left = _LEFT.search(line)
                return JobProgress(
                    part=found["part"],
                    done=int(found["done"].replace(",", "")),
                    total=int(found["total"].replace(",", "")),
                    left=left[1] if left else "",
                )
        return None

    def cancel(self) -> None:
        """End it; the folds that are done are kept, and `start_again` goes on from them.

        A second time it is ended at once.
        """
        if not self.is_running():
            return
        mark = self.folder / _CANCELLED
        number = signal.SIGTERM if not mark.exists() or os.name != "posix" else signal.SIGKILL
        mark.touch()
        if os.name == "posix":
            os.killpg(self.pid, number)
        else:
            os.kill(self.pid, number)


def start_training(access: ProjectAccess, *, quick: bool = False) -> TrainingJob:
    """Train on the labels of a project: `finetune/kfold.py` in a process of its own.

    Args:
        access: of a reviewer, for a model can tell what its texts were.
        quick: fit the linear model only, which takes a minute.

    Raises:
        InputError: the person is no reviewer, or a training of the project is running.
    """
    with access.reading("reviewer"):
        project = read_project(access)
    place = runs("jobs")
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".lock"):
        _refuse_second(access)
        stem = re.sub(r"\W+", "-", project.name).strip("-") or "project"
        name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
        number = 1
        while (place / name).exists() or (runs("finetune") / name).exists():
            number += 1
            name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}-{number}"
        output = runs("finetune").resolve() / name
        command = [
            sys.executable,
            "-m",
            "malmoi.finetune.kfold",
            "--data",
            f"{DATABASE_VARIABLE}#{as_part(project.name)}",
            "--output",
            str(output),
            *(["--task", "multi"] if project.kind == "multi" else []),
            *(["--quick"] if quick else []),
        ]
        (place / name).mkdir()
        return _run(access, name, command, output, quick)


def start_again(access: ProjectAccess, job: TrainingJob) -> TrainingJob:
    """Give the same command again: finished folds are kept, if no label has changed since.

    Raises:
        InputError: as `start_training`.
    """
    with access.reading("reviewer"), FileLock(runs("jobs") / ".lock"):
        _refuse_second(access)
        (job.folder / _CANCELLED).unlink(missing_ok=True)
        return _run(access, job.name, job.command, Path(job.output), job.quick)


def training_jobs(access: ProjectAccess) -> list[TrainingJob]:
    """The jobs of a project, the newest first; those whose record cannot be read are left out.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading():
        pass
    found = []
    for record in runs("jobs").glob(f"*/{_RECORD}"):
        values = read_json(record)
        try:
            job = TrainingJob(**{**values, "command": tuple(values["command"])})
        except (KeyError, TypeError):
            continue
        if (job.database, job.project) == (_database(access), access.project_id):
            found.append(job)
    return sorted(found, key=lambda job: job.started_at, reverse=True)


def _refuse_second(access: ProjectAccess) -> None:
    running = [job for job in training_jobs(access) if job.is_running()]
    if running:
        raise InputError(
            "expected no training of the project, found {training}, which is running; wait until "
            "it ends, or cancel it",
            training=running[0].name,
        )


def _run(
    access: ProjectAccess, name: str, command: Sequence[str], output: Path, quick: bool
) -> TrainingJob:
    folder = runs("jobs") / name
    url = access.engine.url.render_as_string(hide_password=False)
    if access.engine.url.get_backend_name() == "sqlite":
        # The process need not stand in our folder.
        file = Path(access.engine.url.database or "").resolve()
        url = access.engine.url.set(database=str(file)).render_as_string()
    with (folder / _LOG).open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, DATABASE_VARIABLE: url, "PYTHONUNBUFFERED": "1"},
        )
    _STARTED[process.pid] = process
    job = TrainingJob(
        name=name,
        database=_database(access),
        project=access.project_id,
        command=tuple(command),
        output=str(output),
        quick=quick,
        pid=process.pid,
        process_start=_process_start(process.pid),
        started_at=time.time(),
    )
    write_at_once(folder / _RECORD, json.dumps(asdict(job), ensure_ascii=False, indent=1) + "\n")
    return job


def _database(access: ProjectAccess) -> str:
    return without_password(access.engine.url.render_as_string(hide_password=True))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return False
    # A zombie whose parent does not look has ended.
    return _stat(pid)[:1] != ["Z"]


def _process_start(pid: int) -> str:
    """When the process began, in ticks since the machine started; "" where there is no /proc."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on; proc(5)."""
    try:
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2]
            .split()
        )
    except OSError:
        return []


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()]
