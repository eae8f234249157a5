"""How long does a click on each page of the app take, and does it grow with the number of labels?

    python -m lab.benchmarks.speed.page_clicks

The app is started as a user starts it, with a project of 100,000 texts, and clicked in a real
Chromium: one server whose project has 5,000 labels and one with 50,000, in turns. A click lasts
from the browser's own time stamp of it until the page is drawn: the script has run, and a frame was
painted after that. The list of its cells that a table keeps for screen readers, inside its canvas,
comes 0.2 s later by design (Glide Data Grid waits until the table stands still) and does not count:
nothing of it is drawn.
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from lab.benchmarks.result_files import write_result
from lab.benchmarks.speed.app_server import chromium, free_port, link_models, own_data, serving
from lab.benchmarks.speed.review_pages import LABELS, fill
from malmoi.command_line import run_command
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

RESULTS = Path(__file__).parents[1] / "results" / "page_clicks.json"
_PROJECT = "clicks"
_PATIENCE = 120_000  # ms
# When the last click was, and when the page was drawn after it. Streamlit tells on its outermost
# element whether a script runs.
_WITNESS = """
window.clicked = null;
window.drawn = null;
for (const kind of ["click", "keydown"]) window.addEventListener(kind, (event) => {
  window.clicked = event.timeStamp;
  window.drawn = null;
}, true);
new MutationObserver((changes) => {
  if (changes.every((change) => change.target.closest?.("canvas"))) return;
  const app = document.querySelector("[data-testid=stApp]");
  if (app?.dataset.testScriptState !== "notRunning") return;
  requestAnimationFrame(() => setTimeout(() => { window.drawn = performance.now(); }));
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
  childList: true });
"""


@dataclass(kw_only=True)
class PageClicksSettings:
    """How big the project is, and how often what is clicked."""

    texts: int = 100_000
    """Texts of the project."""
    labels: tuple[int, ...] = (5_000, 50_000)
    """Labels that it has, by two annotators each; a server for each number, clicked in turns."""
    clicks: int = 11
    """Clicks of each kind; the first does not count, for it may load code."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: PageClicksSettings) -> None:
    """Measure, print the table, write the results."""
    result: dict[str, Any] = {"texts": settings.texts, "load_average_before": _load()}
    with (
        tempfile.TemporaryDirectory(prefix="malmoi-clicks-") as folder,
        chromium() as browser,
        ExitStack() as servers,
    ):
        opened = []
        for number in settings.labels:
            home = Path(folder) / str(number)
            port = servers.enter_context(_served(home, settings.texts, number))
            page = browser.new_page(locale="ko-KR", viewport={"width": 1280, "height": 800})
            page.set_default_timeout(_PATIENCE)
            page.add_init_script(_WITNESS)
            opened.append((page, port))
            result[f"{number} labels"] = {}
        for name in _kinds(opened[0][0]):
            times = _in_turns(name, opened, settings.clicks)
            for number, of_one in zip(settings.labels, times, strict=True):
                found = result[f"{number} labels"][name] = {
                    "median_ms": round(statistics.median(of_one[1:])),
                    "most_ms": round(max(of_one[1:])),
                    "first_ms": round(of_one[0]),
                }
                print(number, name, found, flush=True)
    result["load_average_after"] = _load()
    write_result(settings.output, result)


def _load() -> float:
    return round(os.getloadavg()[0], 1)


@contextmanager
def _served(home: Path, texts: int, labels: int) -> Iterator[int]:
    """The port of the app with a project of so many texts and labels."""
    home.mkdir()
    link_models(home)
    database = home / "clicks.db"
    new = NewProject(
        name=_PROJECT,
        labels=[ProjectLabel(name=name) for name in LABELS],
        guideline="좋으면 **긍정**, 나쁘면 **부정**.",
        settings=ProjectSettings(annotators_per_text=2),
    )
    store = ProjectStore(f"sqlite:///{database}")
    fill(store.create(Person(name="local", is_local=True), new), texts, labels)
    port = free_port()
    with serving(home, port, own_data(home, database)):
        yield port


