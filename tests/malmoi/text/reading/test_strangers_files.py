"""Files in the shapes in which people keep them: the right texts, or the line that helps."""

import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from malmoi.errors import InputError
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_records, iter_whole_rows, load_table
from malmoi.text.reading.sources import find_sources


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def book(
    sheets: dict[str, list[list[object]]], merged: dict[str, list[str]] | None = None
) -> bytes:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(row)
        for cells in (merged or {}).get(title, []):
            sheet.merge_cells(cells)
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def read(path: Path, **options: Any) -> list[tuple[str, str | None]]:
    label = options.pop("label_column", None)
    need = options.pop("need_label", False)
    records = iter_records(
        path, options=ReadOptions(**options), label_column=label, need_label=need
    )
    return [(record.text, record.label) for record in records]


def texts(path: Path, **options: Any) -> list[str]:
    return [text for text, _ in read(path, **options)]


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    line = str(caught.value)
    assert "\n" not in line
    return line


def notes_of(path: Path, **options: Any) -> tuple[ReadingNotes, str]:
    said: list[str] = []
    notes = ReadingNotes(say=said.append)
    list(iter_records(path, options=ReadOptions(**options), notes=notes))
    return notes, "\n".join(said)


HEADER: list[object] = ["no", "text", "score"]


def test_sheets_of_one_header_are_one_table(tmp_path: Path) -> None:
    sheets = {
        "표지": [["2024년 모음"], ["만든 사람", "아무개"]],
        "하나": [HEADER, [1, "첫째 장의 글", 9]],
        "둘": [HEADER, [1, "둘째 장의 글", 3], [2, "셋째 글", 4]],
        "다른 표": [["지점", "매출"], ["가", 3]],
        "빈 장": [],
    }
    path = write(tmp_path / "a.xlsx", book(sheets))
    assert texts(path) == ["첫째 장의 글", "둘째 장의 글", "셋째 글"]
    assert [record.id for record in iter_records(path)] == [
        "a.xlsx:하나:2",
        "a.xlsx:둘:2",
        "a.xlsx:둘:3",
    ]
    notes, said = notes_of(path)
    assert notes.sources[0].sheets == ["하나", "둘"]
    assert [name for name, _ in notes.sources[0].sheets_left_out] == ["표지", "다른 표"]
    assert all(name in said for name in ("하나", "둘", "표지", "다른 표"))
    assert texts(path, sheet="둘") == ["둘째 장의 글", "셋째 글"]
    assert next(record.id for record in iter_records(path, options=ReadOptions(sheet="둘"))) == (
        "a.xlsx:2"
    )
    assert "표지, 하나, 둘, 다른 표, 빈 장" in refusal(path, sheet="셋")
    assert load_table("a.xlsx", path.read_bytes())["text"].tolist() == texts(path)


