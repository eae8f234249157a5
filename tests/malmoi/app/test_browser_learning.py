"""A model that learns while somebody labels, in a real browser."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import openpyxl
import pytest

from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.found_texts import add_texts
from malmoi.labels.leasing import lease_texts
from malmoi.labels.people import Person
from malmoi.labels.project import new_project_of_task
from malmoi.labels.projects import ProjectStore
from malmoi.labels.tasks import read_task
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import source_of_upload
from malmoi.text.reading.spreadsheet_cells import unguarded
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


def test_the_rest_of_a_file_is_labelled_by_the_model(chromium: "Browser", workplace: Path) -> None:
    """From some labels to a file with all rows and columns of the one that was imported."""
    task = read_task(MEMOS)
    with (MEMOS / "memos.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for _, row in zip(range(TEXTS), csv.DictReader(file), strict=False)]
    # The last text stands there twice: both rows come back.
    texts = [row["text"].strip() for row in rows]
    texts.append(texts[-1])
    header = ["번호", "작성일", "본문", "=별점"]
    imported = [header, *([f"{n:03}", "2024-01-02", text, "5"] for n, text in enumerate(texts))]
    buffer = io.StringIO()
    csv.writer(buffer).writerows(imported)
    access = ProjectStore(f"sqlite:///{workplace}/runs/labels.db").create(
        Person(name="지은", is_local=True), new_project_of_task(task)
    )
    import_texts(access, [source_of_upload("원본.csv", buffer.getvalue().encode())])
    known = {row["text"].strip(): row["label"] for row in rows}
    for text in lease_texts(access, 60):
        label = known[text.text.strip()]
        request = f"r{text.text_id}"
        act = Act(text_id=text.text_id, kind="label", labels=[label], request_id=request)
        save_acts(access, [act])
    with serving(workplace) as server:
        page = new_page(chromium)
        page.goto(f"{server.address}/labelling?project={quote(task.name)}&name={quote('지은')}")
        page.locator(".card .text:not(:empty)").wait_for()
        page.keyboard.press("1")
        fill = page.get_by_role("button", name="나머지 채우기")
        fill.wait_for()
        page.get_by_text("100개 가운데").or_(page.get_by_text("무작위로 뽑혀")).wait_for()
        fill.click()
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV 내려받기").click(timeout=120_000)
        found = list(csv.reader(download.value.path().open(encoding="utf-8-sig", newline="")))
        assert [[unguarded(cell) for cell in row[:4]] for row in found] == imported
        assert found[0][4:] == ["라벨", "누구", "확신도", "확인"]
        assert {(row[4] in task.label_names, row[5]) for row in found[1:]} == {
            (True, "사람"),
            (True, "모델"),
        }
        for row in found[1:]:
            assert (row[6] == "") == (row[5] == "사람")
        assert found[-1][4:] == found[-2][4:]
        # The other pages have the same button, and the same files.
        for name in ("현황", "작업"):
            page.get_by_role("link", name=name, exact=True).click()
            if name == "작업":
                page.get_by_text("내보내기", exact=True).click()
            page.get_by_role("button", name="Excel 내려받기").wait_for()
    files = [workplace / f"채움{ending}" for ending in (".csv", ".xlsx")]
    settings = {"MALMOI_HOME": str(workplace)}
    command = ["malmoi", "labels", "export", *map(str, files), "--fill", "live"]
    subprocess.run([sys.executable, "-m", *command], env={**os.environ, **settings}, check=True)
    assert list(csv.reader(files[0].open(encoding="utf-8-sig", newline=""))) == found
    sheet = openpyxl.load_workbook(files[1]).active
    assert [list(row[:4]) for row in sheet.iter_rows(values_only=True)] == imported
