"""Classifying a table keeps every row and every cell of it."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from openpyxl import load_workbook

from malmoi.app.corrections import ShownRows, corrected_table, save, take_edits
from malmoi.app.downloads import table_file
from malmoi.app.label_saving import place_for, take_labels_back
from malmoi.app.table_classification import (
    Corrections,
    SavedLabel,
    classify_table,
    default_text_column,
)
from malmoi.app.visit import Visit
from malmoi.errors import InputError
from malmoi.inference.description import ModelDescription
from malmoi.inference.output_columns import OutputColumns
from malmoi.inference.prediction import Prediction
from malmoi.labels.annotating import Act, Suggestion, own_work, save_acts
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.review import texts_with_votes
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import load_table
from malmoi.text.written_cells import EXCEL_CELL

POSITIVE = Suggestion(label="긍정", score=0.5, model="m")


class Rule:
    """Says 긍정 where a text holds "좋"."""

    columns = OutputColumns(
        ModelDescription(
            labels=["긍정", "부정"],
            gives="label",
            pairs=False,
            thresholds=[],
            max_length=64,
            pad=0,
            token_types=False,
        )
    )

    def threshold(self, accuracy: float) -> float:
        raise InputError("nobody has measured it")

    def predict_filled(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> list[Prediction | None]:
        filled = [text for text in texts if clean_text(text)]
        if progress is not None:
            progress(len(filled), len(filled))
        good, bad = {"긍정": 0.75, "부정": 0.25}, {"긍정": 0.125, "부정": 0.875}
        return [
            None
            if text not in filled
            else Prediction("긍정", good, len(text) > 20)
            if "좋" in text
            else Prediction("부정", bad, len(text) > 20)
            for text in texts
        ]


def test_default_text_column() -> None:
    """One with a usual name, if it holds words; the longest where none has one."""
    for columns, expected in (
        (["id", "text", "review"], "text"),
        (["번호", "리뷰", "별점"], "리뷰"),
        (["ID", "Comments"], "Comments"),
        (["번호", " 내용 "], " 내용 "),
        (["a", "긴 열"], "긴 열"),
    ):
        table = pd.DataFrame(
            {name: ["한 줄짜리 글" if name == expected else "7"] for name in columns}
        )
        assert default_text_column(table) == expected, columns


def test_a_column_of_numbers_is_no_text_whatever_its_name() -> None:
    table = pd.DataFrame({"댓글": ["17", "3"], "메모": ["좋은 글이다", "나쁜 글이다"]})
    assert default_text_column(table) == "메모"


def test_table_without_columns() -> None:
    with pytest.raises(InputError, match="no columns"):
        default_text_column(pd.DataFrame())


def test_what_cleaning_leaves_nothing_of_is_no_text_and_what_is_cut_is_counted() -> None:
    cells = ["좋아요", "<br>", "&nbsp;", "\u200b", "https://example.com/a", "좋" + "다 " * 20]
    result = classify_table(pd.DataFrame({"text": cells}), "text", Rule())
    assert result.empty_rows == [2, 3, 4, 5]
    assert result.counts == {"긍정": 2} and result.cut == 1
    with pytest.raises(InputError, match="has no text in any of its 1 rows"):
        classify_table(pd.DataFrame({"text": ["<br>"]}), "text", Rule())


def test_classify_keeps_rows_and_reports_empty_ones() -> None:
    table = pd.DataFrame({"id": list("abcd"), "text": ["좋아요", "", "별로", "  "]}, dtype="str")
    seen: list[tuple[int, int]] = []
    result = classify_table(
        table, "text", Rule(), progress=lambda done, total: seen.append((done, total))
    )
    assert list(result.table.columns) == ["id", "text", "예측", "확신도", "확률 긍정", "확률 부정"]
    assert result.table[["id", "text"]].equals(table)
    assert result.table["예측"].tolist() == ["긍정", "", "부정", ""]
    assert result.table["확신도"].dropna().tolist() == [0.75, 0.875]
    assert result.table["확률 긍정"].isna().tolist() == [False, True, False, True]
    assert result.empty_rows == [2, 4]
    assert result.counts == {"긍정": 1, "부정": 1}
    assert seen == [(2, 2)]
    assert list(table.columns) == ["id", "text"]


def test_existing_columns_are_not_overwritten() -> None:
    table = pd.DataFrame({"text": ["좋아요"], "예측": ["내 것"], "예측 (2)": ["이것도"]})
    result = classify_table(table, "text", Rule())
    assert result.prediction_column == "예측 (3)"
    assert result.table["예측"].tolist() == ["내 것"]
    assert result.table["예측 (3)"].tolist() == ["긍정"]


def test_classified_file_can_be_classified_again() -> None:
    table = pd.DataFrame({"text": ["좋아요", "별로"]})
    once = load_table("a.csv", table_file(classify_table(table, "text", Rule()).table, ".csv"))
    twice = classify_table(once, "text", Rule())
    assert twice.table["예측 (2)"].tolist() == once["예측"].tolist()


def test_nothing_to_classify() -> None:
    table = pd.DataFrame({"text": ["", " "]})
    with pytest.raises(InputError, match="no text in any of its 2 rows"):
        classify_table(table, "text", Rule())
    with pytest.raises(InputError, match="no column 'nope'"):
        classify_table(table, "nope", Rule())


def test_csv_for_excel() -> None:
    texts = ["쉼표, 와\n줄바꿈", "=1+1", "😀", "한 칸\r두 줄", "\r\n"]
    table = pd.DataFrame({"text": texts, "확신도": [0.5, None, 1.0, 0.25, 0.75]})
    data = table_file(table, ".csv")
    assert data.startswith(b"\xef\xbb\xbf")
    # A formula has a zero-width space in front, which our own readers take away again.
    again = pd.read_csv(io.BytesIO(data), encoding="utf-8-sig")
    assert again["text"].str.removeprefix("\u200b").tolist() == texts
    assert again["text"].str.startswith("=").sum() == 0
    assert load_table("a.csv", data)["text"].tolist() == texts


def test_numbers_of_a_csv_stay_numbers_and_names_run_nothing() -> None:
    table = pd.DataFrame({"=1+1": ["좋아요", None], "점수": ["-5", "+3"], "값": [-0.5, None]})
    data = table_file(table, ".csv")
    assert data.decode("utf-8-sig") == "\u200b=1+1,점수,값\r\n좋아요,-5,-0.5\r\n,+3,\r\n"
    assert list(table.columns) == ["=1+1", "점수", "값"]
    assert list(load_table("a.csv", data).columns) == ["=1+1", "점수", "값"]


ODD = [
    "=1+1",
    "-_-",
    "\t=1",
    "\r\n글",
    "_x0041_",
    "_x005F_x0041_",
    "_x0041_x0042_",
    "<r>&</r>",
    "\u200b=1",
    "😀",
    "#N/A",
    "가\r나",
]


def test_what_is_written_is_read_again() -> None:
    for suffix in (".xlsx", ".csv"):
        data = table_file(pd.DataFrame({"text": ODD}), suffix)
        assert load_table(f"a{suffix}", data)["text"].tolist() == ODD


def test_what_no_file_can_hold_is_left_out() -> None:
    for suffix in (".xlsx", ".csv"):
        table = pd.DataFrame({"text": ["반\ud83d쪽", "없\x00음"]}, dtype="object")
        data = table_file(table, suffix)
        assert load_table(f"a{suffix}", data)["text"].tolist() == ["반쪽", "없음"]


def test_a_workbook_is_well_formed_whatever_a_text_holds() -> None:
    table = pd.DataFrame({"text": [f"가{chr(code)}나" for code in (*range(32), 0xFFFE, 0xFFFF)]})
    found = load_table("a.xlsx", table_file(table, ".xlsx"))["text"].tolist()
    kept = {"\t", "\n", "\r"}
    assert found == [text if text[1] in kept else "가나" for text in table["text"]]


def test_xlsx_leaves_texts_alone() -> None:
    texts = ["=1+1", "#N/A", "0012", "=HYPERLINK(가)", "😀\n둘째 줄", "종\x0b이", "가" * 40_000]
    table = pd.DataFrame({"text": texts, "확신도": [0.5] * 6 + [None]})
    sheet = load_workbook(io.BytesIO(table_file(table, ".xlsx"))).active
    assert sheet is not None
    cells = [cell.value for cell in sheet["A"]]
    assert cells == ["text", *texts[:5], "종이", "가" * EXCEL_CELL]
    assert all(cell.data_type == "s" for cell in sheet["A"])
    assert [cell.value for cell in sheet["B"]] == ["확신도"] + [0.5] * 6 + [None]


def test_corrections_wait_until_they_are_saved_whichever_rows_are_shown() -> None:
    corrections, labels = Corrections(), ["긍정", "부정", "중립"]
    corrections.take({0: "중립", 1: None})
    corrections.take({100: "부정"})  # another page of the table
    assert corrections.waiting(None, labels) == {0: "중립", 100: "부정"}
    assert corrections.waiting(7, labels) == {0: "중립", 100: "부정"}
    for row, label in corrections.waiting(7, labels).items():
        kept = SavedLabel(label=label, text_id=row + 1, person="지은", request_id=f"r{row}")
        corrections.saved_in(7)[row] = (kept,)
    assert corrections.waiting(7, labels) == {} and corrections.emptied(7) == []
    corrections.take({0: "긍정", 100: None})
    assert corrections.waiting(7, labels) == {0: "긍정"} and corrections.emptied(7) == [100]
    assert corrections.waiting(8, labels) == {0: "긍정"} and corrections.emptied(8) == []
    assert corrections.waiting(8, ["부정"]) == {} and corrections.unknown(["부정"]) == ["긍정"]


def test_a_label_that_was_changed_back_is_saved_again(workplace: Path) -> None:
    """First 중립, then 부정, then 중립 again: the last one holds, and a double click is one act."""
    store = ProjectStore()
    person = Person(name="지은", is_local=True)
    labels = [ProjectLabel(name=name) for name in ("긍정", "부정", "중립")]
    access = store.create(person, NewProject(name="리뷰", labels=labels))
    visit = Visit(store=store, person=person, open_project=None)
    place = place_for(visit, ["긍정", "부정", "중립"], "m")
    row = {0: ("그냥 그래요", POSITIVE)}
    corrections = Corrections()
    for label in ("중립", "부정", "중립"):
        corrections.take({0: label})
        assert save(visit, place, corrections, row, ("m", "리뷰.csv", "k")) == (1, 0)
        assert save(visit, place, corrections, row, ("m", "리뷰.csv", "k")) == (0, 0)
    (text,) = texts_with_votes(access, [1])
    assert [vote.labels for vote in text.votes] == [("중립",)]


class ThreeRows:
    """A classified table whose labels several people without a login give."""

    def __init__(self) -> None:
        self.store = ProjectStore()
        labels = [ProjectLabel(name=name) for name in ("긍정", "부정", "중립")]
        local = Person(name="local", is_local=True)
        self.access = self.store.create(local, NewProject(name="리뷰", labels=labels))
        self.corrections = Corrections()

    def act(self, name: str, cells: dict[int, str | None]) -> tuple[int, int]:
        """Type into cells and save."""
        rows = {row: (f"{row}번째 글", POSITIVE) for row in range(3)}
        self.corrections.take(cells)
        visit = Visit(store=self.store, person=Person(name=name, is_local=True), open_project=None)
        place = place_for(visit, ["긍정", "부정", "중립"], "m")
        return save(visit, place, self.corrections, rows, ("m", "리뷰.csv", "k"))

    def votes(self) -> list[dict[str, str]]:
        """Labels by person, of each row that ever had one."""
        found = texts_with_votes(self.access, range(1, 4))
        by_text = {one.text: one for one in found}
        return [
            {vote.annotator: vote.labels[0] for vote in by_text[text].votes}
            for text in sorted(by_text)
        ]


def test_an_emptied_cell_takes_its_label_back(workplace: Path) -> None:
    """All of its labels, also one given before a name was typed; a colleague's is left alone."""
    table = ThreeRows()
    act, votes = table.act, table.votes
    assert act("local", {0: "부정", 1: "부정"}) == (2, 0)
    assert act("local", {0: "중립"}) == (1, 0)
    assert act("지은", {2: "부정"}) == (1, 0)
    assert act("지은", {0: None, 2: None}) == (0, 2)
    assert votes() == [{}, {"local": "부정"}, {}]
    assert act("지은", {}) == (0, 0)
    # Given again, it holds again.
    assert act("지은", {0: "중립"}) == (1, 0)
    assert votes()[0] == {"지은": "중립"}
    # A colleague's stays, and stops nothing else.
    assert act("민수", {0: None, 2: "부정"}) == (1, 0)
    assert votes() == [{"지은": "중립"}, {"local": "부정"}, {"민수": "부정"}]
    assert act("지은", {}) == (0, 1) and votes()[0] == {}