def test_a_book_without_the_columns_names_its_sheets(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xlsx", book({"가": [["x"], [1]], "나": [["y", "z"], [1, 2]]}))
    assert "가: x; 나: y, z" in refusal(path)


def test_merged_cells_hold_for_each_of_their_rows(tmp_path: Path) -> None:
    rows: list[list[object]] = [["라벨", "리뷰"]]
    rows += [[label, f"글 {n}"] for n, label in enumerate(("긍정", None, None, "부정", None))]
    path = write(tmp_path / "a.xlsx", book({"장": rows}, {"장": ["A2:A4", "A5:A6"]}))
    assert [label for _, label in read(path)] == ["긍정", "긍정", "긍정", "부정", "부정"]


def test_a_row_that_has_moved_is_refused_and_an_unnamed_column_is_not(tmp_path: Path) -> None:
    rows: list[list[object]] = [["리뷰", "라벨"], *[["글", "긍정"]] * 5, ["쪼개진", "글", "부정"]]
    path = write(tmp_path / "a.xlsx", book({"장": rows}))
    assert "a.xlsx:7: expected 2 cells as in the header" in refusal(path)
    assert len(read(path, skip_bad_rows=True)) == 5
    remarks: list[list[object]] = [["리뷰", "라벨"], *[["글", "긍정", "메모"]] * 5]
    assert len(read(write(tmp_path / "b.xlsx", book({"장": remarks})))) == 5


# Tables that are called .txt: name of the case, content, options, texts, labels if asked for.
TABLES_CALLED_TXT = [
    ("text, tab, rating", "연기가 좋았어요\t9\n지루했어요\t2\n그저 그래요\t5\n", "연지그", "925"),
    ("label, tab, text", "0\t창가 자리\n3\t내일 회의\n4\t문 닫아 주세요\n", "창내문", "034"),
    ("text, bar, label", "좋아요 정말|1\n싫어요 정말|0\n보통이에요|1\n", "좋싫보", "101"),
    ("csv", ',name,text,score\n0,가,"좋고, 좋은",9\n1,나,"음, 글쎄",3\n', "좋음", None),
    ("one-hot", "".join(f"글 하나 {n}\t0\t1\t0\n" for n in range(9)), "글" * 9, None),
    ("unknown header", "번호\t글월\n1\t첫째 글\n2\t둘째 글\n", "첫둘", "12"),
    ("known header", "id\tdocument\tlabel\n1\t좋다\t1\n2\t싫다\t0\n", "좋싫", "10"),
]


def test_a_table_called_txt_is_read_as_one(tmp_path: Path) -> None:
    for content, starts, labels in [case[1:] for case in TABLES_CALLED_TXT]:
        path = write(tmp_path / "a.txt", content)
        assert "".join(text[0] for text in texts(path)) == starts
        assert "\t" not in "".join(texts(path)) and "|" not in "".join(texts(path))
        if labels is not None:
            assert "".join(label or "" for _, label in read(path, need_label=True)) == labels


def test_a_table_whose_texts_cannot_be_told_says_what_it_looks_like(tmp_path: Path) -> None:
    rows = "".join(f"질문이 {n}번째\t답도 여러 가지 {n}\n" for n in range(9))
    path = write(tmp_path / "a.txt", rows)
    line = refusal(path)
    assert "2 columns parted by tabs" in line and "--text-column" in line and "--delimiter" in line
    assert texts(path, text_column="2", no_header=True)[0] == "답도 여러 가지 0"
    assert texts(path, delimiter="none")[0] == "질문이 0번째\t답도 여러 가지 0"


def test_plain_texts_stay_texts(tmp_path: Path) -> None:
    lines = [
        "쉼표가, 있는, 글",
        "막대 | 하나",
        "탭\t하나",
        "아무것도 없는 글",
        "여러, 쉼표, 가, 있다",
    ]
    path = write(tmp_path / "a.txt", "\n".join(lines))
    assert texts(path) == lines


def test_the_delimiter_is_found(tmp_path: Path) -> None:
    for name, content in (
        ("a.csv", "content\tlable\n가, 나\t0\n다\t1\n"),
        ("a.csv", "content;lable\n가, 나;0\n다;1\n"),
        ("a.csv", 'content,lable\n"가, 나",0\n다,1\n'),
        ("a.csv", "content|lable\n가, 나|0\n다|1\n"),
        ("a.tsv", 'content,lable\n"가, 나",0\n다,1\n'),
    ):
        assert read(write(tmp_path / name, content)) == [("가, 나", "0"), ("다", "1")]


def test_a_delimiter_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "글월^점수\n하나^1\n")
    assert texts(path, delimiter="^", text_column="글월") == ["하나"]
    assert "--delimiter" in refusal(path, delimiter="ab")


def test_a_column_of_numbers_is_no_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "번호,댓글,내용\n1,17,긴 글입니다\n2,3,또 긴 글\n")
    notes, said = notes_of(path)
    assert texts(path) == ["긴 글입니다", "또 긴 글"]
    assert notes.sources[0].text == "내용"
    assert notes.sources[0].passed_over == (("댓글", "holds numbers"),)
    assert "'내용'" in said and "'댓글'" in said


def test_the_fullest_and_longest_column_is_taken(tmp_path: Path) -> None:
    for header, row, taken in (
        (
            "번호,문장,라벨,comment",
            "1,아주 길고 자세한 문장입니다,긍정,짧은 말",
            "아주 길고 자세한 문장입니다",
        ),
        ("text,content", ",내용이 여기 있다", "내용이 여기 있다"),
        ("comment,url,본문", "http://a.b/c,x,여기가 글이다", "여기가 글이다"),
        ("리뷰 내용,별점", "띄어 쓴 이름,5", "띄어 쓴 이름"),
        ("Review_Text,n", "대문자 이름,5", "대문자 이름"),
        ("utterance,n", "발화 하나,5", "발화 하나"),
    ):
        path = write(tmp_path / "a.csv", f"{header}\n" + f"{row}\n" * 3)
        assert set(texts(path)) == {taken}


