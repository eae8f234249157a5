"""Tables with names and rows that are nearly like others: told apart, or refused in one line."""

import json
import unicodedata
from pathlib import Path

import pandas as pd
import pytest

from malmoi.errors import InputError
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_whole_rows
from malmoi.text.reading.sources import find_sources
from tests.malmoi.text.reading.test_strangers_files import (
    book,
    notes_of,
    read,
    refusal,
    texts,
    write,
)


def test_records_of_several_rows_and_notes_below_are_not_doubled(tmp_path: Path) -> None:
    """A row that lies in merged cells alone is no row; what is wide says nothing of its columns."""
    rows: list[list[object]] = [["라벨", "리뷰"], ["긍정", "첫째 글"], [], ["부정", "둘째 글"], []]
    path = write(tmp_path / "a.xlsx", book({"장": rows}, {"장": ["A2:A3", "B2:B3", "A4:A6"]}))
    assert read(path) == [("첫째 글", "긍정"), ("둘째 글", "부정")]
    below: list[list[object]] = [*rows[:2], ["※ 임의로 뽑았음", None], ["끝", None]]
    noted = write(tmp_path / "b.xlsx", book({"장": below}, {"장": ["A3:B4"]}))
    assert "※ 임의로 뽑았음" not in texts(noted)


@pytest.mark.parametrize("slipped", [["싫어요 정말로", 1, None], [None, 2, "싫어요 정말로"]])
def test_a_row_that_has_slipped_inside_the_table_is_refused(
    tmp_path: Path, slipped: list[object]
) -> None:
    rows = [["번호", "리뷰", "별점"], *[[n, f"좋아요 {n}", n % 5] for n in range(9)]]
    rows.insert(3, slipped)
    path = write(tmp_path / "a.xlsx", book({"장": rows}))
    assert "a.xlsx:4: expected a text in column 2" in refusal(path)
    assert len(read(path, skip_bad_rows=True)) == 9
    lines = "\n".join(",".join("" if c is None else str(c) for c in row) for row in rows)
    assert "a.csv:4: expected a text in column 2" in refusal(write(tmp_path / "a.csv", lines))
    # A text may be a number, and a number be missing.
    rows[3] = ["13", "5", "무응답"]
    lines = "\n".join(",".join(map(str, row)) for row in rows)
    assert texts(write(tmp_path / "b.csv", lines))[2] == "5"


def test_quotes_around_all_fields_of_tabs(tmp_path: Path) -> None:
    lines = ['"내용"\t"라벨"', '"가, 나"\t"0"', '"다\t라"\t"1"']
    path = write(tmp_path / "a.csv", "\n".join(lines))
    assert "a.csv:3: expected 2 fields" in refusal(path)
    assert read(path, skip_bad_rows=True) == [("가, 나", "0")]


def test_a_table_of_bad_rows_alone_is_not_called_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '"글"월\n"가"나\n')
    assert "none that can be read" in refusal(path)
    write(tmp_path / "b.csv", "text\n글 하나\n")
    assert "a.csv" in refusal(tmp_path)


@pytest.mark.parametrize("count", ["3개", "[12]", "999+", "1.2만", "12건", "2024. 1. 2. 오후 3:20"])
def test_counts_and_times_with_their_words_are_no_text(tmp_path: Path, count: str) -> None:
    path = write(tmp_path / "a.csv", f"제목,댓글,조회\n첫째,{count},12\n둘째,{count},3\n")
    assert "holds numbers" in refusal(path)


def test_what_annotators_write_again_and_again_is_no_text(tmp_path: Path) -> None:
    rows = "".join(f"짧은 글 {n},긍정,두 사람의 의견이 달라 다시 보았음\n" for n in range(9))
    path = write(tmp_path / "a.csv", f"문장,라벨,comment\n{rows}")
    assert texts(path)[0] == "짧은 글 0"
    assert "'comment' (repeats itself)" in notes_of(path)[1]


