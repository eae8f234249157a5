"""The job behind the page 분석: the model says what every text is, and a report is made of it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from malmoi.app import learning
from malmoi.app.filling import LIVE
from malmoi.app.jobs import Job, Key, jobs
from malmoi.app.language import say
from malmoi.app.projects.uploads import UploadFolder
from malmoi.app.training_job import newest_training
from malmoi.errors import InputError
from malmoi.inference.vectors.sentence_encoder import find_sentence_encoder
from malmoi.labels.access import ProjectAccess
from malmoi.labels.project_numbers import last_change
from malmoi.labels.review import progress
from malmoi.labels.scores import score_versions

if TYPE_CHECKING:
    from malmoi.analysis.project_report import ProjectReport

# Reports that are kept for all visitors of a server; one of 100,000 texts has 200 MB.
_MOST_KEPT = 3


@dataclass(frozen=True, kw_only=True)
class Analysed:
    """What was found, and the last change of labels and texts before that."""

    found: "ProjectReport"
    change: tuple[int, int]


def analysis_key(access: ProjectAccess) -> Key:
    """Of the one analysis that a project can have at a time."""
    return ("analysis", access.project_id, str(access.engine.url))


def change_of(access: ProjectAccess) -> tuple[int, int]:
    """What an analysis of now would be made of.

    Raises:
        AccessError: the person is no member.
    """
    now = last_change(access)
    return now.annotation, now.audit


def start_analysis(access: ProjectAccess) -> Job:
    """Begin it; one that goes on already stays.

    Raises:
        InputError: the database cannot be used.
    """
    key, change = analysis_key(access), change_of(access)
    trained = newest_training(access)
    run = None if trained is None else Path(trained.output)
    has_learnt = run is not None or bool(score_versions(access, newest=1))
    texts, folder = progress(access).texts, UploadFolder()
    name = say("The model of this project") if run is None else run.name

    def work(job: Job) -> Analysed:
        from malmoi.analysis.project_report import project_report

        said, model = {}, None
        if has_learnt and learning.is_on():
            file = folder.path / "said.json"
            chosen = LIVE if run is None else str(run / "model")
            try:
                learning.fill(job, access, chosen, [file], texts)
                said = json.loads(file.read_text(encoding="utf-8"))
                model = name
            except InputError:  # labels were taken back, and are too few now
                pass
        encoder = find_sentence_encoder(threads=1)
        found = project_report(
            access,
            said,
            model=model,
            folder=None if run is None else run / "model",
            vectors_of=None if encoder is None else encoder.identity,
        )
        # What takes long is computed here, and not when somebody looks.
        _ = found.report.themes, found.report.examples, found.report.halving
        return Analysed(found=found, change=change)

    job = jobs().of(key)
    if job is not None and job.is_on:
        return job
    # The one before is shown until there is another.
    return jobs().start(key, work, person=access.person.name, again=True, most_ended=_MOST_KEPT)