def test_another_column_of_labels_is_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", "번호,내용,감정,분류\n1,긴 글입니다,긍정,배송\n2,또 긴 글,부정,값\n"
    )
    notes, said = notes_of(path)
    assert notes.sources[0].label == "감정"
    assert [name for name, _ in notes.sources[0].labels_passed_over] == ["분류"]
    assert said.index("'감정'") < said.index("'분류'")
    named = ReadingNotes()
    list(iter_records(path, label_column="분류", notes=named))
    assert named.sources[0].labels_passed_over == ()


def test_columns_of_one_name_are_told_by_their_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "설문,내용,내용\n1,첫째 답,둘째 답\n2,셋째 답,넷째 답\n")
    assert "2, 3" in refusal(path)
    assert texts(path, text_column="3") == ["둘째 답", "넷째 답"]


def test_files_without_texts_are_left_out_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "text\n글 하나\n")
    write(tmp_path / "b.csv", "text\n")
    write(tmp_path / "c.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    write(tmp_path / "~$d.xlsx", b"\x05user")
    write(tmp_path / "settings.json", '{"threads": 3}')
    notes, said = notes_of(tmp_path)
    assert texts(tmp_path) == ["글 하나"]
    assert len(notes.left_out) == 3 and "left out 3 files" in said
    assert "git lfs pull" in refusal(tmp_path / "c.txt")
    assert "found none" in refusal(tmp_path / "b.csv")


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    rows = ["text,n", *(f"글 {n},1" + ",2" * (n % 10 == 3) for n in range(100))]
    write(tmp_path / "a.csv", "\n".join(rows))
    write(tmp_path / "b.parquet", b"no parquet")
    line = refusal(tmp_path)
    assert "11 files and rows" in line and "b.parquet" in line and "a.csv:5" in line
    assert "and 5 more" in line and "--skip-bad-rows" in line
    # Files are never left out so.
    assert "b.parquet" in refusal(tmp_path, skip_bad_rows=True)
    _, said = notes_of(tmp_path / "a.csv", skip_bad_rows=True)
    assert len(texts(tmp_path / "a.csv", skip_bad_rows=True)) == 90
    assert "10 rows that could not be read" in said


def test_a_lone_quote_costs_its_row_and_no_other(tmp_path: Path) -> None:
    rows = [f"차,A{n},좋은 차입니다 {n}" for n in range(200)]
    rows[50] = '차,A50,"그는 좋다" 라고 했다'
    rows[120] = '차,A120,"닫히지 않는 따옴표'
    path = write(tmp_path / "a.csv", "\n".join(["maker,car,comment", *rows]))
    line = refusal(path)
    assert "a.csv:52" in line and "a.csv:122" in line
    found = texts(path, skip_bad_rows=True)
    assert len(found) == 198 and found[-1] == "좋은 차입니다 199"


def test_last_fields_that_are_missing_are_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,text,label,note\n1,가나,긍정\n2,다라,부정,말\n3,마바\n")
    assert read(path) == [("가나", "긍정"), ("다라", "부정"), ("마바", None)]
    # The halves of a row that was cut in two by a line break are no rows.
    broken = write(tmp_path / "b.csv", "id,text,label\n1,가나,1\n2,앞\n뒤,0\n3,다라,1\n")
    assert "b.csv:4" in refusal(broken)


JSON_FILES = [
    ("array", json.dumps([{"발화": "하나", "label": 6}, {"발화": "둘", "label": 2}], indent=1)),
    ("lines called .json", '{"발화": "하나", "label": 6}\n{"발화": "둘", "label": 2}\n'),
    (
        "under a key",
        json.dumps({"data": [{"발화": "하나", "label": 6}, {"발화": "둘", "label": 2}]}),
    ),
    (
        "nested",
        json.dumps([{"a": {"발화": "하나"}, "label": 6}, {"a": {"발화": "둘"}, "label": 2}]),
    ),
]


def test_json_in_all_its_forms(tmp_path: Path) -> None:
    for content in [case[1] for case in JSON_FILES]:
        path = write(tmp_path / "a.json", content)
        column = "a.발화" if '"a"' in content else None
        assert read(path, text_column=column) == [("하나", "6"), ("둘", "2")]


def test_a_long_array_is_streamed(tmp_path: Path) -> None:
    rows = [{"text": f"글 {n}" * 50, "label": n} for n in range(20_000)]
    path = write(tmp_path / "a.json", json.dumps(rows, ensure_ascii=False, indent=1))
    assert path.stat().st_size > 3 << 20
    records = list(iter_records(path))
    assert [record.text for record in records] == [row["text"] for row in rows]
    assert records[-1].line == 2 + 4 * 19_999
    broken = path.read_text(encoding="utf-8")[:-100]
    assert "b.json:79998" in refusal(write(tmp_path / "b.json", broken))


def test_labels_in_a_list_and_missing_texts(tmp_path: Path) -> None:
    lines = ['{"text": "가", "label": ["긍정"]}', '{"text": NaN, "label": 1}']
    lines += ['{"text": "나", "label": ["a", "b"]}', '{"text": null, "label": []}']
    path = write(tmp_path / "a.jsonl", "\n".join(lines))
    assert read(path) == [("가", "긍정"), ("", "1"), ("나", '["a", "b"]'), ("", None)]


def test_labels_of_any_shape_are_handed_on(tmp_path: Path) -> None:
    """Whoever needs labels judges them; who does not is not stopped by them."""
    row = {"text": "가", "label": [{"value": {"choices": ["긍정"]}}]}
    path = write(tmp_path / "a.jsonl", json.dumps(row))
    ((text, label),) = read(path)
    assert text == "가" and json.loads(label or "") == row["label"]


def test_a_table_without_a_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "웃음이 나는 하루였습니다\t27\n아무것도 하기 싫어요\t4,25\n")
    assert "--no-header" in refusal(path)
    assert texts(path, no_header=True) == ["웃음이 나는 하루였습니다", "아무것도 하기 싫어요"]
    assert read(path, no_header=True, text_column="1", label_column="2")[1][1] == "4,25"


