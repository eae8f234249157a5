"""Streamlit's own words are Korean, those of people are as they wrote them, and none is cut."""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from malmoi.labels.project import ProjectSettings
from tests.malmoi.app.project_pages import made, vote
from tests.malmoi.app.servers import IS_CUT, new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

# Labels that Streamlit, too, says of itself.
LABELS = ("Close", "Format", "긍정")
GUIDELINE = """
| 라벨 | 뜻 | 붙이는 때 | 붙이지 않는 때 |
|-|-|-|-|
| 긍정 | 좋다고 한 글 | 칭찬 | 반어 |
"""
# Of what is seen or said on a page: names of whatever has one, and placeholders.
NAMES = """() => [...document.querySelectorAll("[aria-label], [placeholder]")]
  .filter((one) => !one.closest("[data-testid=stElementToolbar], [data-testid=stDateInput]"))
  .flatMap((one) => [one.getAttribute("aria-label"), one.getAttribute("placeholder")])
  .filter((name) => name && !name.startsWith("Shortcut "))"""


@pytest.fixture
def page(chromium: "Browser", workplace: Path) -> "Page":
    """In a place with a project whose two annotators differ on its only text."""
    settings = ProjectSettings(annotators_per_text=2)
    access = made("배송이 빨라요", labels=",".join(LABELS), guideline=GUIDELINE, settings=settings)
    vote(access, "지은", ["긍정"])
    vote(access, "민수", ["Format"])
    return new_page(chromium, width=820, height=1180)


def test_only_people_write_english_on_a_korean_page(page: "Page", address: str) -> None:
    page.goto(f"{address}/explore?project={quote('리뷰')}&name={quote('보람')}")
    page.get_by_text("1건 가운데 1~1").wait_for()
    page.get_by_role("navigation", name="화면").wait_for()
    page.wait_for_function(f"() => !({NAMES})().some((name) => /[A-Za-z]{{3}}/.test(name))")
    assert page.get_by_test_id("stSkipToContent").text_content() == "본문으로 건너뛰기"

    page.get_by_role("button", name="필터").click()
    page.get_by_role("combobox", name="붙인 라벨").click()
    # As they were written, though a menu of Streamlit's has the same words.
    page.get_by_role("option", name="Close").wait_for()
    assert page.get_by_role("option").all_inner_texts() == ["모두", *LABELS]
    page.keyboard.press("Escape")
    page.get_by_test_id("stDateInput").get_by_role("spinbutton").first.click()
    calendar = page.get_by_test_id("stDateInputCalendar")
    calendar.get_by_text("고르기…").click()
    page.get_by_role("option", name="지난 1주").wait_for()
    assert not re.search("[A-Za-z]{2}", calendar.inner_text())

    page.goto(f"{address}/explore?project={quote('리뷰')}&name={quote('보람')}")
    page.get_by_role("button", name="찾은 글 모두 라벨 정하기").click()
    dialog = page.get_by_role("dialog", name="라벨 정하기")
    dialog.get_by_text("Format", exact=True).wait_for()
    dialog.get_by_text("Close", exact=True).wait_for()
    dialog.get_by_role("button", name="닫기").click()

    # The names follow the visitor to the other language.
    page.get_by_test_id("stSidebar").get_by_text("English").click()
    page.get_by_role("navigation", name="App pages").wait_for()


def test_on_a_narrow_screen_nothing_is_cut(page: "Page", address: str) -> None:
    from playwright.sync_api import expect

    query = f"project={quote('리뷰')}&name={quote('보람')}"
    page.goto(f"{address}/explore?{query}")
    page.get_by_text("1건 가운데 1~1").wait_for()
    for name in ("상태", "순서"):
        field = page.get_by_role("combobox", name=name, exact=True)
        field.click()
        longest = max(page.get_by_role("option").all_inner_texts(), key=len)
        page.get_by_role("option", name=longest, exact=True).click()
        expect(field).to_have_value(longest)
        assert not field.evaluate(IS_CUT), longest
    assert not page.get_by_role("button", name="필터").evaluate(IS_CUT)
    page.goto(f"{address}/review?{query}")
    table = page.get_by_role("table")
    table.wait_for()
    # A guideline beside the text had a table of columns of two characters, the last of them cut.
    assert not table.locator("xpath=..").evaluate(IS_CUT)
    # Nor does the head of the page lie on what comes first.
    page.set_viewport_size({"width": 390, "height": 844})
    first = page.get_by_text("무엇을 볼까요")
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    head = page.get_by_test_id("stHeader").bounding_box()
    place = first.bounding_box()
    assert head is not None and place is not None
    assert head["y"] + head["height"] <= place["y"]
