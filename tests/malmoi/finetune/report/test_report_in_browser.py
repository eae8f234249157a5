"""The report page in a real Chromium: it loads alone, shows Hangul, and fits a narrow window."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from malmoi.finetune.report.page import ComparedRow, report_page
from tests.malmoi.finetune.report.test_report_page import content

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

# Whether the letters of a text have shapes of their own: a font without them draws equal boxes.
DISTINCT_GLYPHS = """
() => {
  const picture = (letter) => {
    const canvas = document.createElement('canvas');
    const pen = canvas.getContext('2d');
    pen.font = '40px ' + getComputedStyle(document.body).fontFamily;
    pen.fillText(letter, 10, 60);
    return canvas.toDataURL();
  };
  return new Set(['꿈', '뷁', '한', '힣'].map(picture)).size;
}
"""


def test_the_page_as_a_reader_sees_it(chromium: "Browser", tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    rows = [
        ComparedRow(name="이 모델", mean_f1=0.8, own=True),
        ComparedRow(name="다수결", mean_f1=0.1),
    ]
    path.write_text(report_page(content(baselines=rows)), encoding="utf-8")
    complaints: list[str] = []
    page = chromium.new_context(locale="ko-KR", offline=True).new_page()
    page.set_default_timeout(300_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri())
        assert page.get_by_role("heading", level=1).inner_text() == "memos 교차 검증 보고서"
        assert page.locator("svg").count() >= 5
        for chart in page.locator("svg").all():
            box = chart.bounding_box()
            assert box is not None and box["width"] > 100 and box["height"] > 50
        # Only parts that scroll by themselves, such as a wide table, may be wider.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(DISTINCT_GLYPHS) == 4
    page.get_by_role("link", name="다른 모델과 비교").click()
    assert page.locator("#baselines").is_visible()
    assert complaints == []