def test_a_column_name_is_shown_whole(tmp_path: Path) -> None:
    name = "이번 학기 강의에서 가장 좋았던 점과 아쉬웠던 점을 자유롭게 적어 주세요. (필수)"
    path = write(tmp_path / "a.csv", f'때,"{name}",별점\n1,발표가 많아서 좋았습니다,5\n')
    assert name in refusal(path)
    assert texts(path, text_column=name) == ["발표가 많아서 좋았습니다"]


def test_uneven_rows_below_a_known_header_are_told_and_not_taken_for_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "id,text,label\n0,배송이 빨라요, 정말,0\n1,별로,1\n2,음,0\n")
    assert "a.txt:2: expected 3 fields" in refusal(path)
    assert texts(path, skip_bad_rows=True) == ["별로", "음"]


def test_a_header_of_words_above_words(tmp_path: Path) -> None:
    rows = "".join(f"배송이 빨라요 정말 {n}\t{'긍정' if n % 2 else '부정'}\n" for n in range(15))
    path = write(tmp_path / "a.txt", f"문장내용\t감성\n{rows}")
    assert len(texts(path)) == 15 and "문장내용" not in texts(path)
    numbers = write(tmp_path / "b.txt", "N/A\t좋아요 첫째\n1\t좋아요 둘째\n2\t싫어요 셋째\n")
    assert texts(numbers) == ["좋아요 첫째", "좋아요 둘째", "싫어요 셋째"]


def test_a_trailing_tab_is_no_column(tmp_path: Path) -> None:
    rows = "".join(f"좋아요 정말로 {n}\t{n % 2}\t\n" for n in range(15))
    path = write(tmp_path / "a.txt", rows)
    assert [label for _, label in read(path, need_label=True)][:3] == ["0", "1", "0"]


