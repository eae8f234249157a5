"""A model that is chosen for a project: real ones suggest, are compared, and fail in one line."""

import csv
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from malmoi.app.explanation import for_visitors
from malmoi.app.found_models import model_named, names_for
from malmoi.app.labelling.words import words_behind
from malmoi.app.learning import service
from malmoi.app.learning.project_model import ModelProblem, ProjectModels
from malmoi.app.learning.rounds import Learner
from malmoi.app.learning.service import LearningService
from malmoi.app.projects.imports import ImportOrder, start_import
from malmoi.errors import InputError
from malmoi.inference.learnt_texts import LEARNT
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.importing import WayOfReading
from malmoi.labels.leasing import lease_texts, return_leases
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore, change_settings, read_project
from malmoi.labels.scores import score_versions, scoring_model
from malmoi.labels.tables import TextScoreRow
from malmoi.text.reading.sources import Source, source_of_upload
from tests.malmoi.app.conftest import make_model
from tests.malmoi.app.pages import open_page, shown

ROOT = Path(__file__).parents[3]
MEMOS = "malmoi-small-memos"
CHOSEN, RANDOM = f"checkpoints/{MEMOS}", "runs/finetune/무작위"
LABELS = ["꿈", "일기", "일정", "메모", "오류"]
PATIENCE = 1_500.0


@pytest.fixture(scope="module")
def memos() -> list[tuple[str, str]]:
    """(text, label) of 60 memos, 12 of each label."""
    with (ROOT / "corpora/memos/memos.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            (" ".join(row["text"].split()), row["label"])
            for row in csv.DictReader(file)
            if row["text"].strip()
        ]
    chosen = [[row for row in rows if row[1] == label][:12] for label in LABELS]
    return [row for same in zip(*chosen, strict=True) for row in same]


@pytest.fixture
def models(workplace: Path) -> Path:
    """A home with the released model of memos, and a run whose model knows nothing."""
    shutil.copytree(ROOT / "checkpoints" / MEMOS, workplace / "checkpoints" / MEMOS)
    make_model(workplace / "runs" / "finetune" / "무작위")
    return workplace


def project(
    memos: list[tuple[str, str]], model: str | None, labels: list[str] = LABELS
) -> ProjectAccess:
    """A project with the memos; its labels may be called otherwise."""
    new = NewProject(
        name="메모",
        labels=[ProjectLabel(name=name) for name in labels],
        settings=ProjectSettings(text_order="scores", random_share=0.0, model=model),
    )
    access = ProjectStore().create(Person(name="관리자", is_local=True), new)
    running = start_import(access, ImportOrder(groups=[(WayOfReading(), [lines_of(memos)])]))
    assert running.wait(PATIENCE) and running.error is None
    return access


def lines_of(memos: list[tuple[str, str]]) -> Source:
    return source_of_upload("메모.txt", "\n".join(text for text, _ in memos).encode())


def label(access: ProjectAccess, labels: list[str]) -> None:
    save_acts(
        access,
        [
            Act(text_id=place, kind="label", labels=[name], request_id=f"r{place}")
            for place, name in enumerate(labels, 1)
        ],
    )


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are done by the test, not by a process beside it."""
    monkeypatch.setenv("MALMOI_LEARNING", "off")


def test_only_models_with_two_labels_of_a_project_are_offered(models: Path) -> None:
    assert names_for(["긍정", "부정", "기타"]) == {RANDOM: "무작위"}
    assert names_for(["꿈", "긍정", "일정"]) == {CHOSEN: MEMOS}
    assert names_for(["꿈", "긍정"]) == names_for([]) == {}


def test_a_chosen_model_is_the_same_whatever_others_come(
    models: Path, quiet: None, memos: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the same name, or another folder to start from or to keep the data in."""
    labels = ["긍정", "부정", "중립"]
    (name,) = names_for(labels)
    found = model_named(name)
    assert found is not None and found.parent.name == "무작위"
    shutil.copytree(found, models / "checkpoints" / "무작위")
    assert model_named(name) == found
    assert names_for(labels) == {
        RANDOM: "무작위 (runs/finetune)",
        "checkpoints/무작위": "무작위 (checkpoints)",
    }
    monkeypatch.setenv("MALMOI_HOME", str(models))
    (models / "elsewhere").mkdir()
    monkeypatch.chdir(models / "elsewhere")
    assert list(names_for(labels)) == [RANDOM, "checkpoints/무작위"]
    # A folder's name alone is none.
    assert model_named("무작위") is None
    # No place on this machine stands in what is told of a model that cannot be read.
    (models / "runs/finetune/무작위/model/tokenizer.json").write_text("{", encoding="utf-8")
    problem = ProjectModels().of(read_project(project(memos, name, labels=labels)))
    assert isinstance(problem, ModelProblem) and problem.kind == "broken"
    assert problem.detail is not None
    told = for_visitors(InputError.of_json(problem.detail))
    assert RANDOM in told and str(models) not in told


