"""Every format into the same records."""

import gzip
import io
import logging
import os
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from malmoi.errors import InputError
from malmoi.text.corpus.clean_corpus import corpus_hash
from malmoi.text.reading.records import iter_records, load_table
from malmoi.text.record import Record

ROWS = [
    ("a1", "꿈을 꿨다 ㅋㅋ", "꿈"),
    ("a2", '그는 "안녕"이라 했다, 그리고 갔다', "일기"),
    ("a3", "", ""),
    ("a4", "大韓民國 👨\u200d👩\u200d👧 ❤\ufe0f", "메모"),
]


def parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def xlsx(rows: list[list[object]]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    book.create_sheet("둘째").append(["이 장은", "읽지 않는다"])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def encoded(suffix: str) -> bytes:
    frame = pd.DataFrame(ROWS, columns=["id", "text", "label"])
    if suffix == ".csv":
        return frame.to_csv(index=False).encode()
    if suffix == ".tsv":
        return frame.to_csv(index=False, sep="\t").encode()
    if suffix == ".jsonl":
        return frame.to_json(orient="records", lines=True, force_ascii=False).encode()
    if suffix == ".parquet":
        return parquet(frame)
    return xlsx([["id", "text", "label"], *[[cell or None for cell in row] for row in ROWS]])


def compressed(data: bytes, compression: str) -> bytes:
    if compression == ".gz":
        return gzip.compress(data, mtime=0)
    return zstandard.ZstdCompressor().compress(data) if compression == ".zst" else data


def write(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


KINDS = [(s, c) for s in (".csv", ".tsv", ".jsonl") for c in ("", ".gz", ".zst")]
KINDS += [(".parquet", ""), (".xlsx", "")]


@pytest.mark.parametrize(("suffix", "compression"), KINDS)
def test_all_formats_yield_equal_records(tmp_path: Path, suffix: str, compression: str) -> None:
    name = f"data{suffix}{compression}"
    path = write(tmp_path / name, compressed(encoded(suffix), compression))
    expected = [
        Record(id=row, text=text, label=label or None, source=name) for row, text, label in ROWS
    ]
    assert list(iter_records(path)) == expected
    assert list(iter_records(tmp_path)) == expected
    assert list(iter_records(str(path), need_label=True)) == expected


def test_upload_is_the_same_table() -> None:
    for suffix, compression in KINDS:
        table = load_table(f"data{suffix}{compression}", compressed(encoded(suffix), compression))
        assert list(table.columns) == ["id", "text", "label"]
        assert [tuple(row) for row in table.to_numpy()] == ROWS


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "cp949", "utf-16"])
def test_plain_text(tmp_path: Path, codec: str, compression: str) -> None:
    data = "첫째 줄\r\n\r\n \r\n셋째\u2028줄 ㅋㅋ".replace("\u2028", "/").encode(codec)
    path = write(tmp_path / f"a.txt{compression}", compressed(data, compression))
    assert [(record.id, record.text, record.label) for record in iter_records(path)] == [
        (f"{path.name}:1", "첫째 줄", None),
        (f"{path.name}:4", "셋째/줄 ㅋㅋ", None),
    ]
    # A table that comes back keeps every row in its place.
    shown = load_table(path.name, path.read_bytes())["text"]
    assert list(shown) == ["첫째 줄", "", "", "셋째/줄 ㅋㅋ"]


NSMC = (
    "id\tdocument\tlabel\n"
    '1\t"이건 진짜 명작\t1\n'
    '2\t명작" 아님\t0\n'
    '3\t"그는 ""안녕""이라 했다"\t1\n'
    '4\t"통째로 감싼 것"\t0\n'
    '5\t""홑 따옴표" 둘\t0\n'
    '6\t"""\t0\n'
    "7\t\t1\n"
    "8\t두 번째 줄 없음\u2028끝\t1\n"
)


def test_tsv_with_lone_quotes(tmp_path: Path) -> None:
    for name in ("ratings.txt", "ratings.tsv", "ratings.txt.gz"):
        path = write(tmp_path / name, compressed(NSMC.encode(), Path(name).suffix))
        assert [(record.id, record.text, record.label) for record in iter_records(path)] == [
            ("1", '"이건 진짜 명작', "1"),
            ("2", '명작" 아님', "0"),
            ("3", '그는 "안녕"이라 했다', "1"),
            ("4", "통째로 감싼 것", "0"),
            ("5", '""홑 따옴표" 둘', "0"),
            ("6", '"""', "0"),
            ("7", "", "1"),
            ("8", "두 번째 줄 없음\u2028끝", "1"),
        ]


