"""Labelling as annotators do it: a real server, a real Chromium, one key a text."""

import json
import os
import shutil
import signal
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from malmoi.app.plain_text import WORD_JOINER
from malmoi.labels.access import ProjectAccess
from malmoi.labels.backup import back_up
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import (
    ProjectStore,
    change_guideline,
    change_labels,
    read_project,
)
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.app.servers import PATIENCE, ROOT, Server, new_page, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

LABELS = ("긍정", "부정", "중립")
ATTACK = "<script>window.hit=1</script><img src=x onerror=window.hit=2> **굵게**"
GUIDELINE = "**좋으면** 긍정, `![x]`는 중립 ![그림](http://elsewhere.test/x.png)"
# The text on screen at each key, as the browser saw it before the card did.
WITNESS = """
window.seen = [];
window.addEventListener("keydown", (event) => {
  const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
  const text = hosts.map((host) => host.shadowRoot?.querySelector(".text")).find(Boolean);
  if (!text || !event.code.startsWith("Digit")) return;
  window.seen.push([Number(text.dataset.id), event.code]);
}, true);
"""


def make(workplace: Path, texts: list[str], **settings: Any) -> ProjectAccess:
    store = ProjectStore(f"sqlite:///{workplace / 'runs' / 'labels.db'}")
    new = NewProject(
        name="리뷰",
        labels=[ProjectLabel(name=label) for label in LABELS],
        guideline=GUIDELINE,
        settings=ProjectSettings(text_order="plain", **settings),
    )
    access = store.create(Person(name="local", is_local=True), new)
    lines = "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts)
    import_texts(access, [source_of_upload("글.jsonl", lines.encode())])
    return access


def some(count: int) -> list[str]:
    return [f"{number}번째 손님: 배송이 빨라요" for number in range(count)]


def open_page(chromium: "Browser", address: str, name: str = "지은") -> "Page":
    page = new_page(chromium)
    page.add_init_script(WITNESS)
    page.goto(f"{address}/labelling?{urlencode({'project': '리뷰', 'name': name})}")
    page.locator(".card .text:not(:empty)").wait_for()
    return page


def wait_until_saved(page: "Page") -> None:
    page.locator(".card[data-unsaved='0']").wait_for()