def test_of_two_tables_in_a_book_the_longer_is_read(tmp_path: Path) -> None:
    sheets = {
        "설명": [["컬럼", "내용"], ["리뷰", "손님이 쓴 긴 글입니다"]],
        "데이터": [["리뷰", "평점"], *[[f"글 하나 {n}", n] for n in range(9)]],
    }
    path = write(tmp_path / "a.xlsx", book(sheets))
    assert len(texts(path)) == 9
    assert "설명" in notes_of(path)[1]
    counts = {"표": [["분류", "댓글"], ["가", 3]], "데이터": sheets["데이터"]}
    assert len(texts(write(tmp_path / "b.xlsx", book(counts)))) == 9


def test_a_header_over_two_rows_is_refused(tmp_path: Path) -> None:
    rows: list[list[object]] = [["번호", "리뷰", None, "라벨"], [None, "제목", "내용", None]]
    rows += [[n, f"제목 {n}", f"긴 내용 {n}", "긍정"] for n in range(3)]
    path = write(tmp_path / "a.xlsx", book({"장": rows}, {"장": ["B1:C1"]}))
    assert "keep one row of names" in refusal(path)
    with pytest.raises(InputError, match="keep one row of names"):
        list(iter_whole_rows(find_sources(path), ReadOptions()))


def test_a_title_above_the_header_is_named(tmp_path: Path) -> None:
    for name in ("a.csv", "a.xlsx"):
        rows: list[list[object]] = [["2024년 1월 모음", ""], ["리뷰", "평점"], ["좋아요", 5]]
        lines = "\n".join(",".join(map(str, row)) for row in rows)
        path = write(tmp_path / name, book({"장": rows}) if name == "a.xlsx" else lines)
        assert "looks like the header: delete what is above" in refusal(path)


SAID: list[list[object]] = [
    ["번호", "문의내용", "분류"],
    *[[n, f"물어봅니다 {n}", "배송"] for n in range(3)],
]
TITLE: list[list[object]] = [["6월 문의 모음", None, None], []]


def test_a_title_on_one_of_several_sheets_is_no_reason_to_leave_it_out(tmp_path: Path) -> None:
    for titled, options in (
        # The header that the other sheet has, with fewer rows than it.
        ([*TITLE, *SAID[:2]], {"text_column": "문의내용"}),
        ([*TITLE, *SAID[:2]], {"text_column": "문의내용", "label_column": "분류"}),
        # Another with the columns, which would be read for its rows.
        ([*TITLE, [*SAID[0], "비고"], *SAID[1:], *SAID[1:]], {"text_column": "문의내용"}),
        ([*TITLE, ["리뷰", "평점"], *[[f"좋아요 {n}", n] for n in range(9)]], {}),
    ):
        rest = SAID if options else [["리뷰", "번호"], *[[f"물어봅니다 {n}", n] for n in range(3)]]
        path = write(tmp_path / "a.xlsx", book({"5월": rest, "6월": titled}, {"6월": ["A1:C1"]}))
        line = refusal(path, **options)
        assert "a.xlsx, sheet 6월:" in line and "--sheet" in line
        assert "row 1 below it looks like the header: delete what is above" in line
        assert len(read(path, sheet="5월", **options)) == 3
        assert "looks like the header" in refusal(path, sheet="6월", **options)


def test_sheets_with_a_title_and_other_columns_are_left_out(tmp_path: Path) -> None:
    sheets = {
        "표지": [["문의 모음"], ["만든 사람", "아무개"], ["내용", "손님이 물은 것"]],
        "코드": [["코드표"], ["코드", "내용"], ["가", "배송을 물음"], ["나", "값을 물음"]],
        "집계": [["집계", None], ["분류", "건수"], *[[f"{n}번", n] for n in range(9)]],
        "5월": [["번호", "내용"], *[[n, f"물어봅니다 {n}"] for n in range(4)]],
    }
    path = write(tmp_path / "a.xlsx", book(sheets))
    assert len(texts(path)) == len(texts(path, text_column="내용")) == 4


