"""The editor of corrections on the page 파일 분류, through Streamlit's own test runner."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.review import texts_with_votes
from tests.malmoi.app.conftest import LABELS
from tests.malmoi.app.pages import open_page, shown

ME = Person(name="나", is_local=True)
ROWS = ("배송이 빨라요", "", "별로예요", "그냥저냥")


@pytest.fixture
def result(trained_workplace: Path) -> AppTest:
    """The page with the result of four rows, the second of them empty, and a project for it."""
    labels = [ProjectLabel(name=label) for label in LABELS]
    ProjectStore().create(ME, NewProject(name="리뷰", labels=labels))
    return classified("번호")


def classified(other: str) -> AppTest:
    """The page with the result of `ROWS` beside another column of this name."""
    page = open_page("file")
    table = f"{other},리뷰\n" + "".join(f"{place},{text}\n" for place, text in enumerate(ROWS))
    page.file_uploader[0].upload("리뷰.csv", table.encode(), "text/csv").run()
    next(one for one in page.button if one.label == "분류 시작").click().run()
    end = time.monotonic() + 300
    while not page.success and time.monotonic() < end:
        time.sleep(0.1)
        page.run()
    assert not page.exception and "3건을" in page.success[0].value
    return page


def type_labels(
    page: AppTest, cells: Mapping[int, str | None], column: str = "malmoi:right"
) -> None:
    """Type into cells by the place of their rows on screen, as a browser would tell of it.

    The test runner has no call for it, and sends what an editor holds once only.
    """
    (editor,) = page.data_editor
    states = page._tree.get_widget_states()
    state = states.widgets.add()
    state.id = editor.proto.id
    edited = {str(place): {column: label} for place, label in cells.items()}
    state.string_value = json.dumps({"edited_rows": edited, "added_rows": [], "deleted_rows": []})
    page._run(states)
    assert not page.exception


def right_labels(page: AppTest) -> list[str | None]:
    """What stands in the cells of a new editor."""
    return [one or None for one in page.data_editor[0].value["malmoi:right"].tolist()]


def save_button(page: AppTest):  # type: ignore[no-untyped-def]
    return next(one for one in page.button if one.key and one.key.startswith("save_"))


def saved(name: str = "리뷰") -> dict[str, list[str]]:
    access = ProjectStore().access(ME, name)
    found = texts_with_votes(access, range(1, 10))
    return {one.text: [vote.labels[0] for vote in one.votes] for one in found}


def test_what_is_typed_is_saved_and_taken_back(result: AppTest) -> None:
    page = result
    assert save_button(page).disabled and "저장하는 작업: 리뷰" in shown(page)
    type_labels(page, {0: "중립", 1: "긍정", 3: "부정"})
    # Nothing stands in the second row, so there is nothing to give a label to.
    assert save_button(page).label == "고친 라벨 2개 저장"
    save_button(page).click().run()
    assert "라벨 2개를 저장했습니다" in shown(page)
    assert saved() == {"배송이 빨라요": ["중립"], "그냥저냥": ["부정"]}
    assert save_button(page).disabled

    type_labels(page, {0: None, 2: "긍정"})
    assert save_button(page).label == "고친 라벨 1개 저장, 1개 취소"
    save_button(page).click().run()
    assert "라벨 1개를 저장했습니다" in shown(page)
    assert "라벨 1개를 취소했습니다. 글은 라벨 없이 작업에 남습니다" in shown(page)
    assert saved() == {"배송이 빨라요": [], "별로예요": ["긍정"], "그냥저냥": ["부정"]}
    assert save_button(page).disabled


def test_a_table_may_have_a_column_of_any_name(trained_workplace: Path) -> None:
    page = classified("malmoi:right")
    type_labels(page, {0: "중립"}, "malmoi:right (2)")
    assert save_button(page).label == "고친 라벨 1개 저장"


def test_corrections_stay_with_their_rows_in_another_order_and_language(result: AppTest) -> None:
    page = result
    type_labels(page, {3: "부정"})
    order = next(one for one in page.selectbox if one.label == "순서")
    order.set_value("low").run()
    table = page.data_editor[0].value
    assert dict(zip(table["리뷰"], right_labels(page), strict=True))["그냥저냥"] == "부정"
    next(one for one in page.button_group if one.label == "언어").set_value("en").run()
    assert save_button(page).label == "Save 1 correction"


def test_a_label_of_another_person_stays(trained_workplace: Path) -> None:
    page = open_page("single")
    page.text_area[0].input("배송이 빨라요\n별로예요")
    next(one for one in page.button if one.label == "분류하기").click().run()
    next(one for one in page.button if one.label == "분류하기").click().run()
    for name, cells in (("지은", {0: "중립"}), ("민수", {0: None, 1: "긍정"})):
        next(one for one in page.text_input if one.label == "라벨 붙이는 사람").input(name).run()
        type_labels(page, cells)
        assert save_button(page).label == "고친 라벨 1개 저장"
        assert ("다른 사람(지은)이" in shown(page)) == (name == "민수")
        save_button(page).click().run()
        assert save_button(page).disabled
    assert saved("x") == {"배송이 빨라요": ["중립"], "별로예요": ["긍정"]}


def test_corrections_go_to_the_project_that_is_opened(result: AppTest) -> None:
    page = result
    labels = [ProjectLabel(name=label) for label in ("기타", *LABELS)]
    ProjectStore().create(ME, NewProject(name="새 리뷰", labels=labels))
    type_labels(page, {0: "중립"})
    save_button(page).click().run()
    next(one for one in page.selectbox if one.label == "작업").set_value("새 리뷰").run()
    assert "저장하는 작업: 새 리뷰" in shown(page)
    assert save_button(page).label == "고친 라벨 1개 저장"
    type_labels(page, {0: "기타"})
    save_button(page).click().run()
    assert saved("리뷰") == {"배송이 빨라요": ["중립"]}
    assert saved("새 리뷰") == {"배송이 빨라요": ["기타"]}
    # A label that the first one does not have stops no other.
    type_labels(page, {2: "긍정"})
    next(one for one in page.selectbox if one.label == "작업").set_value("리뷰").run()
    assert "라벨 1개는 이 작업에 없는 라벨(기타)이라 저장하지 않습니다" in shown(page)
    assert save_button(page).label == "고친 라벨 1개 저장"
    save_button(page).click().run()
    assert saved("리뷰") == {"배송이 빨라요": ["중립"], "별로예요": ["긍정"]}
    assert save_button(page).disabled and "없는 라벨(기타)" in shown(page)
