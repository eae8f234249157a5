"""The pages 작업 and 설정: what people give them, what comes of it, and who may not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from malmoi.app.jobs import Job, Jobs, import_key, jobs
from malmoi.app.plain_text import escaped
from malmoi.app.projects.imports import ImportOrder, start_import
from malmoi.app.projects.label_rows import as_typed, typed_labels
from malmoi.app.projects.preview import label_values, look_at
from malmoi.app.projects.uploads import UploadFolder, names_apart, shown_name
from malmoi.errors import InputError
from malmoi.labels.importing import WayOfReading
from malmoi.labels.projects import read_project
from malmoi.labels.review import progress, texts_with_votes
from malmoi.text.reading.columns import ColumnRequest
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_requested
from malmoi.text.reading.sources import Source, source_of_upload
from tests.malmoi.app.conftest import make_model
from tests.malmoi.app.project_pages import (
    LOCAL,
    Upload,
    by_label,
    finish,
    made,
    open_page,
    shown,
    store,
)

ROOT = Path(__file__).parents[3]
CSV = "번호,리뷰,라벨\r\n1,배송이 빨라요,긍정\r\n2,,중립\r\n3,똠방각하 별로예요,부정\r\n"
ODD_NAME = "<script>alert(1)</script> **굵게** [a](b) :smile: $x$"


@pytest.fixture(autouse=True)
def own_server() -> None:
    """What a server keeps for all visitors is that of another server for every test."""
    st.cache_data.clear()
    st.cache_resource.clear()


def fill_new(page: AppTest, name: str, labels: str) -> None:
    by_label(page.text_input, "이름").input(name)
    by_label(page.text_area, "쉼표로)").input(labels)


def test_a_form_says_what_is_missing_and_keeps_what_is_there(workplace: Path) -> None:
    page = open_page(view="new")
    by_label(page.button, "만들고 라벨링 시작").click().run()
    assert "이름을 적어" in page.error[0].value
    fill_new(page, "리뷰", "긍정")
    by_label(page.button, "만들고 라벨링 시작").click().run()
    assert "라벨을 2개 이상" in page.error[0].value
    assert by_label(page.text_input, "이름").value == "리뷰"
    assert store().list(LOCAL) == []


def test_a_label_that_is_put_before_others_takes_nobodys_key(workplace: Path) -> None:
    page = open_page(view="new")
    fill_new(page, "리뷰", "긍정, 부정")
    page.run()
    fill_new(page, "리뷰", "중립, 긍정, 부정")
    page.run()
    by_label(page.button, "만들고 라벨링 시작").click().run()
    labels = read_project(store().access(LOCAL, "리뷰")).labels
    assert [(one.name, one.key) for one in labels] == [("중립", "1"), ("긍정", "2"), ("부정", "3")]


def test_a_project_is_not_made_without_the_texts_that_were_given(workplace: Path) -> None:
    page = open_page(view="new")
    page.file_uploader[0].upload("리뷰.csv", b"\x89PNG\r\n\x1a\n\x00\x00", "text/csv")
    fill_new(page, "리뷰", "긍정, 부정")
    page.run()
    by_label(page.button, "만들고 라벨링 시작").click().run()
    assert len(page.error) == 2 and not page.exception  # of the file, and of the project
    assert store().list(LOCAL) == []


def test_a_project_may_begin_with_a_model_that_knows_its_labels(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALMOI_LEARNING", "off")
    make_model(workplace / "runs" / "finetune" / "내 모델")
    page = open_page(view="new")
    fill_new(page, "메모", "꿈, 일기")
    page.run()
    assert not [one for one in page.selectbox if "제안할 모델" in one.label]
    fill_new(page, "리뷰", "긍정, 부정, 기타")
    page.run()
    field = by_label(page.selectbox, "제안할 모델")
    assert field.options == ["없음", "내 모델"] and field.value == ""
    field.set_value("runs/finetune/내 모델").run()
    by_label(page.button, "만들고 라벨링 시작").click().run()
    assert not page.exception
    (project,) = store().list(LOCAL)
    assert project.settings.model == "runs/finetune/내 모델"


def test_pasted_lines_are_texts_whatever_they_look_like(workplace: Path) -> None:
    page = open_page(view="new")
    by_label(page.button_group, "글").set_value("pasted").run()
    lines = ["text,label", "좋아요,긍정", "", "=cmd()|' /C calc'!A0", "별로, 정말"]
    by_label(page.text_area, "한 줄에 하나)").input("\n".join(lines))
    # In another language they stay.
    for language in ("en", "ko"):
        page.session_state["language"] = language
        page.run()
    fill_new(page, "붙인 글", "긍정,부정")
    page.run()
    by_label(page.button, "만들고 라벨링 시작").click().run()
    assert not page.exception
    (project,) = store().list(LOCAL)
    texts = texts_with_votes(store().access(LOCAL, project.id), range(9))
    assert [one.text for one in texts] == [line for line in lines if line]


def test_labels_of_a_file_become_those_of_the_project_and_of_its_texts(workplace: Path) -> None:
    page = open_page()
    page.file_uploader[0].upload("리뷰.csv", CSV.encode(), "text/csv")
    page.run()
    by_label(page.selectbox, "라벨이 있는 열").set_value(2).run()
    by_label(page.button, "파일의 라벨을 목록에 넣기").click().run()
    assert by_label(page.text_area, "쉼표로)").value == "긍정\n중립\n부정"
    by_label(page.text_input, "이름").input("표")
    by_label(page.button, "만들고 라벨링 시작").click().run()
    assert not page.exception
    (project,) = store().list(LOCAL)
    texts = texts_with_votes(store().access(LOCAL, project.id), range(9))
    assert [[vote.labels for vote in one.votes] for one in texts] == [[("긍정",)], [("부정",)]]


def test_a_task_of_corpora_is_opened_with_or_without_its_labels(workplace: Path) -> None:
    folder = workplace / "corpora" / "tiny"
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(
        'name = "tiny"\ntitle = "작은 작업"\ndata = "tiny.csv"\n'
        'labels = [{ name = "긍정" }, { name = "부정" }]\n',
        encoding="utf-8",
    )
    (folder / "tiny.csv").write_text("text,label\n좋다 좋아,긍정\n나쁘다,부정\n", encoding="utf-8")
    for name, with_labels in (("하나", True), ("둘", False)):
        page = open_page(view="new")
        by_label(page.button_group, "보기").set_value("new").run()
        by_label(page.text_input, "새 작업의 이름").input(name)
        by_label(page.toggle, "라벨도 가져오기").set_value(with_labels)
        by_label(page.button, "작업으로 열기").click().run()
        assert not page.exception
        done = progress(store().access(LOCAL, name))
        assert (done.texts, done.finished) == (2, 2 if with_labels else 0)


def test_the_list_shows_names_as_written_and_archives(workplace: Path) -> None:
    access = made("하나", "둘", name=ODD_NAME)
    page = open_page()
    assert any(one.label == escaped(ODD_NAME) for one in page.button)
    assert ODD_NAME in by_label(page.sidebar.selectbox, "작업").options
    by_label(page.button, "보관").click().run()
    assert read_project(access).archived_at is not None
    assert by_label(page.button, "예시 열기")
    page.toggle(key="projects_archived").set_value(True).run()
    assert ODD_NAME in shown(page)
    by_label(page.button, "다시 열기").click().run()
    assert read_project(access).archived_at is None


def test_the_open_project_that_is_archived_is_open_no_longer(workplace: Path) -> None:
    for name in ("가", "나"):
        made("하나", name=name)
    page = open_page()
    assert by_label(page.sidebar.selectbox, "작업").value == "가"
    by_label(page.button, "보관").click().run()
    assert [one.name for one in store().list(LOCAL)] == ["나"]
    field = by_label(page.sidebar.selectbox, "작업")
    assert (field.value, field.options) == ("나", ["나"])
    # Who archives it knows that it is gone.
    assert not page.warning and page.query_params["project"] in ("나", ["나"])


def test_a_file_of_another_tool_comes_in_with_its_labels(workplace: Path) -> None:
    access = made()
    page = open_page()
    by_label(page.button_group, "보기").set_value("texts").run()
    rows = [
        {"id": 1, "text": "좋아요", "label": ["긍정"]},
        {"id": 2, "text": "글", "label": ["화남"]},
    ]
    data = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    page.file_uploader[0].upload("doccano.jsonl", data, "application/json")
    page.run()
    by_label(page.text_input, "라벨을 붙인 사람").input("보람").run()
    by_label(page.button, "가져오기").click().run()
    assert not page.exception and progress(access).texts == 0
    by_label(page.button, "이대로 가져오기").click().run()
    assert not page.exception
    assert "라벨 1개" in shown(page)
    ((place, why),) = page.dataframe[0].value.to_numpy().tolist()
    assert place == "doccano.jsonl:2" and why.startswith("라벨 목록에 없습니다: 화남")
    assert progress(access).finished == 1
    assert texts_with_votes(access, [1])[0].votes[0].annotator == "보람"


def test_a_file_that_cannot_be_read_is_one_line_and_no_project(workplace: Path) -> None:
    for name, data, said in (
        ("x.exe", b"MZ", "읽지 않는 종류"),
        ("x.csv", b"", "빈 파일"),
        ("x.zip", b"PK\x03\x04", "읽지 않는 종류"),
        ("x.xlsx", b"not a workbook", "x.csv"),
        ("x.xlsx", b"PK\x03\x04", "손상"),
    ):
        page = open_page()
        page.file_uploader[0].upload(name, data, "application/octet-stream")
        page.run()
        assert not page.exception, name
        sentence = page.error[0].value
        assert "읽을 수 없어" in sentence, name
        assert said in page.code[0].value and "\n" not in page.code[0].value.strip(), name


def test_uploads_lie_under_numbers_and_go_with_who_holds_them(workplace: Path) -> None:
    folder = UploadFolder()
    source = folder.take(3, "../../etc/비밀\x00번호.CSV", Upload(CSV.encode()))
    assert source.name == "비밀번호.CSV" and source.path == folder.path / "3.csv"
    assert folder.path.parent == (workplace / "runs" / "uploads").absolute()
    large = Upload(b"")
    large.size = (200 << 20) + 1
    with pytest.raises(InputError, match="at most 200 MB"):
        folder.take(4, "large.csv", large)
    path = folder.path
    del folder
    assert not path.exists()


def test_names_of_files_are_shown_by_their_last_part() -> None:
    for name, expected in (
        ("..\\..\\a.csv", "a.csv"),
        ("/etc/passwd", "passwd"),
        ("줄\n바꿈.txt", "줄 바꿈.txt"),
        ("반\ud83d쪽.csv", "반쪽.csv"),
        ("..", ".."),
        ("/", "file"),
    ):
        assert shown_name(name) == expected


def test_files_of_one_name_are_told_apart() -> None:
    sources = [Source(name=name, shown=name) for name in ("a.csv.gz", "a.csv.gz", "b.txt")]
    assert [one.name for one in names_apart(sources)] == ["a.csv.gz", "a (2).csv.gz", "b.txt"]


def test_a_title_above_the_names_of_columns_is_pointed_at(workplace: Path) -> None:
    titled = "9월 후기 모음,,\n,,\n번호,리뷰,라벨\n1,배송이 빨라요,긍정\n".encode("cp949")
    page = open_page()
    page.file_uploader[0].upload("9월.csv", titled, "text/csv")
    page.run()
    assert not page.exception
    assert any("제목 줄을 지우고" in one.value for one in page.warning)
    for data in (CSV.encode(), "1,배송이 빨라요\n2,향이 세요\n".encode()):
        assert look_at(source_of_upload("a.csv", data)).header_below is None
    assert look_at(source_of_upload("a.csv", titled), no_header=True).header_below is None


def test_a_column_is_read_by_its_number_where_its_name_is_there_twice(workplace: Path) -> None:
    access = made()
    source = source_of_upload("a.csv", "a,a,b\n일,글 하나,긍정\n이,글 둘,부정\n".encode())
    preview = look_at(source)
    way = preview.way(text=1, label=2, no_header=False)
    outcome = finish(access, source, way=way)
    assert (outcome.new_texts, outcome.labels) == (2, 2)
    assert [one.text for one in texts_with_votes(access, range(9))] == ["글 하나", "글 둘"]


def test_a_table_without_a_header_gives_its_first_row_too(workplace: Path) -> None:
    access = made()
    source = source_of_upload("a.csv", "글 하나,긍정\n글 둘,부정\n".encode())
    way = look_at(source, no_header=True).way(text=0, label=1, no_header=True)
    assert finish(access, source, way=way).labels == 2


def test_texts_inside_lists_are_offered_by_their_path() -> None:
    talks = [{"id": 1, "utterance": [{"who": "A", "form": "뭐 먹을까요"}, {"form": "국밥이요"}]}]
    source = source_of_upload("a.json", json.dumps(talks).encode())
    preview = look_at(source)
    assert preview.columns[preview.text] == "utterance.form"
    way = preview.way(text=preview.text, label=None, no_header=False)
    read = iter_requested([source], ColumnRequest(text=way.options.text_column), way.options)
    assert [record.text for record in read] == ["뭐 먹을까요", "국밥이요"]


def test_several_labels_in_a_cell_are_found_by_what_parts_them() -> None:
    source = source_of_upload("a.csv", "text,label\n하나,배송|가격\n둘,가격\n셋,배송\n".encode())
    way = WayOfReading(options=ReadOptions(text_column="text"), label_column="label")
    assert label_values(source, way, "multi") == ["배송", "가격"]
    assert label_values(source, way, "single") == ["배송|가격", "가격", "배송"]
    mixed = "text,label\n하나,배송|가격\n둘,가격;배송\n셋,배송\n넷,가격\n"
    source = source_of_upload("b.csv", mixed.encode())
    assert label_values(source, way, "multi") == ["배송", "가격"]


def test_the_labels_of_what_another_tool_exported_are_offered() -> None:
    """As they are written, whatever stands in a name."""
    choices = [
        {"type": "choices", "value": {"choices": ["기타, 나머지"]}},
        {"type": "choices", "value": {"choices": ["가격|값"]}},
    ]
    tasks = [
        {"data": {"text": "하나"}, "annotations": [{"result": choices}, {"result": []}]},
        {"data": {"text": "둘"}, "annotations": []},
    ]
    source = source_of_upload("내보냄.json", json.dumps(tasks).encode())
    way = WayOfReading(origin="label-studio", options=ReadOptions(text_column="data.text"))
    assert label_values(source, way, "multi") == ["기타, 나머지", "가격|값"]
    lines = [{"text": "하나", "label": ["부정"]}, {"text": "둘", "label": []}]
    source = source_of_upload("내보냄.jsonl", "\n".join(map(json.dumps, lines)).encode())
    way = WayOfReading(origin="doccano", options=ReadOptions(text_column="text"))
    assert label_values(source, way, "single") == ["부정"]


def test_a_trial_of_several_files_counts_each_as_if_those_before_were_in(workplace: Path) -> None:
    access = made()
    groups = []
    for name, column in (("a.csv", "label"), ("b.csv", "라벨")):
        source = source_of_upload(name, f"text,{column}\n하나,긍정\n{name},부정\n".encode())
        way = WayOfReading(options=ReadOptions(text_column="text"), label_column=column)
        groups.append((way, [source]))
    for is_trial in (True, False):
        job = start_import(access, ImportOrder(groups=groups, is_trial=is_trial))
        assert job.wait(120) and job.error is None
        done = job.result
        assert (done.rows, done.new_texts, done.labels, done.verdicts["same"]) == (4, 3, 3, 1)
        assert progress(access).texts == (0 if is_trial else 3)


def test_an_import_goes_on_without_the_page_and_says_how_far_it_is(workplace: Path) -> None:
    access = made()
    lines = "\n".join(f"글 {number}번입니다" for number in range(4_000)).encode()
    source = source_of_upload("글.txt", lines)
    running = start_import(access, ImportOrder(groups=[(WayOfReading(), [source])]))
    seen = set()
    while running.is_on:
        seen.add((running.phase, running.total))
        if running.phase != "texts":
            continue
        with pytest.raises(InputError, match="no other work"):
            start_import(access, ImportOrder(groups=[(WayOfReading(), [source])]))
        # A page that is opened meanwhile shows it.
        assert jobs().of(import_key(access.engine, access.project_id)) is running
        break
    assert running.wait(120)
    assert running.result.new_texts == 4_000 and running.total == 4_000


def test_the_list_counts_what_an_import_has_brought_once_it_has_ended(workplace: Path) -> None:
    """Whoever presses what, and where: a count is kept for some seconds otherwise."""
    access = made("배송이 빨라요")
    (bar,) = open_page().get("progress")
    assert bar.proto.text.startswith("글 1 · 끝남 0")
    file = source_of_upload("더.txt", "별로예요\n그냥 그래요".encode())
    running = start_import(access, ImportOrder(groups=[(WayOfReading(), [file])]))
    assert running.wait(120) and running.error is None
    (bar,) = open_page().get("progress")
    assert bar.proto.text.startswith("글 3 · 끝남 0")


@pytest.mark.parametrize(
    ("name", "content", "stays"),
    [("더.txt", "별로예요", False), ("더.csv", '본문,라벨\n좋아요,긍정\n"열린 따옴표', True)],
)
def test_how_an_import_ended_is_told_until_labelling_begins_but_bad_rows_stay(
    workplace: Path, name: str, content: str, stays: bool
) -> None:
    access = made("배송이 빨라요")
    file = source_of_upload(name, content.encode())
    way = WayOfReading(options=ReadOptions(skip_bad_rows=True))
    running = start_import(access, ImportOrder(groups=[(way, [file])]))
    assert running.wait(120) and running.error is None
    assert (running.result.left_out_count > 0) is stays
    page = open_page()
    page.button(key=f"label-{access.project_id}").click().run()
    assert not page.exception
    assert (jobs().of(import_key(access.engine, access.project_id)) is not None) is stays


def test_an_import_that_is_stopped_keeps_what_it_has_and_goes_on_later(workplace: Path) -> None:
    access = made()
    lines = "\n".join(f"글 {number}번입니다" for number in range(5_000)).encode()
    order = ImportOrder(groups=[(WayOfReading(), [source_of_upload("글.txt", lines)])])
    running = start_import(access, order)
    while running.is_on and not progress(access).texts:
        pass
    running.stop.set()
    assert running.wait(120) and running.stop.is_set() and running.result is None
    had = progress(access).texts
    assert 0 < had < 5_000
    again = start_import(access, order)
    assert again.wait(120) and progress(access).texts == 5_000


CUT_OFF = """
import time
from malmoi.app.jobs import import_key, jobs
from malmoi.labels.projects import ProjectStore
key = import_key(ProjectStore().engine, {project})
jobs().start(key, lambda job: time.sleep(1000), recorded=True)
print("started", flush=True)
time.sleep(1000)
"""


def test_an_import_that_the_end_of_a_server_cut_off_is_said_to_be_stopped(workplace: Path) -> None:
    access = made("배송이 빨라요")
    key = import_key(access.engine, access.project_id)
    server = subprocess.Popen(
        [sys.executable, "-c", CUT_OFF.format(project=access.project_id)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert server.stdout is not None and server.stdout.readline() == b"started\n"
    assert jobs().of(key) is None, "another server is at work on it"
    server.kill()
    server.wait()
    found = jobs().of(key)
    assert found is not None and not found.is_on and found.result is None and found.error is None
    page = open_page()
    assert "가져오기를 멈췄습니다" in shown(page)
    page.button(key=f"seen-{access.project_id}").click().run()
    assert jobs().of(key) is None and not page.exception


def test_work_that_fails_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    own = Jobs()

    def fail(running: Job) -> None:
        raise ZeroDivisionError

    running = own.start(("x", 1, ""), fail)
    assert running.wait(60) and "ZeroDivisionError" in str(running.error)
    assert "Traceback" in caplog.text  # the log has what the page does not show


@pytest.mark.parametrize("field", ["review", "내용"])
def test_a_task_of_label_studio_has_its_text_in_any_field(workplace: Path, field: str) -> None:
    result = [{"type": "choices", "value": {"choices": ["긍정"]}}]
    tasks = [
        {
            "id": n,
            "data": {"번호": n, field: f"{n}번 손님이 쓴 글"},
            "annotations": [{"result": result}],
        }
        for n in (1, 2)
    ]
    source = source_of_upload("ls.json", json.dumps(tasks, ensure_ascii=False).encode())
    seen = look_at(source)
    assert (seen.origin, seen.columns[seen.text]) == ("label-studio", f"data.{field}")
    access = made()
    way = seen.way(text=seen.text, label=None, no_header=False, origin=seen.origin)
    assert finish(access, source, way=way).labels == 2
    found = texts_with_votes(access, range(9))
    assert [(one.text, one.votes[0].labels) for one in found] == [
        ("1번 손님이 쓴 글", ("긍정",)),
        ("2번 손님이 쓴 글", ("긍정",)),
    ]


def test_a_workbook_that_cuts_texts_says_so(workplace: Path) -> None:
    made("가" * 40_000, "짧은 글")
    page = open_page()
    page.session_state["next_projects_view"] = "export"
    page.run()
    for kind, told in [("xlsx", ["칸 1개가 32,767자에서 잘렸습니다"]), ("csv", [])]:
        page.selectbox("export_kind").set_value(kind)
        page.toggle[0].set_value(True).run()
        by_label(page.button, "파일 만들기").click().run()
        while "만드는 중입니다" in str(page.main):
            page.run()
        assert "글 2건을 담았습니다" in shown(page)
        assert [one.value.partition(".")[0] for one in page.warning] == told


def test_labels_are_typed_in_lines_or_with_commas() -> None:
    for typed, names in (
        ("긍정, 부정,중립", ["긍정", "부정", "중립"]),
        ('"기타, 나머지"\n가격, 값\n\n가격', ["기타, 나머지", "가격", "값"]),
        ('별로 "안" 좋음', ['별로 "안" 좋음']),
        ('"기타, 나머지\n부정', ['"기타', "나머지", "부정"]),
        ("긍정,\n부정,\n", ["긍정", "부정"]),
        (" , ", []),
    ):
        assert typed_labels(typed) == names
        assert typed_labels(as_typed(names)) == names, typed


def test_a_line_that_is_no_label_is_no_traceback() -> None:
    assert len(typed_labels("가" * 200_000)) == 1


def test_of_several_choices_of_label_studio_one_is_read() -> None:
    parts = [
        {"from_name": name, "type": "choices", "value": {"choices": [label]}}
        for name, label in (("sentiment", "긍정"), ("topic", "배송"))
    ]
    tasks = [{"id": 1, "data": {"text": "글"}, "annotations": [{"result": parts}]}]
    source = source_of_upload("ls.json", json.dumps(tasks).encode())
    seen = look_at(source)
    assert seen.choices == ("sentiment", "topic")
    ways = [
        seen.way(text=seen.text, label=None, no_header=False, origin=seen.origin, choices=one)
        for one in ("topic", None)
    ]
    assert [label_values(source, way, "multi") for way in ways] == [["배송"], ["긍정", "배송"]]
