"""Projects as a person meets them: a real server, a real Chromium."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from malmoi.app.plain_text import WORD_JOINER
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.found_texts import add_texts
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.review import texts_with_votes
from tests.malmoi.app.servers import IS_CUT, new_page, upload

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

LOCAL = Person(name="지은", is_local=True)
NAME = "가을 <script>document.title='뚫림'</script> **굵게** [a](http://b.kr) :smile: $x$"


@pytest.fixture
def page(chromium: "Browser", address: str) -> "Page":
    """The app's first page, loaded."""
    page = new_page(chromium)
    page.goto(f"{address}/?view=new")
    page.get_by_role("textbox", name="이름", exact=True).wait_for()
    return page


def project(workplace: Path, name: str = NAME) -> ProjectAccess:
    store = ProjectStore(f"sqlite:///{workplace}/runs/labels.db")
    return store.access(LOCAL, name)


def texts(access: ProjectAccess) -> list[str]:
    return [one.text for one in texts_with_votes(access, range(100))]


def fill_new(page: "Page", name: str, labels: str) -> None:
    page.get_by_role("textbox", name="이름", exact=True).fill(name)
    page.get_by_role("textbox", name="라벨 (한 줄에").fill(labels)
    page.get_by_role("textbox", name="라벨 (한 줄에").press("Control+Enter")


def download(page: "Page", button: str) -> bytes:
    with page.expect_download() as told:
        page.get_by_test_id("stDownloadButton").get_by_text(button, exact=True).click()
    return Path(told.value.path()).read_bytes()


def test_a_new_project_of_a_cp949_file_with_a_bad_row(page: "Page", workplace: Path) -> None:
    rows = ["번호,리뷰", "1,배송이 빨라요", "2,", "3,똠방각하 별로예요", "4,=cmd()|' /C calc'!A0"]
    fill_new(page, NAME, "긍정, 부정, 중립")
    upload(page, "../../리뷰.csv", "\r\n".join(rows).encode("cp949"))
    # What is read is shown before anything is read in.
    page.get_by_text("글자 인코딩: CP949").wait_for()
    page.get_by_role("button", name="만들고 라벨링 시작").click()
    # Not on to labelling before the row that was left out has been told.
    page.get_by_text("가져왔습니다: 새 글 3건").wait_for()
    expected = ["배송이 빨라요", "똠방각하 별로예요", "=cmd()|' /C calc'!A0"]
    assert texts(project(workplace)) == expected
    assert not [path for path in workplace.rglob("*") if path.name.startswith("리뷰")]

    bad = download(page, "뺀 행 목록 내려받기 (CSV)").decode("utf-8-sig")
    table = list(csv.reader(io.StringIO(bad, newline="")))
    assert table[1:] == [["리뷰.csv:3", "글이 빈칸입니다."]]

    # The name stands as it was written in the list, in the sidebar and above the page.
    listed = page.get_by_test_id("stMain").get_by_role("button", name="가을")
    assert _words(listed.inner_text()) == NAME
    assert page.get_by_test_id("stSidebar").get_by_role("combobox").input_value() == NAME
    page.get_by_role("radio", name="내보내기").click()
    page.get_by_test_id("stMain").get_by_text(NAME, exact=True).wait_for()
    assert page.title() != "뚫림" and page.locator("a[href^='http://b.kr']").count() == 0

    page.get_by_text("라벨 없는 글도").click()
    page.get_by_role("button", name="파일 만들기").click()
    page.get_by_text("글 3건을 담았습니다").wait_for()
    written = download(page, "내려받기").decode("utf-8-sig")
    cells = [row[0] for row in csv.reader(io.StringIO(written, newline=""))]
    assert [cell.removeprefix("\u200b") for cell in cells] == ["text", *expected]
    assert not any(cell.startswith("=") for cell in cells)

    # A reload opens the same part of the same page with the same project.
    page.reload()
    page.get_by_role("button", name="파일 만들기").wait_for()
    page.get_by_text("글 3건을 담았습니다").wait_for()