def test_a_cell_that_is_an_error_is_refused_by_its_row(tmp_path: Path) -> None:
    for error in ("#N/A", "#DIV/0!", "#REF!"):
        rows: list[list[object]] = [["리뷰", "라벨", "값"], ["좋아요", "긍정", error]]
        rows += [
            ["싫어요", error, 1],
            [error, "부정", 2],
            ["별로", "부정", 3],
            ["또", error, 4],
            [None, None, 5],
        ]
        # Merged cells have the value of their first, and so its error.
        path = write(tmp_path / "a.xlsx", book({"장": rows}, {"장": ["B6:B7"]}))
        assert f"a.xlsx:4: expected a value, found the error {error}" in refusal(path)
        line = refusal(path, need_label=True)
        assert line.startswith("4 rows cannot be read: ") and "--skip-bad-rows" in line
        assert all(f"a.xlsx:{number}: expected a value" in line for number in (3, 4, 6, 7))
        left = [("좋아요", "긍정"), ("별로", "부정")]
        assert read(path, need_label=True, skip_bad_rows=True) == left
        plain = write(tmp_path / "a.csv", f"리뷰,라벨\n싫어요,{error}\n")
        assert read(plain, need_label=True) == [("싫어요", error)]


def test_a_file_behind_another_repeats_mark_and_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "리뷰,평점\n좋아요,5\n\ufeff리뷰,평점\n싫어요,1\n")
    assert texts(path) == ["좋아요", "싫어요"]
    quoted = '\ufeff"리뷰","평점"\n"좋아요","5"\n'
    assert texts(write(tmp_path / "b.csv", quoted + quoted)) == ["좋아요", "좋아요"]


def test_a_document_with_something_about_it_is_its_own_text(tmp_path: Path) -> None:
    inner = [{"text": "서울", "label": "LC"}]
    path = write(tmp_path / "a.json", json.dumps({"text": "서울에서 만났다", "entities": inner}))
    assert texts(path) == ["서울에서 만났다"]
    listed = write(tmp_path / "b.json", json.dumps({"rows": [{"text": "하나"}]}))
    assert texts(listed) == ["하나"] and "'rows'" in notes_of(listed)[1]


def test_arrays_one_behind_another_and_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '[{"text": "하나"}, {"text": "둘"}]\n[{"text": "셋"}]\n')
    records = list(iter_records(path))
    assert [record.text for record in records] == ["하나", "둘", "셋"]
    assert [record.id for record in records] == ["a.jsonl:1", "a.jsonl:1.1", "a.jsonl:2"]
    broken = write(tmp_path / "b.json", '[{"text": "하나"}]\n{"text": "둘"}\n')
    assert "b.json:2" in refusal(broken)


def test_a_folder_of_json_is_read_alike_for_every_column(tmp_path: Path) -> None:
    """A file that lacks one of them is an error, or rows would lie beside others' labels."""
    write(tmp_path / "a.json", '[{"text": "하나", "label": "가"}]')
    write(tmp_path / "b.json", '[{"text": "둘"}]')
    assert texts(tmp_path) == ["하나", "둘"]
    assert "b.json" in refusal(tmp_path, need_label=True)


def test_rows_of_a_fetched_file_can_be_left_out_too(tmp_path: Path) -> None:
    rows = "id\tdocument\tlabel\n1\t좋다\t1\n2\t싫다\t0\t9\n"
    write(tmp_path / "ratings_train.txt", rows)
    layout = {"texts": ["document"], "label": "label", "names": ["부정", "긍정"]}
    file = {"url": "", "sha256": "", "size": 0}
    write(tmp_path / "SOURCE.json", json.dumps({"files": {"ratings_train.txt": file}}))
    assert "delete it and fetch again" in refusal(tmp_path)  # it does not say how the file is read
    file["layout"] = layout  # type: ignore[assignment]
    write(tmp_path / "SOURCE.json", json.dumps({"files": {"ratings_train.txt": file}}))
    assert "--skip-bad-rows" in refusal(tmp_path)
    assert read(tmp_path, skip_bad_rows=True) == [("좋다", "긍정")]
    assert notes_of(tmp_path, skip_bad_rows=True)[0].sources[0].text == "document"


def test_a_key_that_holds_an_object_names_what_is_inside(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"review": {"text": "좋아요"}}\n')
    assert "review.text" in refusal(path)
    assert texts(path, text_column="review.text") == ["좋아요"]


def test_decomposed_names_of_a_mac_are_the_same_names(tmp_path: Path) -> None:
    header = unicodedata.normalize("NFD", "번호,리뷰")
    assert texts(write(tmp_path / "a.csv", f"{header}\n1,좋아요\n")) == ["좋아요"]


