"""Files that are being classified: outside of any visit, so that no click or reload stops one.

A job is kept by the server until a few newer ones have ended, and is shown to its owners only: who
started it, also under the name that they typed after they began without one.
"""

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from malmoi.app.batch import BatchResult, classify_table
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier

if TYPE_CHECKING:
    import pandas as pd

# Results stay in memory, so only so many.
_KEPT = 8


@dataclass(kw_only=True)
class FileJob:
    """One table on its way.

    Attributes:
        id: unguessable, for the address.
        owners: who started it, by all names of theirs.
        name: of the file.
        column: with the texts.
        model: its name.
        labels: of the model.
        done, total: texts.
        result: once it has ended well.
        error: once it has not: an `InputError` is the visitor's, all others are ours.
    """

    id: str
    owners: set[str]
    name: str
    column: str
    model: str
    labels: list[str]
    total: int
    done: int = 0
    started: float = field(default_factory=time.monotonic)
    result: BatchResult | None = None
    error: BaseException | None = None

    @property
    def ended(self) -> bool:
        return self.result is not None or self.error is not None

    @property
    def rate(self) -> float:
        """Texts a second so far."""
        return self.done / max(time.monotonic() - self.started, 1e-6)


class FileJobs:
    """The jobs of one server."""

    def __init__(self) -> None:
        """None yet."""
        self._lock = threading.Lock()
        self._jobs: dict[str, FileJob] = {}

    def start(
        self,
        owner: str,
        name: str,
        table: "pd.DataFrame",
        column: str,
        classifier: Classifier,
        model: str,
    ) -> FileJob:
        """Classify a table in a thread of its own by a model; `malmoi.app.batch.classify_table`."""
        job = FileJob(
            id=secrets.token_urlsafe(12),
            owners={owner},
            name=name,
            column=column,
            model=model,
            labels=list(classifier.labels),
            total=len(table),
        )
        with self._lock:
            ended = [one.id for one in self._jobs.values() if one.ended]
            for old in ended[: max(0, len(self._jobs) - _KEPT + 1)]:
                del self._jobs[old]
            self._jobs[job.id] = job
        thread = threading.Thread(target=_run, args=(job, table, classifier), daemon=True)
        thread.start()
        return job

    def find(self, job_id: str, owner: str) -> FileJob | None:
        """The job of this id, if it is this person's and still kept."""
        with self._lock:
            job = self._jobs.get(job_id)
        return job if job is not None and owner in job.owners else None

    def share(self, job_id: str, owner: str, name: str) -> None:
        """Let an owner of a job have it by another name of theirs, too."""
        if (job := self.find(job_id, owner)) is not None:
            job.owners.add(name)


def _run(job: FileJob, table: "pd.DataFrame", classifier: Classifier) -> None:
    def count(done: int, total: int) -> None:
        job.done, job.total = done, total

    try:
        job.result = classify_table(table, job.column, classifier, progress=count)
    except (InputError, RuntimeError, MemoryError) as error:
        job.error = error
    except BaseException as error:
        job.error = error
        raise


@st.cache_resource(show_spinner=False)
def file_jobs() -> FileJobs:
    """Those of this server."""
    return FileJobs()
