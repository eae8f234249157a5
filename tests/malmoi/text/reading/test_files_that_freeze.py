"""Small files that would fill the memory or take hours: one line each, or the right answer.

Each is read in a process of its own with 160 MiB beyond what the imports take and a minute of CPU,
of which it needs seconds; read as it stands, each would take gigabytes or hours.
"""

import contextlib
import gzip
import io
import multiprocessing
import os
import re
import socket
import sys
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from malmoi.__main__ import main as malmoi
from malmoi.text.characters import MOST_MARKS, to_nfc
from malmoi.text.cleaning.cleaner import clean_batch, clean_text
from malmoi.text.reading.records import iter_records

ROOT = Path(__file__).parents[4]
TEXT = "이 영화는 정말 좋았다"

_BOUNDED = """
import resource, sys
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.errors import InputError
from malmoi.text.reading.records import iter_records, load_table
{imports}

with open("/proc/self/status") as status:
    size = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (size + {memory},) * 2)
used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
resource.setrlimit(resource.RLIMIT_CPU, (used + 60,) * 2)
for code in {codes}:
    try:
        exec(code)
    except InputError as error:
        print(error)
"""
_READ = "print(sum(1 for _ in iter_records(sys.argv[1])))"
_LOAD = "print(load_table(sys.argv[1], open(sys.argv[1], 'rb').read()).shape)"


def bounded(
    *codes: str, path: Path | None = None, imports: str = "", memory: int = 160 << 20
) -> str:
    """What pieces of Python print that have little memory (bytes) and time; `path` is argv[1]."""
    # Forked from one that has imported what is needed, and has read no file.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    receiver, sender = context.Pipe(duplex=False)
    script = _BOUNDED.format(codes=codes, imports=imports, memory=memory)
    process = context.Process(target=_say, args=(script, str(path), sender))
    process.start()
    sender.close()
    printed = ""
    with contextlib.suppress(EOFError):
        printed = receiver.recv()
    process.join()
    assert process.exitcode == 0, process.exitcode
    return printed.strip()


def _say(script: str, path: str, sender: Connection) -> None:
    pa.set_memory_pool(pa.system_memory_pool())
    sys.argv = ["-", path]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(script, {})
    sender.send(said.getvalue())


SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"
STYLES = "xl/styles.xml"
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
HEADER = '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'
START, END = f"<worksheet {_MAIN}><sheetData>{HEADER}", "</sheetData></worksheet>"
_STRINGS_ARE = (
    f'<Override PartName="/{STRINGS}" ContentType="application/vnd.openxmlformats-officedocument.'
    'spreadsheetml.sharedStrings+xml"/>'
)
STRING_CELL = '<c r="A2" t="inlineStr"><is><t>'
MEBIBYTES = 120
Parts = Iterator[bytes]


