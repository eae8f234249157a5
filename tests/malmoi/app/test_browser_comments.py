"""An annotator asks in a note, a reviewer answers on the page 검수, the annotator reads it."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from malmoi.labels.review import texts_with_votes
from tests.malmoi.app.servers import Server, new_page
from tests.malmoi.app.test_browser_labelling import make, open_page, some, wait_until_saved

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


def test_a_reviewer_answers_a_note(chromium: "Browser", server: Server, workplace: Path) -> None:
    from playwright.sync_api import expect

    access = make(workplace, some(5))
    page = open_page(chromium, server.address)
    page.get_by_role("button", name="표시").click()
    page.get_by_role("button", name="메모").click()
    page.get_by_role("textbox", name="메모").fill("긍정인가요?")
    page.keyboard.press("Enter")
    page.keyboard.press("1")
    wait_until_saved(page)

    reviewer = new_page(chromium)
    reviewer.goto(f"{server.address}/review?{urlencode({'project': '리뷰', 'name': '보람'})}")
    reviewer.get_by_label("라벨러에게 쓰기").fill("네, **긍정**입니다")
    reviewer.get_by_label("라벨러에게 쓰기").press("Enter")
    reviewer.get_by_role("button", name="보내기").click()
    expect(reviewer.get_by_text("네, **긍정**입니다").first).to_be_visible()

    page.reload()
    summary = page.locator(".recent summary")
    expect(summary).to_contain_text("답이 온 글 1")
    summary.click()
    expect(page.locator(".recent small").last).to_contain_text("네, **긍정**입니다")
    page.locator(".recent button").first.click()
    page.get_by_role("button", name="메모").click()
    page.get_by_role("textbox", name="메모").fill("고맙습니다")
    page.keyboard.press("Enter")
    wait_until_saved(page)
    (text,) = texts_with_votes(access, [1])
    assert [(one.person, one.text) for one in text.comments] == [
        ("지은", "긍정인가요?"),
        ("보람", "네, **긍정**입니다"),
        ("지은", "고맙습니다"),
    ]
