"""검수 and 살펴보기 as a reviewer meets them: a real server, a real Chromium."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from malmoi.labels.project import ProjectSettings
from malmoi.labels.projects import change_labels, read_project
from tests.malmoi.app.project_pages import LOCAL, made, store, vote
from tests.malmoi.app.servers import IS_CUT, new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EVIL = "<img src=x onerror=\"document.title='hacked'\"> **굵게** 세 번째"
TEXTS = ("배송이 빨라요", "그냥 그래요", EVIL, "다시는 안 사요")

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: "Browser", workplace: Path) -> "Page":
    """In a place with a project on whose second and third text two people differ."""
    access = made(*TEXTS, settings=ProjectSettings(annotators_per_text=2))
    vote(access, "지은", ["긍정", "긍정", "긍정", "부정"])
    vote(access, "민수", ["긍정", "부정", "중립", "부정"])
    return new_page(chromium)


def decisions(workplace: Path) -> list[tuple[Any, ...]]:
    """Of each text that has one: id, choice, reviewer, note."""
    with sqlite3.connect(workplace / "runs" / "labels.db") as connection:
        return connection.execute(
            "SELECT t.id, a.choice, a.reviewer, a.note FROM malmoi_texts t "
            "JOIN malmoi_adjudications a ON a.id = t.adjudication_id ORDER BY t.id"
        ).fetchall()


def choose(page: "Page", label: str) -> None:
    """Press the button of a label, once those of the text before are gone."""
    from playwright.sync_api import expect

    button = page.get_by_role("button", name=label)
    expect(button).to_have_count(1)
    button.click()


def test_a_disagreement_of_two_people_is_reviewed(
    page: "Page", address: str, workplace: Path
) -> None:
    page.goto(f"{address}/review?project={quote('리뷰')}&name={quote('보람')}")
    page.get_by_text("그냥 그래요", exact=True).wait_for()
    page.get_by_text("지은", exact=True).wait_for()
    page.get_by_text("민수", exact=True).wait_for()
    note = page.get_by_label("결정의 이유")
    note.fill("만족이 없음")
    note.press("Control+Enter")
    # Out of the field, as a key in it is a letter of the note.
    page.get_by_text("의견이 갈림 2").wait_for()
    note.blur()
    page.keyboard.press("2")
    page.get_by_text("저장했습니다: ‘그냥 그래요’ → 부정").wait_for()
    assert decisions(workplace) == [(2, "[2]", "보람", "만족이 없음")]
    # The next one, as it was written.
    page.get_by_text(EVIL, exact=True).wait_for()
    undo = page.get_by_role("button", name="되돌리기")
    assert not undo.evaluate(IS_CUT)
    undo.click()
    page.get_by_text("의견이 갈림 2").wait_for()
    assert decisions(workplace) == []
    page.get_by_text("그냥 그래요", exact=True).wait_for()
    choose(page, "중립")
    page.get_by_text("저장했습니다: ‘그냥 그래요’ → 중립").wait_for()
    page.get_by_text(EVIL, exact=True).wait_for()
    choose(page, "긍정")
    page.get_by_text("검수할 글이 없습니다").wait_for()
    assert [row[:3] for row in decisions(workplace)] == [(2, "[3]", "보람"), (3, "[1]", "보람")]
    assert page.title() != "hacked"
    page.reload()
    page.get_by_text("결정함 2").wait_for()


def test_texts_are_relabelled_at_once_and_that_is_undone(
    page: "Page", address: str, workplace: Path
) -> None:
    page.goto(f"{address}/explore?project={quote('리뷰')}&name={quote('보람')}")
    page.get_by_text("4건 가운데 1~4").wait_for()
    words = page.get_by_label("글에 든 말")
    words.fill("요")
    words.press("Enter")
    page.get_by_text("3건 가운데 1~3").wait_for()
    page.get_by_role("button", name="찾은 글 모두 라벨 정하기").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("글 3건의 라벨").wait_for()
    dialog.get_by_role("radio", name="중립").or_(
        dialog.get_by_role("button", name="중립", exact=True)
    ).first.click()
    change = dialog.get_by_role("button", name="3건 바꾸기")
    page.wait_for_function("e => !e.disabled", arg=change.element_handle())
    # What is pressed is the label that was on the screen, whatever it is called meanwhile.
    access = store().access(LOCAL, "리뷰")
    good, bad, neither = read_project(access).labels
    renamed = [replace(good, name="중립"), bad, replace(neither, name="보통")]
    change_labels(access, renamed)
    change.click()
    page.get_by_text("3건을 보통으로 정했습니다").wait_for()
    assert [row[:2] for row in decisions(workplace)] == [(1, "[3]"), (2, "[3]"), (4, "[3]")]
    # What is clicked while the dialog goes and the page is drawn anew would close again.
    dialog.wait_for(state="hidden")
    page.locator("[data-test-script-state=notRunning]").wait_for()
    page.get_by_role("button", name="한꺼번에 바꾼 기록").click()
    page.get_by_role("button", name="되돌리기").click()
    page.get_by_text("글 3건을 되돌렸습니다").wait_for()
    assert decisions(workplace) == []
    assert "words=" in page.url


def test_filters_that_were_cleared_do_not_come_back(page: "Page", address: str) -> None:
    page.goto(f"{address}/explore?project={quote('리뷰')}&name={quote('보람')}")
    page.get_by_text("4건 가운데 1~4").wait_for()
    page.get_by_role("button", name="필터").click()
    file = page.get_by_label("파일 이름에 든 말")
    file.fill("다른 파일")
    file.press("Enter")
    page.get_by_text("찾은 글이 없습니다").wait_for()
    page.get_by_role("button", name="필터 지우기").click()
    page.get_by_text("4건 가운데 1~4").wait_for()
    # With the next click the browser says again what its fields hold.
    page.get_by_text("표시한 글만").click()
    page.get_by_text("필터: 표시").wait_for()
    assert file.input_value() == ""


def test_a_choice_holds_though_its_words_change(
    chromium: "Browser", workplace: Path, address: str
) -> None:
    from playwright.sync_api import expect

    access = made(*TEXTS, settings=ProjectSettings(annotators_per_text=2))
    vote(access, "지은", ["긍정"] * 4)
    vote(access, "민수", ["중립", "부정", "부정", "부정"])
    page = new_page(chromium)
    page.goto(f"{address}/review?project={quote('리뷰')}&name={quote('보람')}")
    page.get_by_text(TEXTS[0], exact=True).wait_for()
    page.get_by_role("combobox", name="갈린 라벨").click()
    page.get_by_role("option", name="긍정 ↔ 부정 3건").click()
    page.get_by_text(TEXTS[1], exact=True).wait_for()
    # The browser sends back the words that it was told, first with another number, ...
    choose(page, "부정")
    page.get_by_text(EVIL, exact=True).wait_for()
    expect(page.get_by_role("combobox", name="갈린 라벨")).to_have_value("긍정 ↔ 부정 2건")
    # ... then in another language.
    page.get_by_test_id("stSidebar").get_by_text("English").click()
    expect(page.get_by_role("combobox", name="Between")).to_have_value("긍정 ↔ 부정 (2)")
    choose(page, "부정")
    page.get_by_text(TEXTS[3], exact=True).wait_for()
    expect(page.get_by_role("combobox", name="Between")).to_have_value("긍정 ↔ 부정 (1)")


def test_enter_decides_while_a_label_has_the_focus(
    chromium: "Browser", workplace: Path, address: str
) -> None:
    from playwright.sync_api import expect

    access = made(*TEXTS, kind="multi", settings=ProjectSettings(annotators_per_text=2))
    vote(access, "지은", ["긍정"])
    vote(access, "민수", ["중립"])
    page = new_page(chromium)
    page.goto(f"{address}/review?project={quote('리뷰')}&name={quote('보람')}")
    for label in ("긍정", "부정"):
        chosen = page.get_by_role("button", name=label, exact=True)
        chosen.click()
        expect(chosen).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Enter")
    page.get_by_text("저장했습니다: ‘배송이 빨라요’ → 긍정, 부정").wait_for()
    assert [row[:2] for row in decisions(workplace)] == [(1, "[1, 2]")]
