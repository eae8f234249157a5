"""The app as a person meets it: a real server, a real Chromium."""

import io
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from tests.app.servers import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LABELS = ("긍정", "부정", "중립")

pytestmark = pytest.mark.browser


@pytest.fixture
def address(trained_workplace: Path) -> Iterator[str]:
    """The running app, started in a directory of its own."""
    with serving(trained_workplace) as server:
        yield server.address
    assert "Traceback" not in server.said()


@pytest.fixture
def page(chromium: "Browser", address: str) -> "Page":
    """The app's first page, loaded."""
    page = chromium.new_context(locale="ko-KR", accept_downloads=True).new_page()
    page.set_default_timeout(300_000)
    page.goto(address)
    page.get_by_label("분류할 글").wait_for()
    return page


def test_label_correct_and_save(page: "Page", trained_workplace: Path) -> None:
    text = "배송이 빨라요 그냥 추천 👍"
    page.get_by_label("라벨 붙이는 사람").fill("지은")
    page.get_by_label("라벨 붙이는 사람").press("Enter")
    page.get_by_label("분류할 글").fill(text)
    page.get_by_label("분류할 글").press("Control+Enter")
    predicted = page.get_by_test_id("stMetricValue").first.inner_text()
    assert predicted in LABELS

    other = next(label for label in LABELS if label != predicted)
    page.get_by_test_id("stButtonGroup").get_by_text(other, exact=True).click()
    page.get_by_test_id("stButton").get_by_text("저장", exact=True).dblclick()
    page.get_by_text(f"저장했습니다: {other}").wait_for()
    assert _rows(trained_workplace) == [(text, other, predicted, "지은", "x")]

    # What matters survives a refresh, and the annotator's name with it.
    page.reload()
    page.get_by_label("분류할 글").wait_for()
    assert page.get_by_label("라벨 붙이는 사람").input_value() == "지은"
    page.get_by_role("tab", name="저장한 라벨").click()
    with page.expect_download() as download:
        page.get_by_role("tabpanel").get_by_text("XLSX 내려받기").locator("visible=true").click()
    assert download.value.suggested_filename == "labels.xlsx"
    table = pd.read_excel(download.value.path())
    assert table[["text", "label"]].to_numpy().tolist() == [[text, other]]


def test_cp949_file(page: "Page") -> None:
    data = "번호,리뷰\r\n1,배송이 빨라요\r\n2,\r\n3,똠방각하 별로예요\r\n".encode("cp949")
    page.get_by_role("tab", name="파일 분류").click()
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
        {"name": "리뷰.csv", "mimeType": "text/csv", "buffer": data}
    )
    page.get_by_role("button", name="분류 시작").click()
    page.get_by_text("2건을").wait_for()
    assert page.get_by_text("글이 비었거나 주소·태그뿐인 행이 1개").is_visible()
    for button in ("CSV 내려받기", "XLSX 내려받기"):
        with page.expect_download() as download:
            page.get_by_text(button, exact=True).locator("visible=true").click()
        raw = Path(download.value.path()).read_bytes()
        if button.startswith("CSV"):
            assert download.value.suggested_filename == "리뷰_예측.csv"
            assert raw.startswith(b"\xef\xbb\xbf")
            table = pd.read_csv(io.BytesIO(raw), encoding="utf-8-sig")
        else:
            table = pd.read_excel(io.BytesIO(raw))
        assert table["리뷰"].fillna("").tolist() == ["배송이 빨라요", "", "똠방각하 별로예요"]
        assert table["예측"].isna().tolist() == [False, True, False]
        assert set(table["예측"].dropna()) <= set(LABELS)
    # Downloading does not lose the result.
    assert page.get_by_text("2건을").is_visible()


def _rows(workplace: Path) -> list[tuple[str, ...]]:
    with sqlite3.connect(workplace / "runs" / "labels.db") as connection:
        return connection.execute(
            "SELECT text, label, predicted_label, annotator, model FROM labels"
        ).fetchall()
