"""A part of the texts is given to one person, on whose open card it comes next."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from malmoi.labels.assigning import GivenTexts, given_texts
from tests.malmoi.app.servers import Server, new_page
from tests.malmoi.app.test_browser_invitations import label
from tests.malmoi.app.test_browser_labelling import make, open_page, some

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


def test_what_a_search_found_is_given_to_a_person(
    chromium: "Browser", server: Server, workplace: Path
) -> None:
    from playwright.sync_api import expect

    access = make(workplace, some(20) + [f"환불 {number}" for number in range(3)])
    theirs = open_page(chromium, server.address, "민수")
    label(theirs, 1)
    lead = new_page(chromium)
    lead.goto(f"{server.address}/explore?{urlencode({'project': '리뷰', 'name': '지은'})}")
    words = lead.get_by_label("글에 든 말")
    words.fill("환불")
    words.press("Enter")
    expect(lead.get_by_text("3건 가운데 1~3")).to_be_visible()
    lead.get_by_role("button", name="사람에게 맡기기").click()
    lead.get_by_label("맡을 사람").click()
    lead.get_by_role("option", name="민수").click()
    lead.get_by_role("button", name="찾은 글 모두 맡기기").click()
    expect(lead.get_by_text("글 3건을 민수 님에게 맡겼습니다")).to_be_visible()
    assert given_texts(access) == [GivenTexts(person="민수", texts=3, left=3)]

    # Behind the few that may be on their way to be labelled.
    label(theirs, 6)
    expect(theirs.locator(".card .text")).to_have_text("환불 0")
    label(theirs, 2)
    others = open_page(chromium, server.address, "수아")
    expect(others.locator(".card .text")).not_to_contain_text("환불")
    lead.get_by_role("button", name="사람에게 맡기기").click()
    expect(lead.get_by_text("민수: 3건 가운데 1건 남음")).to_be_visible()
    lead.get_by_role("dialog").get_by_role("button", name="거두기").click()
    expect(lead.get_by_role("dialog")).to_have_count(0)
    assert given_texts(access) == []
