"""The app's logic through Streamlit's own test runner, with a real tiny model."""

import io
import json
import shutil
import time
from pathlib import Path

import openpyxl
import pytest
from streamlit.testing.v1 import AppTest

from malmoi.labels.exporting import export_table
from malmoi.labels.found_texts import add_texts
from malmoi.labels.leasing import lease_texts
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore, archive
from tests.malmoi.app.pages import open_page, shown

MAIN = Path(__file__).parents[3] / "app" / "main.py"
LABELS = ["긍정", "부정", "중립"]


def open_app() -> AppTest:
    page = AppTest.from_file(str(MAIN), default_timeout=600).run()
    assert not page.exception
    return page


def saved() -> list[dict[str, object]]:
    """All labelled texts of all projects, by their exports."""
    me = Person(name="all", is_local=True)
    rows: list[dict[str, object]] = []
    for project in ProjectStore().list(me):
        path = Path(f"{project.id}.jsonl")
        export_table(ProjectStore().access(me, project.id), path)
        lines = path.read_text(encoding="utf-8").splitlines()
        rows += [{"project": project.name, **json.loads(line)} for line in lines]
    return rows


def button(page: AppTest, label: str):  # type: ignore[no-untyped-def]
    return next(one for one in page.button if one.label == label)


def choice(page: AppTest, label: str):  # type: ignore[no-untyped-def]
    return next(one for one in page.selectbox if one.label == label)


def upload(page: AppTest, name: str, data: bytes) -> AppTest:
    page.file_uploader[0].upload(name, data, "text/csv").run()
    assert not page.exception
    return page


def test_missing_model_says_how_to_make_one(workplace: Path) -> None:
    page = open_page("single")
    text = shown(page)
    assert "아직 모델이 없습니다" in text
    assert not page.error and not page.code


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_damaged_model(
    trained_workplace: Path, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trained_workplace / "runs/finetune/x/model" / file).write_bytes(b'{"a')
    monkeypatch.setenv("MALMOI_HOME", str(trained_workplace))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    page = open_page("single")
    assert "읽을 수 없습니다" in page.error[0].value
    # Named by its place in the project, not on the machine.
    assert "runs/finetune/x/model" in shown(page) and str(trained_workplace) not in shown(page)


