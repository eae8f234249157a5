"""지우기 as an admin meets it, beside a tab that still has the text: a real server and Chromium."""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from malmoi.labels.backup import back_up
from malmoi.labels.project import ProjectSettings
from malmoi.labels.projects import audit_trail
from malmoi.labels.review import texts_with_votes
from tests.malmoi.app.project_pages import LOCAL, made, store, vote
from tests.malmoi.app.servers import new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

SECRET = "김말숙 님 전화는 010-0000-1234 입니다"


def holders(workplace: Path) -> list[str]:
    return [
        path.relative_to(workplace).as_posix()
        for path in sorted(workplace.rglob("*"))
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_an_erased_text_is_gone_and_an_open_tab_is_refused(
    chromium: "Browser", workplace: Path, address: str
) -> None:
    settings = ProjectSettings(annotators_per_text=2, text_order="plain")
    access = made(SECRET, "그냥 그래요", "다시는 안 사요", settings=settings)
    vote(access, "민수", ["긍정"])
    url = access.engine.url.render_as_string(hide_password=False)
    back_up(workplace / "backups" / "앞.db", url)
    assert len(holders(workplace)) >= 2
    where = f"project={quote('리뷰')}&name={quote('지은')}"
    page = new_page(chromium)
    page.goto(f"{address}/settings?{where}&section=erase")
    page.get_by_label("글 그대로, 또는 글 번호").fill(SECRET)
    page.get_by_role("button", name="무엇이 지워지는지 보기").click()
    page.get_by_text("글 1건과 거기 붙은").wait_for()
    page.get_by_text(re.compile("백업 앞.*안에서도")).wait_for()
    button = page.get_by_role("button", name="영구히 지우기")
    assert button.is_disabled()
    # Meanwhile it is on the screen of somebody else.
    tab = new_page(chromium)
    tab.goto(f"{address}/labelling?project={quote('리뷰')}&name={quote('보람')}")
    tab.locator(".card .text", has_text=SECRET).wait_for()
    page.get_by_text("되돌릴 수 없다는 것을 알고 있습니다").click()
    button.click()
    page.get_by_text("영구히 지웠습니다").wait_for()
    assert holders(workplace) == []
    tab.keyboard.press("2")
    refused = tab.locator(".refused li")
    refused.wait_for()
    assert SECRET in refused.inner_text() and holders(workplace) == []
    assert [(one.text, one.votes) for one in texts_with_votes(access, range(9))] == [
        ("그냥 그래요", ()),
        ("다시는 안 사요", ()),
    ]
    entry = audit_trail(access)[0]
    assert (entry.person, entry.action, entry.details["texts"]) == ("지은", "erase", 1)
    page.goto(f"{address}/settings?{where}&section=audit")
    page.get_by_test_id("stDataFrame").wait_for()


def test_a_name_and_then_the_project_go(chromium: "Browser", workplace: Path, address: str) -> None:
    access = made("그냥 그래요", "다시는 안 사요")
    vote(access, "박달래", ["긍정"])
    page = new_page(chromium)
    page.goto(f"{address}/settings?project={quote('리뷰')}&name={quote('지은')}&section=erase")
    page.get_by_text("사람 이름", exact=True).click()
    page.get_by_label("이름 또는 이메일").fill("박달래")
    page.get_by_role("button", name="무엇이 지워지는지 보기").click()
    page.get_by_text("1건, 결정 0건").wait_for()
    page.get_by_text("되돌릴 수 없다는 것을 알고 있습니다").click()
    page.get_by_role("button", name="영구히 지우기").click()
    page.get_by_text("영구히 지웠습니다").wait_for()
    (vote_left,) = texts_with_votes(access, range(9))[0].votes
    assert vote_left.annotator.startswith("erased-")
    page.get_by_text("이 작업 전체").click()
    page.get_by_role("button", name="무엇이 지워지는지 보기").click()
    page.get_by_text("글 2건과 거기 붙은").wait_for()
    page.get_by_text("되돌릴 수 없다는 것을 알고 있습니다").click()
    page.get_by_role("button", name="영구히 지우기").click()
    page.get_by_text("아직 작업이 없습니다").first.wait_for()
    assert "리뷰" not in {one.name for one in store().list(LOCAL, archived=True)}
