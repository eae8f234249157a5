"""Every format into the same records, and every broken file into one line that says what to do."""

import gzip
import io
import logging
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from corpora.errors import InputError
from corpora.reading import iter_records, load_table
from corpora.record import Record

SHARED = Path(__file__).parents[3] / "shared" / "data"

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
        return gzip.compress(data)
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


@pytest.mark.parametrize(("suffix", "compression"), KINDS)
def test_upload_is_the_same_table(suffix: str, compression: str) -> None:
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
    assert list(load_table(path.name, path.read_bytes())["text"]) == ["첫째 줄", "셋째/줄 ㅋㅋ"]


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


@pytest.mark.parametrize("name", ["ratings.txt", "ratings.tsv", "ratings.txt.gz"])
def test_tsv_with_lone_quotes(tmp_path: Path, name: str) -> None:
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


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("text,label", {}),
        (" Text , LABEL ", {}),
        ("\ufeffdocument,라벨", {}),
        ("리뷰,감정", {}),
        ("댓글,label", {}),
        ("label2,본문,label", None),
        ("문장,분류", {"text_column": "문장", "label_column": "분류"}),
        ("문장,분류", {"text_column": " 문장", "label_column": "분류 "}),
        ("Q,text", {"text_column": "q", "label_column": "text"}),
    ],
)
def test_column_lookup(tmp_path: Path, header: str, options: dict[str, str] | None) -> None:
    row = "안녕, 1"
    if options is None:
        row, options = "x,안녕,1", {}
    path = write(tmp_path / "a.csv", f"{header}\n{row.replace(', ', ',')}\n")
    (record,) = iter_records(path, **options)  # type: ignore[arg-type]
    assert (record.id, record.text, record.label) == ("a.csv:2", "안녕", "1")


def test_candidates_have_an_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "본문,comment,document\n하나,둘,셋\n")
    assert [record.text for record in iter_records(path)] == ["셋"]


def test_csv_with_line_breaks_in_fields(tmp_path: Path) -> None:
    data = 'text,label\r\n"첫 줄\r\n둘째 줄","꿈"\r\n\r\n"""인용"", 쉼표", 메모 \r\n짧다,\r\n'
    path = write(tmp_path / "a.csv", data)
    assert [(record.id, record.text, record.label) for record in iter_records(path)] == [
        ("a.csv:2", "첫 줄\r\n둘째 줄", "꿈"),
        ("a.csv:5", '"인용", 쉼표', "메모"),
        ("a.csv:6", "짧다", None),
    ]


def test_long_csv_field(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f'text\n"{"가" * 1_000_000}"\n')
    assert [len(record.text) for record in iter_records(path)] == [1_000_000]


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx"])
def test_labels_that_are_numbers(tmp_path: Path, suffix: str) -> None:
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


def test_xlsx_rows_of_other_widths(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xlsx", xlsx([["label", "text"], ["꿈"], ["꿈", "비행", "덤"]]))
    assert [record.text for record in iter_records(path)] == ["", "비행"]
    assert list(load_table("a.xlsx", path.read_bytes()).columns) == ["label", "text"]


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


def test_parquet_in_many_batches(tmp_path: Path) -> None:
    table = pa.table({"other": [[1]] * 10_000, "text": [f"글 {n}" for n in range(10_000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3_000)
    found = list(iter_records(tmp_path / "a.parquet"))
    assert [record.text for record in found] == table["text"].to_pylist()
    assert (found[0].id, found[-1].id) == ("a.parquet:1", "a.parquet:10000")


def test_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "b.txt", "둘")
    write(tmp_path / "a" / "z.txt.gz", gzip.compress("하나".encode()))
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
    ("a.xlsx", xlsx([["text"]]), {}, "a.xlsx: expected rows below the header, found none"),
    ("a.xlsx", xlsx([]), {}, "a.xlsx: the first sheet is empty; expected a header"),
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
        xlsx([["text", "x"], ["안녕", 1]]),
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
    ("a.parquet", encoded(".parquet")[:-20], {}, "a.parquet: expected a Parquet file, found"),
    (
        "a.parquet",
        parquet(pd.DataFrame({"text": [["가"]]})),
        {},
        "a.parquet:1: expected text or a number in the cell, found list",
    ),
    ("a.xlsx", b"PK\x03\x04 not really", {}, "a.xlsx: expected an Excel workbook, found a damaged"),
    ("a.xlsx", encoded(".xlsx")[:-200], {}, "a.xlsx: expected an Excel workbook, found a damaged"),
    ("a.csv", encoded(".xlsx"), {}, "a.csv: not a text file"),
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


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [(name, data, message) for name, data, options, message in BROKEN if not options],
)
def test_broken_upload(name: str, data: bytes | str, message: str) -> None:
    if "no text column" in message or "found the columns" in message or "c11" in message:
        pytest.skip("an upload's columns are chosen in the app")
    if "expected a string" in message:
        pytest.skip("which column is the text is chosen in the app")
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


def test_reading_streams(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\tlabel\n가\t1\n나\n")
    stream = iter_records(path)
    assert next(stream).text == "가"
    with pytest.raises(InputError, match=r"a\.tsv:3: expected 2 fields"):
        next(stream)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared data at {SHARED}")
def test_real_corpora() -> None:
    ratings = Counter(r.label for r in iter_records(SHARED / "nsmc" / "ratings_test.txt"))
    assert ratings == {"0": 25_000, "1": 25_000}
    comments = list(iter_records(SHARED / "comments"))
    by_source = Counter(record.source for record in comments)
    assert by_source["kmhas_valid.tsv"] == 8_776
    assert by_source["korean_hate_speech_unlabeled_5.txt"] == 33_893
    assert "1. 8넘의 문재앙" in {record.text for record in comments}
    reviews = list(islice(iter_records(SHARED / "nsmc" / "reviews_rated.tsv.gz"), 1_000))
    assert len(reviews) == 1_000
    assert reviews[0].text == "영화 전개가 내내 싱겁고 무난하다."
    petitions = islice(iter_records(SHARED / "petitions"), 10)
    assert all(record.text for record in petitions)