def test_text_file_with_a_tab_but_no_header_is_plain(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "오늘\t일정\n내일\n")
    assert [record.text for record in iter_records(path)] == ["오늘\t일정", "내일"]
    path = write(tmp_path / "b.txt", "문장\t점수\n안녕\t3\n")
    assert [record.text for record in iter_records(path, text_column="문장")] == ["안녕"]


def test_column_lookup(tmp_path: Path) -> None:
    for header, options in (
        ("text,label", {}),
        (" Text , LABEL ", {}),
        ("\ufeffdocument,라벨", {}),
        ("리뷰,감정", {}),
        ("댓글,label", {}),
        ("label2,본문,label", None),
        ("문장,분류", {"text_column": "문장", "label_column": "분류"}),
        ("문장,분류", {"text_column": " 문장", "label_column": "분류 "}),
        ("Q,text", {"text_column": "q", "label_column": "text"}),
    ):
        row = "안녕, 1"
        if options is None:
            row, options = "x,안녕,1", {}
        path = write(tmp_path / "a.csv", f"{header}\n{row.replace(', ', ',')}\n")
        (record,) = iter_records(path, **options)  # type: ignore[arg-type]
        assert (record.id, record.text, record.label) == ("a.csv:2", "안녕", "1")


def test_candidates_have_an_order(tmp_path: Path) -> None:
    """Of equally long ones; else the longest."""
    path = write(tmp_path / "a.csv", "본문,comment,document\n하나,둘둘,셋셋\n")
    assert [record.text for record in iter_records(path)] == ["셋셋"]


def test_csv_with_line_breaks_in_fields(tmp_path: Path) -> None:
    data = 'text,label\r\n"첫 줄\r\n둘째 줄","꿈"\r\n\r\n"""인용"", 쉼표", 메모 \r\n짧다,\r\n'
    path = write(tmp_path / "a.csv", data)
    assert [(record.id, record.text, record.label) for record in iter_records(path)] == [
        ("a.csv:2", "첫 줄\r\n둘째 줄", "꿈"),
        ("a.csv:5", '"인용", 쉼표', "메모"),
        ("a.csv:6", "짧다", None),
    ]


def test_labels_that_are_numbers(tmp_path: Path) -> None:
    for suffix in (".parquet", ".xlsx"):
        labels: list[float | None] = [1.0, 0.5, None, 3]
        texts: list[object] = ["가", "나", "다", "라"]
        if suffix == ".parquet":
            data = parquet(pd.DataFrame({"text": texts, "label": labels}))
            first = 1
        else:
            texts[3] = 2024
            blank: list[object] = [None, None]
            rows = [["text", "label"], *[list(pair) for pair in zip(texts, labels, strict=True)]]
            data = xlsx([*rows[:3], blank, *rows[3:]])
            first = 2
        path = write(tmp_path / f"a{suffix}", data)
        found = list(iter_records(path))
        assert [record.label for record in found] == ["1", "0.5", None, "3"]
        assert [record.text for record in found] == [str(text) for text in texts]
        assert found[0].id == f"a{suffix}:{first}"


def test_jsonl_whose_keys_change(tmp_path: Path) -> None:
    lines = [
        '{"text": "가", "label": true}',
        "",
        '{"label": 1.0, "id": 7, "text": null}',
        '{"text": "\\ud55c"}',
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(lines))
    assert [(record.id, record.text, record.label) for record in iter_records(path)] == [
        ("a.jsonl:1", "가", "True"),
        ("7", "", "1"),
        ("a.jsonl:4", "한", None),
    ]
    table = load_table("a.jsonl", path.read_bytes())
    assert list(table["id"]) == ["", "7", ""]


def test_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "b.txt", "둘")
    write(tmp_path / "a" / "z.txt.gz", gzip.compress("하나".encode(), mtime=0))
    write(tmp_path / "a" / "b.csv", "id,text\n,영\n")
    for ignored in ("README.txt", "readme", "LICENSE", "License.txt", "note.md", "report.json"):
        write(tmp_path / ignored, "문서")
    for hidden in (".hidden.txt", ".git/a.txt"):
        write(tmp_path / hidden, "숨은 글")
    write(tmp_path / "a" / "photo.jpg", b"\xff\xd8")
    write(tmp_path / "c.parquet.gz", b"")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    with caplog.at_level(logging.WARNING):
        found = list(iter_records(tmp_path))
    assert [(record.id, record.text, record.source) for record in found] == [
        ("a/b.csv:2", "영", "a/b.csv"),
        ("a/z.txt.gz:1", "하나", "a/z.txt.gz"),
        ("b.txt:1", "둘", "b.txt"),
    ]
    warned = [message.split(": not read")[0] for message in caplog.messages]
    assert warned == [str(tmp_path / "a" / "photo.jpg"), str(tmp_path / "c.parquet.gz")]