def test_pointers_of_any_name_and_files_of_nothing_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "text\n글 하나\n")
    for name in ("b.parquet", "c.xlsx", "d.csv.gz"):
        write(tmp_path / name, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    write(tmp_path / "e.csv", "")
    assert texts(tmp_path) == ["글 하나"]
    assert len(notes_of(tmp_path)[0].left_out) == 4
    assert "git lfs pull" in refusal(tmp_path / "b.parquet")


# The published shapes: what each must give, or the words of the line that helps.
SHAPES: dict[str, tuple[dict[str, Any], int | str]] = {
    "01_three_sheets.xlsx": ({}, 5),
    "02_csv_called.txt": ({}, 2),
    "03_text_tab_rating.txt": ({}, 2),
    "05_label_tab_text.txt": ({}, 3),
    "06_unknown_header.txt": ({}, "--text-column"),
    "08_comment_count.csv": ({}, 3),
    "09_folder": ({}, 1),
    "10_folder": ({}, 1),
    "11_doccano.jsonl": ({}, 2),
    "12_tabs.csv": ({}, 2),
    "14_quote_inside.csv": ({}, "--skip-bad-rows"),
    "16_header_again.csv": ({}, 3),
    "17_nan.jsonl": ({}, 2),
    "19_same_name_twice.csv": ({}, "--text-column"),
    "20_shifted_row.xlsx": ({}, "20_shifted_row.xlsx:3"),
    "21_merged_labels.xlsx": ({"need_label": True}, 4),
    "23_array.json": ({}, 2),
    "24_kakaotalk.txt": ({}, 2),
    "30_form.csv": ({}, "(필수)"),
    "31_headerless.tsv": ({"no_header": True}, 2),
}


NESTED = {
    "document": [
        {"topic": "음식", "utterance": [{"who": "A", "form": "뭐 먹을까요"}, {"form": "국밥이요"}]},
        {"topic": "날씨", "utterance": [{"who": "B", "form": "비가 온대요"}]},
    ]
}


@pytest.mark.parametrize("path", ["utterance.form", "document.utterance.form"])
def test_texts_inside_lists_are_rows_by_their_path(path: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", json.dumps(NESTED, ensure_ascii=False))
    assert texts(file, text_column=path) == ["뭐 먹을까요", "국밥이요", "비가 온대요"]
    assert read(file, text_column="utterance.form", label_column="topic")[1:] == [
        ("국밥이요", "음식"),
        ("비가 온대요", "날씨"),
    ]


def test_paths_to_texts_are_listed_with_an_example(tmp_path: Path) -> None:
    several = {"meta": [{"name": "x"}], **NESTED}
    for content in (json.dumps(NESTED), json.dumps(several)):
        path = write(tmp_path / "a.json", content)
        assert "utterance.form (뭐 먹을까요)" in refusal(path)
        assert "utterance.form" in refusal(path, text_column="utterance.from")
    lists = write(tmp_path / "b.jsonl", '{"sentences": ["가나 다라", "마바 사아"]}\n')
    assert texts(lists, text_column="sentences") == ["가나 다라", "마바 사아"]


@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
@pytest.mark.parametrize("ending", ["txt", "csv", "tsv", "jsonl"])
def test_rows_with_bytes_that_are_no_text_can_be_left_out(
    ending: str, encoding: str, tmp_path: Path
) -> None:
    row = {"jsonl": '{{"text": "{}", "n": 1}}', "csv": "{},1", "tsv": "{}\t1", "txt": "{}"}[ending]
    lines = [{"csv": "text,n", "tsv": "text\tn"}[ending]] if ending in ("csv", "tsv") else []
    lines += [row.format(text) for text in ("첫 글입니다", "가운데 글X입니다", "끝 글입니다")]
    data = "\n".join(lines).encode(encoding).replace(b"X", b"\xff")
    path = write(tmp_path / f"a.{ending}", data)
    assert f"a.{ending}:{len(lines) - 1}: expected UTF-8 or CP949 text" in refusal(path)
    notes = ReadingNotes()
    options = ReadOptions(skip_bad_rows=True)
    kept = [record.text for record in iter_records(path, options=options, notes=notes)]
    assert kept == ["첫 글입니다", "끝 글입니다"]
    assert sum(notes.sources[0].counts.values()) == 1