def test_a_label_from_before_a_name_does_not_stay_beside_the_one_that_replaces_it(
    workplace: Path,
) -> None:
    """A colleague's does, whatever the next person makes of the cell."""
    table = ThreeRows()
    act, votes = table.act, table.votes
    assert act("local", {0: "부정", 1: "부정"}) == (2, 0)
    assert act("지은", {0: "중립"}) == (1, 0)
    assert votes() == [{"지은": "중립"}, {"local": "부정"}]
    for _ in range(2):
        assert act("민수", {0: "긍정"}) == (1, 0)
        assert votes()[0] == {"지은": "중립", "민수": "긍정"}
        assert act("민수", {0: None}) == (0, 1)
        assert votes()[0] == {"지은": "중립"}
    # Without a name again, it is the label of another.
    assert act("local", {0: "부정"}) == (1, 0)
    assert votes()[0] == {"지은": "중립", "local": "부정"}
    assert act("지은", {0: None, 1: None}) == (0, 2)
    assert votes() == [{}, {}]


def test_what_was_not_taken_back_is_the_next_time(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ThreeRows()
    assert table.act("local", {0: "부정"}) == (1, 0)

    def busy(*_: Any) -> None:
        raise InputError("the label database is busy")

    with monkeypatch.context() as patch:
        patch.setattr("malmoi.app.corrections.take_labels_back", busy)
        with pytest.raises(InputError, match="busy"):
            table.act("지은", {0: "중립"})
    assert table.votes() == [{"local": "부정", "지은": "중립"}]
    assert table.act("지은", {}) == (0, 1)
    assert table.votes() == [{"지은": "중립"}]


def test_a_label_that_was_undone_elsewhere_can_be_emptied(workplace: Path) -> None:
    store = ProjectStore()
    person = Person(name="지은", is_local=True)
    labels = [ProjectLabel(name=name) for name in ("긍정", "부정")]
    access = store.create(person, NewProject(name="리뷰", labels=labels))
    visit = Visit(store=store, person=person, open_project=None)
    corrections = Corrections()
    row = {0: ("별로예요", POSITIVE)}

    def act(label: str | None) -> tuple[int, int]:
        corrections.take({0: label})
        place = place_for(visit, ["긍정", "부정"], "m")
        return save(visit, place, corrections, row, ("m", "리뷰.csv", "k"))

    assert act("부정") == act("긍정") == (1, 0)
    (work,) = own_work(access)
    undo = Act(text_id=1, kind="undo", withdraws=work.request_id, request_id="other")
    save_acts(access, [undo])
    # The one before it holds again.
    assert [work.labels for work in own_work(access)] == [("부정",)]
    assert act(None) == (0, 1)
    assert own_work(access) == []


def test_two_tabs_of_one_result_do_not_stop_each_other(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other one types, saves or takes back while this one is at work."""
    store = ProjectStore()
    person = Person(name="지은", is_local=True)
    labels = [ProjectLabel(name=name) for name in ("긍정", "부정")]
    access = store.create(person, NewProject(name="리뷰", labels=labels))
    visit = Visit(store=store, person=person, open_project=None)
    place = place_for(visit, ["긍정", "부정"], "m")
    about = ("m", "리뷰.csv", "k")
    rows = {row: (f"{row}번째 글", POSITIVE) for row in range(2)}
    corrections = Corrections(typed={0: "부정", 1: "부정"})
    assert save(visit, place, corrections, {0: rows[0]}, about) == (1, 0)
    assert corrections.waiting(access.project_id, place.labels) == {1: "부정"}
    assert save(visit, place, corrections, rows, about) == (1, 0)

    def in_both_tabs(*given: Any) -> None:
        take_labels_back(*given)
        corrections.saved_in(access.project_id).clear()

    monkeypatch.setattr("malmoi.app.corrections.take_labels_back", in_both_tabs)
    corrections.take({0: None, 1: None})
    assert save(visit, place, corrections, {}, about) == (0, 2)
    assert own_work(access) == []


def test_the_file_has_a_column_of_the_given_labels() -> None:
    table = pd.DataFrame({"글": ["하나", "둘"]})
    assert corrected_table(table, Corrections(), "맞는 라벨") is table
    given = corrected_table(table, Corrections(typed={1: "부정"}), "맞는 라벨")
    assert given["맞는 라벨"].tolist() == [None, "부정"]


def test_only_what_was_typed_is_taken_over() -> None:
    """Another tab of the same person may have typed into rows that this one shows as they were."""
    table = pd.DataFrame({"글": ["하나", "", "셋"]}, index=[4, 5, 6])
    corrections = Corrections()
    shown = ShownRows(named="", rows=table.index.tolist(), cells={}, right="right", editor="editor")
    state = {"editor": {"edited_rows": {0: {"right": "부정"}, 1: {"right": "긍정"}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(st, "session_state", state)
        take_edits(corrections, shown, table["글"].tolist())
        assert corrections.typed == {4: "부정"}, "nothing stands in the second row"
        corrections.take({4: "중립", 6: "긍정"})  # in the other tab
        state["editor"]["edited_rows"][2] = {"right": "중립"}
        take_edits(corrections, shown, table["글"].tolist())
        assert corrections.typed == {4: "중립", 6: "중립"}
        state["editor"]["edited_rows"][0] = {"right": None}
        take_edits(corrections, shown, table["글"].tolist())
    assert corrections.typed == {6: "중립"}
