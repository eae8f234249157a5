"""A model learns in a process of its own while people label: real rounds on real memos."""

import csv
import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from malmoi.app.jobs import Job
from malmoi.app.learning import service as learning_service
from malmoi.app.learning.rounds import Learner
from malmoi.app.learning.service import LEARNING, LearningService
from malmoi.app.projects.imports import ImportOrder, start_import
from malmoi.inference.labelling.fitting import learnable, readiness
from malmoi.inference.labelling.opinions import Opinion, best_threshold, f1_of_present, given_matrix
from malmoi.inference.labelling.ranking import least_decided, ranked
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.importing import WayOfReading
from malmoi.labels.leasing import lease_texts, return_leases
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore
from malmoi.labels.scores import score_versions
from malmoi.labels.tables import TextRow, TextScoreRow
from malmoi.labels.text_import import import_texts
from malmoi.labels.training_texts import LabelledText
from malmoi.text.reading.sources import source_of_upload

ROOT = Path(__file__).parents[3]
LABELS = ["꿈", "일기", "일정", "메모", "오류"]
TEXTS = 60
# A round takes seconds; a machine may be many times slower.
PATIENCE = 1_500.0


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A working directory of the processes that learn."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        yield


@pytest.fixture(scope="module")
def memos() -> list[tuple[str, str]]:
    """(text, label) of 60 memos, 12 of each label."""
    with (ROOT / "corpora/memos/memos.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["text"].strip(), row["label"]) for row in csv.DictReader(file)]
    chosen = [[row for row in rows if row[1] == label][: TEXTS // 5] for label in LABELS]
    return [row for same in zip(*chosen, strict=True) for row in same]


@pytest.fixture
def project(tmp_path: Path, memos: list[tuple[str, str]]) -> ProjectAccess:
    store = ProjectStore(f"sqlite:///{tmp_path}/labels.db")
    new = NewProject(
        name="메모",
        labels=[ProjectLabel(name=name) for name in LABELS],
        settings=ProjectSettings(text_order="scores", random_share=0.0),
    )
    access = store.create(Person(name="관리자", is_local=True), new)
    lines = "\n".join(text.replace("\n", " ") for text, _ in memos)
    import_texts(access, [source_of_upload("메모.txt", lines.encode())])
    return access


@contextmanager
def serving() -> Iterator[LearningService]:
    found = LearningService()
    yield found
    if found._process is not None:
        found._process.kill()


@pytest.fixture(scope="module")
def service() -> Iterator[LearningService]:
    """That of a server with many projects, one of each test."""
    with serving() as found:
        yield found


@pytest.fixture
def own_service() -> Iterator[LearningService]:
    """One for a test that ends its process."""
    with serving() as found:
        yield found


def url(access: ProjectAccess) -> str:
    return access.engine.url.render_as_string(hide_password=False)


def label(access: ProjectAccess, memos: list[tuple[str, str]], places: range) -> None:
    acts = [
        Act(text_id=place + 1, kind="label", labels=[memos[place][1]], request_id=f"r{place}")
        for place in places
    ]
    save_acts(access, acts)


def waited(
    service: LearningService,
    access: ProjectAccess,
    until: Callable[[Job], bool] = lambda state: not state.is_on,
) -> Job:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = service.state(url(access), access.project_id)
        if until(state):
            return state
        time.sleep(0.05)
    pytest.fail(f"nothing came of it: {state}")


def test_imported_labels_are_learnt(
    tmp_path: Path, memos: list[tuple[str, str]], service: LearningService
) -> None:
    """Of a table with labels, from as many on as of labels that were given here."""
    store = ProjectStore(f"sqlite:///{tmp_path}/labels.db")
    new = NewProject(name="메모", labels=[ProjectLabel(name=name) for name in LABELS])
    access = store.create(Person(name="관리자", is_local=True), new)
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["본문", "라벨", "사람"])
    writer.writerows([text, label, f"사람 {len(text) % 2}"] for text, label in memos[:40])
    writer.writerows([text, "", ""] for text, _ in memos[40:])
    file = source_of_upload("메모.csv", buffer.getvalue().encode())
    way = WayOfReading(label_column="라벨", annotator_column="사람")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning_service, "_SERVICE", service)
        running = start_import(access, ImportOrder(groups=[(way, [file])]))
        assert running.wait(PATIENCE) and running.error is None
        assert running.result is not None and running.result.labels == 40
        state = waited(
            service, access, lambda state: (state.result or {}).get("status") == "learnt"
        )
    assert state.error is None
    (point,) = score_versions(access)
    assert point.quality.labels == 40
    assert all(text.suggested_label in LABELS for text in lease_texts(access, 20))


def test_labels_that_come_while_a_round_runs_are_not_forgotten(
    own_service: LearningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[str] = []

    def done(*_: object) -> dict[str, Any]:
        rounds.append("round")
        if len(rounds) > 1:
            return {"status": "learnt"}
        own_service.count("url", 1, 13)  # after the round has read the 14 that there were
        return {"status": "few", "new": 14}

    monkeypatch.setattr(own_service, "_answer", done)
    own_service.count("url", 1, 5)
    end = time.monotonic() + 60
    while (own_service.state("url", 1).result or {}).get("status") != "learnt":
        assert time.monotonic() < end, "the labels that came meanwhile were not learnt"
        time.sleep(0.02)
    assert len(rounds) == 2


def test_a_round_orders_texts_suggests_labels_and_is_a_point_of_the_curve(
    project: ProjectAccess, memos: list[tuple[str, str]], service: LearningService
) -> None:
    label(project, memos, range(5))
    service.count(url(project), project.project_id, 5)
    few = waited(service, project, lambda state: state.result is not None).result
    assert few is not None
    assert (few["status"], few["missing"], few["labels"]) == ("few", 15, 5)
    assert score_versions(project) == []

    label(project, memos, range(5, 40))
    service.count(url(project), project.project_id, 35)
    state = waited(service, project, lambda state: (state.result or {}).get("status") == "learnt")
    assert state.error is None
    (point,) = score_versions(project)
    assert point.quality.labels == 40
    assert point.quality.cross_validated_f1 is not None
    # By chance it would be a fifth.
    assert point.quality.cross_validated_f1 > 0.3

    leased = lease_texts(project, 20)
    assert len(leased) == 20
    assert {text.drawn for text in leased} == {"scores"}
    assert {text.suggested_label for text in leased} <= set(LABELS)
    right = sum(text.suggested_label == memos[text.text_id - 1][1] for text in leased)
    assert right > 20 / len(LABELS)
    with project.reading() as connection:
        rows = connection.execute(select(TextScoreRow.__table__)).mappings().all()
    assert len(rows) == TEXTS
    for row in rows:
        assert row["label"] != row["second_label"]
        assert row["score"] >= row["second_score"] >= 0
        # Doubts are of labelled texts, and priorities of the others.
        assert (row["doubt"] is None) == (row["text_id"] > 40) == (row["priority"] is not None)


def test_a_round_is_due_after_twenty_new_labels_or_when_somebody_asks(
    project: ProjectAccess, memos: list[tuple[str, str]], service: LearningService
) -> None:
    place = (url(project), project.project_id)
    label(project, memos, range(30))
    service.count(*place, 30)
    waited(service, project, lambda state: (state.result or {}).get("status") == "learnt")
    label(project, memos, range(30, 40))
    service.count(*place, 10)
    assert not service.state(*place).is_on
    service.ask(*place, "learn")
    recent = waited(service, project).result
    assert recent is not None
    assert (recent["status"], recent["new"]) == ("recent", 10)
    # What other servers counted counts, too: ten more are twenty.
    label(project, memos, range(40, 50))
    service.count(*place, 10)
    waited(service, project, lambda state: (state.result or {}).get("labels") == 50)
    label(project, memos, range(50, 52))
    service.ask(*place, "learn", forced=True)
    waited(service, project, lambda state: (state.result or {}).get("labels") == 52)
    assert [point.quality.labels for point in score_versions(project)] == [30, 50, 52]


def test_a_killed_worker_is_replaced(
    project: ProjectAccess, memos: list[tuple[str, str]], own_service: LearningService
) -> None:
    place = (url(project), project.project_id)
    label(project, memos, range(30))
    own_service.ask(*place, "learn", forced=True)
    waited(own_service, project, lambda state: state.phase == LEARNING)
    while (first := own_service._process) is None:
        time.sleep(0.01)
    first.kill()
    assert (waited(own_service, project).result or {}).get("status") == "learnt"
    second = own_service._process
    assert second is not None and second is not first

    # And one that died while nothing was asked of it.
    second.kill()
    own_service.ask(*place, "learn", forced=True)
    assert (waited(own_service, project).result or {}).get("labels") == 30
    assert len(score_versions(project)) == 2


def test_what_cannot_be_learnt_is_told_in_one_line(
    service: LearningService, tmp_path: Path
) -> None:
    missing = f"sqlite:///{tmp_path}/labels.db"
    service.ask(missing, 7, "learn")
    end = time.monotonic() + PATIENCE
    while (state := service.state(missing, 7)).is_on and time.monotonic() < end:
        time.sleep(0.05)
    assert "expected the id of a project, found 7" in str(state.error)
    assert "\n" not in str(state.error)


def test_the_worker_ends_with_its_server(project: ProjectAccess) -> None:
    code = (
        "import sys, time\n"
        "from malmoi.app.learning.service import LearningService\n"
        "service = LearningService()\n"
        f"service.ask({url(project)!r}, {project.project_id}, 'learn')\n"
        "while service._process is None: time.sleep(0.01)\n"
        "print(service._process.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert server.stdout is not None
    worker = int(server.stdout.readline())
    server.kill()
    server.wait()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and _is_alive(worker):
        time.sleep(0.05)
    assert not _is_alive(worker)


def _is_alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_nearly_equal_texts_are_grouped_in_the_worker(
    tmp_path: Path, service: LearningService
) -> None:
    store = ProjectStore(f"sqlite:///{tmp_path}/labels.db")
    new = NewProject(name="글", labels=[ProjectLabel(name="가"), ProjectLabel(name="나")])
    access = store.create(Person(name="관리자", is_local=True), new)
    lines = ["배송이 정말 빨라서 좋았어요", "배송이정말 빨라서 좋았어요", "재미가 없는 영화였어요"]
    import_texts(access, [source_of_upload("글.txt", "\n".join(lines).encode())])
    service.ask(url(access), access.project_id, "alike")
    end = time.monotonic() + PATIENCE
    place = (url(access), access.project_id)
    while service.state(*place, "alike").result is None and time.monotonic() < end:
        time.sleep(0.05)
    assert service.state(*place, "alike").result == {"alike": 1}
    with access.reading() as connection:
        found = connection.scalars(select(TextRow.alike).order_by(TextRow.id)).all()
    assert found == [1, 1, None]


def test_the_text_that_the_model_is_least_sure_of_comes_first() -> None:
    said = np.array([[0.9, 0.1, 0.0], [0.4, 0.35, 0.25], [0.5, 0.5, 0.0], [0.6, 0.2, 0.2]])
    assert ranked(said).tolist() == [2, 1, 3, 0]


def test_f1_of_a_sample_leaves_out_labels_that_it_lacks() -> None:
    given, decided = np.eye(3, dtype=bool)[[0, 0, 1, 1]], np.eye(3, dtype=bool)[[0, 0, 1, 2]]
    assert f1_of_present(given, decided) == pytest.approx((1 + 2 / 3) / 2)


def test_of_several_labels_one_in_doubt_brings_a_text_forward() -> None:
    said = np.array([[0.9, 0.1, 0.0], [0.99, 0.45, 0.01], [0.6, 0.3, 0.8]])
    assert least_decided(said).tolist() == [1, 2, 0]


def test_several_labels_a_text_are_learnt_each_by_itself(
    tmp_path: Path, memos: list[tuple[str, str]]
) -> None:
    """Two labels that can be learnt, one too rare: suggestions, order, doubts, a point."""
    store = ProjectStore(f"sqlite:///{tmp_path}/labels.db")
    names = ["꿈", "길다", "드물다"]
    new = NewProject(
        name="메모",
        kind="multi",
        labels=[ProjectLabel(name=name) for name in names],
        settings=ProjectSettings(text_order="scores", random_share=0.0),
    )
    access = store.create(Person(name="관리자", is_local=True), new)
    lines = [text.replace("\n", " ") for text, _ in memos]
    import_texts(access, [source_of_upload("메모.txt", "\n".join(lines).encode())])
    middle = sorted(len(line) for line in lines)[TEXTS // 2]

    def given(place: int) -> list[str]:
        has = (memos[place][1] == "꿈", len(lines[place]) > middle, place < 3)
        return [name for name, one in zip(names, has, strict=True) if one]

    def save(places: range) -> None:
        acts = [
            Act(text_id=place + 1, kind="label", labels=given(place), request_id=f"r{place}")
            for place in places
        ]
        save_acts(access, acts)

    learner = Learner()
    save(range(20))
    # Twenty texts, four of them dreams: not one of the labels is certain to be learnt of these.
    found = learner.learn(access)
    assert "드물다" in found.left_out and "꿈" in found.left_out
    save(range(20, 40))
    found = learner.learn(access, forced=True)
    assert (found.status, found.labels, found.left_out) == ("learnt", 40, ("드물다",))
    (*_, point) = score_versions(access)
    assert point.quality.cross_validated_f1 is not None
    # Who says nothing of any text has 0.
    assert point.quality.cross_validated_f1 > 0.3
    with access.reading() as connection:
        rows = connection.execute(select(TextScoreRow.__table__)).mappings().all()
    assert len(rows) == TEXTS
    for row in rows:
        assert {row["label"], row["second_label"]} == {"꿈", "길다"}
        # Each is there or not by itself: they need not add up to 1.
        assert 1 >= row["score"] >= row["second_score"] >= 0
        assert (row["doubt"] is None) == (row["text_id"] > 40) == (row["priority"] is not None)
    waiting = sorted((row for row in rows if row["priority"]), key=lambda row: -row["priority"])
    unsure = [min(abs(row["score"] - 0.5), abs(row["second_score"] - 0.5)) for row in waiting]
    assert unsure == sorted(unsure)
    leased = lease_texts(access, 5)
    assert [text.text_id for text in leased] == [row["text_id"] for row in waiting[:5]]


def test_texts_that_have_none_of_the_labels_are_not_enough() -> None:
    texts = [LabelledText(text_id=place, text="글", labels=()) for place in range(30)]
    ready = readiness(texts, ["가", "나"], is_one=False)
    assert (ready.is_ready, ready.missing, ready.left_out) == (False, 0, ("가", "나"))
    all_have = [replace(text, labels=("가",)) for text in texts]
    assert not readiness(all_have, ["가", "나"], is_one=False).is_ready
    assert not readiness(all_have, ["가", "나"], is_one=True).is_ready


def test_a_rare_label_is_given_below_one_half() -> None:
    has = np.array([True, False, True, False, False])
    assert best_threshold(has, np.array([0.3, 0.1, 0.2, 0.1, 0.0])) == pytest.approx(0.15)
    # What is equally likely is given to all or to none.
    assert best_threshold(has, np.array([0.2, 0.2, 0.2, 0.1, 0.1])) == pytest.approx(0.15)
    assert best_threshold(has, np.full(5, 0.4)) == pytest.approx(0.2)


def test_a_doubt_is_about_the_label_that_is_most_likely_wrong() -> None:
    said = np.array([[0.9, 0.2], [0.1, 0.3]])
    several = Opinion(labels=["가", "나"], labelled=said, pool=said, is_one=False)
    given = given_matrix([("가",), ("가", "나")], ["가", "나"])
    assert several.doubts(given) == pytest.approx([0.2, 0.9])
    one = Opinion(labels=["가", "나"], labelled=said, pool=said, is_one=True)
    assert one.doubts(given_matrix([("가",), ("나",)], ["가", "나"])) == pytest.approx([0.1, 0.7])


def test_leases_of_a_page_are_scored_at_the_next_round(
    project: ProjectAccess, memos: list[tuple[str, str]], service: LearningService
) -> None:
    held = [text.text_id for text in lease_texts(project, 50)]
    assert all(text.suggested_label is None for text in lease_texts(project, 50))
    label(project, memos, range(25))
    service.ask(url(project), project.project_id, "learn", forced=True)
    waited(service, project)
    still = lease_texts(project, 25)
    assert {text.text_id for text in still} <= set(held)
    assert all(text.suggested_label for text in still)
    return_leases(project)


def test_a_retired_label_is_learnt_no_more() -> None:
    texts = [
        LabelledText(text_id=1, text="하나", labels=("긍정",)),
        LabelledText(text_id=2, text="둘", labels=("중립",)),
    ]
    kept = learnable(texts, ["긍정", "부정"], is_one=True)
    assert [text.text_id for text in kept] == [1]
    # Of several labels the others of a text are still learnt.
    assert learnable(texts, ["긍정", "부정"], is_one=False) == texts
