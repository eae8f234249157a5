"""Every broken file gets one line that says where it is broken and what to do."""

import gzip
import io
import re
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from corpora.errors import InputError
from corpora.reading import iter_records, load_table


def parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def xlsx(*rows: list[object]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


GOOD_PARQUET = parquet(pd.DataFrame({"text": ["안녕", "그래"]}))
GOOD_XLSX = xlsx(["text"], ["안녕"], ["그래"])

BROKEN: list[tuple[str, bytes | str, dict[str, object], str]] = [
    # name, content, options, message
    ("a.txt", b"", {}, "a.txt: the file is empty"),
    ("a.csv", b"", {}, "a.csv: the file is empty"),
    ("a.csv", b"\xef\xbb\xbf", {}, "a.csv: the file is empty; expected a header and rows"),
    ("a.tsv", "\n\n", {}, "a.tsv: the file is empty; expected a header and rows"),
    ("a.jsonl", b"", {}, "a.jsonl: the file is empty"),
    ("a.parquet", b"", {}, "a.parquet: the file is empty; expected a Parquet file"),
    ("a.xlsx", b"", {}, "a.xlsx: the file is empty; expected an Excel workbook"),
    ("a.txt", "\n \n", {}, "a.txt: expected texts, found only blank lines"),
    ("a.csv", "text,label\n", {}, "a.csv: expected rows below the header, found none"),
    ("a.tsv", "text\tlabel", {}, "a.tsv: expected rows below the header, found none"),
    ("a.xlsx", xlsx(["text"]), {}, "a.xlsx: expected rows below the header, found none"),
    ("a.xlsx", xlsx(), {}, "a.xlsx: the first sheet is empty; expected a header"),
    (
        "a.parquet",
        parquet(pd.DataFrame({"text": pd.Series([], dtype="str")})),
        {},
        "a.parquet: expected rows below the header, found none",
    ),
    (
        "a.csv",
        "문장,분류\n안녕,1\n",
        {},
        "a.csv: no text column: expected one of text, document, review, comment, comments, "
        "content, 리뷰, 댓글, 내용, 본문, found the columns 문장, 분류; "
        "name the right one with --text-column",
    ),
    (
        "a.tsv",
        "text\tx\n안녕\t1\n",
        {"text_column": "글"},
        "a.tsv: no text column: expected a column named '글', found the columns text, x; name",
    ),
    (
        "a.csv",
        "text,x\n안녕,1\n",
        {"need_label": True},
        "a.csv: no label column: expected one of label, 라벨, 감정, found the columns text, x; "
        "name the right one with --label-column",
    ),
    (
        "a.xlsx",
        xlsx(["text", "x"], ["안녕", 1]),
        {"label_column": "y"},
        "a.xlsx: no label column: expected a column named 'y', found the columns text, x",
    ),
    (
        "a.parquet",
        parquet(pd.DataFrame({"x": ["가"]})),
        {},
        "a.parquet: no text column: expected one of",
    ),
    ("a.tsv", f"1\t{'가' * 90}\n", {}, f"found the columns 1, {'가' * 30}…; name"),
    ("a.csv", ",".join(f"c{n}" for n in range(20)) + "\n", {}, "c10, c11, and 8 more; name"),
    ("a.txt", "안녕\n", {"need_label": True}, "a.txt: expected labels, found a plain list"),
    ("a.txt", "안녕\n", {"label_column": "x"}, "a.txt: expected labels, found a plain list"),
    ("a.csv", "text,label\n가,1\n나\n", {}, "a.csv:3: expected 2 fields as in the header, found 1"),
    (
        "a.csv",
        'text,label\n"가\n나",1\n다,라,1\n',
        {},
        "a.csv:4: expected 2 fields as in the header",
    ),
    ("a.tsv", "text\tlabel\n가\t1\n\n나\t\t1\n", {}, "a.tsv:4: expected 2 fields as in the header"),
    ("a.csv", 'text,label\n가,1\n"나,1\n다,1\n', {}, "a.csv:3: expected a CSV row, found one with"),
    ("a.csv", 'text,label\n"가"나,1\n', {}, "a.csv:2: expected a CSV row, found one with broken"),
    ("a.csv", b"text\n\xb0\xa1\n\xff\xff\n", {}, "a.csv:3: expected UTF-8 or CP949 text"),
    (
        "a.jsonl",
        '{"text": "가"}\n{"text": \n',
        {},
        "a.jsonl:2: expected a JSON object, found broken",
    ),
    ("a.jsonl", '{"text": "가"}\n\n["나"]\n', {}, "a.jsonl:3: expected a JSON object, found list"),
    (
        "a.jsonl",
        '{"text": "가"}\n{"text": 3}\n',
        {},
        "a.jsonl:2: expected a string in 'text', found",
    ),
    ("a.jsonl", '{"text": "가"}\n{"글": "나"}\n', {}, "a.jsonl:2: no text column"),
    (
        "a.jsonl",
        '{"text": "가", "label": [1]}\n',
        {},
        "a.jsonl:1: expected text or a number in the",
    ),
    ("a.jsonl", "[" * 100_000, {}, "a.jsonl:1: expected a JSON object, found broken JSON"),
    ("a.parquet", b"PAR1 not really", {}, "a.parquet: expected a Parquet file, found a damaged"),
    ("a.parquet", GOOD_PARQUET[:-20], {}, "a.parquet: expected a Parquet file, found"),
    (
        "a.parquet",
        parquet(pd.DataFrame({"text": [["가"]]})),
        {},
        "a.parquet:1: expected text or a number in the cell, found list",
    ),
    ("a.xlsx", b"PK\x03\x04 not really", {}, "a.xlsx: expected an Excel workbook, found a damaged"),
    ("a.xlsx", GOOD_XLSX[:-200], {}, "a.xlsx: expected an Excel workbook, found a damaged"),
    ("a.csv", GOOD_XLSX, {}, "a.csv: not a text file"),
    ("a.csv.gz", gzip.compress(b"text\n" * 99)[:-9], {}, "a.csv.gz: expected complete .gz data"),
    ("a.pdf", b"%PDF", {}, "a.pdf: unsupported kind of file; expected .txt, .csv, .tsv, .jsonl"),
    ("a.xlsx.gz", b"", {}, "a.xlsx.gz: unsupported kind of file; expected"),
]


@pytest.mark.parametrize(("name", "data", "options", "message"), BROKEN)
def test_broken_file(
    tmp_path: Path, name: str, data: bytes | str, options: dict[str, object], message: str
) -> None:
    path = write(tmp_path / name, data)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        list(iter_records(path, **options))  # type: ignore[arg-type]
    assert str(tmp_path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


# Which column is the text is chosen in the app, after the upload was read.
BROKEN_AS_UPLOAD = [
    (name, data, message)
    for name, data, options, message in BROKEN
    if not options and not re.search("no text column|columns 1,|c11|expected a string", message)
]


@pytest.mark.parametrize(("name", "data", "message"), BROKEN_AS_UPLOAD)
def test_broken_upload(name: str, data: bytes | str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load_table(name, data.encode() if isinstance(data, str) else data)


def test_damaged_page_of_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": [f"글 {n}" for n in range(5_000)]})
    data = bytearray(parquet(frame))
    data[100:4_000] = b"\xff" * 3_900
    path = write(tmp_path / "a.parquet", bytes(data))
    with pytest.raises(InputError, match=r"a\.parquet: expected a Parquet file, found a damaged"):
        list(iter_records(path))


def test_upload_with_twin_and_nameless_columns() -> None:
    with pytest.raises(InputError, match="expected different column names, found text twice"):
        load_table("a.csv", b"text,text\n1,2\n")
    assert list(load_table("a.csv", b"text,,x\n1,2,3\n").columns) == ["text", "column 2", "x"]


def test_missing_path_and_empty_folder(tmp_path: Path) -> None:
    missing = f"no such file or folder: {tmp_path / 'nothing'}; expected a file of a supported kind"
    with pytest.raises(InputError, match=re.escape(missing)):
        iter_records(tmp_path / "nothing")
    write(tmp_path / "README.md", "# 없음")
    with pytest.raises(InputError, match=r"expected files of a supported kind \(\.txt, \.csv"):
        iter_records(tmp_path)
