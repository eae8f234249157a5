"""Three people in three browsers by invitation; one is taken out in the middle, nothing is lost."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from sqlalchemy import func, select

from malmoi.labels.tables import AnnotationRow
from tests.malmoi.app.servers import Server, new_page
from tests.malmoi.app.test_browser_labelling import make, some, wait_until_saved

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def invite(page: "Page", name: str) -> str:
    """Make an invitation in the settings; the link that the page shows."""
    from playwright.sync_api import expect

    page.get_by_label("초대할 사람").fill(name)
    page.get_by_test_id("stBaseButton-secondaryFormSubmit").click()
    expect(page.get_by_text(f"이 링크는 {name} 님에게만")).to_be_visible()
    return page.get_by_test_id("stCode").last.inner_text().strip()


def label(page: "Page", count: int) -> None:
    for _ in range(count):
        page.locator(".card .text:not(:empty)").wait_for()
        page.keyboard.press("1")
        wait_until_saved(page)


def test_three_people_label_by_invitation_and_one_is_taken_out(
    chromium: "Browser", server: Server, workplace: Path
) -> None:
    from playwright.sync_api import expect

    access = make(workplace, some(60))
    query = urlencode({"project": "리뷰"})
    lead = new_page(chromium)
    lead.goto(f"{server.address}/settings?{query}&section=people")
    links = [invite(lead, name) for name in ("지은", "민수", "수아")]
    expect(lead.get_by_text("이제부터 초대장 없이는")).to_be_visible()
    assert len(set(links)) == 3

    stranger = new_page(chromium)
    stranger.goto(f"{server.address}/labelling?{query}&name=지은")
    expect(stranger.get_by_text("받은 초대 링크를 여세요")).to_be_visible()
    expect(stranger.get_by_text("리뷰")).to_have_count(0)

    pages = []
    for name, link in zip(("지은", "민수", "수아"), links, strict=True):
        page = new_page(chromium)
        page.goto(link)
        expect(page.get_by_test_id("stSidebar").get_by_text(name, exact=True)).to_be_visible()
        expect(page.get_by_label("라벨을 붙이는 사람")).to_have_count(0)
        # The browser keeps it; a name in the address is nobody's.
        page.goto(f"{server.address}/labelling?{query}&name=다른이")
        label(page, 2)
        pages.append(page)

    # The lead's browser is known after a reload, too.
    lead.reload()
    lead.get_by_text("수아 님의 초대장").wait_for()
    row = lead.locator("[class*='st-key-remove-'][class*='annotator']").first
    row.get_by_role("button").click()
    expect(lead.locator("[class*='st-key-withdraw-']")).to_have_count(2)
    gone = pages[1]  # 민수 is the first by name
    gone.reload()
    expect(gone.get_by_text("초대장이 거두어졌습니다")).to_be_visible()
    for page in (pages[0], pages[2]):
        label(page, 1)
    with access.reading() as connection:
        counts = select(AnnotationRow.annotator, func.count()).group_by(AnnotationRow.annotator)
        assert dict(connection.execute(counts).tuples().all()) == {"지은": 3, "민수": 2, "수아": 3}

    # The lead takes a copy home, with all of it.
    lead.goto(f"{server.address}/settings?{query}&section=backup")
    lead.get_by_role("button", name="사본 만들기").click()
    with lead.expect_download() as download:
        lead.get_by_role("button", name="내려받기").click()
    with closing(sqlite3.connect(download.value.path())) as copy:
        assert copy.execute("SELECT count(*) FROM malmoi_annotations").fetchone() == (8,)
