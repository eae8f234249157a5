"""A model that learns while somebody labels, in a real browser."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from malmoi.labels.found_texts import add_texts
from malmoi.labels.people import Person
from malmoi.labels.project import new_project_of_task
from malmoi.labels.projects import ProjectStore
from malmoi.labels.tasks import read_task
from tests.malmoi.app.servers import ROOT, new_page, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

MEMOS = ROOT / "corpora" / "memos"
LABELLED, TEXTS = 25, 300


def test_suggestions_come_after_twenty_labels(chromium: "Browser", workplace: Path) -> None:
    """Keys alone, from a project without any label to what the model would say."""
    task = read_task(MEMOS)
    with (MEMOS / "memos.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for _, row in zip(range(TEXTS), csv.DictReader(file), strict=False)]
    known = {row["text"].strip(): row["label"] for row in rows}
    store = ProjectStore(f"sqlite:///{workplace}/runs/labels.db")
    access = store.create(Person(name="지은", is_local=True), new_project_of_task(task))
    add_texts(access, list(known), "memos.csv")
    with serving(workplace) as server:
        page = new_page(chromium)
        page.goto(f"{server.address}/labelling?project={quote(task.name)}&name={quote('지은')}")
        text = page.locator(".card .text:not(:empty)")
        for _ in range(LABELLED):
            label = known[text.inner_text().strip()]
            page.keyboard.press(str(task.label_names.index(label) + 1))
        # Whichever comes first is told, the order of texts too: it reaches a page that works.
        suggestion = page.locator(".card [data-at=model]:visible")
        while not suggestion.count():
            page.get_by_role("button", name="건너뛰기").click()
            page.wait_for_timeout(2_000)
        assert "%" in suggestion.inner_text()
