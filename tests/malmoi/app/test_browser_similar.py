"""비슷한 글 as a person meets it: a file comes in, its texts are read, some get a label at once."""

import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from malmoi.labels.project import NewProject, ProjectLabel
from tests.malmoi.app.project_pages import LOCAL, store
from tests.malmoi.app.servers import ROOT, new_page, serving, upload

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

REFUND = ("환불은 어떻게 받나요?", "돈을 돌려받고 싶은데 방법을 알려주세요", "환불 받는 법 알려줘")
OTHERS = ("강아지가 마당에서 뛰어놀아요", "오늘 저녁에 비가 온대요", "기타 줄이 끊어졌다")
# One complains and one praises. The encoder of sentences has none of their letters.
THAI = ("สินค้าแย่มาก!", "ชอบมากจะซื้ออีก!")


def test_texts_that_say_the_same_are_labelled_as_a_bundle(
    chromium: "Browser", workplace: Path
) -> None:
    (workplace / "checkpoints").symlink_to(ROOT / "checkpoints")
    new = NewProject(name="문의", labels=[ProjectLabel(name=one) for one in ("환불", "기타")])
    store().create(LOCAL, new)
    where = f"project={quote('문의')}&name={quote('지은')}"
    with serving(workplace) as server:
        page = new_page(chromium)
        page.goto(f"{server.address}/projects?{where}")
        page.get_by_role("radio", name="글 더하기").click()
        upload(page, "문의.txt", "\n".join(REFUND + OTHERS + THAI).encode())
        page.get_by_role("button", name="가져오기", exact=True).click()
        page.get_by_text("새 글 8건").wait_for()
        # From the card, in a tab of its own.
        page.goto(f"{server.address}/labelling?{where}")
        text = page.locator(".card .text:not(:empty)")
        asked = text.inner_text().strip()
        with page.expect_popup() as opened:
            page.get_by_role("link", name="비슷한 글").click()
        tab = opened.value
        tab.get_by_role("heading", name="비슷한 글").wait_for()
        tab.get_by_text(asked).first.wait_for()
        tab.get_by_text("글의 뜻을 읽는 중").wait_for(state="hidden")
        # By meaning: no text has both words.
        page.goto(f"{server.address}/explore?{where}")
        page.get_by_text("뜻으로 찾기").click()
        words = page.get_by_label("글에 든 말")
        words.fill("환불 절차")
        words.press("Enter")
        page.get_by_text("8건 가운데 1~8").wait_for()
        page.goto(f"{server.address}/explore?{where}&similar=1")
        rows = page.get_by_test_id("stCheckbox")
        rows.nth(7).wait_for()
        said = [row.inner_text() for row in rows.all()]
        assert said[0].startswith(REFUND[0])
        assert {one.split(" ·")[0] for one in said[:3]} == set(REFUND)
        for row in rows.all()[1:3]:
            if not row.get_by_role("checkbox").is_checked():
                row.click()
        page.get_by_role("button", name="고른 3건 한 묶음으로").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("글 3건의 라벨").wait_for()
        dialog.get_by_role("radio", name="환불").or_(
            dialog.get_by_role("button", name="환불", exact=True)
        ).first.click()
        dialog.get_by_role("button", name="3건 바꾸기").click()
        page.get_by_text(re.compile("3건을 환불")).wait_for()
        rows.nth(7).wait_for()
        page.get_by_text("✓ 환불").first.wait_for()
        page.goto(f"{server.address}/explore?{where}&similar=7")
        page.get_by_text("거의 모르는 글자").wait_for()
        rows.nth(7).wait_for()
        assert not any(row.get_by_role("checkbox").is_checked() for row in rows.all())
        assert page.get_by_text("거의 같은 말").count() == 0
    with sqlite3.connect(workplace / "runs" / "labels.db") as connection:
        labelled = connection.execute(
            "SELECT t.text, a.choice FROM malmoi_texts t "
            "JOIN malmoi_adjudications a ON a.id = t.adjudication_id ORDER BY t.id"
        ).fetchall()
    assert labelled == [(one, "[1]") for one in REFUND]
