"""The app's logic through Streamlit's own test runner, with a real tiny model."""

import io
import json
import shutil
from pathlib import Path

import openpyxl
import pytest
from app.views.labels import retraining_command
from streamlit.testing.v1 import AppTest

from malmoi.labels.store import LabelStore

MAIN = Path(__file__).parents[2] / "app" / "main.py"
TAB_LABELS = ["한 건 분류", "파일 분류", "저장한 라벨"]


def open_app() -> AppTest:
    page = AppTest.from_file(str(MAIN), default_timeout=600).run()
    assert not page.exception
    return page


def button(page: AppTest, label: str):  # type: ignore[no-untyped-def]
    return next(one for one in page.button if one.label == label)


def choice(page: AppTest, label: str):  # type: ignore[no-untyped-def]
    return next(one for one in page.selectbox if one.label == label)


def upload(page: AppTest, name: str, data: bytes) -> AppTest:
    page.file_uploader[0].upload(name, data, "text/csv").run()
    assert not page.exception
    return page


def shown(page: AppTest) -> str:
    parts = [*page.error, *page.warning, *page.info, *page.success, *page.code, *page.markdown]
    return "\n".join(str(part.value) for part in parts)


def test_missing_model_says_how_to_make_one(workplace: Path) -> None:
    page = open_app()
    text = shown(page)
    assert "아직 모델이 없습니다" in text
    assert "git checkout -- checkpoints" in text
    assert "python pretrain/run.py --corpus corpora/comments" in text
    assert "python finetune/kfold.py --labels 긍정,부정,중립" in text
    assert not page.error


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_damaged_model(trained_workplace: Path, file: str) -> None:
    (trained_workplace / "runs/finetune/x/model" / file).write_bytes(b'{"a')
    page = open_app()
    assert "읽을 수 없습니다" in page.error[0].value
    assert "kfold.py" in page.error[0].value


def test_damaged_database(trained_workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALMOI_DATABASE", "nonsense")
    assert "데이터베이스를 열 수 없습니다" in open_app().error[0].value


def test_label_correct_and_save(trained_workplace: Path) -> None:
    page = open_app()
    assert [tab.label for tab in page.tabs] == TAB_LABELS
    page.text_area[0].input("배송이 빨라요 👍")
    button(page, "분류하기").click().run()
    predicted = page.metric[0].value
    assert predicted in ("긍정", "부정", "중립")
    assert page.button_group[0].value == predicted

    other = next(label for label in ("긍정", "부정", "중립") if label != predicted)
    page.button_group[0].set_value(other).run()
    button(page, "저장").click().run()
    assert f"저장했습니다: {other} · 지금까지 글 1건" in page.success[0].value
    button(page, "저장").click().run()
    (row,) = LabelStore().recent()
    assert (row.text, row.label, row.predicted_label) == ("배송이 빨라요 👍", other, predicted)
    assert row.model == "x"

    # A changed mind, there and back, is two more decisions.
    for label in (predicted, other):
        page.button_group[0].set_value(label).run()
        button(page, "저장").click().run()
    assert [row.label for row in LabelStore().recent()] == [other, predicted, other]
    assert LabelStore().counts() == {other: 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  ", "비어 있습니다"),
        ("<br>", "남는 글이 없습니다"),
        ("좋다", "아주 짧습니다"),
        ("좋다 " * 4_000, "앞부분만 읽고"),  # more than 64 windows
    ],
)
def test_unusual_texts_are_commented(trained_workplace: Path, text: str, said: str) -> None:
    page = open_app()
    page.text_area[0].input(text)
    button(page, "분류하기").click().run()
    assert not page.exception
    assert said in shown(page)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", b"", "빈 파일입니다"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), "읽을 수 없습니다"),
        ("a.xlsx", b"not a workbook", "읽을 수 없습니다"),
        ("a.csv", b"text\n", "읽을 수 없습니다"),
        ("a.pdf", b"%PDF-1.7", "읽을 수 없습니다"),
    ],
)
def test_bad_upload(trained_workplace: Path, name: str, data: bytes, said: str) -> None:
    page = upload(open_app(), name, data)
    assert said in page.error[0].value
    assert "예상하지 못한" not in shown(page)


