"""분석 as a person meets it: themes before there are labels, then shares and a page to show."""

import csv
import io
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import openpyxl
import pytest

from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.leasing import lease_texts
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.app.project_pages import LOCAL, store
from tests.malmoi.app.servers import ROOT, new_page, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

SAID = {
    "불만": ("배송이 너무 늦어요", "상자가 찌그러져 왔어요", "환불이 안 돼서 답답해요"),
    "만족": ("포근하고 따뜻해요", "색이 예뻐서 마음에 들어요", "가격이 싸고 좋아요"),
}
ROWS, LABELLED = 120, 60
# What the server says reaches the page `window.lateness` milliseconds later.
LATE_MESSAGES = """window.WebSocket = class extends WebSocket {
  set onmessage(handle) {
    super.onmessage = (message) => setTimeout(handle, window.lateness ?? 0, message);
  }
  addEventListener(kind, handle, ...how) {
    const late = (event) => setTimeout(handle, window.lateness ?? 0, event);
    super.addEventListener(kind, kind === "message" ? late : handle, ...how);
  }
};"""
COLOR = "#8a2be2"

LOST_TRACK = """window.dispatchEvent(
  new ErrorEvent("error", { message: "Uncaught Error: Bad delta path index 2" }))"""


def reviews(workplace: Path, count: int = ROWS) -> ProjectAccess:
    """A project of reviews with columns beside the texts."""
    (workplace / "checkpoints").symlink_to(ROOT / "checkpoints")
    access = store().create(
        LOCAL,
        NewProject(
            name="리뷰",
            labels=[ProjectLabel(name=one, color=COLOR) for one in SAID],
            settings=ProjectSettings(text_order="random"),
        ),
    )
    said = [one for texts in SAID.values() for one in texts]
    rows = [
        (f"2026-0{1 + n % 3}-1{n % 9}", ("베개", "이불")[n % 2], f"{said[n % 6]} {n}번 주문")
        for n in range(count)
    ]
    file = io.StringIO()
    csv.writer(file).writerows([("작성일", "상품명", "리뷰"), *rows])
    import_texts(access, [source_of_upload("리뷰.csv", file.getvalue().encode())])
    return access


def label_some(access: ProjectAccess) -> None:
    for text in lease_texts(access, LABELLED):
        label = next(name for name, said in SAID.items() if text.text.startswith(said))
        request = f"r{text.text_id}"
        save_acts(
            access, [Act(text_id=text.text_id, kind="label", labels=[label], request_id=request)]
        )


def test_a_theme_becomes_a_label_before_there_are_any(chromium: "Browser", workplace: Path) -> None:
    from playwright.sync_api import expect

    reviews(workplace)
    where = f"project={quote('리뷰')}&name={quote('지은')}"
    with serving(workplace) as server:
        page = new_page(chromium)
        page.goto(f"{server.address}/analysis?{where}")
        # The meaning of the texts is read first.
        page.get_by_role("button", name="라벨로 만들기").first.click()
        expect(page.get_by_text("글 3건에 ‘")).to_be_visible()
    with sqlite3.connect(workplace / "runs" / "labels.db") as connection:
        (decided,) = connection.execute("SELECT count(*) FROM malmoi_adjudications").fetchone()
        (labels,) = connection.execute("SELECT count(*) FROM malmoi_project_labels").fetchone()
    assert (decided, labels) == (3, 3)


def test_labels_become_shares_a_page_and_a_workbook(chromium: "Browser", workplace: Path) -> None:
    from playwright.sync_api import expect

    label_some(reviews(workplace))
    where = f"project={quote('리뷰')}&name={quote('지은')}"
    with serving(workplace) as server:
        page = new_page(chromium)
        page.goto(f"{server.address}/labelling?{where}")
        page.locator(".card .text:not(:empty)").wait_for()
        page.keyboard.press("1")  # and the model learns
        page.get_by_role("button", name="나머지 채우기").wait_for()
        page.goto(f"{server.address}/analysis?{where}")
        expect(page.get_by_role("heading", name="라벨별 비율")).to_be_visible()
        expect(page.get_by_text("95% 구간은")).to_be_visible()
        # The page is drawn anew once the meaning of the texts is read too.
        expect(page.get_by_text("라벨 없이 뜻이 비슷한 글끼리")).to_be_visible()
        page.get_by_label("비교할 열").click()
        page.get_by_role("option", name="상품명").click()
        page.keyboard.press("Escape")
        expect(page.get_by_role("heading", name="상품명별 비율")).to_be_visible()
        # A number opens its texts: here that of the first label in all.
        table = page.get_by_test_id("stDataFrame")
        expect(table).to_have_count(2)
        table.first.click(position={"x": 300, "y": 50})
        expect(table).to_have_count(3)
        with page.expect_download() as download:
            page.get_by_role("button", name="보여 줄 페이지 받기").click()
        source = download.value.path().read_text(encoding="utf-8")
        assert "상품명별 비율" in source and "<script" not in source
        assert COLOR in source
        with page.expect_download() as download:
            page.get_by_role("button", name="엑셀 받기").click()
        book = openpyxl.load_workbook(io.BytesIO(download.value.path().read_bytes()))
        assert book["글"].max_row == ROWS + 1


def test_texts_of_chance_are_brought_to_the_card_over_a_slow_network(
    chromium: "Browser", workplace: Path
) -> None:
    from playwright.sync_api import expect

    label_some(reviews(workplace, 2_000))
    where = f"project={quote('리뷰')}&name={quote('지은')}"
    with serving(workplace) as server:
        page = new_page(chromium)
        page.add_init_script(LATE_MESSAGES)
        page.goto(f"{server.address}/analysis?{where}")
        page.get_by_text("글의 뜻을 읽는 중").wait_for()
        # The progress bar asks for news until the next page is there: too late, for Streamlit.
        page.get_by_text("글을 읽는 중").wait_for()
        page.evaluate("window.lateness = 1500")
        page.get_by_role("button", name="무작위로 뽑은 글").dispatch_event("click")
        expect(page.locator(".card .text:not(:empty)")).to_be_visible()
        page.wait_for_timeout(7_000)  # the page is lost within five seconds, if it is
        expect(page.locator(".card .text:not(:empty)")).to_be_visible()
        # What the browser says then; on a fast machine the bar may not have asked too late.
        with page.expect_navigation():
            page.evaluate(LOST_TRACK)
        expect(page.locator(".card .text:not(:empty)")).to_be_visible()
