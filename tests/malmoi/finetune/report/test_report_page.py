"""The page: sound HTML that says what was measured, whatever the texts contain."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.calibration import calibrate_out_of_fold
from malmoi.finetune.evaluation.learning_curve import CurvePoint
from malmoi.finetune.report.page import ComparedRow, ReportContent, report_page
from malmoi.text.label_keywords import label_keywords
from tests.malmoi.finetune.conftest import LABELS, separable

ATTACK = "<script>alert('x')</script><img src=x onerror=\"alert(1)\"> & \x00 \ud83d 끝"


class Page(HTMLParser):
    """Checks that every element is closed, and collects what the tests ask for."""

    VOID = frozenset({"meta", "line", "rect", "circle"})

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        assert not [name for name in values if name.startswith("on")]
        assert not {"src", "srcset"} & set(values)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if "href" in values:
            self.links.append(str(values["href"]))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.VOID
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def content(
    n_labels: int = 3,
    n_texts: int = 60,
    right: float = 0.8,
    label_ids: Sequence[int] | None = None,
    probabilities: ArrayLike | None = None,
    **changes: object,
) -> ReportContent:
    """A made-up run in which about `right` of the predictions are right."""
    random = np.random.default_rng(0)
    ids = np.arange(n_texts) % n_labels if label_ids is None else np.array(label_ids)
    if probabilities is None:
        seen = np.where(random.random(n_texts) < right, ids, (ids + 1) % n_labels)
        probabilities = np.full((n_texts, n_labels), 0.3 / (n_labels - 1), dtype=np.float32)
        probabilities[np.arange(n_texts), seen] = 0.7
    examples = Examples(
        path=Path("memos"),
        labels=[f"라벨{label}" for label in range(n_labels)],
        texts=[f"텍스트 {number}번" for number in range(n_texts)],
        ids=[f"memo-{number:04}" for number in range(n_texts)],
        label_ids=ids.tolist(),
        repeats=0,
        contradictions=0,
        empty=0,
    )
    of_examples = {name: changes.pop(name) for name in vars(examples).keys() & changes.keys()}
    whole = ReportContent(
        examples=replace(examples, **of_examples),  # type: ignore[arg-type]
        calibration=calibrate_out_of_fold(probabilities, ids, np.arange(n_texts) % 5 + 1),
        fold_f1={0: [0.81, 0.79, 0.8, 0.78, 0.82]},
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_it_says_what_was_measured() -> None:
    given = content(
        fold_f1={0: [0.81, 0.79], 7: [0.83, 0.77]},
        baselines=[ComparedRow(name="무작위 초기값", mean_f1=0.4321, sd_f1=0.02, note="같은 폴드")],
        learning_curve=[
            CurvePoint(fraction=0.5, texts=24, score=0.61),
            CurvePoint(fraction=1.0, texts=48, score=0.81),
        ],
        settings={"learning_rate": 3e-4, "folds": [1, 2]},
        environment={"torch": "2.9.1"},
    )
    source = report_page(given, keywords=False)
    assert source.startswith("<!DOCTYPE html>")
    page = Page(source)
    for expected in (
        "memos 교차 검증 보고서",
        "0.8000",  # mean of both seeds
        "0.8100",  # one fold
        "시드 7",
        "무작위 초기값",
        "0.432",
        "라벨2",
        "F1이 +0.200 바뀌었습니다",
        "learning_rate",
        "0.0003",
        "2.9.1",
    ):
        assert expected in page.text
    assert page.ids == [link[1:] for link in page.links]
    assert set(page.ids) == {
        "folds",
        "baselines",
        "labels",
        "confusion",
        "calibration",
        "answering",
        "curve",
        "mistakes",
        "likely-errors",
        "settings",
    }
    assert page.tags.count("svg") == 7
    assert re.search(r"ECE 0\.\d{4}", page.text)


def test_it_needs_nothing_but_itself() -> None:
    source = report_page(content(), keywords=False)
    assert not {"script", "link", "img", "iframe", "object"} & set(Page(source).tags)
    assert "http://" not in source
    assert "https://" not in source
    assert "url(" not in source
    assert '<html lang="ko">' in source
    assert "default-src 'none'" in source
    assert "prefers-color-scheme: dark" in source


def test_texts_labels_and_names_are_shown_as_they_are() -> None:
    given = content(
        right=0.0,
        n_texts=6,
        path=Path(ATTACK),
        texts=[ATTACK, f"{ATTACK} " * 30] * 3,  # as they are, and to be unfolded
        ids=[ATTACK] * 6,
        labels=[ATTACK, '"><b>', "</style>"],
        baselines=[ComparedRow(name=ATTACK, mean_f1=0.5, note=ATTACK)],
        settings={ATTACK: ATTACK, "nested": [ATTACK]},
    )
    page = Page(report_page(given, keywords=False))
    assert not {"script", "img"} & set(page.tags)
    assert "<script>alert('x')</script>" in page.text
    assert page.text.count("\ufffd") >= 2


def test_mistakes_come_by_falling_confidence() -> None:
    probabilities = [[0.9, 0.1], [0.1, 0.9], [0.3, 0.7], [0.02, 0.98], [0.8, 0.2], [0.2, 0.8]]
    given = content(
        n_labels=2, n_texts=6, probabilities=probabilities, label_ids=[0, 1, 0, 0, 0, 1]
    )
    page = report_page(given, keywords=False)
    part = page[page.index('id="mistakes"') : page.index('id="likely-errors"')]
    assert re.findall(r"memo-\d+", part) == ["memo-0003", "memo-0002"]


def test_few_and_many_labels() -> None:
    for labels, matrix in ((2, True), (44, True), (61, False)):
        source = report_page(content(n_labels=labels, n_texts=labels * 5), keywords=False)
        page = Page(source)
        assert f"라벨{labels - 1}" in page.text
        assert ('class="matrix' in source) is matrix
        assert ('class="matrix many"' in source) is (labels == 44)


def test_long_texts_unfold_and_the_page_stays_small() -> None:
    texts = 4_000  # only the digits of some numbers grow with more
    long = "가나다 " * 3_000
    given = content(n_labels=44, n_texts=texts, right=0.5, texts=[long] * texts)
    source = report_page(given, keywords=False)
    assert len(source.encode()) < 2_000_000
    assert source.count("<details") == 70
    assert "(전체 12,000자)" in source


def test_keywords_are_those_of_the_label() -> None:
    rows = separable()
    texts = [text for text, _ in rows]
    ids = [LABELS.index(label) for _, label in rows]
    found = label_keywords(texts, ids, len(LABELS))
    words = [{keyword.word for keyword in label.keywords} for label in found]
    assert "악몽" in words[0]
    assert "친구" in words[1]
    assert "회의" in words[2]
    # In the texts of every label alike.
    assert not any("서울" in label for label in words)
    assert [label.texts for label in found] == [21, 21, 21]
    few = label_keywords(texts, ids, len(LABELS), max_texts=30, count=1)
    assert [label.texts for label in few] == [10, 10, 10]
    assert all(len(label.keywords) <= 1 for label in few)


def test_keywords_are_on_the_page() -> None:
    rows = separable()
    given = content(
        n_texts=len(rows),
        texts=[text for text, _ in rows],
        label_ids=[LABELS.index(label) for _, label in rows],
        labels=LABELS,
    )
    page = Page(report_page(given))
    assert "keywords" in page.ids
    assert "악몽" in page.text[page.text.index("로그 오즈비") :]
