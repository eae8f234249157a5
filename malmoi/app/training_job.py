"""Training as a process of its own: started here, and found again by whoever looks, later too.

The folder of the job has `job.json` beside what `malmoi.app.jobs` keeps there. Where the labels are
is told to the process in its environment: the password of a database stands neither on a command
line nor in a file.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from filelock import FileLock

from malmoi.app.jobs import ProcessJob, start_process
from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import from_any_folder
from malmoi.labels.database import DATABASE_VARIABLE, as_part, without_password
from malmoi.labels.projects import read_project
from malmoi.model_folders import has_weights, is_linear_alone, read_json
from malmoi.paths import runs

_RECORD = "job.json"

JobStatus = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class TrainingJob(ProcessJob):
    """A training that was started.

    Attributes:
        database: whose labels, without a password.
        project: its id there.
        output: folder of the run that it makes.
        quick: whether only the linear model is fitted.
    """

    database: str
    project: int
    output: str
    quick: bool

    @property
    def model(self) -> Path:
        """The classifier that it makes."""
        return Path(self.output) / "model"

    def status(self) -> JobStatus:
        """What has become of it; finished folds of one that was cancelled are kept."""
        if self.is_running():
            return "running"
        if (Path(self.output) / "report.json").is_file() and (
            has_weights(self.model) or is_linear_alone(self.model)
        ):
            return "done"
        return "cancelled" if self.was_cancelled else "failed"


def start_training(
    access: ProjectAccess, *, quick: bool = False, drop_rare: bool = False
) -> TrainingJob:
    """Train on the labels of a project: `finetune/kfold.py` in a process of its own.

    Args:
        access: of a reviewer, for a model can tell what its texts were.
        quick: fit the linear model only, which takes a minute.
        drop_rare: leave labels with too few texts out, which would end it otherwise.

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
            *(["--rare", "drop"] if drop_rare else []),
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
            known = {one.name: values[one.name] for one in fields(TrainingJob)}
        except KeyError:
            continue
        job = TrainingJob(**{**known, "command": tuple(known["command"])})
        if (job.database, job.project) == (_database(access), access.project_id):
            found.append(job)
    return sorted(found, key=lambda job: job.started_at, reverse=True)


def newest_training(access: ProjectAccess) -> TrainingJob | None:
    """The last one that has trained ELECTRA on the labels of a project."""
    done = (job for job in training_jobs(access) if not job.quick and job.status() == "done")
    return next(done, None)


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
    url = from_any_folder(access.engine.url).render_as_string(hide_password=False)
    job = TrainingJob(
        **asdict(start_process(name, command, {DATABASE_VARIABLE: url})),
        database=_database(access),
        project=access.project_id,
        output=str(output),
        quick=quick,
    )
    record = json.dumps(asdict(job), ensure_ascii=False, indent=1)
    write_at_once(job.folder / _RECORD, f"{record}\n")
    return job


def _database(access: ProjectAccess) -> str:
    return without_password(access.engine.url.render_as_string(hide_password=True))
