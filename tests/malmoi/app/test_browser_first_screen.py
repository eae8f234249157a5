"""The first screen of somebody without a project, and every page for a keyboard and a reader."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from malmoi.app.navigation import PAGES
from malmoi.app.projects.first_screen import EXAMPLE
from malmoi.labels.people import LOCAL_NAME, Person
from malmoi.labels.projects import ProjectStore
from tests.malmoi.app.servers import new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def test_three_ways_in(chromium: "Browser", address: str, trained_workplace: Path) -> None:
    from playwright.sync_api import expect

    page = new_page(chromium)
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text("말모이")
    menu = page.get_by_test_id("stSidebarNav")
    expect(menu.get_by_role("link")).to_contain_text(["작업", "한 건 분류", "파일 분류", "모델"])
    page.get_by_role("button", name="무슨 뜻일까요?").click()
    page.get_by_text("확신").wait_for()
    # A file begins the form, with its name; who goes back finds the screen without it.
    page.locator("input[type=file]").set_input_files(EXAMPLE)
    expect(page.get_by_role("textbox", name="이름", exact=True)).to_have_value("reviews")
    expect(page.get_by_role("combobox", name="글이 있는 열")).to_have_value("리뷰")
    page.get_by_text("내 작업").click()
    page.get_by_role("button", name="예시 열기").click()
    # Ready to press 1.
    expect(page.locator(".card .text")).not_to_be_empty()
    expect(menu.get_by_role("link")).to_have_count(len(PAGES))
    page.keyboard.press("1")
    page.get_by_text("내 라벨 1").wait_for()
    store = ProjectStore(f"sqlite:///{trained_workplace}/runs/labels.db")
    (project,) = store.list(Person(name=LOCAL_NAME, is_local=True))
    assert project.name == "예시: 쇼핑몰 리뷰"
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for module in [page.module for page in PAGES]:
            page.goto(f"{address}/{module}?project={project.name}")
            if module == "labelling":
                expect(page.locator(".card summary")).not_to_be_empty()
            _check(page)


def _check(page: "Page") -> None:
    """One heading, a title of its own, and nothing serious for those who see or click less."""
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect

    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_count(1)
    page.locator("[data-test-script-state=notRunning]").wait_for()
    expect(page).to_have_title(f"{heading.inner_text()} · 말모이")
    found = [
        (one["id"], node["html"])
        for one in Axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert found == []