def much(before: str, filling: str, behind: str) -> Parts:
    yield before.encode()
    block = filling.encode() * ((1 << 20) // len(filling))
    for _ in range(MEBIBYTES):
        yield block
    yield behind.encode()


def formula_then(row: int) -> Parts:
    yield f'{START}<row r="2"><c r="A2" t="str"><f>A1</f><v>가</v></c></row>'.encode()
    yield f'<row r="{row}"><c r="A{row}"><v>1</v></c></row>{END}'.encode()


def wide_rows() -> Parts:
    yield START.encode()
    for row in range(2, 6_000):
        yield f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>'.encode()
    yield END.encode()


LONG = "expected rows of at most 8 MiB and 16,384 cells in the workbook, found a longer row"
MANY = "expected at most 1,048,576 rows a sheet and 1,048,576 different strings in the workbook"
FULL = ": expected at most 1,048,576 rows, 16,384 columns and 67,108,864 cells in a sheet, found"
WORKBOOKS: dict[str, tuple[str, Callable[[], Parts], str]] = {
    "a cell": (SHEET, lambda: much(f'{START}<row r="2">{STRING_CELL}', "a", "</t></is></c>"), LONG),
    "marks of rows that are text": (
        SHEET,
        lambda: much(f'{START}<row r="2">{STRING_CELL}<![CDATA[', "<row >", "]]></t></is></c>"),
        LONG,
    ),
    "an attribute": (SHEET, lambda: much(f'{START}<row r="2"><c x="', "a", '"/></row>'), LONG),
    "cells": (SHEET, lambda: much(f'{START}<row r="2">', "<c/>", f"</row>{END}"), LONG),
    "columns before the rows": (
        SHEET,
        lambda: much(f"<worksheet {_MAIN}><cols>", "<col/>", f"</cols><sheetData>{HEADER}{END}"),
        LONG,
    ),
    "rows": (SHEET, lambda: much(START, '<row r="2"/>', END), MANY),
    "a string": (STRINGS, lambda: much(f"<sst {_MAIN}><si><t>", "a", "</t></si></sst>"), LONG),
    "strings": (STRINGS, lambda: much(f"<sst {_MAIN}>", "<si><t>a</t></si>", "</sst>"), MANY),
    "styles": (
        STYLES,
        lambda: much(f"<styleSheet {_MAIN}><cellXfs>", "<xf/>", "</cellXfs></styleSheet>"),
        LONG,
    ),
    "a row number": (
        SHEET,
        lambda: iter([f'{START}<row r="999999999"><c><v>1</v></c></row>{END}'.encode()]),
        FULL,
    ),
    "a row number below a formula": (SHEET, lambda: formula_then(999_999_999), FULL),
    "cells far to the right": (SHEET, wide_rows, FULL),
}


def write_workbook(path: Path, name: str, part: Parts) -> None:
    """A workbook as openpyxl writes it, but for one part."""
    book = openpyxl.Workbook()
    book.worksheets[0].append(["text"])
    book.worksheets[0].append([TEXT])
    whole = io.BytesIO()
    book.save(whole)
    with (
        zipfile.ZipFile(whole) as given,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made,
    ):
        for other in given.namelist():
            data = given.read(other)
            if other == "[Content_Types].xml" and name == STRINGS:
                data = data.replace(b"</Types>", _STRINGS_ARE.encode() + b"</Types>")
            if other != name:
                made.writestr(other, data)
        with made.open(name, "w") as file:
            for piece in part:
                file.write(piece)


@pytest.mark.parametrize("kind", WORKBOOKS)
def test_a_workbook_that_unpacks_to_more_than_it_may(tmp_path: Path, kind: str) -> None:
    name, part, message = WORKBOOKS[kind]
    path = tmp_path / "a.xlsx"
    write_workbook(path, name, part())
    # The bound of strings takes seconds to reach.
    fewer = "import malmoi.text.reading.workbooks as workbooks; workbooks.MOST_STRINGS = 1 << 20"
    printed = bounded(_READ, _LOAD, path=path, imports=fewer).splitlines()
    assert len(printed) == 2
    for line in printed:
        assert message in line and line.startswith(str(path)), line


COLUMNS = ["text", *(f"c{number}" for number in range(100_000))]


def write_columns(path: Path) -> None:
    if path.suffix == ".csv":
        row = ",".join([TEXT, *["1"] * (len(COLUMNS) - 1)])
        path.write_text(",".join(COLUMNS) + "\n" + row, encoding="utf-8")
    elif path.suffix == ".jsonl":
        cells = ",".join(f'"{name}":"{TEXT}"' for name in COLUMNS)
        path.write_text(f"{{{cells}}}\n", encoding="utf-8")
    else:
        pq.write_table(pa.table({name: [TEXT] for name in COLUMNS[:50_000]}), path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_columns_by_the_hundred_thousand(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_columns(path)
    read, loaded = bounded(_READ, _LOAD, path=path).splitlines()
    assert read == "1"
    assert "expected at most 16,384 columns, found 100,001;" in loaded


def test_names_of_columns_are_counted_once(tmp_path: Path) -> None:
    """Counting each of 50,000 names among all took minutes."""
    path = tmp_path / "a.parquet"
    write_columns(path)
    # Parquet describes each of them at length.
    assert bounded(_READ, path=path, memory=2 << 30) == "1"


def test_rows_with_a_column_each_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = (f'{{"text": "{TEXT}", "k{number}": 1}}\n' for number in range(15_000))
    path.write_text("".join(rows), encoding="utf-8")
    read, loaded = bounded(_READ, _LOAD, path=path).splitlines()
    assert read == "15000"
    assert "expected a table of at most 33,554,432 cells and" in loaded


def write_packed(path: Path, start: bytes, filling: bytes) -> None:
    block = filling * ((1 << 20) // len(filling))
    with path.open("wb") as file:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb") as packed:
                for part in (start, *[block] * MEBIBYTES):
                    packed.write(part)
            return
        compressor = zstandard.ZstdCompressor().compressobj()
        for part in (start, *[block] * MEBIBYTES):
            file.write(compressor.compress(part))
        file.write(compressor.flush())


ONE_LINE = ":1: expected lines of text, found one of more than 64 MiB"
PACKED = [
    ("a.txt.gz", b"", b"a", ONE_LINE),
    ("a.txt.zst", b"", b"a", ONE_LINE),
    ("a.jsonl.gz", b'{"text": "', b"a", ONE_LINE),
    # The lower byte of this character is the byte of a line feed.
    ("a.txt.gz", b"\xff\xfe", "\uac0a".encode("utf-16-le"), ONE_LINE),
    ("a.csv.gz", b'text\n"', b'a\n","', ":2: expected a CSV row, found one of more than 33,554,4"),
]


@pytest.mark.parametrize(("name", "start", "filling", "message"), PACKED)
def test_a_packed_line_without_an_end(
    tmp_path: Path, name: str, start: bytes, filling: bytes, message: str
) -> None:
    path = tmp_path / name
    write_packed(path, start, filling)
    printed = bounded(_READ, _LOAD, path=path, memory=1 << 30).splitlines()
    assert len(printed) == 2 and all(message in line for line in printed)


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.zst"])
def test_a_large_packed_corpus_streams_on_the_command_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_packed(path, b"", (TEXT * 300 + "\n").encode())
    assert int(bounded(_READ, path=path)) > 10_000
    # In the app all of a table is in memory, which so many characters would fill here.
    fewer = "import malmoi.text.reading.tables as tables; tables.MOST_CHARACTERS = 1 << 22"
    printed = bounded(_LOAD, path=path, imports=fewer)
    assert "cells and 4,194,304 characters, found more; split it" in printed


def test_a_parquet_cell_of_an_eighth_of_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a" * (1 << 27)]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    assert "a.parquet: expected rows of texts, found some of more than 64 MiB" in bounded(
        _READ, path=path
    )


MARKS = ["\u0301\u0316", "\u0301", "\u0344", "\u0f73"]


@pytest.mark.parametrize("marks", MARKS, ids=ascii)
def test_marks_by_the_million(marks: str) -> None:
    """NFC sorts them one past the other: a million in two kinds took 13 minutes."""
    code = f"text = '가' + {marks!r} * 500_000; print(len(clean_text(text)), len(to_nfc(text)))"
    imports = "from malmoi.text.characters import to_nfc"
    cleaned, normal = map(int, bounded(code, imports=imports).split())
    assert cleaned <= 1 + MOST_MARKS
    assert normal <= 1 + 2 * MOST_MARKS


@pytest.mark.parametrize(
    ("imports", "code"),
    [
        (
            "from malmoi.labels.label_names import parse_labels",
            "print(parse_labels('가,나' + marks))",
        ),
        (
            "from malmoi.labels.label_names import nearest_label",
            "print(nearest_label('나' + marks, ['나' + marks[1:], '다']))",
        ),
        ("from malmoi.labels.stored_text import text_hash", "print(text_hash('가' + marks))"),
        ("from malmoi.text.morphemes import analyse", "print(len(analyse('가' + marks)))"),
    ],
)
def test_marks_wherever_a_text_is_normalised(imports: str, code: str) -> None:
    marks = r"marks = '\u0301\u0316' * 300_000; "
    assert bounded(marks + code, imports=imports, memory=2 << 30)  # Kiwi holds 0.5 GiB


def test_few_marks_stay_as_they_are() -> None:
    for number in (0, 1, 2, MOST_MARKS):
        for marks in MARKS[:2]:
            text = "가" + (marks * number)[:number] + " 좋은 영화"
            assert to_nfc(text) == unicodedata.normalize("NFC", text)
    text = "e" + "\u0301" * 31 + "나" + "\u0301" * 30
    # The first of them and the letter are one character.
    assert to_nfc(text) == "é" + "\u0301" * 29 + "나" + "\u0301" * 30


def test_a_run_is_cut_after_what_shows_nothing_has_gone() -> None:
    """The grapheme joiner parts runs, as UAX #15 has it, but cleaning takes it out."""
    text = "좋은 영화라고 생각해요 가" + ("\u0316" * 30 + "\u034f") * 3
    clean = clean_text(text)
    assert clean.count("\u0316") <= MOST_MARKS and clean_text(clean) == clean
    assert clean_batch([text]).texts == [clean]


def test_every_mark_of_this_python_is_bounded() -> None:
    firsts = (unicodedata.normalize("NFD", chr(code))[0] for code in range(0x110000))
    marks = [chr(code) for code, first in enumerate(firsts) if unicodedata.combining(first)]
    assert len(marks) > 800
    assert [mark for mark in marks if len(to_nfc("가" + mark * 99)) > 1 + 3 * MOST_MARKS] == []


@pytest.mark.parametrize("levels", ["AMP;", "ampamp;"])
def test_entities_inside_entities(levels: str) -> None:
    """Each of 100,000 levels took a pass over the text."""
    code = f"text = '영화 &' + {levels!r} * 100_000 + 'lt;'; clean = clean_text(text)"
    printed = bounded(f"{code}; print(clean_text(clean) == clean)")
    assert printed == "True"
    for depth in range(1, 6):
        assert clean_text(f"가 &{'amp;' * depth}lt; 나") == "가 < 나"


PIPES = ["pipe.csv", "zero.txt", "socket.jsonl", "link.xlsx"]


@pytest.fixture
def pipe(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / request.param
    opened = socket.socket(socket.AF_UNIX)
    if path.stem == "zero":
        path.symlink_to("/dev/zero")
    elif path.stem == "socket":
        opened.bind(str(path))
    else:
        os.mkfifo(tmp_path / "pipe.csv")
        if path.stem == "link":
            path.symlink_to("pipe.csv")
    yield path
    opened.close()


@pytest.mark.parametrize("pipe", PIPES, indirect=True)
def test_pipes_and_devices_are_no_files(pipe: Path) -> None:
    message = rf"{pipe.name}: expected a file or folder, found a (pipe|device|socket); write"
    in_folder = "print(sum(1 for _ in iter_records(os.path.dirname(sys.argv[1]))))"
    printed = bounded(_READ, in_folder, path=pipe, imports="import os").splitlines()
    assert len(printed) == 2
    for line in printed:  # given, or met in a folder
        assert re.search(message.replace("link.xlsx", r"\w+\.\w+"), line), line


COMMANDS = [
    ["clean", "{}", "--output", "{}.out"],
    ["stats", "{}"],
    ["sample", "{}"],
    ["tokenizer", "train", "--corpus", "{}", "--output", "{}.out"],
    ["tokenizer", "evaluate", "checkpoints/malmoi-small", "--corpus", "{}"],
    ["pretrain", "--corpus", "{}"],
    ["kfold", "--data", "{}"],
]


@pytest.mark.timeout(300)  # it would be for ever
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("pipe", ["pipe.csv", "zero.txt"], indirect=True)
def test_no_command_waits_for_a_pipe(
    pipe: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    assert malmoi([flag.format(pipe) for flag in command]) == 2
    error = capsys.readouterr().err
    assert "expected a file or folder, found a" in error
    assert error.count("\n") == 1
    assert {path.name for path in pipe.parent.iterdir()} == {pipe.name}


def test_a_large_sheet_of_short_cells_is_read(tmp_path: Path) -> None:
    """What stands near the bounds, but on this side: blank rows, formats, long cells."""
    rows = "".join(
        f'<row r="{row}" ht="20"><c r="B{row}" s="0"/></row>' for row in range(3, 100_000)
    )
    last = f'<row r="1048576">{STRING_CELL.replace("A2", "A1048576")}끝</t></is></c></row>'
    long = f'<row r="2">{STRING_CELL}{"글" * 32_767}</t></is></c></row>'
    path = tmp_path / "a.xlsx"
    sheet = f"<!-- <row made by hand -->{START}{long}{rows}{last}{END}"
    write_workbook(path, SHEET, iter([sheet.encode()]))
    assert [len(record.text) for record in iter_records(path)] == [32_767, 1]