def rows(workplace: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(workplace / "runs" / "labels.db") as connection:
        return connection.execute(query).fetchall()


def labels_that_hold(workplace: Path) -> dict[int, tuple[str, str]]:
    """Annotator and label of each text."""
    found = rows(
        workplace,
        "SELECT text_id, annotator, name FROM malmoi_places JOIN malmoi_project_labels "
        "ON choice = '[' || malmoi_project_labels.id || ']' WHERE state = 'labelled'",
    )
    assert len({text_id for text_id, _, _ in found}) == len(found)
    return {text_id: (annotator, name) for text_id, annotator, name in found}


def test_fifty_texts_by_keyboard_with_undo_and_a_reload_in_the_middle(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    make(workplace, [ATTACK, *some(59)])
    page = open_page(chromium, server.address)
    assert page.locator(".card .text").inner_text() == ATTACK
    assert page.evaluate("window.hit") is None
    page.get_by_text("좋으면 긍정").wait_for()
    # As it is written, with a link for the picture.
    assert page.get_by_role("code").inner_text().replace(WORD_JOINER, "") == "![x]"
    page.get_by_role("link", name="그림").wait_for()
    assert page.locator("[src*=elsewhere]").count() == 0
    wanted: dict[int, str] = {}

    def press(count: int) -> None:
        for number in range(count):
            page.keyboard.press(str(number % 3 + 1))
        for text_id, code in page.evaluate("window.seen.splice(0)"):
            wanted[text_id] = LABELS[int(code[-1]) - 1]

    press(25)
    page.keyboard.press("Backspace")
    page.keyboard.press("3")
    for text_id, _ in page.evaluate("window.seen.splice(0)"):
        assert wanted[text_id] == LABELS[0]
        wanted[text_id] = LABELS[2]
    # Without waiting for anything to be saved.
    page.reload()
    page.locator(".card .text:not(:empty)").wait_for()
    press(25)
    wait_until_saved(page)
    # What was done before a reload can be undone after it.
    page.reload()
    page.locator(".card .text:not(:empty)").wait_for()
    for text_id in (50, 49):
        page.keyboard.press("Backspace")
        page.locator(f".card .text[data-id='{text_id}']").wait_for()
    press(2)
    wait_until_saved(page)
    held = labels_that_hold(workplace)
    assert held == {text_id: ("지은", name) for text_id, name in wanted.items()}
    assert sorted(held) == list(range(1, 51))
    log = rows(workplace, "SELECT kind, count(*) FROM malmoi_annotations GROUP BY kind")
    assert dict(log) == {"label": 53, "undo": 3}
    assert rows(workplace, "SELECT DISTINCT guideline_version FROM malmoi_annotations") == [(1,)]
    page.get_by_text("내 라벨 50").wait_for()


def test_two_people_never_label_the_same_text(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    make(workplace, some(120))
    pages = [open_page(chromium, server.address, name) for name in ("지은", "민수")]
    first, second = (page.locator(".card .text").inner_text() for page in pages)
    assert first != second
    for _ in range(15):
        for page in pages:
            page.keyboard.press("1")
    for page in pages:
        wait_until_saved(page)
    held = labels_that_hold(workplace)
    assert sorted(who for who, _ in held.values()) == ["민수"] * 15 + ["지은"] * 15
    # Who stops gives the rest back at once.
    pages[0].get_by_role("button", name="그만하기").click()
    pages[0].get_by_text("돌려놓았습니다").wait_for()
    leased = "SELECT DISTINCT annotator FROM malmoi_places WHERE state = 'leased'"
    assert rows(workplace, leased) == [("민수",)]
    pages[0].get_by_role("button", name="이어서 하기").click()
    pages[0].locator(".card .text:not(:empty)").wait_for()


def test_a_note_that_is_still_open_outlives_a_visit_to_another_page(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    make(workplace, some(3))
    page = open_page(chromium, server.address)
    page.keyboard.press("v")
    page.keyboard.type("반어 같음")
    page.get_by_role("link", name="현황").click()
    page.locator(".card").wait_for(state="detached")
    page.get_by_role("link", name="라벨링").click()
    page.locator(".card .text:not(:empty)").wait_for()
    wait_until_saved(page)
    assert rows(workplace, "SELECT text_id, note FROM malmoi_annotations") == [(1, "반어 같음")]


def test_a_killed_server_loses_no_label(chromium: "Browser", workplace: Path) -> None:
    make(workplace, some(40))
    with serving(workplace) as server:
        page = open_page(chromium, server.address)
        page.keyboard.press("1")
        wait_until_saved(page)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        for _ in range(5):
            page.keyboard.press("2")
        assert page.locator(".card").get_attribute("data-unsaved") == "5"
    with serving(workplace, port=server.port) as again:
        assert again.process.poll() is None
        wait_until_saved(page)
    held = labels_that_hold(workplace)
    assert [name for _, (_, name) in sorted(held.items())] == ["긍정", *["부정"] * 5]


def refused(page: "Page", count: int) -> None:
    """Wait until so many acts are kept for their person to see, and none waits."""
    page.wait_for_function(
        """(count) => {
          const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
          const card = hosts.map((host) => host.shadowRoot?.querySelector(".card")).find(Boolean);
          if (card?.dataset.unsaved !== "0") return false;
          return card.querySelectorAll(".refused li").length === count;
        }""",
        arg=count,
    )


def test_labels_for_texts_that_a_backup_took_away_reach_no_other_text(
    chromium: "Browser", workplace: Path
) -> None:
    """The walk of the guide: backup, a file that is imported, the backup put back, another file.

    The tab shows texts of the first file, whose ids are those of the second.
    """
    access = make(workplace, ["처음 글"])
    url = access.engine.url
    database = Path(str(url.database))
    back_up(workplace / "backup.db", url)
    import_texts(access, [source_of_upload("a.txt", "\n".join(some(40)).encode())])
    access.engine.dispose()
    with serving(workplace) as server:
        page = open_page(chromium, server.address)
        page.keyboard.press("1")  # of the text that stays
        wait_until_saved(page)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
    for _ in range(40):
        page.keyboard.press("2")
    (workplace / "before").mkdir()
    for file in database.parent.glob("labels.db*"):
        file.rename(workplace / "before" / file.name)
    shutil.copy(workplace / "backup.db", database)
    others = "\n".join(f"전혀 다른 {number}번째 글" for number in range(40))
    store = ProjectStore(url)
    again = store.access(Person(name="local", is_local=True), "리뷰")
    import_texts(again, [source_of_upload("b.txt", others.encode())])
    store.engine.dispose()
    assert page.locator(".card").get_attribute("data-unsaved") == "40"
    with serving(workplace, port=server.port) as back:
        assert back.process.poll() is None
        refused(page, 40)
        assert rows(workplace, "SELECT count(*) FROM malmoi_annotations") == [(0,)]
        first = page.locator(".refused li").first
        assert "0번째 손님" in first.inner_text() and "이제 다른 글이" in first.inner_text()
        # The person goes on with the texts that are there.
        page.locator(".card .text", has_text="전혀 다른 0번째 글").wait_for()
        page.keyboard.press("3")
        wait_until_saved(page)
        assert labels_that_hold(workplace) == {2: ("지은", "중립")}
        page.reload()
        refused(page, 40)
        first.get_by_role("button", name="버리기").click()
        refused(page, 39)


def test_labels_given_while_two_names_are_swapped_are_those_that_were_seen(
    chromium: "Browser", workplace: Path
) -> None:
    """Twenty with the server down; a label that is gone meanwhile is kept for its person."""
    access = make(workplace, some(23))
    with serving(workplace) as server:
        page = open_page(chromium, server.address)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
    for number in range(22):
        page.keyboard.press(str(number % 2 + 1) if number < 20 else "3")
    first, second, third = read_project(access).labels
    swapped = [replace(first, name=second.name), replace(second, name=first.name)]
    change_labels(access, [*swapped, ProjectLabel(name="환불")])
    with serving(workplace, port=server.port) as back:
        assert back.process.poll() is None
        refused(page, 2)
        choices = rows(workplace, "SELECT choice FROM malmoi_annotations ORDER BY text_id")
        assert choices == [(f"[{(first, second)[number % 2].id}]",) for number in range(20)]
        item = page.locator(".refused li").first
        assert third.name in item.inner_text() and "라벨 목록에 없습니다" in item.inner_text()
        item.get_by_role("button", name="다시 라벨 붙이기").click()
        page.locator(".card .text", has_text="20번째 손님").wait_for()
        page.get_by_role("button", name="환불").click()
        refused(page, 1)
        change_labels(access, [*read_project(access).labels[:3], replace(third, key=None)])
        page.get_by_role("button", name="모두 다시 보내기").click()
        refused(page, 0)
    names = [name for _, (_, name) in sorted(labels_that_hold(workplace).items())]
    assert names[20:] == ["환불", "중립"] and len(names) == 22


def test_a_database_in_the_place_of_another_is_seen_without_a_new_start(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    make(workplace, some(3))
    page = open_page(chromium, server.address)
    (workplace / "away").mkdir()
    for file in workplace.glob("runs/labels.db*"):
        file.rename(workplace / "away" / file.name)
    time.sleep(1.1)  # another project, by the second at which it was made
    make(workplace, ["새 데이터베이스의 글", "그다음 글"])
    page.keyboard.press("1")
    page.locator(".card .text", has_text="새 데이터베이스의 글").wait_for()
    page.locator(".card .notices", has_text="1건은 아직 저장되지 않았습니다").wait_for()
    with sqlite3.connect(workplace / "away" / "labels.db") as old:
        assert old.execute("SELECT count(*) FROM malmoi_annotations").fetchone() == (0,)
    assert rows(workplace, "SELECT count(*) FROM malmoi_annotations") == [(0,)]
    page.keyboard.press("2")
    wait_until_saved(page)
    assert labels_that_hold(workplace) == {1: ("지은", "부정")}


def test_a_page_goes_on_when_the_app_is_updated_under_it(
    chromium: "Browser", workplace: Path, tmp_path: Path
) -> None:
    """Past the texts that it held: the earlier version's card no longer hears a key."""
    make(workplace, some(130))
    place = tmp_path / "updated"
    shutil.copytree(ROOT / "malmoi", place / "malmoi")
    script = place / "malmoi" / "app" / "main.py"
    settings = {"PYTHONPATH": str(place)}
    with serving(workplace, script=script, settings=settings) as server:
        page = open_page(chromium, server.address)
        page.keyboard.press("1")
        wait_until_saved(page)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        page.keyboard.press("2")
    card = script.parent / "labelling" / "card.js"
    card.write_text(f"// A later version.\n{card.read_text(encoding='utf-8')}", encoding="utf-8")
    with serving(workplace, script=script, settings=settings, port=server.port):
        wait_until_saved(page)
        # A key that comes while a text is on its way, or the card is replaced, labels nothing.
        end = time.monotonic() + PATIENCE / 1_000
        while len(labels_that_hold(workplace)) < 130:
            assert time.monotonic() < end, "the card does not hear its keys"
            page.keyboard.press("3")
            page.wait_for_timeout(20)
        wait_until_saved(page)
        page.locator(".card .empty").wait_for()
    names = [name for _, (_, name) in sorted(labels_that_hold(workplace).items())]
    assert names == ["긍정", "부정", *["중립"] * 128]


def test_what_an_admin_changes_reaches_who_is_labelling(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    """With the next key, which is saved under the label's new name."""
    access = make(workplace, some(10))
    page = open_page(chromium, server.address)
    page.keyboard.press("1")
    wait_until_saved(page)
    first, *others = read_project(access).labels
    change_labels(access, [replace(first, name="만족"), *others, ProjectLabel(name="환불")])
    page.keyboard.press("1")
    page.locator(".card .labels").get_by_role("button", name="환불").wait_for()
    wait_until_saved(page)
    change_guideline(access, "**화가 나면** 부정")
    page.keyboard.press("4")
    page.get_by_text("지침 2판").wait_for()
    page.keyboard.press("2")
    wait_until_saved(page)
    assert page.locator(".card .notices div").count() == 0
    held = [name for _, (_, name) in sorted(labels_that_hold(workplace).items())]
    assert held == ["만족", "만족", "환불", "부정"]
    versions = rows(workplace, "SELECT guideline_version FROM malmoi_annotations ORDER BY id")
    assert versions == [(1,), (1,), (1,), (2,)]
    # A label that is gone for good is refused in words that a visitor reads.
    change_labels(access, [one for one in read_project(access).labels if one.name != "환불"])
    page.keyboard.press("4")
    page.locator(".card .notices", has_text="라벨 목록에 없습니다: 환불").wait_for()


def test_a_label_is_changed_from_the_list_of_the_last_ones(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    make(workplace, some(5))
    page = open_page(chromium, server.address)
    page.keyboard.press("1")
    page.keyboard.press("2")
    wait_until_saved(page)
    page.reload()
    page.locator(".card .text:not(:empty)").wait_for()
    page.locator(".card .recent summary").click()
    page.get_by_role("listitem").filter(has_text="0번째 손님").get_by_role("button").click()
    page.get_by_text("지금 붙어 있는 라벨: 긍정").wait_for()
    page.keyboard.press("3")
    wait_until_saved(page)
    assert labels_that_hold(workplace) == {1: ("지은", "중립"), 2: ("지은", "부정")}
    page.get_by_text("내 라벨 2").wait_for()


def test_sixty_texts_three_people_and_nobody_waits(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    """Piles are shared when somebody comes, and come back at once when somebody goes."""
    from playwright.sync_api import expect

    make(workplace, some(60))
    names = ("지은", "민수", "하늘")
    pages = [open_page(chromium, server.address, name) for name in names]
    texts = {page.locator(".card .text").inner_text() for page in pages}
    assert len(texts) == len(names)
    for _ in range(3):
        for page in pages:
            page.keyboard.press("1")
            wait_until_saved(page)
    held = labels_that_hold(workplace)
    assert sorted(who for who, _ in held.values()) == sorted(3 * names)
    leased = "SELECT DISTINCT annotator FROM malmoi_places WHERE state = 'leased'"

    def wait_for(*who: str) -> None:
        end = time.monotonic() + 60
        while {name for (name,) in rows(workplace, leased)} != set(who):
            assert time.monotonic() < end
            time.sleep(0.1)

    wait_for(*names)
    pages[0].close(run_before_unload=True)
    wait_for(*names[1:])
    pages[1].get_by_role("link", name="현황").click()
    wait_for(names[2])
    # All that is left comes to the last one.
    for _ in range(51):
        pages[2].locator(".card .text:not(:empty)").wait_for()
        pages[2].keyboard.press("2")
    wait_until_saved(pages[2])
    expect(pages[2].locator(".card [data-at=progress]")).to_contain_text("60 / 60")


def test_a_name_is_typed_and_digits_are_labels(
    chromium: "Browser", workplace: Path, server: Server
) -> None:
    from playwright.sync_api import expect

    make(workplace, some(10))
    page = open_page(chromium, server.address, "")
    name = page.get_by_role("textbox", name="라벨 붙이는 사람")
    name.click()
    page.keyboard.type("지은")
    page.keyboard.press("Enter")
    expect(name).not_to_be_focused()
    page.keyboard.press("1")
    page.get_by_text("내 라벨 1").wait_for()
    name.click()
    page.keyboard.type("2")
    expect(name).not_to_be_focused()
    expect(name).to_have_value("지은")
    page.keyboard.press("2")
    page.get_by_text("내 라벨 2").wait_for()
    wait_until_saved(page)
    assert {who for who, _ in labels_that_hold(workplace).values()} == {"지은"}
