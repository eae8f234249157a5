"""Journeys of tables through `malmoi report`: a page that opens everywhere, and a workbook."""

import base64
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

import malmoi
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore
from tests.journeys.conftest import LABELS
from tests.journeys.laws import journey, run

GOOD, BAD, _ = LABELS
PHONE = "010-2345-6789"


class Page(HTMLParser):
    """What a browser would look for."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [str(values["id"])] if values.get("id") else []
        self.links += [str(values["href"])] if "href" in values else []
        self.pictures += [str(values["src"])] if "src" in values else []


def reviews(rows: int = 240) -> pd.DataFrame:
    """Pillows are bad from March on; people have read two of three reviews, drawn by chance."""
    table, read = [], np.random.default_rng(3).random(rows) < 2 / 3
    for place in range(rows):
        month, pillow = 1 + place * 3 // rows, place % 2 == 0
        bad = pillow and (month == 3 or place % 6 == 0)
        said = "솜이 꺼져서 목이 아파요" if bad else "포근하고 따뜻해서 잘 잤어요"
        table.append(
            {
                "번호": place,
                "작성일": f"2026년 {month}월 {1 + place % 27}일",
                "상품명": "베개" if pillow else "이불",
                "리뷰": f"{said} {place % 40}번째 주문, 연락처 {PHONE}",
                "사람": (BAD if bad else GOOD) if read[place] else None,
            }
        )
    return pd.DataFrame(table)


@pytest.fixture
def home() -> Iterator[Path]:
    with journey() as folder:
        yield folder


def test_a_table_becomes_a_page_and_a_workbook(home: Path, classifier: Path) -> None:
    reviews().to_csv("리뷰.csv", index=False)
    done = run(
        *("report", "리뷰.csv", "--model", classifier, "--engine", "torch-fp32"),
        *("--by", "상품명", "--time", "작성일", "--period", "month"),
        *("--label-column", "사람", "--output", "보고서.html"),
    )
    assert done.code == 0, done.err
    assert "240 texts -> " in done.out
    source = Path("보고서.html").read_text(encoding="utf-8")
    page = Page(source)
    assert {"script", "link", "iframe"}.isdisjoint(page.tags)
    anchors = [link for link in page.links if link.startswith("#")]
    assert {link[1:] for link in anchors} <= set(page.ids) and len(anchors) > 20
    assert PHONE not in source and "[전화]" in source
    # Every picture is inside, as SVG and as PNG.
    assert all(one.startswith("data:image/svg+xml;base64,") for one in page.pictures)
    downloads = [link for link in page.links if link.startswith("data:image/")]
    assert len(downloads) == 2 * len(page.pictures) >= 6
    png = next(link for link in downloads if "image/png" in link)
    assert base64.b64decode(png.partition(",")[2]).startswith(b"\x89PNG")
    # Pillows are told, with the words of those who complain.
    told = source[source.index('id="changes"') : source.index('id="shares"')]
    assert "베개" in told and BAD in told and "2026-03" in told

    book = openpyxl.load_workbook("보고서.xlsx", read_only=True)
    assert book.sheetnames == ["요약", "표", "글"]
    texts = list(book["글"].iter_rows(values_only=True))
    assert len(texts) == 241
    assert sum(row[2] == "사람" for row in texts) == reviews()["사람"].count()
    assert not any(PHONE in str(cell) for row in texts for cell in row)
    shares = [row for row in book["표"].iter_rows(values_only=True) if row[1:2] == ("베개",)]
    bad = next(row for row in shares if row[2] == BAD)
    true = (reviews()["상품명"] == "베개") & reviews()["리뷰"].str.startswith("솜이")
    assert bad[7] <= true.sum() / 120 <= bad[8]

    again = run("report", "리뷰.csv", "--output", "보고서.html")
    assert again.code == 2 and "보고서.html" in again.err


def test_without_a_model_it_says_themes_in_english(home: Path) -> None:
    (home / "checkpoints").mkdir()
    vectors = Path(malmoi.__file__).parents[1] / "checkpoints" / "malmoi-vectors"
    (home / "checkpoints" / "malmoi-vectors").symlink_to(vectors)
    (reviews(60)[["리뷰"]] * 6).to_csv("texts.csv", index=False)
    done = run("report", "texts.csv", "--language", "en", "--output", "page.html")
    assert done.code == 0, done.err
    source = Path("page.html").read_text(encoding="utf-8")
    assert "What the texts are about" in source and 'id="shares"' not in source
    assert "Fold up" in source and "접기" not in source


def test_what_cannot_be_read_is_said_in_one_line(home: Path, classifier: Path) -> None:
    reviews(20).assign(빈칸=None).to_csv("리뷰.csv", index=False)
    for flags, said in (
        (("--by", "상품"), "상품명"),
        (("--time", "리뷰"), "expected dates"),
        (("--label-column", "빈칸"), "only empty cells"),
        (("--project", "리뷰"), "--labels"),
        (("--model", "없는 모델"), "없는 모델"),
    ):
        done = run("report", "리뷰.csv", "--output", "page.html", *flags)
        assert done.code == 2 and said in done.err, (flags, done)
    # A single row is a table, too.
    reviews(1).to_csv("하나.csv", index=False)
    flags = ("--model", classifier, "--engine", "torch-fp32", "--by", "상품명", "--time", "작성일")
    done = run("report", "하나.csv", "--output", "하나.html", *flags)
    assert done.code == 0, done.err


def test_in_python_it_is_tables_that_show_themselves(classifier: Path, tmp_path: Path) -> None:
    found = malmoi.report(
        reviews(60), "리뷰", model=classifier, label="사람", by="상품명", engine="torch-fp32"
    )
    whole = found.shares[found.shares["column"] == ""]
    assert list(whole["label"]) == list(LABELS)
    assert ((whole["low"] <= whole["share"]) & (whole["share"] <= whole["high"])).all()
    assert {"word", "score"} <= set(found.words.columns)
    assert "srcdoc" in found._repr_html_()
    found.save(tmp_path / "page.html", language="en")
    with pytest.raises(malmoi.InputError, match=r"\.html or \.xlsx"):
        found.save(tmp_path / "page.pdf")


def test_what_stands_out_is_what_the_tables_say() -> None:
    """Of a column that is compared and the time, too: it is the time."""
    table = reviews()
    table["작성일"] = [f"2026-0{1 + one // 120}-01" for one in range(240)]
    table["사람"] = table["사람"].where(table["작성일"] == "2026-01-01", BAD)
    found = malmoi.report(
        table, "리뷰", label="사람", by=["상품명", "작성일"], time="작성일", period="month"
    )
    (latest,) = found.changes[(found.changes["part"] == "2026-02")][:1].itertuples()
    where = (found.shares["part"] == "2026-02") & (found.shares["label"] == latest.label)
    assert found.shares[where]["share"].tolist() == [latest.share]
    # Without a model there is nothing that it is surest of.
    assert set(found.examples["kind"]) == {"typical"}


def test_labels_of_the_app_count(home: Path, classifier: Path) -> None:
    new = NewProject(
        name="리뷰",
        # In another order than the model's, and in colours of their own.
        labels=[ProjectLabel(name=one, color="#12ab56") for one in reversed(LABELS)],
        kind="single",
        settings=ProjectSettings(),
    )
    ProjectStore(f"sqlite:///{home}/labels.db").create(Person(name="지은", is_local=True), new)
    reviews(40).dropna().to_csv("읽음.csv", index=False)
    flags = ("--database", "labels.db", "--label-column", "사람")
    assert run("labels", "import", "읽음.csv", *flags).code == 0
    reviews(40).drop(columns="사람").to_csv("리뷰.csv", index=False)
    flags = ("--model", classifier, "--engine", "torch-fp32", "--labels", "labels.db")
    done = run("report", "리뷰.csv", *flags, "--output", "page.html")
    assert done.code == 0, done.err
    assert f"{len(reviews(40).dropna())} texts that people read" in done.out
    assert done.out.index(f"  {LABELS[1]}: ") < done.out.index(f"  {LABELS[0]}: ")
    assert "#12ab56" in (home / "page.html").read_text(encoding="utf-8")
    done = run("report", "리뷰.csv", *flags, "--project", "다른", "--output", "또.html")
    assert done.code == 2 and "다른" in done.err
