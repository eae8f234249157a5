"""How fast and how safe is the labelling page, with many texts and labels in the project?

    python -m lab.benchmarks.speed.labelling_app

Two parts, each with a database of its own that is written beforehand (`labelling_project`):

- the queue: `lease_texts` for a batch of 100 among `--queue-texts` texts, by each order, for one
  and for two annotators a text, when the annotator has labelled the first `--queue-labels` of that
  order. Before each draw what was handed out is given back. By the clock and by the processor.
- the page: the app is started as a user starts it, a visitor classifies a text, so that the server
  holds a released classifier, and texts are labelled in a real Chromium. From the key's
  own time stamp to the change of the text in the document (a MutationObserver), and to the end of
  the frame that paints it (a task after requestAnimationFrame); bursts of keys at several gaps,
  whose labels in the database are compared with the texts that were on screen; labels that were
  given to a killed server (-9) and reach the one that is started in its place.
"""

import json
import os
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from lab.benchmarks.result_files import write_result
from lab.benchmarks.speed.app_server import chromium, free_port, link_models, own_data, serving
from lab.benchmarks.speed.labelling_project import (
    LABELS,
    first_texts,
    label_many,
    make_project,
    score_all,
)
from malmoi.command_line import run_command
from malmoi.labels.leasing import lease_texts, return_leases
from malmoi.labels.project import ORDERS, ProjectSettings
from malmoi.labels.projects import ProjectStore, change_settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

RESULTS = Path(__file__).parents[1] / "results" / "labelling_app.json"
_BATCH = 100
_PROJECT = "benchmark"
_GAPS = (0, 20, 50, 100)  # ms
_BURST = 20
_LOST = 5
_PATIENCE = 300_000  # ms
# The text on screen at each key, before the card does anything, and when the next one is there.
_WITNESS = """
window.seen = [];
window.addEventListener("keydown", (event) => {
  const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
  const text = hosts.map((host) => host.shadowRoot.querySelector(".text")).find(Boolean);
  if (!text) return;
  const one = { text: Number(text.dataset.id), key: event.key, changed: null, painted: null };
  window.seen.push(one);
  const observer = new MutationObserver(() => {
    observer.disconnect();
    one.changed = performance.now() - event.timeStamp;
    requestAnimationFrame(() => setTimeout(() => {
      one.painted = performance.now() - event.timeStamp;
    }));
  });
  observer.observe(text, { childList: true, characterData: true, subtree: true });
}, true);
"""


