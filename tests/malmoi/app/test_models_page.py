"""The page of models, and which one is taken where nobody chose."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from malmoi.app.model_choice import preferred
from malmoi.app.model_report import best, better_than, fold_report
from malmoi.app.training_job import TrainingJob
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore, set_member
from malmoi.labels.scores import ModelQuality, write_scores
from malmoi.model_folders import find_classifiers
from tests.malmoi.app.conftest import LABELS, make_model
from tests.malmoi.app.pages import open_page, shown
from tests.malmoi.app.project_pages import made, vote


def model(
    name: str, f1: float, *, width: float = 0.02, texts: int = 1_000, labels: list[str] = LABELS
) -> Path:
    """A run whose folds scored so; the later in the name's order, the newer."""
    folder = Path("runs/finetune") / name
    path = make_model(folder)
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": dict(enumerate(labels)), "label2id": {}}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    scores = {
        label: {"f1": f1, "precision": f1, "recall": f1, "support": texts // 3} for label in labels
    }
    report = {
        "mean_f1": f1,
        "interval_95": [f1 - width, f1 + width],
        "data": {"texts": texts, "sha256": name},
        "pooled": {"labels": scores, "confusion": [[texts // 9] * 3] * 3},
    }
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    moment = time.time() - 1_000 + sum(map(ord, name))
    os.utime(folder / "report.json", (moment, moment))
    return path


def named(models: list[Path], place: int) -> str:
    return models[place].parent.name


def test_the_best_on_the_same_labels_is_taken_and_not_the_newest(workplace: Path) -> None:
    model("a", 0.78, texts=13_000)
    model("b", 0.25, texts=90, width=0.1)
    models = find_classifiers()
    assert models[0].parent.name == "b"
    assert named(models, preferred(models)) == "a"
    assert better_than(models[0], models) == models[1]
    assert better_than(models[1], models) is None


def test_a_high_score_on_a_handful_of_texts_is_not_trusted(workplace: Path) -> None:
    model("a", 0.78, texts=13_000)
    model("b", 0.85, texts=60, width=0.15)
    models = find_classifiers()
    assert named(models, preferred(models)) == "a"
    # It scored higher, all the same, and the better one is not said to be worse.
    assert better_than(models[1], models) is None


def test_folds_that_all_score_alike_are_no_certainty(workplace: Path) -> None:
    """As of a model that says one label of all texts, or that was right on a handful."""
    model("a", 0.8, texts=1_000)
    model("b", 1.0, width=0.0, texts=12)
    report = fold_report(find_classifiers()[0])
    assert report is not None and report.low < 0.77 and report.high == 1.0
    models = find_classifiers()
    assert named(models, preferred(models)) == "a"
    path = model("c", 0.9)
    (path.parent / "report.json").write_text('{"mean_f1": 0.9}', encoding="utf-8")
    model("d", 0.9, width=0.0, texts=0)
    table = open_page("models").dataframe[0].value.set_index("모델")["95% 구간"]
    assert table.to_dict() == {"a": "0.77–0.82", "b": "0.76–1.00", "c": "모름", "d": "모름"}


def test_a_project_gets_a_model_of_its_labels(workplace: Path) -> None:
    model("a", 0.9)
    model("b", 0.5, labels=["꿈", "일기", "일정"])
    model("c", 0.6, labels=["일정", "꿈", "일기"])
    models = find_classifiers()
    assert named(models, preferred(models, ["꿈", "일기", "일정"])) == "c"
    assert named(models, preferred(models, ["하나", "둘"])) in ("a", "c")


def test_a_model_without_a_report_is_taken_only_if_there_is_no_other(workplace: Path) -> None:
    make_model(Path("runs/finetune/x"))
    models = find_classifiers()
    assert fold_report(models[0]) is None
    assert preferred(models) == 0
    model("a", 0.1)
    models = find_classifiers()
    assert (
        best(models) == Path("runs/finetune/a/model").resolve()
        or named(models, preferred(models)) == "a"
    )


def test_a_damaged_report_is_none(workplace: Path) -> None:
    path = make_model(Path("runs/finetune/x"))
    for report in (
        "",
        "[]",
        '{"mean_f1": "x"}',
        '{"mean_f1": 0.5, "pooled": {"labels": 3}}',
        '{"pooled": null}',
    ):
        (path.parent / "report.json").write_text(report, encoding="utf-8")
        assert fold_report(path) is None, report
        assert not open_page("models").exception, report


def use_button(page: AppTest):  # type: ignore[no-untyped-def]
    return next(one for one in page.button if one.key == "use_model")


def choice(page: AppTest) -> str:
    return str(next(one for one in page.selectbox if one.label == "모델").value)


def test_a_model_is_chosen_and_stays_chosen(workplace: Path) -> None:
    model("a", 0.78)
    model("b", 0.25, texts=90, width=0.1)
    page = open_page("models")
    assert choice(page) == "runs/finetune/a"
    assert use_button(page).disabled
    page = open_page("models", model="runs/finetune/b")
    assert choice(page) == "runs/finetune/b"
    assert "‘a’의 F1(0.78)이 이 모델(0.25)보다 높습니다" in shown(page)
    next(one for one in page.selectbox if one.label == "모델").select("runs/finetune/a").run()
    assert choice(page) == "runs/finetune/a"
    assert not page.warning


def test_a_model_of_several_labels_is_not_passed_over_in_silence(workplace: Path) -> None:
    model("a", 0.78)
    config = model("여럿", 0.9) / "config.json"
    several = {**json.loads(config.read_text(encoding="utf-8")), "finetune_task": "multi"}
    several["problem_type"] = "multi_label_classification"
    config.write_text(json.dumps(several), encoding="utf-8")
    for page in ("single", "models"):
        found = open_page(page, model="runs/finetune/여럿")
        assert choice(found) == "runs/finetune/a"
        assert any("‘여럿’" in one.value for one in found.warning)
        assert any("여럿" in one.value for one in found.caption)


@pytest.mark.parametrize("name", ["../../evil/model", "/etc", "monologg/koelectra", "b", ""])
def test_only_a_model_that_was_found_can_be_named(workplace: Path, name: str) -> None:
    model("a", 0.78)
    shutil.copytree("runs/finetune/a", "evil")
    page = open_page("models", model=name)
    assert choice(page) == "runs/finetune/a"
    assert open_page("single", model=name).selectbox[-1].value == "runs/finetune/a"


def test_without_a_model_the_page_says_how_to_make_one(workplace: Path) -> None:
    assert "아직 모델이 없습니다" in shown(open_page("models"))
    assert "견줄 모델이 두 개" in shown(open_page("models", section="compare"))
    assert "아직 작업이 없습니다" in shown(open_page("models", section="train"))
    assert "아직 작업이 없습니다" in shown(open_page("models", section="curve"))


def test_two_models_of_the_same_labels_are_compared(workplace: Path) -> None:
    model("a", 0.78)
    model("b", 0.6)
    model("c", 0.5, labels=["꿈", "일기", "일정"])
    page = open_page("models", section="compare")
    first = next(one for one in page.selectbox if one.key == "compare_first")
    assert {str(option) for option in first.options} == {"a", "b", "c"}
    first.select("runs/finetune/a").run()
    second = next(one for one in page.selectbox if one.key == "compare_second")
    assert list(second.options) == ["b"]
    table = page.dataframe[0].value
    assert table["F1"].tolist() == [0.78, 0.6]
    assert "서로 다른 글로 잰 점수" in shown(page)
    first.select("runs/finetune/c").run()
    assert "같은 라벨을 붙이는 다른 모델이 없습니다" in shown(page)


def test_two_runs_on_the_same_texts_are_compared_one_by_one(workplace: Path) -> None:
    header = "id,text,label,predicted,fold,seed,probability 긍정"
    for name, f1, said in (("a", 0.78, "긍정"), ("b", 0.6, "부정")):
        run = model(name, f1).parent
        report = json.loads((run / "report.json").read_text("utf-8"))
        report |= {"interval_95": [0.1, 0.9], "data": {"texts": 40, "sha256": "same"}}
        (run / "report.json").write_text(json.dumps(report), encoding="utf-8")
        rows = [f"{n},글 {n},{'긍정' if n % 2 else '부정'},{said},1,42,0.5" for n in range(40)]
        (run / "predictions.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    page = open_page("models", section="compare")
    assert "같은 글 40건을 하나씩" in shown(page) and "우연일 수 있습니다" in shown(page)


def test_a_card_and_names_are_plain_text(workplace: Path) -> None:
    path = model("*굵게* <b>x</b>", 0.78)
    shutil.copytree(path, "checkpoints/y")
    (Path("checkpoints/y") / "README.md").write_text(
        "---\nlanguage: ko\n---\n# 제목 <script>x</script>", encoding="utf-8"
    )
    (Path("checkpoints/y") / "report.json").write_text('{"mean_f1": 0.9}', encoding="utf-8")
    page = open_page("models", model="y")
    assert any(one.value == "# 제목 <script>x</script>" for one in page.text)
    assert not any("<script>" in str(one.value) or "<b>" in str(one.value) for one in page.markdown)


def test_who_may_train(workplace: Path) -> None:
    store = ProjectStore()
    me = Person(name="local", is_local=True)
    labels = [ProjectLabel(name="가"), ProjectLabel(name="나")]
    access = store.create(me, NewProject(name="글", labels=labels))
    set_member(access, "사람", "annotator")
    page = open_page("models", section="train")
    assert {one.key for one in page.button} >= {"train", "train_quick"}
    write_scores(access, "m", [], ModelQuality(labels=20, cross_validated_f1=0.41))
    page = open_page("models", section="curve")
    assert page.dataframe[0].value.iloc[0].tolist()[:2] == [20, "0.41"]
    assert "예상은 점이 5개 이상" in shown(page)


def test_a_quick_model_is_for_one_label_a_text(workplace: Path) -> None:
    access = made(*(f"{n}번째 글" for n in range(10)), kind="multi")
    vote(access, "지은", ["긍정", "부정"] * 5)
    page = open_page("models", section="train")
    assert page.button(key="train_quick").disabled and not page.button(key="train").disabled


def test_rare_labels_are_told_before_the_training(workplace: Path) -> None:
    """What is missing, where more of it is found, and that the training leaves it out."""
    started = {}

    def note(access: object, **how: bool) -> None:
        started.update(how)

    access = made(*(f"{n}번째 글" for n in range(20)))
    vote(access, "지은", ["긍정", "부정"] * 4 + ["긍정"])
    page = open_page("models", section="train")
    assert "2건이 더 필요" not in shown(page) and "부정 1건" in shown(page)
    assert page.button(key="train").disabled and "두 가지" in shown(page)
    vote(access, "민수", ["긍정", "부정"] * 8 + ["중립"] * 3)
    page = open_page("models", section="train")
    assert "중립 2건" in shown(page) and "빼고" in shown(page)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("malmoi.app.views.training.start_training", note)
        page.button(key="train").click().run()
    assert started == {"quick": False, "drop_rare": True}
    page.button(key="find-중립").click().run()
    assert not page.exception
    assert page.session_state["explore_suggested"] == "중립"


def test_a_training_that_is_done_says_how_good_and_where_suggestions_are_chosen(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Person(name="local", is_local=True)
    labels = [ProjectLabel(name="가"), ProjectLabel(name="나")]
    ProjectStore().create(me, NewProject(name="글", labels=labels))
    model("a", 0.9)
    job = TrainingJob(
        name="b",
        database="",
        project=1,
        command=(),
        output=str(model("b", 0.612, texts=80).parent),
        quick=True,
        pid=os.getpid(),
        started_at=0.0,
    )
    monkeypatch.setattr("malmoi.app.views.training.training_jobs", lambda access: [job])
    page = open_page("models", section="train")
    assert "F1 0.61 (글 80건" in shown(page) and "진행 방식" not in shown(page)
    page.button(key="use_new_model").click().run()
    assert page.button(key="use_new_model").disabled and "진행 방식" in shown(page)


def test_a_curve_says_which_model_suggests_and_the_page_of_numbers_its_last_score(
    workplace: Path,
) -> None:
    store = ProjectStore()
    me = Person(name="local", is_local=True)
    labels = [ProjectLabel(name="가"), ProjectLabel(name="나")]
    settings = ProjectSettings(model="*내* 모델")
    access = store.create(me, NewProject(name="글", labels=labels, settings=settings))
    assert "아직 만들지 않았습니다" in shown(open_page("status"))
    write_scores(access, "*내* 모델", [])
    assert "여기에 나옵니다" in shown(open_page("status"))
    quality = ModelQuality(labels=40, cross_validated_f1=0.41, chosen_f1=0.83)
    write_scores(access, "*내* 모델", [], quality)
    page = open_page("status")
    values = {one.label: one.value for one in page.metric}
    assert (values["배운 라벨"], values["교차 검증 F1"], values["고른 모델 F1"]) == (
        *("40", "0.41", "0.83"),
    )
    for one in (page, open_page("models", section="curve")):
        assert "라벨로 배운 모델보다 낫습니다" in shown(one)
        assert not any("*내*" in caption.value for caption in one.caption)
    write_scores(access, "quick-60", [], replace(quality, labels=60, chosen_f1=0.3))
    assert "더 낫지 않습니다" in shown(open_page("models", section="curve"))
