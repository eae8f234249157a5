"""Every broken file gets one line that says where it is broken and what to do."""

import gzip
import io
import os
import re
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from malmoi.errors import InputError
from malmoi.text.reading.records import iter_records, load_table
from malmoi.text.reading.sources import find_sources


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
    ("a.parquet", b"", {}, "a.parquet: the file is empty; expected"),
    ("a.xlsx", b"", {}, "a.xlsx: the file is empty; expected"),
    ("a.txt", "\n \n", {}, "a.txt: expected texts, found only blank lines"),
    ("a.csv", "text,label\n", {}, "a.csv: expected rows below the header, found none"),
    ("a.tsv", "text\tlabel", {}, "a.tsv: expected rows below the header, found none"),
    ("a.xlsx", xlsx(["text"]), {}, "a.xlsx: expected rows below the header, found none"),
    ("a.xlsx", xlsx(), {}, "a.xlsx: every sheet is empty; expected a header"),
    (
        "a.parquet",
        parquet(pd.DataFrame({"text": pd.Series([], dtype="str")})),
        {},
        "a.parquet: expected rows below the header, found none",
    ),
    (
        "a.csv",
        "글월,갈래\n안녕,1\n",
        {},
        "found the columns 글월, 갈래; name the right one with --text-column",
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
        "found the columns text, x; name the right one with --label-column",
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
    ("a.tsv", f"1\t{'가' * 290}\n", {}, f"found the columns 1, {'가' * 290}; name"),
    ("a.tsv", f"1\t{'가' * 390}\n", {}, f"found the columns 1, {'가' * 300}…; name"),
    ("a.csv", ",".join(f"c{n}" for n in range(20)) + "\n", {}, "c10, c11, and 8 more; name"),
    ("a.txt", "안녕\n", {"need_label": True}, "a.txt: expected labels, found a plain list"),
    ("a.txt", "안녕\n", {"label_column": "x"}, "a.txt: expected labels, found a plain list"),
    (
        "a.csv",
        "text,label\n가,1\n나\n",
        {"need_label": True},
        "a.csv:3: expected 2 fields as in the header, found 1",
    ),
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
        '{"text": "가"}\n{"text": ["나"]}\n',
        {},
        "a.jsonl:2: expected a string in 'text', found",
    ),
    ("a.jsonl", '{"text": "가"}\n{"글": "나"}\n', {}, "a.jsonl:2: no text column"),
    ("a.jsonl", "[" * 100_000, {}, "a.jsonl:1: expected an array of JSON objects, found broken"),
    ("a.parquet", b"PAR1 not really", {}, "a.parquet: expected a Parquet file, found a damaged"),
    ("a.parquet", GOOD_PARQUET[:-20], {}, "a.parquet: expected a Parquet file, found"),
    (
        "a.parquet",
        parquet(pd.DataFrame({"text": [["가"]]})),
        {"text_column": "text"},
        "a.parquet:1: expected text or a number in the cell, found list",
    ),
    ("a.xlsx", b"PK\x03\x04 not really", {}, "a.xlsx: expected an Excel workbook, found a damaged"),
    ("a.xlsx", GOOD_XLSX[:-200], {}, "a.xlsx: expected an Excel workbook, found a damaged"),
    (
        "a.txt",
        "글\n".encode() * 99 + "가나".encode("cp949"),
        {},
        "a.txt:100: expected UTF-8 or CP949",
    ),
    ("a.csv", GOOD_XLSX, {}, "found an Excel workbook; rename it to a.xlsx"),
    ("a.csv.gz", GOOD_XLSX, {}, "found an Excel workbook; rename it to a.xlsx"),
    ("a.csv.gz", "text\n글\n", {}, "found text; rename it to a.csv"),
    ("a.csv", gzip.compress(b"text\n1\n"), {}, "rename it to a.csv.gz"),
    ("a.xlsx", "text\n글\n", {}, "found text; rename it to a.csv"),
    ("a.parquet", '[{"text": "글"}]', {}, "found text; rename it to a.json"),
    ("a.xlsx", "<html><table></table></html>", {}, "found a web page or XML; save it as"),
    ("a.txt", b"\xea\xb8\x80\n\0\n", {}, "a.txt: not a text file (it holds NUL bytes"),
    (
        "a.xlsx",
        xlsx(["text", "n"], ["안녕", "=1+1"], ['=CONCATENATE("가","나")', 1]),
        {},
        "a.xlsx:3: expected a value, found a formula without its result; open the file in a",
    ),
    (
        "a.csv.gz",
        gzip.compress(b"text\n" * 99, mtime=0)[:-9],
        {},
        "a.csv.gz: expected complete .gz data",
    ),
    ("a.pdf", b"%PDF", {}, "a.pdf: unsupported kind of file; expected .txt, .csv, .tsv, .jsonl"),
    ("a.xlsx.gz", b"", {}, "a.xlsx.gz: unsupported kind of file; expected"),
]