def test_names_that_look_the_same_are_one(tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "내용")
    for second in (decomposed, "내용 "):
        path = write(tmp_path / "a.csv", f"내용,{second}\n첫째 답,둘째 답\n셋째 답,넷째 답\n")
        assert "1, 2" in refusal(path)
        assert texts(path, text_column="2") == ["둘째 답", "넷째 답"]
    labels = write(tmp_path / "b.csv", "내용,라벨,라벨\n첫째 답,긍정,부정\n")
    assert "2, 3" in refusal(labels, need_label=True) and "--label-column" in refusal(
        labels, need_label=True
    )
    assert texts(labels) == ["첫째 답"]
    assert read(labels, label_column="3") == [("첫째 답", "부정")]


@pytest.mark.parametrize(
    "again", ["제목,본문,", "제목, 본문", "title,본문", unicodedata.normalize("NFD", "제목,본문")]
)
def test_a_header_written_again_a_little_otherwise_is_no_row(tmp_path: Path, again: str) -> None:
    first = "Title,본문" if again.startswith("title") else "제목,본문"
    path = write(tmp_path / "a.csv", f"{first}\n가,하나\n{again}\n나,둘\n")
    assert texts(path) == ["하나", "둘"]
    rows: list[list[object]] = [first.split(","), ["가", "하나"], [*again.split(","), None]]
    assert texts(write(tmp_path / "b.xlsx", book({"장": [*rows, ["나", "둘", None]]}))) == [
        *("하나", "둘")
    ]


@pytest.mark.parametrize("orient", ["columns", "index", "list"])
def test_json_by_columns_is_refused_and_says_how_to_write_it(tmp_path: Path, orient: str) -> None:
    frame = pd.DataFrame({"text": ["하나", "둘"], "label": [1, 0]})
    content = (
        json.dumps(frame.to_dict("list")) if orient == "list" else frame.to_json(orient=orient)
    )  # type: ignore[call-overload]
    assert "orient='records'" in refusal(write(tmp_path / "a.json", content))
    write(tmp_path / "b.csv", "text\n글 하나\n")
    assert "a.json" in refusal(tmp_path)
    assert texts(write(tmp_path / "c.json", frame.to_json(orient="records"))) == ["하나", "둘"]


def test_a_label_that_prodigy_had_rejected_is_none(tmp_path: Path) -> None:
    rows = [
        {"text": f"글 {n}", "label": "긍정", "answer": answer, "_task_hash": n}
        for n, answer in enumerate(("accept", "reject", "ignore"))
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert "a.jsonl:2" in refusal(path, need_label=True)
    assert read(path, need_label=True, skip_bad_rows=True) == [("글 0", "긍정")]
    assert len(texts(path)) == 3


def test_a_question_over_several_lines_is_told_on_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '때,"Q1. 가장\n좋았던 점은?",점수\n1,발표가 많아서,5\n')
    assert "Q1. 가장 좋았던 점은?" in refusal(path)
    assert texts(path, text_column="Q1. 가장 좋았던 점은?") == ["발표가 많아서"]


def test_whole_rows_are_looked_for_as_records_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "2024년 모음\n리뷰,평점\n좋아요,5\n")
    with pytest.raises(InputError, match="looks like the header"):
        list(iter_whole_rows(find_sources(path), ReadOptions()))
    folder = tmp_path / "b"
    write(folder / "a.csv", "text\n글 하나\n")
    write(folder / "settings.json", '{"threads": 3}')
    notes = ReadingNotes()
    rows = list(iter_whole_rows(find_sources(folder), ReadOptions(), notes=notes))
    assert [row.text for row in rows] == ["글 하나"] and len(notes.left_out) == 1


def test_names_with_characters_that_show_nothing_are_known(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "\u200b리뷰,분\u2060류\n좋아요,긍정\n")
    assert read(path) == [("좋아요", "긍정")]
