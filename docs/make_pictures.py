"""Make the pictures of the documentation: the app with the released model, and a k-fold report.

    python docs/make_pictures.py --run runs/finetune/NAME

The app is the real one, started with an empty label database in a temporary folder; it classifies
and saves the texts below. The report is `report.html` of the given run. Wants Chromium, a Korean
font and the extra `test` (playwright).
"""

import argparse
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
MAX_BYTES = 300_000
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_MS = 300_000
_START_SECONDS = 300

# Text and the label that a person gives it.
LABELLED = (
    ("배송도 하루 만에 오고 포장도 꼼꼼해서 좋았어요", "긍정"),
    ("색이 사진이랑 너무 달라요. 반품했습니다", "부정"),
    ("아직 안 써 봤는데 써 보고 다시 남길게요", "중립"),
    ("국물은 시원한데 면이 다 불어서 왔네요", "부정"),
    ("세 번째 재구매예요. 이만한 게 없어요", "긍정"),
    ("가격만큼 합니다. 무난해요", "중립"),
)
SINGLE = "처음엔 좀 작나 싶었는데 며칠 신어 보니 편해서 한 켤레 더 주문했어요"
TABLE = (
    "주말에 가족이랑 봤는데 두 시간이 금방 갔어요",
    "앱 켤 때마다 로그인하라고 해서 지웠습니다",
    "보통이에요. 배고프면 먹을 만합니다",
    "직원분이 친절하게 설명해 주셔서 바로 결정했어요",
    "소리가 한쪽만 들려서 교환 신청했어요",
    "문의 남겼는데 일주일째 답이 없네요",
    "향이 은은해서 방에 두기 좋아요",
    "다음 달에 새 모델 나온다고 합니다",
)


def main() -> None:
    """Write every picture to docs/pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, help="k-fold run with a report.html")
    report = parser.parse_args().run / "report.html"
    if not report.is_file():
        parser.error(f"expected a k-fold run with report.html, found none at {report}")
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(
            executable_path=_chromium(),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            timeout=_PATIENCE_MS,
        )
        picture_report(browser, report.resolve())
        with _app(Path(folder)) as address:
            picture_app(browser, address)
        browser.close()


def picture_report(browser: "Browser", report: Path) -> None:
    """F1 by label with the confusion matrix, and the labels that are probably wrong."""
    page = _page(browser, 880, 900)
    page.goto(report.as_uri())
    _write(_part(page, "labels", "confusion"), "report.png")
    _write(_part(page, "likely-errors", "likely-errors", at_most=760), "report-labels.png")


def _part(page: "Page", first: str, last: str, *, at_most: float = 1000) -> bytes:
    """The sections of a report from one id to another, cut at a height in pixels."""
    from_, to = (page.locator(f"#{name}").bounding_box() for name in (first, last))
    if from_ is None or to is None:
        raise SystemExit(f"expected the sections {first} and {last} in the report, found none")
    height = min(to["y"] + to["height"] - from_["y"], at_most)
    clip = {"x": 0, "y": from_["y"], "width": 880, "height": height}
    picture: bytes = page.screenshot(full_page=True, clip=clip)
    return picture


def picture_app(browser: "Browser", address: str) -> None:
    """One text classified, a file classified, the labels that were saved."""
    page = _page(browser, 1180, 900)
    page.goto(address)
    page.get_by_label("분류할 글").wait_for()
    name = page.get_by_label("라벨 붙이는 사람")
    name.fill("지은")
    name.press("Enter")
    for text, label in LABELLED:
        _classify(page, text)
        _choose(page, label)
        page.get_by_test_id("stButton").get_by_text("저장", exact=True).click()
        page.get_by_text(f"저장했습니다: {label}").wait_for()
    _classify(page, SINGLE)
    _write(_settled(page, height=1060), "app.png")

    page.get_by_role("tab", name="저장한 라벨").click()
    page.get_by_text("XLSX 내려받기").locator("visible=true").wait_for()
    _write(_settled(page, height=840), "app-labels.png")

    page.get_by_role("tab", name="파일 분류").click()
    data = "\n".join(["번호,리뷰", *(f"{n},{text}" for n, text in enumerate(TABLE, 1))])
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
        {"name": "리뷰.csv", "mimeType": "text/csv", "buffer": data.encode("utf-8")}
    )
    page.get_by_role("button", name="분류 시작").click()
    page.get_by_text(f"{len(TABLE)}건을").wait_for()
    _write(_settled(page, height=1400), "app-file.png")


def _classify(page: "Page", text: str) -> None:
    box = page.get_by_label("분류할 글")
    box.fill(text)
    box.press("Control+Enter")
    # The buttons of the last text go before those of this one come.
    page.get_by_text("저장했습니다").wait_for(state="detached")
    page.get_by_text("라벨 고치고 저장하기").wait_for()
    _settled(page)


def _choose(page: "Page", label: str) -> None:
    # The button that is pressed already cannot be taken back.
    button = page.get_by_test_id("stButtonGroup").get_by_role("radio", name=label)
    if button.get_attribute("aria-checked") != "true":
        button.click()


def _settled(page: "Page", *, height: int | None = None) -> bytes:
    """A screenshot of the page, from its top, once nothing on it moves any more."""
    if height is not None:
        page.set_viewport_size({"width": 1180, "height": height})
    page.mouse.move(5, 5)
    page.get_by_test_id("stMain").evaluate("element => element.scrollTo(0, 0)")
    before = b""
    for _ in range(40):
        page.wait_for_timeout(500)
        now: bytes = page.screenshot()
        if now == before and not page.get_by_test_id("stStatusWidget").count():
            break
        before = now
    return before


def _page(browser: "Browser", width: int, height: int) -> "Page":
    context = browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=1.5,
        locale="ko-KR",
        timezone_id="Asia/Seoul",
        color_scheme="light",
    )
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    return page


def _write(png: bytes, name: str) -> None:
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(PICTURES / name, optimize=True)
    size = (PICTURES / name).stat().st_size
    print(f"docs/pictures/{name}: {image.width} x {image.height}, {size / 1000:.0f} KB")
    if size > MAX_BYTES:
        raise SystemExit(f"expected at most {MAX_BYTES} bytes, found {size} in {name}")


def _chromium() -> str:
    found = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if found is None:
        raise SystemExit(f"expected one of {', '.join(_CHROMIUM)} on PATH, found none")
    return found


@contextmanager
def _app(home: Path) -> Iterator[str]:
    """The app with the released models and no labels yet; gives its address."""
    for name in ("checkpoints", "corpora"):
        (home / name).symlink_to(ROOT / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    own.pop("MALMOI_DATABASE", None)
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(ROOT / "app" / "main.py")]
        + ["--server.port", str(port)],
        cwd=home,
        env={**own, "MALMOI_HOME": str(home), "PYTHONPATH": str(ROOT)},
    )
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health")
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        server.wait(timeout=60)


def _wait(url: str) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    raise SystemExit(f"expected the app to answer at {url}, found nothing")


if __name__ == "__main__":
    main()