def test_broken_file(tmp_path: Path) -> None:
    for name, data, options, message in BROKEN:
        path = write(tmp_path / name, data)
        with pytest.raises(InputError, match=re.escape(message)) as caught:
            list(iter_records(path, **options))  # type: ignore[arg-type]
        assert str(tmp_path) in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


# Which column is the text is chosen in the app, after the upload was read.
BROKEN_AS_UPLOAD = [
    (name, data, message)
    for name, data, options, message in BROKEN
    if not options
    and not re.search(
        "no text column|columns 글월|columns 1,|c11|expected a string|cell, found list|a formula",
        message,
    )
]


def test_broken_upload() -> None:
    for name, data, message in BROKEN_AS_UPLOAD:
        with pytest.raises(InputError, match=re.escape(message)):
            load_table(name, data.encode() if isinstance(data, str) else data)


def test_damaged_page_of_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": [f"글 {n}" for n in range(5_000)]})
    data = bytearray(parquet(frame))
    data[100:4_000] = b"\xff" * 3_900
    path = write(tmp_path / "a.parquet", bytes(data))
    with pytest.raises(InputError, match=r"a\.parquet: expected a Parquet file, found a damaged"):
        list(iter_records(path))


def test_formulas_with_results_are_read_as_their_results(tmp_path: Path) -> None:
    # As Excel saves it; openpyxl itself writes no results.
    path = write(tmp_path / "a.xlsx", xlsx(["text", "n"], ["=A3&A3", "=1+1"], ["가", None]))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    cell = b'<c r="A2"><f>A3&amp;A3</f><v /></c>'
    assert cell in members[sheet]
    result = cell.replace(b'r="A2"', b'r="A2" t="str"').replace(b"<v />", "<v>가가</v>".encode())
    members[sheet] = members[sheet].replace(cell, result)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    # The other column holds a formula without a result, but nobody asked for it.
    assert [record.text for record in iter_records(path)] == ["가가", "가"]
    with pytest.raises(InputError, match=r"a\.xlsx:2: expected a value, found a formula"):
        list(iter_records(path, label_column="n"))


def test_a_formula_whose_result_is_an_empty_text_is_an_empty_cell(tmp_path: Path) -> None:
    """As in a column =IF(…, "긍정", ""); only how Excel saves it tells it from no result."""
    path = write(tmp_path / "a.xlsx", xlsx(["text", "n"], ["가", '=IF(A2="", 1, "")'], ["나", 1]))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    saved = members[sheet].replace(b'<c r="B2"><f>', b'<c r="B2" t="str"><f>')
    assert saved != members[sheet]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (members | {sheet: saved}).items():
            archive.writestr(name, data)
    records = iter_records(path, label_column="n")
    assert [(record.text, record.label) for record in records] == [("가", None), ("나", "1")]


def test_a_single_line_of_200_mb_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    for name, start in (("a.txt", ""), ("a.jsonl", '{"text": "'), ("a.tsv", "id\ttext\n1\t")):
        path = tmp_path / name
        path.write_text(start + "글" * 3_000, encoding="utf-8")
        with path.open("ab") as file:  # NUL bytes, which a sparse file holds for nothing
            file.truncate(200 * 2**20)
        line = 1 + start.count("\n")
        tracemalloc.start()
        message = f"{name}:{line}: expected lines of text, found one of more than 64 MiB"
        with pytest.raises(InputError, match=re.escape(message)):
            list(iter_records(path))
        assert tracemalloc.get_traced_memory()[1] < 30 * 2**20
        tracemalloc.stop()


