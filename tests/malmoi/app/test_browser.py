"""The app as a person meets it: a real server, a real Chromium."""

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from tests.malmoi.app.servers import new_page, serving, upload

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LABELS = ("긍정", "부정", "중립")

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: "Browser", trained_workplace: Path, address: str) -> "Page":
    """A page of the app for one text, loaded."""
    page = new_page(chromium)
    page.goto(f"{address}/single")
    page.get_by_label("분류할 글").wait_for()
    return page


def test_words_are_never_markup(page: "Page") -> None:
    text = "<script>document.title='x'</script> 배송이 <b>빨라요</b> **추천**"
    page.get_by_label("분류할 글").fill(text)
    page.get_by_label("분류할 글").press("Control+Enter")
    page.get_by_text("결정을 이끈 단어", exact=True).first.click()
    page.get_by_text("빨라요</b>").first.wait_for()
    assert page.title() != "x"


def test_a_file_job_outlives_its_page(page: "Page", address: str) -> None:
    data = "번호,리뷰\r\n1,배송이 빨라요\r\n2,\r\n3,똠방각하 별로예요\r\n".encode("cp949")
    page.get_by_role("link", name="파일 분류").click()
    upload(page, "리뷰.csv", data)
    page.get_by_role("button", name="분류 시작").click()
    page.get_by_text("2건을").wait_for()
    page.reload()
    page.get_by_text("2건을").wait_for()
    page.get_by_text("글이 비었거나 주소·태그뿐인 행이 1개").wait_for()
    # Its address is of no use to somebody else.
    stranger = page.context.new_page()
    stranger.goto(page.url + "&name=%EB%AF%BC%EC%88%98")
    stranger.get_by_text("더 남아 있지 않습니다").wait_for()
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
    page.get_by_text("2건을").wait_for()


def test_a_server_that_is_gone_is_told_of_in_korean(
    chromium: "Browser", trained_workplace: Path
) -> None:
    """By Streamlit's own dialog, whose words are not ours."""
    with serving(trained_workplace) as server:
        page = new_page(chromium)
        # As on a machine of one's own, of which the dialog says more.
        page.goto(server.address.replace("127.0.0.1", "localhost"))
        page.get_by_text("작업", exact=True).first.wait_for()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("말모이 서버가 꺼졌거나").wait_for()
    told = dialog.inner_text().replace("streamlit run app/main.py", "")
    assert not re.search(r"[A-Za-z]{2}", told), told
