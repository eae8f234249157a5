"""Training jobs: real processes of finetune/kfold.py that outlive who started them."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from malmoi.app.training_job import TrainingJob, start_again, start_training, training_jobs
from malmoi.app.views.training import shown_time
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.database import as_part, label_database
from malmoi.labels.people import AccessError, Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore, set_member
from malmoi.labels.text_import import import_texts
from malmoi.model_folders import find_classifiers
from malmoi.progress import PROGRESS_VARIABLE, shown_progress
from malmoi.text.reading.sources import source_of_upload

ROOT = Path(__file__).parents[3]
LABELS = ["꿈", "일정", "오류"]
PATIENCE = 1_500.0
ME = Person(name="관리자", is_local=True)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a training that had too few labels."""
    folder = tmp_path_factory.mktemp("failed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MALMOI_HOME", ".")
        patch.delenv("MALMOI_DATABASE", raising=False)
        assert ended(start_training(project(6), quick=True)).status() == "failed"
    return folder


@pytest.fixture
def after_failure(workplace: Path, failed: Path) -> TrainingJob:
    """That training, in a working directory of the test."""
    shutil.copytree(failed, workplace, dirs_exist_ok=True)
    (job,) = training_jobs(ProjectStore().access(ME, 1))
    return job


def project(number: int, name: str = "메모 / 2차 #1") -> ProjectAccess:
    """A project with so many labelled memos of three labels, in the default database."""
    store = ProjectStore()
    access = store.create(
        ME, NewProject(name=name, labels=[ProjectLabel(name=one) for one in LABELS])
    )
    with (ROOT / "corpora/memos/memos.csv").open(encoding="utf-8", newline="") as file:
        rows = [(" ".join(row["text"].split()), row["label"]) for row in csv.DictReader(file)]
    chosen = [row for label in LABELS for row in [r for r in rows if r[1] == label][: number // 3]]
    import_texts(access, [source_of_upload("글.txt", "\n".join(t for t, _ in chosen).encode())])
    acts = [
        Act(text_id=place, kind="label", labels=[label], request_id=f"{name}{place}")
        for place, (_, label) in enumerate(chosen, 1)
    ]
    save_acts(access, acts)
    return access


def ended(job: TrainingJob) -> TrainingJob:
    end = time.monotonic() + PATIENCE
    while job.is_running():
        assert time.monotonic() < end, job.said()
        time.sleep(0.1)
    return job


STARTER = """
import os
from malmoi.app.training_job import start_training
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore
access = ProjectStore().access(Person(name="관리자", is_local=True), 1)
print(start_training(access, quick=True).pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_job_survives_the_app_and_makes_a_model_that_it_finds(workplace: Path) -> None:
    access = project(60)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    app = subprocess.run(
        [sys.executable, "-c", STARTER], capture_output=True, text=True, env=environment
    )
    assert app.returncode == -signal.SIGKILL, app.stderr
    (job,) = training_jobs(access)
    assert job.pid == int(app.stdout)
    assert job.status() == "running"
    with pytest.raises(InputError, match="expected no training of the project"):
        start_training(access)
    assert ended(job).status() == "done", job.said()
    assert training_jobs(access)[0].status() == "done"
    assert [path.resolve() for path in find_classifiers()] == [job.model.resolve()]
    assert set(Classifier.load(job.model).labels) == set(LABELS)
    report = json.loads((Path(job.output) / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["texts"] == 60


def test_a_failed_training_says_why_and_can_be_started_again(after_failure: TrainingJob) -> None:
    access, job = ProjectStore().access(ME, 1), after_failure
    assert job.status() == "failed"
    assert "each label needs at least 5" in job.said()[-1]
    assert "Traceback" not in "\n".join(job.said())
    error = job.error()
    assert error is not None and "라벨마다 5건은 있어야 합니다" in error.in_language("ko")
    again = start_again(access, job)
    assert (again.name, again.command) == (job.name, job.command)
    assert ended(again).status() == "failed" and again.error() is not None
    assert len(training_jobs(access)) == 1


def test_a_training_is_cancelled(workplace: Path) -> None:
    access = project(60)
    job = start_training(access, quick=True)
    job.cancel()
    assert ended(job).status() == "cancelled"
    assert find_classifiers() == []
    job.cancel()


def test_a_process_of_the_same_number_is_not_the_job(after_failure: TrainingJob) -> None:
    access, job = ProjectStore().access(ME, 1), after_failure
    record = job.folder / "job.json"
    values = json.loads(record.read_text(encoding="utf-8"))
    # As after a restart of the machine: our own number, which is no job's.
    record.write_text(json.dumps(values | {"pid": os.getpid()}), encoding="utf-8")
    (found,) = training_jobs(access)
    assert not found.is_running()
    found.cancel()  # ends nothing


def test_progress_is_what_the_command_writes(
    after_failure: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = after_failure
    assert job.progress() is None
    monkeypatch.setenv(PROGRESS_VARIABLE, str(job.folder / "progress.json"))
    monkeypatch.setattr("malmoi.progress._SECONDS_BETWEEN_WRITES", 0.0)
    with shown_progress("steps") as progress:
        progress("fold 1", 100, 1_250, skipped=50)
        time.sleep(0.01)
        progress("fold 1", 200, 1_250, skipped=50)
    found = job.progress()
    assert found is not None and found.seconds_left is not None
    assert (found.part, found.done, found.total) == ("fold 1", 200, 1_250)
    assert 0 < found.seconds_left < 60


def test_what_is_left_is_said_in_korean() -> None:
    for seconds, said in ((40, "40초"), (180, "3분"), (12_600, "3.5시간"), (362_880, "4.2일")):
        assert shown_time(seconds) == said


def test_a_record_that_is_damaged_is_passed_over(workplace: Path) -> None:
    access = project(6)
    (workplace / "runs/jobs/x").mkdir(parents=True)
    (workplace / "runs/jobs/x/job.json").write_text('{"name": "x"', encoding="utf-8")
    assert training_jobs(access) == []


def test_only_a_reviewer_trains_and_only_members_see(workplace: Path) -> None:
    access = project(6)
    set_member(access, "가", "annotator")
    store = ProjectStore()
    annotator = store.access(Person(name="가"), access.project_id)
    with pytest.raises(AccessError):
        start_training(annotator)
    with pytest.raises(AccessError):
        start_again(annotator, cast(TrainingJob, None))  # refused before it is looked at
    assert training_jobs(annotator) == []
    stranger = ProjectAccess(
        engine=access.engine, project_id=access.project_id, person=Person(name="남")
    )
    with pytest.raises(AccessError):
        training_jobs(stranger)


def test_a_password_stands_in_the_environment_only(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql+psycopg://me:geheim@host/name"
    monkeypatch.setenv("MALMOI_DATABASE", url)
    database = label_database(f"MALMOI_DATABASE#{as_part('메모 / 2차 #1')}")
    assert database is not None
    assert (database.url, database.part) == (url, "메모 / 2차 #1")
    assert "geheim" not in f"{database} {database!r}"
    monkeypatch.delenv("MALMOI_DATABASE")
    with pytest.raises(InputError, match="expected the URL of a label database in MALMOI_DATABASE"):
        label_database("MALMOI_DATABASE#메모")
