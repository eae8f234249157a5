"""Do eight people who label at once lose anything, their server killed again and again?

    python -m lab.benchmarks.robustness.labelling_load
    python -m lab.benchmarks.robustness.labelling_load --database postgresql+psycopg://user@host/name

Each of eight browsers labels texts of one project by key, some ten a second,
while SIGKILL ends the app at random moments and it is started again. The key depends on the text,
so that a label on another text than that on screen would be seen. Checked is that each text that a
browser had on screen and labelled has its label once, and that nothing else has any. Wants Chromium
and the extra `test`.
"""

import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from lab.benchmarks.speed.app_server import chromium, free_port, serving
from malmoi.app.labelling.card_server import MOST_TEXTS
from malmoi.command_line import run_command
from malmoi.files import write_at_once
from malmoi.labels.access import ProjectAccess
from malmoi.labels.found_texts import add_texts
from malmoi.labels.label_book import LabelBook
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.tables import AnnotationRow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RESULTS = Path(__file__).parents[1] / "results" / "labelling_load.json"
NAME = "부하 시험"
_PATIENCE = 300_000  # ms
_POLL_MILLISECONDS = 500

# Labels until there are enough: the first label for texts with an even number, else the second.
LABEL = """
async ([wanted, pause]) => {
  const find = () => {
    for (const host of document.querySelectorAll("*")) {
      const text = host.shadowRoot?.querySelector("[data-at=text]");
      if (text) return text;
    }
    return null;
  };
  window.given = {};
  window.acted = 0;
  while (window.acted < wanted) {
    document.querySelector("[role=dialog] [aria-label=Close]")?.click();
    const text = find();
    const id = text && !text.hidden ? text.dataset.id : "";
    if (id && !(id in window.given)) {
      const number = Number(text.textContent.match(/\\d+/)[0]);
      const code = number % 2 ? "Digit2" : "Digit1";
      window.dispatchEvent(new KeyboardEvent("keydown", { code, key: code.at(-1), bubbles: true }));
      // Not taken while Streamlit tells of a lost connection.
      if (find()?.dataset.id !== id) {
        window.given[id] = number % 2 ? "부정" : "긍정";
        window.acted += 1;
      }
    }
    await new Promise((done) => setTimeout(done, pause * (0.5 + Math.random())));
  }
}
"""
# Acts that wait for the server stand in the browser's storage.
UNSAVED = "() => Object.keys(localStorage).filter((key) => key.startsWith('malmoi')).length"


@dataclass(kw_only=True)
class LoadSettings:
    """How many label how much, and how often the server is killed."""

    annotators: int = 8
    """Browsers."""
    labels: int = 1_000
    """Of each."""
    pause: int = 100
    """Milliseconds between two keys of a browser, on average."""
    kills: int = 5
    """How often the server is killed."""
    database: str | None = None
    """SQLAlchemy URL of an empty database; a new SQLite file without it."""
    seed: int = 0
    """Seed of the moments."""
    output: Path = RESULTS
    """JSON file; the result of another kind of database in it stays."""


def main(settings: LoadSettings) -> None:
    """Label, kill, compare, write the result."""
    with tempfile.TemporaryDirectory() as folder:
        url = settings.database or f"sqlite:///{folder}/labels.db"
        # Each browser holds some texts that it never comes to.
        access = _make_project(url, settings.annotators * (settings.labels + MOST_TEXTS))
        with ExitStack() as servers, chromium() as browser:
            server = _Server(Path(folder), url, servers)
            started = time.monotonic()
            pages = [_open(browser, server, number) for number in range(settings.annotators)]
            _label_and_kill(pages, server, settings)
            seconds = time.monotonic() - started
            given = [page.evaluate("() => window.given") for page in pages]
        found = _compare(access, given)
    kind = url.split(":", 1)[0].split("+", 1)[0]
    result = {
        "annotators": settings.annotators,
        "labels_of_each": settings.labels,
        "pause_ms": settings.pause,
        "kills": settings.kills,
        "seconds": round(seconds),
        **found,
    }
    known = json.loads(settings.output.read_text("utf-8")) if settings.output.is_file() else {}
    write_at_once(settings.output, json.dumps(known | {kind: result}, indent=1) + "\n")
    print(json.dumps({kind: result}, indent=1))