def test_column_without_text(trained_workplace: Path) -> None:
    page = upload(open_app(), "a.csv", "text,메모\n배송,\n빨라요,\n".encode())
    choice(page, "글이 있는 열").select("메모")
    button(page, "분류 시작").click().run()
    assert "‘메모’ 열을 분류할 수 없습니다" in page.error[0].value


def test_another_name_or_anothers_correction_is_a_new_decision(trained_workplace: Path) -> None:
    page = open_app()
    page.text_area[0].input("배송이 빨라요")
    button(page, "분류하기").click().run()
    first = page.metric[0].value
    button(page, "저장").click().run()
    name = next(one for one in page.text_input if one.label == "라벨 붙이는 사람")
    name.input("지은").run()
    button(page, "저장").click().run()
    assert [row.annotator for row in LabelStore().recent()] == ["지은", "이름 없음"]
    # Someone else corrects it; saving again is then a decision, not a repetition.
    other = next(label for label in ("긍정", "부정", "중립") if label != first)
    LabelStore().save(
        text="배송이 빨라요",
        label=other,
        labels=["긍정", "부정", "중립"],
        annotator="민수",
        request_id="m",
    )
    button(page, "저장").click().run()
    assert [row.annotator for row in LabelStore().recent()][:2] == ["지은", "민수"]
    assert LabelStore().label_of("배송이 빨라요", ["긍정", "부정", "중립"]) == first
    button(page, "저장").click().run()
    assert LabelStore().history_length() == 4


def test_retraining_is_offered_when_it_can_work(trained_workplace: Path) -> None:
    labels = ["긍정", "부정", "중립"]

    def fill(label: str, count: int) -> None:
        for number in range(count):
            given = {"text": f"{label} {number}", "label": label, "request_id": f"{label}{number}"}
            LabelStore().save(labels=labels, annotator="가", **given)

    fill("긍정", 5)
    fill("부정", 2)
    page = open_app()
    assert not [one for one in page.code if "--data labels.xlsx" in one.value]
    assert [one for one in page.caption if "‘부정’ 3건" in one.value]
    fill("부정", 5)
    page = open_app()
    (code,) = [one.value for one in page.code if "--data labels.xlsx" in one.value]
    assert code.endswith("--labels 긍정,부정") or code.endswith("--labels '긍정,부정'")
    LabelStore().save(
        text="꿈", label="매우 꿈", labels=["매우 꿈", "일기"], annotator="가", request_id="x"
    )
    page = open_app()
    assert [one for one in page.caption if "저장한 글이 1건 더 있습니다" in one.value]


def test_retraining_on_a_label_with_a_comma_names_no_labels() -> None:
    assert retraining_command(["긍정", "부정"]).split(" --labels ")[1].strip("'") == "긍정,부정"
    assert retraining_command(["일정", "할 일, 약속"]).endswith("--data labels.xlsx")


def test_two_models_of_one_name_can_be_told_apart(trained_workplace: Path) -> None:
    released = trained_workplace / "checkpoints" / "x"
    shutil.copytree(trained_workplace / "runs/finetune/x/model", released)
    page = open_app()
    assert choice(page, "모델").options == ["x (runs/finetune/x/model)", "x (checkpoints/x)"]


def test_a_guessed_text_column_is_called_a_guess(trained_workplace: Path) -> None:
    named = upload(open_app(), "a.csv", "리뷰,값\n배송이 빨라요,1\n".encode())
    assert not [one for one in named.caption if "가장 긴 열" in one.value]
    guessed = upload(open_app(), "a.csv", "가,나\n배송이 빨라요,1\n".encode())
    assert [one for one in guessed.caption if "가장 긴 열" in one.value]
    assert choice(guessed, "글이 있는 열").value == "가"