def test_damaged_database(trained_workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALMOI_DATABASE", "nonsense")
    assert "데이터베이스를 열 수 없습니다" in open_app().error[0].value


def classified(text: str) -> AppTest:
    page = open_page("single")
    page.text_area[0].input(text)
    button(page, "분류하기").click().run()
    assert not page.exception
    return page


def right_label(page: AppTest):  # type: ignore[no-untyped-def]
    return next(one for one in page.button_group if one.label == "맞는 라벨")


def test_label_correct_and_save(trained_workplace: Path) -> None:
    page = classified("배송이 빨라요 👍")
    predicted = page.metric[0].value
    assert predicted in LABELS
    assert right_label(page).value == predicted

    other = next(label for label in LABELS if label != predicted)
    right_label(page).set_value(other).run()
    button(page, "저장").click().run()
    assert "배송이 빨라요 👍 → " + other in shown(page)
    button(page, "저장").click().run()
    (row,) = saved()
    assert (row["text"], row["label"], row["suggested_label"]) == (
        "배송이 빨라요 👍",
        other,
        predicted,
    )
    # By the name that it has in a project, where it may suggest, too.
    assert row["suggested_model"] == "runs/finetune/x"

    # A changed mind, there and back and again: the last one holds.
    for label in (predicted, other, predicted, other):
        right_label(page).set_value(label).run()
        button(page, "저장").click().run()
        assert "배송이 빨라요 👍 → " + label in shown(page)
        assert [row["label"] for row in saved()] == [label]


def test_what_is_saved_is_the_text_on_screen(trained_workplace: Path) -> None:
    page = classified("배송이 빨라요")
    page.text_area[0].input("향이 별로예요").run()
    assert "글이 바뀌었습니다" in shown(page)
    assert "저장" not in [one.label for one in page.button]
    assert saved() == []


def test_labels_go_to_a_project_that_has_them(trained_workplace: Path) -> None:
    me = Person(name="나", is_local=True)
    for name, labels in (("둘뿐", LABELS[:2]), ("리뷰", LABELS)):
        store = ProjectStore()
        store.create(
            me, NewProject(name=name, labels=[ProjectLabel(name=label) for label in labels])
        )
    page = classified("배송이 빨라요")
    assert "저장하는 작업: 리뷰" in shown(page)
    button(page, "저장").click().run()
    assert [row["project"] for row in saved()] == ["리뷰"]


def test_the_open_project_takes_the_labels_if_it_has_them(trained_workplace: Path) -> None:
    """Also beside others, which can be given there then; else the page says that it cannot."""
    store, me = ProjectStore(), Person(name="나", is_local=True)
    for name, labels in (
        ("가 리뷰", LABELS),
        ("나 리뷰", ["기타", *LABELS]),
        ("메모", ["꿈", "일기"]),
    ):
        new = NewProject(name=name, labels=[ProjectLabel(name=label) for label in labels])
        store.create(me, new)
    page = open_page("single", project="나 리뷰")
    page.text_area[0].input("배송이 빨라요")
    button(page, "분류하기").click().run()
    assert "저장하는 작업: 나 리뷰" in shown(page) and "저장할 수 없습니다" not in shown(page)
    assert right_label(page).options == [*LABELS, "기타"]
    right_label(page).set_value("기타").run()
    button(page, "저장").click().run()
    choice(page, "작업").set_value("메모").run()
    assert "저장하는 작업: 가 리뷰" in shown(page)
    assert "열린 작업 ‘메모’에는 이 모델의 라벨을 저장할 수 없습니다" in shown(page)
    assert [(row["project"], row["label"]) for row in saved()] == [("나 리뷰", "기타")]


def test_a_new_project_is_named_before_it_is_made(trained_workplace: Path) -> None:
    """Not like one that was put away, of which there can be no other."""
    store, me = ProjectStore(), Person(name="나", is_local=True)
    new = NewProject(name="x", labels=[ProjectLabel(name=label) for label in LABELS])
    archive(store.create(me, new))
    page = classified("배송이 빨라요")
    assert "새 작업이 만들어집니다: x (2)" in shown(page)
    button(page, "저장").click().run()
    assert [one.name for one in store.list(me)] == ["x (2)"]


def test_pasted_lines_are_texts_of_their_own(trained_workplace: Path) -> None:
    page = classified("배송이 빨라요\n\n별로예요\n그냥 그래요")
    button(page, "분류하기").click().run()
    assert "3건을" in page.success[0].value
    whole = next(one for one in page.button_group if one.label == "여러 줄입니다")
    whole.set_value("whole").run()
    button(page, "분류하기").click().run()
    assert page.metric[0].value in LABELS
    # One line more is still of one text.
    page.text_area[0].input("배송이 빨라요\n별로예요\n그냥 그래요\n추천").run()
    button(page, "분류하기").click().run()
    assert page.metric[0].value in LABELS and not page.success
    page.text_area[0].input("").run()
    assert "글이 바뀌었습니다" not in shown(page)


def test_unusual_texts_are_commented(trained_workplace: Path) -> None:
    for text, said in (
        ("  ", "비어 있습니다"),
        ("<br>", "남는 글이 없습니다"),
        ("좋다", "아주 짧습니다"),
        ("좋다 " * 4_000, "앞부분만 읽고"),  # more than 64 windows
    ):
        assert said in shown(classified(text))


def test_rows_that_cannot_be_read_are_told_and_the_others_classified(
    trained_workplace: Path,
) -> None:
    data = "text,별점\n배송이 빨라요,5\n별로,1,2\n좋아요,4\n".encode()
    page = upload(open_page("file"), "리뷰.csv", data)
    ((place, why),) = page.dataframe[0].value.to_numpy().tolist()
    assert place == "리뷰.csv:3" and "칸 수" in why
    button(page, "분류 시작").click().run()
    run_until_ended(page)
    classified = [one.value for one in page.dataframe if "예측" in one.value.columns]
    assert not page.error and [len(one) for one in classified] == [2]


def run_until_ended(page: AppTest) -> AppTest:
    """The job runs in a thread of its own."""
    end = time.monotonic() + 300
    while not (page.success or page.error) and time.monotonic() < end:
        time.sleep(0.1)
        page.run()
    assert not page.exception
    return page


def test_column_without_text(trained_workplace: Path) -> None:
    page = upload(open_page("file"), "a.csv", "text,메모\n배송,\n빨라요,\n".encode())
    choice(page, "글이 있는 열").select("메모")
    button(page, "분류 시작").click().run()
    assert "이 열을 분류할 수 없습니다" in run_until_ended(page).error[0].value


def test_another_person_gives_an_opinion_of_their_own(trained_workplace: Path) -> None:
    page = classified("배송이 빨라요")
    button(page, "저장").click().run()
    name = next(one for one in page.text_input if one.label == "라벨 붙이는 사람")
    name.input("지은").run()
    button(page, "저장").click().run()
    (row,) = saved()
    assert set(json.loads(str(row["votes"]))) == {"local", "지은"}


def test_two_models_of_one_name_can_be_told_apart(trained_workplace: Path) -> None:
    released = trained_workplace / "checkpoints" / "x"
    shutil.copytree(trained_workplace / "runs/finetune/x/model", released)
    page = open_page("single")
    assert choice(page, "모델").options == ["x (runs/finetune)", "x (checkpoints)"]


def test_a_guessed_text_column_is_called_a_guess(trained_workplace: Path) -> None:
    named = upload(open_page("file"), "a.csv", "리뷰,값\n배송이 빨라요,1\n".encode())
    assert not [one for one in named.caption if "가장 긴 열" in one.value]
    guessed = upload(open_page("file"), "a.csv", "가,나\n배송이 빨라요,1\n".encode())
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
    page = upload(open_page("file"), "a.xlsx", buffer.getvalue())
    said = " ".join(caption.value for caption in page.caption)
    assert "읽은 시트: 하나, 둘" in said and "읽지 않은 시트: 표지" in said
    assert "2행" in said


def test_score_of_the_model_is_shown(trained_workplace: Path) -> None:
    """Of a run, and of a released model."""
    run, released = trained_workplace / "runs/finetune/x", trained_workplace / "checkpoints/y"
    assert not [one for one in open_page("single").caption if "교차 검증" in one.value]
    (run / "report.json").write_text('{"mean_f1": 0.5237}', encoding="utf-8")
    assert [one for one in open_page("single").caption if "교차 검증 F1 0.52" in one.value]
    released.parent.mkdir()
    (run / "model").rename(released)
    (released / "report.json").write_text('{"mean_f1": 0.8125}', encoding="utf-8")
    assert [one for one in open_page("single").caption if "교차 검증 F1 0.81" in one.value]


def typed_name(page: AppTest, name: str) -> AppTest:
    field = next(one for one in page.text_input if one.label == "라벨 붙이는 사람")
    field.input(name).run()
    assert not page.exception
    return page


def test_the_result_of_a_file_goes_along_when_a_name_is_typed(trained_workplace: Path) -> None:
    page = upload(open_page("file"), "리뷰.csv", "리뷰\n배송이 빨라요\n".encode())
    button(page, "분류 시작").click().run()
    run_until_ended(page)
    job = str(in_address(page.query_params["job"]))
    assert "1건을" in typed_name(page, "지은").success[0].value
    # Whoever types a name after that may be a colleague, and who only has the address is nobody.
    assert "더 남아 있지 않습니다" in shown(typed_name(page, "민수"))
    assert "더 남아 있지 않습니다" in shown(open_page("file", job=job, name="민수"))
    assert "1건을" in open_page("file", job=job, name="지은").success[0].value


def in_address(value: str | list[str]) -> str:
    """Of the address, which the test runner gives once as it was set and once as a list."""
    return value if isinstance(value, str) else value[0]


def use_task(workplace: Path, name: str) -> None:
    folder = workplace / "corpora" / name
    folder.mkdir(parents=True)
    shutil.copy(MAIN.parents[1] / "corpora" / name / "task.toml", folder)


def test_the_guideline_is_that_of_the_task(trained_workplace: Path) -> None:
    page = classified("배송이 빨라요")
    assert "리뷰의 주된 대상" not in shown(page) and not page.error
    use_task(trained_workplace, "reviews")
    assert "리뷰의 주된 대상" in shown(page.run())
    task = trained_workplace / "corpora" / "reviews" / "task.toml"
    task.write_text("labels = 3\n", encoding="utf-8")
    page.run()
    assert not page.exception
    assert ["지침을 읽을 수 없습니다" in one.value for one in page.error] == [True]


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
    page = open_page("single")
    assert choice(page, "모델").options == ["memos", "x"]
    assert choice(page, "모델").value == "runs/finetune/x"


def test_texts_go_along_when_a_name_is_typed(workplace: Path) -> None:
    """Whoever begins without a name holds texts under none."""
    nobody = Person(name="local", is_local=True)
    store = ProjectStore()
    labels = [ProjectLabel(name=label) for label in LABELS]
    access = store.create(nobody, NewProject(name="리뷰", labels=labels))
    add_texts(access, ["배송이 빨라요", "별로예요"], "손으로")
    assert len(lease_texts(access, 2)) == 2
    page = open_page("single", project="리뷰")
    name = next(one for one in page.text_input if one.label == "라벨 붙이는 사람")
    name.input("지은").run()
    named = store.access(Person(name="지은", is_local=True), "리뷰")
    assert len(lease_texts(named, 2)) == 2
    # Those of a name stay: it may have been a colleague's.
    name = next(one for one in page.text_input if one.label == "라벨 붙이는 사람")
    name.input("민수").run()
    other = store.access(Person(name="민수", is_local=True), "리뷰")
    assert lease_texts(other, 2) == []


def test_a_name_that_is_cut_ends_without_a_space(workplace: Path) -> None:
    """A link may hold a longer one than the field takes."""
    page = open_page("projects", name=f" {'가' * 59} 나")
    assert in_address(page.query_params["name"]) == "가" * 59


def test_the_address_names_the_project_that_is_open(workplace: Path) -> None:
    """Also the first of the list: for whoever gets the link, another may be the first."""
    store = ProjectStore()
    labels = [ProjectLabel(name=label) for label in LABELS]
    for name in ("리뷰", "*메모*"):
        store.create(Person(name="local", is_local=True), NewProject(name=name, labels=labels))
    page = open_page("projects")
    assert page.query_params["project"] in ("*메모*", ["*메모*"])
    page = open_page("projects", project="리뷰")
    assert choice(page, "작업").value == "리뷰" and not page.warning
    choice(page, "작업").set_value("*메모*").run()
    assert page.query_params["project"] in ("*메모*", ["*메모*"])
    page = open_page("projects", project="없는 *작업*")
    assert choice(page, "작업").value == "*메모*"
    assert "없는" in page.warning[0].value and r"\*작업\*" in page.warning[0].value