def _in_turns(name: str, opened: "Sequence[tuple[Page, int]]", clicks: int) -> list[list[float]]:
    """Milliseconds of the clicks of a kind, for each page and port."""
    acts = []
    for page, port in opened:
        module, click = _kinds(page)[name]
        place = "" if module == "projects" else module
        query = urlencode({"project": _PROJECT, "name": "local"})
        page.goto(f"http://127.0.0.1:{port}/{place}?{query}")
        page.get_by_test_id("stMainBlockContainer").locator("button").first.wait_for()
        _settle(page)
        acts.append((page, click))
    times: list[list[float]] = [[] for _ in acts]
    for at in range(clicks):
        for of_one, (page, click) in zip(times, acts, strict=True):
            of_one.append(_timed(page, partial(click, at)))
    return times


def _kinds(page: "Page") -> dict[str, tuple[str, Callable[[int], None]]]:
    """The kinds of clicks: on which page, and what the n-th one clicks."""

    main = page.get_by_test_id("stMainBlockContainer")

    def button(words: str) -> "Locator":
        return main.get_by_role("button", name=words)

    def one_of(*words: str) -> Callable[[int], None]:
        return lambda at: main.get_by_text(words[at % len(words)], exact=True).first.click()

    def choose(label: str, *options: str) -> Callable[[int], None]:
        def click(at: int) -> None:
            page.get_by_label(label, exact=True).first.click()
            page.get_by_role("option", name=options[at % len(options)], exact=True).click()

        return click

    def search(at: int) -> None:
        field = page.get_by_label("글에 든 말")
        field.fill(("배송이", "없는말", "금낭화")[at % 3])
        field.press("Enter")

    def classify(at: int) -> None:
        page.get_by_label("분류할 글").fill(f"배송이 빨라요 {at}")
        button("분류하기").click()

    pages = ("현황", "설정", "살펴보기", "검수")
    return {
        "작업: part": ("projects", one_of("새 작업", "내 작업")),
        "라벨링: guideline": ("labelling", one_of("지침 보기")),
        "검수: next": ("review", lambda at: button("결정하지 않고 다음").click()),
        "검수: decide": ("review", lambda at: button("긍정").first.click()),
        "검수: one or list": ("review", one_of("목록", "한 건씩")),
        "살펴보기: next page": ("explore", lambda at: button("다음").first.click()),
        "살펴보기: search": ("explore", search),
        "살펴보기: state": ("explore", choose("상태", "라벨 있음", "의견이 갈림")),
        "현황: part": ("status", one_of("일치도", "진행")),
        "설정: section": ("settings", one_of("지침", "라벨")),
        "모델: section": ("models", one_of("비교", "모델")),
        "한 건 분류: classify": ("single", classify),
        "another page": (
            "projects",
            lambda at: (
                page.get_by_test_id("stSidebarNav")
                .get_by_text(pages[at % len(pages)], exact=True)
                .click()
            ),
        ),
    }


def _timed(page: "Page", click: Callable[[], None]) -> float:
    """Milliseconds until the page is drawn after a click."""
    page.evaluate("() => { window.clicked = null; window.drawn = null; }")
    click()
    page.wait_for_function("() => window.clicked !== null && window.drawn !== null")
    _settle(page)
    milliseconds: float = page.evaluate("window.drawn - window.clicked")
    return milliseconds


def _settle(page: "Page") -> None:
    """Wait until the script has not run for a while."""
    page.wait_for_function(
        """() => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState
             === "notRunning" && performance.now() - (window.drawn ?? 0) > 400"""
    )


if __name__ == "__main__":
    sys.exit(run_command(PageClicksSettings, main, "Time the clicks on the pages of the app."))
