"""The page 설정, and who may reach it and the exports: the store decides, the page says so."""

import re
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from malmoi.app.projects.imports import ImportOrder, start_import
from malmoi.labels.access import ProjectAccess
from malmoi.labels.access_keys import person_of
from malmoi.labels.importing import WayOfReading
from malmoi.labels.people import AccessError, Person
from malmoi.labels.project import ProjectLabel, ProjectSettings
from malmoi.labels.projects import archive, change_guideline, members, read_project, set_member
from malmoi.labels.webhook_delivery import deliver_due
from malmoi.labels.webhooks import list_webhooks
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.app.conftest import make_model
from tests.malmoi.app.project_pages import by_label, made, shown, store, vote


@pytest.fixture(autouse=True)
def own_server() -> None:
    """What a server keeps for all visitors is that of another server for every test."""
    st.cache_data.clear()
    st.cache_resource.clear()


def _visit_script() -> None:
    import importlib
    import os

    import streamlit as st

    from malmoi.app.visit import OpenProject, Visit
    from malmoi.labels.connection import database_url
    from malmoi.labels.people import Person
    from malmoi.labels.projects import ProjectStore, read_project

    store = ProjectStore(database_url())
    person = Person(name=os.environ["TEST_PERSON"])
    access = store.access(person, "리뷰")
    project = OpenProject(access=access, project=read_project(access))
    visit = Visit(store=store, person=person, open_project=project)
    # What somebody forges who sets the state of widgets that were never drawn for them.
    st.session_state["export_kind"] = "csv"
    importlib.import_module(f"malmoi.app.views.{os.environ['TEST_PAGE']}").show(visit)