def test_a_run_called_as_what_learns_is_not_taken_for_it(
    models: Path, quiet: None, memos: list[tuple[str, str]]
) -> None:
    (models / "runs/finetune/무작위").rename(models / "runs/finetune/quick-40")
    names = {"꿈": "긍정", "일기": "부정", "일정": "중립", "메모": "긍정", "오류": "부정"}
    access = project(memos, "runs/finetune/quick-40", labels=["긍정", "부정", "중립"])
    learner = Learner()
    assert learner.learn(access).model == scoring_model(access) == "runs/finetune/quick-40"
    label(access, [names[label] for _, label in memos[:40]])
    learner.learn(access)
    assert scoring_model(access) == "quick-40"
    (text,) = lease_texts(access, 1)
    told = words_behind(access, text.text_id)
    assert told["words"] is None and "읽을 수 없습니다" in told["reason"]


def test_before_anything_is_learnt_the_model_suggests_labels_of_the_project(
    models: Path, quiet: None, memos: list[tuple[str, str]]
) -> None:
    access = project(memos, CHOSEN, labels=["꿈", "기타", "일정"])
    found = Learner().learn(access)
    assert (found.status, found.model, found.problem) == ("few", CHOSEN, None)
    assert score_versions(access) == [] and scoring_model(access) == CHOSEN
    leased = lease_texts(access, 60)
    assert {text.drawn for text in leased} == {"scores"} and len(leased) == 60
    right = [
        text.suggested_label == memos[text.text_id - 1][1]
        for text in leased
        if memos[text.text_id - 1][1] in ("꿈", "일정")
    ]
    assert sum(right) > 0.8 * len(right)
    with access.reading() as connection:
        rows = connection.execute(select(TextScoreRow.__table__)).mappings().all()
    assert len(rows) == 60
    for row in rows:
        # Of the model's five labels these two are left, and their probabilities add up to 1.
        assert {row["label"], row["second_label"]} == {"꿈", "일정"}
        assert row["score"] + row["second_score"] == pytest.approx(1, abs=1e-5)
        assert row["doubt"] is None
    # The least sure comes first.
    first = max(rows, key=lambda row: row["priority"])
    assert first["score"] == min(row["score"] for row in rows)


def test_a_worse_model_gives_way_to_what_is_learnt(
    models: Path, quiet: None, memos: list[tuple[str, str]]
) -> None:
    names = {"꿈": "긍정", "일기": "부정", "일정": "중립", "메모": "긍정", "오류": "부정"}
    access = project(memos, RANDOM, labels=["긍정", "부정", "중립"])
    learner = Learner()
    assert learner.learn(access).model == RANDOM
    label(access, [names[label] for _, label in memos[:40]])
    found = learner.learn(access)
    assert (found.status, found.model) == ("learnt", "quick-40")
    (point,) = score_versions(access)
    assert (point.model, scoring_model(access)) == ("quick-40", "quick-40")
    assert point.quality.chosen_f1 is not None and point.quality.cross_validated_f1 is not None
    assert point.quality.chosen_f1 < point.quality.cross_validated_f1