def test_sheets_that_are_read_and_not_are_named(trained_workplace: Path) -> None:
    book = openpyxl.Workbook()
    book.worksheets[0].title = "표지"
    book.worksheets[0].append(["만든 사람"])
    for title in ("하나", "둘"):
        sheet = book.create_sheet(title)
        sheet.append(["리뷰"])
        sheet.append([f"{title} 번째 시트의 글"])
    buffer = io.BytesIO()
    book.save(buffer)
    page = upload(open_app(), "a.xlsx", buffer.getvalue())
    said = " ".join(caption.value for caption in page.caption)
    assert "읽은 시트: 하나, 둘" in said and "읽지 않은 시트: 표지" in said
    assert "2행" in said


def test_score_of_the_model_is_shown(trained_workplace: Path) -> None:
    report = trained_workplace / "runs/finetune/x/report.json"
    assert not [one for one in open_app().caption if "교차 검증" in one.value]
    report.write_text('{"mean_f1": 0.5237}', encoding="utf-8")
    assert [one for one in open_app().caption if "교차 검증 F1 0.52" in one.value]


def test_score_of_a_released_model_is_shown(trained_workplace: Path) -> None:
    released = trained_workplace / "checkpoints" / "malmoi-reviews"
    released.parent.mkdir()
    (trained_workplace / "runs/finetune/x/model").rename(released)
    (released / "report.json").write_text('{"mean_f1": 0.8125}', encoding="utf-8")
    assert [one for one in open_app().caption if "교차 검증 F1 0.81" in one.value]


def test_cp949_upload(trained_workplace: Path) -> None:
    data = "번호,리뷰\n1,배송이 빨라요\n2,\n3,똠방각하 별로예요\n".encode("cp949")
    page = upload(open_app(), "리뷰.csv", data)
    assert choice(page, "글이 있는 열").value == "리뷰"
    button(page, "분류 시작").click().run()
    assert not page.exception
    assert "2건을" in page.success[0].value
    assert "글이 비었거나 주소·태그뿐인 행이 1개" in page.warning[0].value
    # Another column is another question: the old answer must not stand below it.
    choice(page, "글이 있는 열").select("번호").run()
    assert not page.success


def use_task(workplace: Path, name: str) -> None:
    folder = workplace / "corpora" / name
    folder.mkdir(parents=True)
    shutil.copy(MAIN.parents[1] / "corpora" / name / "task.toml", folder)


def test_the_guideline_is_that_of_the_task(trained_workplace: Path) -> None:
    page = open_app()
    page.text_area(key="single_text").input("배송이 빨라요")
    button(page, "분류하기").click().run()
    assert "리뷰의 주된 대상" not in shown(page) and not page.error
    use_task(trained_workplace, "reviews")
    assert "리뷰의 주된 대상" in shown(page.run())
    task = trained_workplace / "corpora" / "reviews" / "task.toml"
    task.write_text("labels = 3\n", encoding="utf-8")
    page.run()
    assert not page.exception
    assert ["라벨 기준을 읽을 수 없습니다" in one.value for one in page.error] == [True]


def test_model_of_another_task_is_not_preferred(trained_workplace: Path) -> None:
    use_task(trained_workplace, "reviews")
    runs = trained_workplace / "runs" / "finetune"
    shutil.copytree(runs / "x", runs / "memos")
    config = runs / "memos" / "model" / "config.json"
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings["id2label"] = {"0": "메모", "1": "일정", "2": "오류"}
    settings["label2id"] = {"메모": 0, "일정": 1, "오류": 2}
    config.write_text(json.dumps(settings), encoding="utf-8")
    (runs / "memos" / "report.json").touch()
    page = open_app()
    assert choice(page, "모델").options == ["memos", "x"]
    assert choice(page, "모델").value.parent.name == "x"