def as_member(
    monkeypatch: pytest.MonkeyPatch, person: str, page: str, query: dict[str, str]
) -> AppTest:
    monkeypatch.setenv("TEST_PERSON", person)
    monkeypatch.setenv("TEST_PAGE", page)
    app = AppTest.from_function(_visit_script, default_timeout=600)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def test_an_annotator_is_told_who_may_and_reaches_nothing(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = made("하나", "둘")
    set_member(access, "anna@b.kr", "annotator")
    for view, said in (("export", "내보내기는 검수자와"), ("texts", "글은 관리자가")):
        page = as_member(monkeypatch, "anna@b.kr", "projects", {"view": view})
        assert said in shown(page)
        assert not page.file_uploader and not page.code
    for section in (
        "labels",
        "guideline",
        "work",
        "people",
        "programs",
        "audit",
        "backup",
        "erase",
    ):
        page = as_member(monkeypatch, "anna@b.kr", "settings", {"section": section})
        assert "관리자만 바꿀 수 있습니다" in shown(page)
        assert all(one.disabled for one in [*page.text_input, *page.number_input, *page.button])
    page = as_member(monkeypatch, "anna@b.kr", "settings", {"section": "people"})
    assert "검수자와 관리자만" in shown(page) and "지은" not in shown(page)
    page = as_member(monkeypatch, "anna@b.kr", "settings", {"section": "audit"})
    assert "기록은 관리자만" in shown(page) and not page.dataframe


def test_a_button_that_was_drawn_for_an_admin_does_nothing_for_an_annotator(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = made("하나")
    set_member(access, "bora@b.kr", "admin")
    before = read_project(access)
    page = as_member(monkeypatch, "bora@b.kr", "settings", {"section": "labels"})
    set_member(access, "bora@b.kr", "annotator")
    by_label(page.text_input, "더할 라벨 (쉼표로 여러 개)").input("새 라벨")
    by_label(page.button, "라벨 저장").click().run()
    assert not page.exception
    assert read_project(access).labels == before.labels


def test_the_store_refuses_what_a_page_would_hide(workplace: Path) -> None:
    from malmoi.app.projects.exports import start_export

    access = made("하나")
    for role in ("annotator", "reviewer"):
        set_member(access, "민수", role)
        theirs = store().access(Person(name="민수"), "리뷰")
        order = ImportOrder(groups=[(WayOfReading(), [source_of_upload("x.txt", b"x")])])
        with pytest.raises(AccessError):
            start_import(theirs, order)
        if role == "annotator":
            with pytest.raises(AccessError):
                start_export(theirs, "csv", labelled_only=True)


def open_settings(monkeypatch: pytest.MonkeyPatch, section: str) -> AppTest:
    return as_member(monkeypatch, "bora@b.kr", "settings", {"section": section})


@pytest.fixture
def project(workplace: Path) -> ProjectAccess:
    access = made("하나", "둘")
    set_member(access, "bora@b.kr", "admin")
    return access


def test_labels_are_renamed_recoloured_added_and_retired(
    project: ProjectAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_settings(monkeypatch, "labels")
    page.text_input[0].input("좋음")
    page.color_picker[0].set_value("#123456")
    page.checkbox[2].set_value(True)
    by_label(page.text_input, "더할 라벨 (쉼표로 여러 개)").input("모름, 기타")
    by_label(page.button, "라벨 저장").click().run()
    assert not page.exception and not page.error
    labels = {label.name: label for label in read_project(project).labels}
    assert list(labels) == ["좋음", "부정", "모름", "기타", "중립"]
    assert labels["좋음"].color == "#123456" and labels["중립"].retired
    # Who is labelling at this moment means 중립 by its key.
    assert labels["중립"].key not in [labels[name].key for name in ("모름", "기타")]
    # Two of one name are refused, and nothing is changed.
    page.text_input[0].input("부정")
    by_label(page.button, "라벨 저장").click().run()
    assert "이대로는 저장할 수 없습니다" in page.error[0].value
    assert read_project(project).label_names == ["좋음", "부정", "모름", "기타"]


def test_a_label_that_somebody_else_adds_meanwhile_stays(
    project: ProjectAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    from malmoi.labels.projects import change_labels

    page = open_settings(monkeypatch, "labels")
    now = read_project(project).labels
    change_labels(project, [*now, ProjectLabel(name="다른 사람이 더함")])
    page.text_input[0].input("좋음")
    by_label(page.button, "라벨 저장").click().run()
    assert read_project(project).label_names == ["좋음", "부정", "중립", "다른 사람이 더함"]


def test_guideline_settings_and_members_are_changed_and_told_in_the_trail(
    project: ProjectAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_settings(monkeypatch, "guideline")
    page.text_area[0].input("# 지침\n![그림](http://elsewhere/x.png)")
    by_label(page.button, "지침 저장").click().run()
    assert read_project(project).guideline_version == 2

    page = open_settings(monkeypatch, "work")
    by_label(page.number_input, "사람 수").set_value(2)
    by_label(page.selectbox, "차례").set_value("random")
    by_label(page.button, "진행 방식 저장").click().run()
    settings = read_project(project).settings
    assert (settings.annotators_per_text, settings.text_order) == (2, "random")

    page = open_settings(monkeypatch, "people")
    by_label(page.text_input, "이메일)").input("minsu@b.kr")
    by_label(page.button, "더하기").click().run()
    assert members(project)["minsu@b.kr"] == "annotator"

    page = open_settings(monkeypatch, "audit")
    told = page.dataframe[0].value.iloc[:, 2].tolist()
    assert told[:3] == [
        "역할을 정했습니다: minsu@b.kr, 라벨러",
        "진행 방식을 바꿨습니다: 글마다 사람 수 1 → 2, "
        "글이 나오는 차례 처음에는 무작위, 그다음 모델이 고른 차례 → 모두 무작위",
        "지침을 고쳤습니다: 2판",
    ]
    assert told[-1] == "작업을 만들었습니다: 리뷰"


def test_two_versions_of_a_guideline_stand_on_one_page(
    project: ProjectAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even equal ones; how their tables look is said within each, and of nothing else."""
    table = "| 라벨 | 뜻 |\n| --- | --- |\n| 긍정 | 좋다 |"
    for words in (table, "없음", table):
        change_guideline(project, words)
    page = open_settings(monkeypatch, "guideline")
    next(one for one in page.selectbox if one.label == "판").set_value(2).run()
    assert not page.exception
    assert [one.value for one in page.markdown if "긍정" in one.value] == [table] * 2
    styles = [one.proto.body for one in page.get("html") if "td" in one.proto.body]
    rules = re.findall(r"([^{}>]+)\{[^{}]*\}", "".join(styles))
    assert rules and all("guideline" in rule for rule in rules), rules


def test_a_model_of_the_project_is_chosen_kept_when_it_is_gone_and_taken_away(
    project: ProjectAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALMOI_LEARNING", "off")
    page = open_settings(monkeypatch, "work")
    assert not [one for one in page.selectbox if "모델" in one.label and "제안" in one.label]
    run = make_model(Path("runs/finetune/내 모델")).parent
    page = open_settings(monkeypatch, "work")
    field = by_label(page.selectbox, "제안할 모델")
    assert field.options == ["없음", "내 모델"]
    field.set_value("runs/finetune/내 모델")
    by_label(page.button, "진행 방식 저장").click().run()
    assert not page.exception and read_project(project).settings.model == "runs/finetune/내 모델"
    # It is gone: nothing of it is lost, and it can be taken away.
    shutil.rmtree(run)
    page = open_settings(monkeypatch, "work")
    field = by_label(page.selectbox, "제안할 모델")
    assert field.options == ["없음", "내 모델 (지금은 쓸 수 없음)"]
    assert field.value == "runs/finetune/내 모델"
    field.set_value("")
    by_label(page.button, "진행 방식 저장").click().run()
    assert not page.exception and read_project(project).settings.model is None
    page = open_settings(monkeypatch, "audit")
    told = page.dataframe[0].value.iloc[:, 2].tolist()
    assert told[:2] == [
        "진행 방식을 바꿨습니다: 모델 runs/finetune/내 모델 → 없음",
        "진행 방식을 바꿨습니다: 모델 없음 → runs/finetune/내 모델",
    ]


def _model_script() -> None:
    import streamlit as st

    from malmoi.app.projects.model_field import choose_model

    # A browser may send anything as the value of a field.
    st.session_state["field"] = st.query_params["forged"]
    st.text(repr(choose_model({"내 모델": "내 모델"}, None, key="field")))


def test_a_model_that_was_not_offered_cannot_be_named() -> None:
    for forged in ("/etc/model", "monologg/koelectra-small-v3-discriminator"):
        page = AppTest.from_function(_model_script, default_timeout=600)
        page.query_params["forged"] = forged
        page.run()
        assert not page.exception and [one.value for one in page.text] == ["None"], forged
        page.query_params["forged"] = "내 모델"
        page.run()
        assert [one.value for one in page.text] == ["'내 모델'"], forged


def test_a_role_that_was_refused_is_not_given_later(
    project: ProjectAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_member(project, "지은", None)
    page = open_settings(monkeypatch, "people")
    page.selectbox[0].set_value("annotator").run()
    assert "한 사람은 남아야" in page.error[0].value
    assert page.selectbox[0].value == "admin"
    set_member(project, "지은", "admin")
    page.run()
    assert not page.error
    assert members(project) == {"bora@b.kr": "admin", "지은": "admin"}


def test_every_action_of_the_trail_has_a_sentence(workplace: Path) -> None:
    from malmoi.app.projects.audit_sentences import sentence
    from malmoi.labels.projects import audit_trail
    from malmoi.labels.relabelling import relabel, undo_relabelling

    access = made("하나")
    archive(access)
    archive(access, away=False)
    changed = relabel(access, [1], ["긍정"], request_id="r", expected=1)
    undo_relabelling(access, changed.id)
    with access.writing("admin") as connection:
        access.note(connection, "from later", {"글": [1, True], "왜": {"까닭": None}})
    told = [sentence(entry) for entry in audit_trail(access)]
    assert told == [
        "그 밖의 변경(from later): 글 1 예, 왜 까닭 없음",
        "한꺼번에 정한 라벨을 되돌렸습니다: 글 1건",
        "글 1건의 라벨을 한꺼번에 정했습니다: 긍정",
        "작업을 다시 열었습니다",
        "작업을 보관했습니다",
        "글을 가져왔습니다: 1행, 새 글 1건, 뺀 행 0개",
        "작업을 만들었습니다: 리뷰",
    ]


def test_every_backup_has_a_name_of_its_own(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_member(made(), "anna@b.kr", "admin")
    page = as_member(monkeypatch, "anna@b.kr", "settings", {"section": "backup"})
    by_label(page.button, "사본 만들기").click().run()
    (copy,) = (workplace / "backups").iterdir()
    assert f"backups/{copy.name}" in shown(page) and not page.code
    with sqlite3.connect(copy) as found:
        assert found.execute("SELECT name FROM malmoi_projects").fetchall() == [("리뷰",)]


def test_two_labels_are_merged_with_a_count_before(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = made("하나", "둘", settings=ProjectSettings(annotators_per_text=2))
    vote(access, "지은", ["부정", "중립"])
    vote(access, "민수", ["중립"])
    set_member(access, "bora@b.kr", "admin")
    page = open_settings(monkeypatch, "labels")
    by_label(page.selectbox, "없어지는 라벨").select("중립").run()
    by_label(page.selectbox, "남는 라벨").select("부정").run()
    assert "글 2건이" in shown(page) and "1건은 의견이 더는" in shown(page)
    by_label(page.button, "합치기").click().run()
    assert not page.exception and read_project(access).label_names == ["긍정", "부정"]
    page = open_settings(monkeypatch, "audit")
    assert "라벨 중립을 부정으로 합쳤습니다: 글 2건" in str(page.dataframe[0].value)


def test_programs_get_tokens_and_are_told(
    project: ProjectAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_member(project, "하윤", "reviewer")
    page = open_settings(monkeypatch, "programs")
    by_label(page.text_input, "토큰 주인").input("하윤")
    by_label(page.button, "토큰 만들기").click().run()
    assert not page.exception and not page.error
    token = page.code[0].value
    person = person_of(store(), token, "token")
    assert person is not None and person.name == "하윤"
    # A token makes nobody less than they are.
    assert members(project)["하윤"] == "reviewer"
    page.run()
    assert not page.code and "하윤 · 검수자" in page.text[1].value

    by_label(page.text_input, "주소").input("http://127.0.0.1:9/labels")
    by_label(page.button, "더하기").click().run()
    assert "그렇게는 할 수 없습니다" in page.error[0].value and list_webhooks(project) == []
    monkeypatch.setenv("MALMOI_PRIVATE_WEBHOOKS", "on")
    by_label(page.text_input, "주소").input("http://127.0.0.1:9/labels")
    by_label(page.button, "더하기").click().run()
    assert page.code[0].value.startswith("whsec_")
    vote(project, "지은", ["긍정"])
    deliver_due(project.engine, threading.Event())
    page.run()
    assert "1건 대기 · 마지막 실패: 연결할 수 없음" in page.text[-1].value
    by_label(page.button, "빼기").click().run()
    by_label(page.button, "거두기").click().run()
    assert list_webhooks(project) == [] and person_of(store(), token, "token") is None
    audit = open_settings(monkeypatch, "audit").dataframe[0].value
    assert "127.0.0.1로 가는 웹훅을 없앴습니다" in str(audit.to_dict())