def test_reading_streams(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\tlabel\n가\t1\n나\t1\t2\n")
    stream = iter_records(path)
    assert next(stream).text == "가"
    with pytest.raises(InputError, match=r"a\.tsv:3: expected 2 fields"):
        next(stream)


def test_blank_rows_of_an_upload_keep_their_place() -> None:
    """Whoever pastes a column of results back counts on it. The end of a table is no row."""
    for name, data in (
        ("a.csv", "\n리뷰\n좋아요\n\n별로\n\n\n".encode()),
        ("a.csv", "리뷰,점수\n좋아요,5\n\n별로,1\n".encode()),
        ("a.tsv", "리뷰\t점수\n좋아요\t5\n \n별로\t1\n".encode()),
        ("a.xlsx", xlsx([["리뷰"], ["좋아요"], [None], ["별로"], [None]])),
    ):
        table = load_table(name, data)
        assert table["리뷰"].tolist() == ["좋아요", "", "별로"]


def test_carriage_returns_in_excel_cells_are_no_words(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(xlsx([["text"], ["첫째 줄_x000D_\n둘째 줄"], ["_x005F_x000D_"]]))
    assert [record.text for record in iter_records(path)] == ["첫째 줄\r\n둘째 줄", "_x000D_"]


def test_parquet_that_is_not_utf_8_is_one_line(tmp_path: Path) -> None:
    texts = "영화".encode("cp949")
    buffers = [None, pa.py_buffer(np.array([0, 4], np.int32)), pa.py_buffer(texts)]
    column = pa.Array.from_buffers(pa.string(), 1, buffers)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": column}), path)
    with pytest.raises(InputError, match=r"a.parquet: expected texts in UTF-8 in rows 1 to 1"):
        list(iter_records(path))


def test_a_column_that_a_list_of_texts_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("그저 그런 글\n또 다른 글\n", encoding="utf-8")
    with pytest.raises(InputError, match="expected a column 'review', found a plain list of texts"):
        list(iter_records(path, text_column="review"))


def test_half_emoji_do_not_stop_a_table() -> None:
    """JavaScript that cuts texts by UTF-16 units leaves them, and Excel can escape both halves."""
    lines = [
        rb'{"\ud83dtext": "\uc88b\ub2e4 \ud83d", "label": "a\udc00"}',
        rb'{"text": "\ud83d\ude00"}',
    ]
    table = load_table("a.jsonl", b"\n".join(lines))
    assert list(table.columns) == ["text", "label"]
    assert table["text"].tolist() == ["좋다 ", "😀"]
    assert table["label"].tolist() == ["a", ""]
    sheet = load_table("a.xlsx", xlsx([["text"], ["_xD83D_ 좋다"], ["_xD83D__xDE00_"]]))
    assert sheet["text"].tolist() == [" 좋다", "😀"]


def test_half_emoji_do_not_come_into_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "\\ud83d1", "text": "\\uc88b\\ub2e4", "label": "\\uafc8\\udc00"}\n')
    (record,) = iter_records(path)
    assert (record.id, record.label) == ("1", "꿈")


def test_file_names_of_windows_archives(tmp_path: Path) -> None:
    """Unpacked on Linux they are CP949, which no UTF-8 report could hold."""
    for name, text in (("리뷰.txt".encode("cp949"), "하나"), (b"\xff\xfe\xff.txt", "둘")):
        (tmp_path / os.fsdecode(name)).write_text(text, encoding="utf-8")
    records = list(iter_records(tmp_path))
    assert {(record.source, record.text) for record in records} == {
        ("리뷰.txt", "하나"),
        ("\\xff\\xfe\\xff.txt", "둘"),
    }
    assert len(corpus_hash(tmp_path)) == 64
    (record,) = iter_records(tmp_path / os.fsdecode("리뷰.txt".encode("cp949")))
    assert record.source == "리뷰.txt"
