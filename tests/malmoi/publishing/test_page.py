"""The page of an exported folder in a real Chromium, from a real server, without a network."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from malmoi import Classifier
from malmoi.inference.prediction import ValuePrediction
from malmoi.publishing.folder import PAGE, export_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
Exported = Callable[[Path], Path]
TEXTS = [
    "재밌어요ㅋㅋㅋㅋㅋㅋㅋ 추천!!!!!",
    "  돈이 아깝다...<br>최악 ",
    "쀍 핰 넼 ★★★★★ <b>별로</b>",
    "[SEP] 는 글자다",
    "재미있다 " * 300,
]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def opened(chromium: "Browser", folder: Path, place: str) -> Iterator["Page"]:
    """The page, once the model is loaded; nothing but the own server may be asked for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    page = chromium.new_page()
    page.set_default_timeout(120_000)
    elsewhere: list[str] = []
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((home, "blob:")) else elsewhere.append(request.url)
        ),
    )
    try:
        page.goto(f"{home}{place}")
        page.get_by_text("준비되었습니다.").wait_for()
        yield page
        assert elsewhere == []
    finally:
        page.close()
        server.shutdown()
        server.server_close()


def answer(page: "Page", text: str, pair: str | None = None) -> tuple[str, dict[str, float]]:
    """The line of the answer, and what the bars say of every label."""
    page.get_by_label("분류할 글").fill(text)
    if pair is not None:
        page.get_by_label("둘째 글").fill(pair)
    page.get_by_role("button", name="분류하기").click()
    page.wait_for_function("!document.getElementById('go').disabled")
    rows = page.get_by_label("결과").get_by_role("listitem").all_inner_texts()
    cells = [row.split("\n") for row in rows]
    return page.get_by_role("status").inner_text(), {
        row[0]: float(row[-1].rstrip("%")) / 100 for row in cells
    }


@pytest.fixture
def served(tmp_path: Path, browser_library: Path) -> Callable[[Path], Path]:
    """A copy of an exported folder with the library beside its page."""

    def serve(folder: Path) -> Path:
        place = tmp_path / "웹 모음" / folder.name
        shutil.copytree(folder, place)
        (place / "transformers.js").symlink_to(browser_library)
        return place

    return serve


def test_a_review_is_labelled_in_the_browser(
    chromium: "Browser", served: Callable[[Path], Path], released_folder: Path
) -> None:
    folder = served(released_folder)
    expected = Classifier.load(released_folder, "onnx-int8").predict(TEXTS)
    # In a folder below the server's, whose name is no name of the Hub.
    with opened(chromium, folder.parents[1], f"웹 모음/{folder.name}/{PAGE}?local") as page:
        for text, prediction in zip(TEXTS, expected, strict=True):
            line, bars = answer(page, text)
            assert line == f"라벨: {prediction.label}"
            # int8 rounds by what is in a batch, and the percentages have one decimal.
            assert bars == pytest.approx(prediction.probabilities, abs=0.06)


def test_several_labels(
    chromium: "Browser",
    served: Callable[[Path], Path],
    exported: Exported,
    several_labels_model: Path,
) -> None:
    folder = exported(several_labels_model)
    prediction = Classifier.load(folder, "onnx-int8").predict(["내일 병원 예약"])[0]
    with opened(chromium, served(folder), f"{PAGE}?local") as page:
        line, bars = answer(page, "내일 병원 예약")
        named = f"라벨: {prediction.label}" if prediction.label else "해당하는 라벨이 없습니다"
        assert line == named
        assert bars == pytest.approx(prediction.probabilities, abs=0.06)


def test_a_typed_special_token_is_text_whatever_it_is_called(
    chromium: "Browser",
    served: Callable[[Path], Path],
    classifier_directory: Path,
    tmp_path: Path,
) -> None:
    source, folder = tmp_path / "source", tmp_path / "exported"
    shutil.copytree(classifier_directory, source)
    for path in source.glob("tokenizer*.json"):
        path.write_text(path.read_text("utf-8").replace("[MASK]", "<user>"), encoding="utf-8")
    export_folder(source, folder)
    text = "꿈에서 <user> <user> <user> 하늘을"
    (expected,) = Classifier.load(folder, "onnx-int8").predict([text])
    with opened(chromium, served(folder), f"{PAGE}?local") as page:
        line, bars = answer(page, text)
        assert line == f"라벨: {expected.label}"
        assert bars == pytest.approx(expected.probabilities, abs=0.06)


def test_pairs_of_a_value(
    chromium: "Browser", served: Callable[[Path], Path], exported: Exported, values_model: Path
) -> None:
    folder = exported(values_model)
    (found,) = Classifier.load(folder, "onnx-int8").predict(["내일 병원"], ["비가 왔다"])
    assert isinstance(found, ValuePrediction)
    with opened(chromium, served(folder), f"{PAGE}?local") as page:
        line, bars = answer(page, "내일 병원", "비가 왔다")
        assert float(line.removeprefix("값: ")) == pytest.approx(found.value, abs=0.1)
        assert not bars


def test_a_model_that_is_missing_is_said_in_a_sentence(
    chromium: "Browser", served: Callable[[Path], Path], released_folder: Path
) -> None:
    folder = served(released_folder)
    (folder / "tokenizer.json").unlink()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = chromium.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/{PAGE}?local")
    page.get_by_text("모델을 불러오지 못했습니다").wait_for(timeout=120_000)
    assert page.get_by_role("button").is_disabled()
    server.shutdown()
    server.server_close()