def test_a_better_model_goes_on_unless_it_has_learnt_the_texts_itself(
    models: Path, quiet: None, memos: list[tuple[str, str]]
) -> None:
    access = project(memos, CHOSEN)
    label(access, [label for _, label in memos[:40]])
    found = Learner().learn(access)
    # All of these it has learnt, so its score on them would say nothing.
    assert (found.model, found.chosen_f1) == (CHOSEN, None)
    (models / "checkpoints" / MEMOS / LEARNT).unlink()
    found = Learner().learn(access, forced=True)
    point = score_versions(access)[-1]
    assert found.model == point.model == scoring_model(access) == CHOSEN
    assert found.chosen_f1 is not None and found.cross_validated_f1 is not None
    assert found.chosen_f1 > found.cross_validated_f1
    with access.reading() as connection:
        rows = connection.execute(select(TextScoreRow.__table__)).mappings().all()
    # Doubts about labels are those of what had not learnt them.
    assert {row["text_id"] for row in rows if row["doubt"] is not None} == set(range(1, 41))


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("gone", "gone"),
        ("path", "gone"),
        ("hub", "gone"),
        ("weights", "broken"),
        ("config", "broken"),
        ("labels", "labels"),
    ],
)
def test_learning_goes_on_without_a_model_that_cannot_be_asked(
    models: Path, quiet: None, memos: list[tuple[str, str]], what: str, kind: str
) -> None:
    folder = models / "checkpoints" / MEMOS
    name = {"path": str(folder), "hub": "monologg/koelectra-small-v3-discriminator"}.get(
        what, RANDOM if what == "labels" else CHOSEN
    )
    access = project(memos, name)
    if what == "gone":
        shutil.rmtree(folder)
    elif what == "weights":
        weights = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(weights[:1_000])
    elif what == "config":
        (folder / "tokenizer.json").write_text("{", encoding="utf-8")
    label(access, [label for _, label in memos[:30]])
    found = Learner().learn(access)
    assert (found.status, found.model) == ("learnt", "quick-30")
    assert found.problem is not None
    assert (found.problem.kind, found.problem.model) == (kind, name)
    detail = found.problem.detail
    assert (detail is not None) == (kind == "broken")
    assert detail is None or "\n" not in str(InputError.of_json(detail))
    assert found.as_json()["problem"]["kind"] == kind


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LearningService]:
    """A server's own line of jobs, with a process beside it."""
    found = LearningService()
    monkeypatch.setattr(service, "_SERVICE", found)
    yield found
    if found._process is not None:
        found._process.kill()


def test_an_import_brings_suggestions_without_any_label(
    models: Path, server: LearningService, memos: list[tuple[str, str]]
) -> None:
    access = project(memos, CHOSEN)
    end = time.monotonic() + PATIENCE
    while scoring_model(access) is None and time.monotonic() < end:
        time.sleep(0.1)
    assert all(text.suggested_label in LABELS for text in lease_texts(access, 20))
    return_leases(access)
    # Another model for the project: the order of this one no longer holds.
    change_settings(access, model=None)
    assert all(text.suggested_label is None for text in lease_texts(access, 20))


def test_a_model_of_a_project_answers_on_the_pages_whatever_runs_come(
    models: Path, memos: list[tuple[str, str]]
) -> None:
    project(memos[:5], None)
    store = ProjectStore(f"sqlite:///{models}/runs/labels.db")
    labels = [ProjectLabel(name="좋다"), ProjectLabel(name="나쁘다")]
    store.create(
        Person(name="지은", is_local=True),
        NewProject(name="고름", labels=labels, settings=ProjectSettings(model=CHOSEN)),
    )
    other = models / "runs" / "finetune" / "남의 것"
    shutil.copytree(models / CHOSEN, other / "model")
    shutil.copy(models / CHOSEN / "report.json", other)
    for name, said in (("고름", "이 작업의 모델"), ("메모", "답합니다")):
        page = open_page("single", project=name)
        assert page.selectbox(key="model").value == CHOSEN and said in shown(page)
    # What was chosen in one project is not chosen in the next.
    page.selectbox(key="model").set_value("runs/finetune/남의 것").run()
    page.sidebar.selectbox(key="project").set_value("고름").run()
    assert page.selectbox(key="model").value == CHOSEN