def test_an_endless_csv_field(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text\n글\n"' + "글" * (1 << 24) + '글"\n')
    message = r"a\.csv:3: expected a CSV row, found a field of more than 16,777,216 characters"
    with pytest.raises(InputError, match=message):
        list(iter_records(path))


def test_a_file_is_not_read_again_by_a_link_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "b.csv").write_text("text\n가\n", encoding="utf-8")
    (tmp_path / "a.csv").symlink_to("b.csv")
    assert [record.text for record in iter_records(tmp_path)] == ["가"]
    assert "b.csv: not read, it is the same file as" in caplog.text


def test_links_that_lead_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "folder"
    write_in(folder, "a.txt", "글이 하나 있습니다")
    (folder / "up").symlink_to(folder)
    (folder / "self").symlink_to("self")
    assert [record.text for record in iter_records(folder)] == ["글이 하나 있습니다"]
    assert "self: not read, a link that leads nowhere or to itself" in caplog.text
    (folder / "loop.txt").symlink_to("loop.txt")
    with pytest.raises(InputError, match=r"loop\.txt: cannot be opened \(Too many levels of"):
        list(iter_records(folder))
    for path in (folder / "loop.txt", folder / "self"):
        with pytest.raises(InputError, match="expected a file or folder, found a link that leads"):
            iter_records(path)


def write_in(folder: Path, name: str, text: str) -> None:
    folder.mkdir()
    write(folder / name, text)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user for a moment")
def test_places_without_permission() -> None:
    # Not tmp_path, into which nobody but its owner can look.
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        write_in(folder / "secret", "a.txt", "글이 하나 있습니다")
        write(folder / "mine.txt", "글이 하나 있습니다").chmod(0o600)
        write_in(folder / "deeper", "b.txt", "글이 하나 있습니다")
        (folder / "deeper" / "secret").mkdir(0o700)
        (folder / "secret").chmod(0o700)
        os.seteuid(65534)
        try:
            for path, message in (
                (folder / "secret", r"secret: the folder cannot be read \(Permission denied\)"),
                (folder / "deeper", r"deeper/secret: the folder cannot be read \(Permission"),
                (folder / "mine.txt", r"mine.txt: cannot be opened \(Permission denied\)"),
            ):
                with pytest.raises(InputError, match=message):
                    list(iter_records(path))
            with pytest.raises(PermissionError):  # one line from every command
                iter_records(folder / "secret" / "a.txt")
        finally:
            os.seteuid(0)


def test_upload_with_twin_and_nameless_columns() -> None:
    with pytest.raises(InputError, match="expected different column names, found text twice"):
        load_table("a.csv", b"text,text\n1,2\n")
    assert list(load_table("a.csv", b"text,,x\n1,2,3\n").columns) == ["text", "column 2", "x"]


@pytest.mark.parametrize(
    "files",
    [
        ("config.json", "model.safetensors"),
        ("config.json", "model.safetensors.index.json"),
        ("discriminator/config.json", "discriminator/model.safetensors", "run.json"),
        ("linear.json", "linear.safetensors"),
    ],
    ids=["classifier", "in shards", "run of pre-training", "linear"],
)
def test_a_model_is_no_folder_of_texts(tmp_path: Path, files: tuple[str, ...]) -> None:
    write(tmp_path / "tokenizer.json", '{"added_tokens": [{"content": "[PAD]"}]}')
    write(tmp_path / "index.txt", "글")
    assert len(find_sources(tmp_path)) == 2
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        write(tmp_path / file, "{}")
    with pytest.raises(InputError, match=r"expected texts, found a model; give it as --model"):
        find_sources(tmp_path)


def test_missing_path_and_empty_folder(tmp_path: Path) -> None:
    missing = f"no such file or folder: {tmp_path / 'nothing'}; expected a file of a supported kind"
    with pytest.raises(InputError, match=re.escape(missing)):
        iter_records(tmp_path / "nothing")
    write(tmp_path / "README.md", "# 없음")
    with pytest.raises(InputError, match=r"expected files of a supported kind \(\.txt, \.csv"):
        iter_records(tmp_path)