def test_an_import_is_seen_after_a_reload_and_ends_without_the_page(
    page: "Page", workplace: Path
) -> None:
    lines = "\n".join(f"글 {number}번입니다. 배송이 빨라요" for number in range(20_000))
    fill_new(page, "많은 글", "긍정, 부정")
    upload(page, "글.txt", lines.encode())
    page.get_by_text("한 줄을 글 하나로").wait_for()
    page.get_by_role("button", name="만들고 라벨링 시작").click()
    on_its_way, ended = (
        page.get_by_text("글을 가져오는 중입니다"),
        page.get_by_text("새 글 20,000건"),
    )
    on_its_way.or_(ended).first.wait_for()
    page.reload()
    on_its_way.or_(ended).first.wait_for()
    ended.wait_for()
    page.get_by_role("button", name="확인").click()
    page.get_by_role("link", name="작업").click()
    page.get_by_text("글 20,000 · 끝남 0 (0%)").wait_for()


@pytest.mark.parametrize("width", [1280, 390])
def test_labels_of_a_file_are_counted_and_confirmed_before_any_comes_in(
    chromium: "Browser", address: str, workplace: Path, width: int
) -> None:
    from playwright.sync_api import expect

    store = ProjectStore(f"sqlite:///{workplace}/runs/labels.db")
    labels = [ProjectLabel(name=name) for name in ("긍정", "부정")]
    store.create(LOCAL, NewProject(name="리뷰", labels=labels))
    access = store.access(Person(name="가나", is_local=True), "리뷰")
    for one in add_texts(access, ["배송이 빨라요", "상자가 찢어졌어요"], "전.txt"):
        save_acts(access, [Act(text_id=one, kind="label", request_id=f"{one}", labels=["부정"])])
    rows = [
        "text,label,annotator,labelled_at",
        "배송이 빨라요,긍정,가나,2020-01-01T09:00:00Z",
        "상자가 찢어졌어요,긍정,다라,2020-01-01T09:00:00Z",
        "포장이 좋아요,긍정,다라,2020-01-01T09:00:00Z",
        "그냥 그래요,모름,다라,2020-01-01T09:00:00Z",
    ]
    page = new_page(chromium, width=width)
    page.goto(f"{address}/?view=texts")
    upload(page, "리뷰.csv", "\n".join(rows).encode())
    page.get_by_role("combobox", name="라벨이 있는 열").click()
    page.get_by_role("option", name="label", exact=True).click()
    annotators = page.get_by_role("combobox", name="라벨을 붙인 사람의 열")
    annotators.wait_for()
    assert annotators.input_value() == "annotator"
    page.get_by_role("button", name="가져오기", exact=True).click()
    question = page.locator(".st-key-import_question")
    question.get_by_role("button", name="이대로 가져오기").wait_for()
    assert question.get_by_role("listitem").all_inner_texts() == [
        "새 글 2건",
        "이미 있던 글과 같은 행 2개",
        "새 라벨 2개",
        "그중 1개는 다른 사람과 달라서 검토로",
        "여기 것보다 오래되어 빼는 라벨 1개",
    ]
    question.get_by_text("라벨 목록에 없습니다: 모름").wait_for(state="attached")
    assert not question.get_by_role("list").evaluate(IS_CUT)
    held = [{"가나": ("부정",)}, {"가나": ("부정",)}]
    assert _votes(access) == held
    question.get_by_role("button", name="이대로 가져오기").click()
    page.get_by_text("가져왔습니다: 새 글 2건").wait_for()
    expect(question).to_have_count(0)  # it goes only when the page is drawn to its end
    held[1] |= {"다라": ("긍정",)}
    assert _votes(access) == [*held, {"다라": ("긍정",)}, {}]


def _votes(access: ProjectAccess) -> list[dict[str, tuple[str, ...]]]:
    return [
        {vote.annotator: tuple(vote.labels) for vote in one.votes}
        for one in texts_with_votes(access, range(100))
    ]


def _words(text: str) -> str:
    """What a button shows, without its icon and without what parts shortcodes."""
    return text.split("\n")[-1].replace(WORD_JOINER, "")
