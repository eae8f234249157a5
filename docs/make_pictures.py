"""Make the pictures of the documentation: every page of the app in two sizes, and a k-fold report.

    python -m docs.make_pictures --run runs/finetune/NAME

The app is the real one, with a label database of its own in a temporary folder: a project of sample
memos that two people have labelled, with differences, and a model that learnt meanwhile. The report
is `report.html` of the given run. Wants Chromium, a Korean font and the extra `test` (playwright).
"""

import argparse
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from PIL import Image

from lab.benchmarks.speed.app_server import (
    ROOT,
    chromium,
    free_port,
    link_models,
    own_data,
    serving,
)
from malmoi.app.learning.rounds import Learner
from malmoi.errors import InputError
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.found_texts import add_texts
from malmoi.labels.people import Person
from malmoi.labels.project import ProjectSettings, new_project_of_task
from malmoi.labels.projects import ProjectStore
from malmoi.labels.tasks import read_task
from malmoi.text.reading.records import iter_records

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = ROOT / "docs" / "pictures"
MAX_BYTES = 300_000
_PATIENCE_MS = 300_000

# Pages of the app, and the sizes in which they are taken: a laptop, and a tablet.
PAGES = ("projects", "labelling", "review", "explore", "status", "models", "settings")
SIZES = {"wide": (1280, 800), "narrow": (820, 1180)}
PROJECT = "메모 분류"
ANNOTATORS = ("지은", "민수")
# Every so many texts the second annotator gives another label.
_DIFFERS = 9
_ROUNDS = (40, 80, 120, 150)
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
    parser.add_argument("--run", type=Path, help="k-fold run with a report.html, for its pictures")
    run = parser.parse_args().run
    report = None if run is None else (run / "report.html").resolve()
    if report is not None and not report.is_file():
        parser.error(f"expected a k-fold run with report.html, found none at {report}")
    PICTURES.mkdir(exist_ok=True)
    try:
        with chromium() as browser, tempfile.TemporaryDirectory() as folder:
            if report is not None:
                picture_report(browser, report)
            make_project(Path(folder))
            with _app(Path(folder)) as address:
                for size in SIZES:
                    picture_app(browser, address, size)
    except InputError as error:
        parser.error(str(error))


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


def make_project(home: Path) -> None:
    """A project of memos with the labels of two people, and a model after every few of them."""
    texts = [
        (record.text, record.label or "")
        for record in islice(iter_records(ROOT / "corpora" / "memos" / "memos.csv"), 300)
    ]
    store = ProjectStore(f"sqlite:///{home}/runs/labels.db")
    admin = Person(name=ANNOTATORS[0], is_local=True)
    task = read_task(ROOT / "corpora" / "memos")
    settings = ProjectSettings(annotators_per_text=2)
    new = replace(new_project_of_task(task, settings), name=PROJECT)
    access = store.create(admin, new)
    ids = add_texts(access, [text for text, _ in texts], "memos.csv")
    names = task.label_names
    learner = Learner()
    done = 0
    for round_end in _ROUNDS:
        for number in range(done, round_end):
            for place, name in enumerate(ANNOTATORS):
                label = texts[number][1]
                if place and number % _DIFFERS == 0:
                    label = names[(names.index(label) + 1) % len(names)]
                act = Act(
                    text_id=ids[number],
                    kind="label",
                    request_id=f"{number}-{place}",
                    labels=[label],
                    seconds=2.0 + number % 5,
                )
                person = Person(name=name, is_local=True)
                save_acts(store.access(person, access.project_id), [act])
        done = round_end
        learner.learn(access, forced=True)


def picture_app(browser: "Browser", address: str, size: str) -> None:
    """Every page of the app in one size."""
    width, height = SIZES[size]
    page = _page(browser, width, height)
    query = f"project={quote(PROJECT)}&name={quote(ANNOTATORS[0])}"
    for module in PAGES:
        # The first page of the app has no name of its own in the address.
        place = "" if module == PAGES[0] else module
        page.goto(f"{address}/{place}?{query}")
        page.get_by_test_id("stMainBlockContainer").locator("button").first.wait_for()
        _write(_settled(page), f"{module}-{size}.png")
    query += "&model=checkpoints/malmoi-medium-reviews"
    page.goto(f"{address}/single?{query}")
    page.get_by_label("분류할 글").fill(SINGLE)
    page.get_by_role("button", name="분류하기").click()
    page.get_by_text("결정을 이끈 단어", exact=True).first.click()
    page.get_by_text("숫자로 보기").wait_for()
    _write(_settled(page), f"single-{size}.png")
    page.goto(f"{address}/file?{query}")
    data = "\n".join(["번호,리뷰", *(f"{n},{text}" for n, text in enumerate(TABLE, 1))])
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
        {"name": "리뷰.csv", "mimeType": "text/csv", "buffer": data.encode("utf-8")}
    )
    page.get_by_role("button", name="분류 시작").click()
    page.get_by_text(f"{len(TABLE)}건을").wait_for()
    page.goto(page.url)
    page.get_by_text(f"{len(TABLE)}건을").wait_for()
    _write(_settled(page), f"file-{size}.png")
    page.context.close()


def _settled(page: "Page") -> bytes:
    """A screenshot of the page, from its top, once nothing on it moves any more."""
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
        device_scale_factor=1,
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


@contextmanager
def _app(home: Path) -> Iterator[str]:
    """The app with the released models and the project that was made; gives its address."""
    link_models(home)
    port = free_port()
    settings = own_data(home, home / "runs" / "labels.db") | {"PYTHONPATH": str(ROOT)}
    with serving(home, port, settings):
        yield f"http://localhost:{port}"


if __name__ == "__main__":
    main()