def _make_project(url: str, texts: int) -> ProjectAccess:
    labels = [ProjectLabel(name="긍정", key="1"), ProjectLabel(name="부정", key="2")]
    person = Person(name="load", is_local=True)
    access = ProjectStore(url).create(person, NewProject(name=NAME, labels=labels))
    for first in range(0, texts, 1_000):
        numbers = range(first, min(first + 1_000, texts))
        add_texts(access, [f"{number}번째 글입니다" for number in numbers], "load")
    return access


class _Server:
    """The app, which can be killed and started again at the same address."""

    def __init__(self, folder: Path, url: str, servers: ExitStack) -> None:
        self.port = free_port()
        self._folder, self._servers = folder, servers
        self._settings = {"MALMOI_DATABASE": url, "HOME": str(folder)}
        self.start()

    def start(self) -> None:
        started = serving(self._folder, self.port, self._settings)
        self._process = self._servers.enter_context(started)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _open(browser: "Browser", server: _Server, number: int) -> "Page":
    page = browser.new_context(locale="ko-KR").new_page()
    page.set_default_timeout(_PATIENCE)
    page.goto(f"http://127.0.0.1:{server.port}/labelling?project={NAME}&name=annotator-{number}")
    page.locator("[data-at=text]").wait_for()
    return page


def _label_and_kill(pages: list["Page"], server: _Server, settings: LoadSettings) -> None:
    """Each kill comes where a random share of all labels is given."""
    draw = random.Random(settings.seed)
    total = settings.annotators * settings.labels
    moments = sorted(draw.uniform(0.02, 0.98) * total for _ in range(settings.kills))
    for page in pages:
        page.evaluate(
            f"([wanted, pause]) => {{ ({LABEL})([wanted, pause]); }}",
            [settings.labels, settings.pause],
        )
    while True:
        done = sum(page.evaluate("() => window.acted") for page in pages)
        if moments and done >= moments[0]:
            moments.pop(0)
            server.kill()
            # Not time.sleep: Playwright must read what its browsers say meanwhile.
            pages[0].wait_for_timeout(1000 * draw.uniform(0, 3))
            server.start()
            print(f"killed and started again at {done:,} of {total:,} labels", flush=True)
        unsaved = sum(page.evaluate(UNSAVED) for page in pages)
        if done >= total and not moments and not unsaved:
            return
        pages[0].wait_for_timeout(_POLL_MILLISECONDS)


def _compare(access: ProjectAccess, given: list[dict[str, str]]) -> dict[str, Any]:
    """What the browsers did against what the store holds."""
    expected = {
        (int(text_id), f"annotator-{number}"): label
        for number, labels in enumerate(given)
        for text_id, label in labels.items()
    }
    names = {}
    with access.reading("admin") as connection:
        rows = connection.execute(
            select(AnnotationRow.text_id, AnnotationRow.annotator, AnnotationRow.choice).where(
                AnnotationRow.project_id == access.project_id, AnnotationRow.kind == "label"
            )
        ).all()
        book = LabelBook(access, connection)
        for text_id, annotator, choice in rows:
            names[text_id, annotator] = book.labels(str(choice))[0]
    times = Counter((text_id, annotator) for text_id, annotator, _ in rows)
    return {
        "given": len(expected),
        "stored": len(rows),
        "missing": len(expected.keys() - names.keys()),
        "not_given": len(names.keys() - expected.keys()),
        "twice": sum(count > 1 for count in times.values()),
        "other_label": sum(names[one] != expected[one] for one in names.keys() & expected.keys()),
        "texts_of_two_annotators": sum(
            count > 1 for count in Counter(text_id for text_id, _ in names).values()
        ),
    }


if __name__ == "__main__":
    about = "Let eight browsers label while their server is killed."
    sys.exit(run_command(LoadSettings, main, about))