@dataclass(kw_only=True)
class LabellingAppSettings:
    """How big the projects are, and how often what is measured."""

    texts: int = 100_000
    """Texts of the project that is labelled in the browser."""
    labels: int = 50_000
    """Labels that it has."""
    keys: int = 200
    """Keys of which the time is taken."""
    queue_texts: int = 1_000_000
    """Texts of each of the two projects of which the queue is timed."""
    queue_labels: int = 50_000
    """Labels of the annotator in each order."""
    draws: int = 30
    """Batches that are drawn, in each order."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: LabellingAppSettings) -> None:
    """Measure, print the table, write the results."""
    load = os.getloadavg()[0]
    result: dict[str, Any] = {
        "texts": settings.texts,
        "labels": settings.labels,
        "queue_texts": settings.queue_texts,
        "queue_labels": settings.queue_labels,
    }
    with tempfile.TemporaryDirectory(prefix="malmoi-labelling-") as folder:
        for name, part in (("page", _page), ("queue_ms", _queue)):
            result[name] = part(settings, Path(folder))
            now = os.getloadavg()[0]
            result["load_average_before_and_after"] = [round(load, 1), round(now, 1)]
            write_result(settings.output, result)
    print(json.dumps(result, ensure_ascii=False, indent=1))


def _queue(settings: LabellingAppSettings, folder: Path) -> dict[str, Any]:
    """Milliseconds of a batch, by annotators a text and order."""
    store = ProjectStore(f"sqlite:///{folder / 'queue.db'}")
    found = {}
    for needed in (1, 2):
        name = f"{_PROJECT} {needed}"
        access = make_project(
            store, name, settings.queue_texts, ProjectSettings(annotators_per_text=needed)
        )
        score_all(access)
        for order in ORDERS:
            change_settings(access, text_order=order)
            label_many(access, first_texts(access, order, settings.queue_labels), order)
            clock, processor = [], []
            for _ in range(settings.draws):
                return_leases(access)
                began, used = time.perf_counter(), time.process_time()
                lease_texts(access, _BATCH)
                clock.append(time.perf_counter() - began)
                processor.append(time.process_time() - used)
            return_leases(access)
            found[f"{order}, {needed} a text"] = {
                "clock": _milliseconds(clock),
                "processor": _milliseconds(processor),
            }
            print(order, needed, found[f"{order}, {needed} a text"], flush=True)
    return found


def _milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(1000 * statistics.median(seconds), 1),
        "p95": round(1000 * float(np.quantile(seconds, 0.95)), 1),
        "least": round(1000 * min(seconds), 1),
    }


def _page(settings: LabellingAppSettings, folder: Path) -> dict[str, Any]:
    link_models(folder)
    database = folder / "page.db"
    access = make_project(ProjectStore(f"sqlite:///{database}"), _PROJECT, settings.texts)
    score_all(access)
    label_many(access, first_texts(access, "plain", settings.labels), "plain")
    port = free_port()
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(_PATIENCE)
        page.add_init_script(_WITNESS)
        with serving(folder, port, own_data(folder, database)) as server:
            began = time.perf_counter()
            page.goto(f"http://127.0.0.1:{port}/labelling?{urlencode({'project': _PROJECT})}")
            page.locator(".card .text:not(:empty)").wait_for()
            first = time.perf_counter() - began
            _classify_one(browser.new_page(), port)
            found = {"first_text_seconds": round(first, 2), **_key_times(page, settings.keys)}
            found["bursts"] = {f"{gap} ms": _burst(page, database, gap) for gap in _GAPS}
            os.kill(server.pid, signal.SIGKILL)
            server.wait()
            page.evaluate("window.seen = []")
            for _ in range(_LOST):
                page.keyboard.press("1")
            unsent = page.locator(".card").get_attribute("data-unsaved")
        with serving(folder, port, own_data(folder, database)):
            found["killed"] = {"unsent": int(unsent or 0), **_compared(page, database)}
    return found


def _classify_one(visitor: "Page", port: int) -> None:
    """Have the server load its classifier."""
    visitor.set_default_timeout(_PATIENCE)
    visitor.goto(f"http://127.0.0.1:{port}/single")
    visitor.get_by_label("분류할 글").fill("배송이 빨라요")
    visitor.get_by_role("button", name="분류하기").click()
    visitor.get_by_text("긍정", exact=False).first.wait_for()
    visitor.close()


def _key_times(page: "Page", keys: int) -> dict[str, Any]:
    """Milliseconds from a key to the next text, one key after the other at a fast person's pace."""
    page.evaluate("window.seen = []")
    for number in range(keys):
        page.keyboard.press(str(number % len(LABELS) + 1))
        page.wait_for_timeout(150)
    seen = page.evaluate("window.seen")
    found: dict[str, Any] = {"keys": len(seen)}
    for name in ("changed", "painted"):
        times = [one[name] for one in seen if one[name] is not None]
        found[f"{name}_ms"] = {
            "median": round(statistics.median(times), 1),
            "p95": round(float(np.quantile(times, 0.95)), 1),
        }
    return found


def _burst(page: "Page", database: Path, gap: int) -> dict[str, int]:
    page.evaluate("window.seen = []")
    for number in range(_BURST):
        page.keyboard.press(str(number % len(LABELS) + 1))
        if gap:
            page.wait_for_timeout(gap)
    return _compared(page, database)


def _compared(page: "Page", database: Path) -> dict[str, int]:
    """How many of the keys that were seen are labels in the database of the text on screen."""
    page.locator(".card[data-unsaved='0']").wait_for()
    held = _held(database)
    seen = page.evaluate("window.seen")
    right = sum(held.get(one["text"]) == LABELS[int(one["key"]) - 1] for one in seen)
    return {"keys": len(seen), "right": right}


def _held(database: Path) -> Mapping[int, str]:
    query = (
        "SELECT text_id, name FROM malmoi_places JOIN malmoi_project_labels "
        "ON choice = '[' || malmoi_project_labels.id || ']' WHERE state = 'labelled' "
        "ORDER BY malmoi_places.annotation_id DESC LIMIT 1000"
    )
    with sqlite3.connect(database) as connection:
        return dict(connection.execute(query).fetchall())


if __name__ == "__main__":
    sys.exit(run_command(LabellingAppSettings, main, "Time the labelling page and its queue."))
