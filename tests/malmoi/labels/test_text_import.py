"""Texts come into a project once, with all that they came with, whatever happens on the way."""

import gzip
import json
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.leasing import LeasedText, lease_texts
from malmoi.labels.review import progress
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources, source_of_upload
from tests.malmoi.labels.conftest import Make

IMPORTER = """
import sys
from pathlib import Path
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import find_sources
access = ProjectStore(sys.argv[1]).access(Person(name="관리자", is_local=True), "리뷰")
most = int(sys.argv[3])
def progress(rows):
    print(rows, flush=True)
    if rows >= most:
        sys.stdin.read()  # to be killed before it is done
import_texts(access, find_sources(Path(sys.argv[2])), progress=progress)
"""


def rows_of(access: ProjectAccess) -> list[dict[str, Any]]:
    query = (
        "SELECT t.text, s.source, s.place, s.cells, s.text AS own FROM malmoi_text_sources s "
        "JOIN malmoi_texts t ON t.id = s.text_id ORDER BY s.id"
    )
    with create_engine(access.engine.url).connect() as connection:
        return [dict(row) for row in connection.execute(text(query)).mappings()]


def test_files_of_several_kinds_keep_their_columns_and_places(make: Make, tmp_path: Path) -> None:
    access = make()
    csv = "번호,내용,별점\n1,배송이 빨라요,5\n2,별로예요,1\n"
    (tmp_path / "가.csv").write_bytes(csv.encode("cp949"))
    (tmp_path / "나.jsonl").write_text(
        '{"text": "그냥 그래요 👍🏽", "meta": {"a": [1]}}\n', "utf-8"
    )
    (tmp_path / "다.txt.gz").write_bytes(gzip.compress("한 줄\n\n두 줄\n".encode()))
    report = import_texts(access, find_sources(tmp_path))
    assert (report.rows, report.new_texts, report.duplicates, report.left_out_count) == (5, 5, 0, 0)
    found = [(row["text"], row["source"], row["place"]) for row in rows_of(access)]
    assert found == [
        ("배송이 빨라요", "가.csv", "2"),
        ("별로예요", "가.csv", "3"),
        ("그냥 그래요 👍🏽", "나.jsonl", "1"),
        ("한 줄", "다.txt.gz", "1"),
        ("두 줄", "다.txt.gz", "3"),
    ]
    cells = [json.loads(row["cells"]) for row in rows_of(access)]
    assert cells[0] == {"번호": "1", "별점": "5"} and cells[2] == {"meta": {"a": [1]}}
    assert cells[3] == {}


def test_texts_that_are_equal_once_clean_are_one_and_keep_every_row(make: Make) -> None:
    access = make()
    first = "text,id\n좋아요 ㅋㅋ,a\n좋아요 ㅋㅋㅋㅋㅋ,b\n"
    second = f"text,id\n{unicodedata.normalize('NFD', '좋아요 ㅋㅋ')},c\n👨‍👩‍👧 가족,d\n"
    report = import_texts(
        access,
        [source_of_upload("a.csv", first.encode()), source_of_upload("b.csv", second.encode())],
    )
    assert (report.rows, report.new_texts, report.duplicates) == (4, 2, 2)
    rows = rows_of(access)
    assert [(row["text"], json.loads(row["cells"])["id"]) for row in rows] == [
        ("좋아요 ㅋㅋ", "a"),
        ("좋아요 ㅋㅋ", "b"),
        ("좋아요 ㅋㅋ", "c"),
        ("👨‍👩‍👧 가족", "d"),
    ]
    assert rows[1]["own"] == "좋아요 ㅋㅋㅋㅋㅋ" and rows[0]["own"] is None


def test_a_text_of_which_nothing_is_left_is_an_empty_one(make: Make) -> None:
    access = make()
    texts = ["하나", "\u200b", "\ufeff \u2060", "\ufe0f", "\u3164", "<br>", "", "👍", "ㅋ"]
    lines = "".join(json.dumps({"text": one}) + "\n" for one in texts)
    source = source_of_upload("a.jsonl", lines.encode())
    report = import_texts(access, [source])
    assert [row["text"] for row in rows_of(access)] == ["하나", "👍", "ㅋ"]
    assert report.bad_rows.count == 6
    assert str(report.bad_rows.first[0]).startswith("a.jsonl:2: expected a text") and (
        "\\u200b" in str(report.bad_rows.first[0])
    )


def test_bad_rows_and_files_are_named_and_all_else_is_imported(make: Make) -> None:
    access = make()
    lines = '{"text": "하나"}\n{"text": \n{"text": ["둘"]}\n{"text": ""}\n{"text": "셋\\u0000"}\n'
    report = import_texts(
        access,
        [
            source_of_upload("a.jsonl", lines.encode()),
            source_of_upload("b.csv", b""),
            source_of_upload("c.txt", "넷".encode()),
        ],
    )
    assert report.new_texts == 2 and report.bad_rows.count == 4
    places = ["a.jsonl:2", "a.jsonl:3", "a.jsonl:4", "a.jsonl:5"]
    assert [any(place in str(one) for one in report.bad_rows.first) for place in places] == [
        True
    ] * 4
    assert len(report.bad_files) == 1 and str(report.bad_files[0]).startswith(
        "b.csv: the file is empty"
    )
    with pytest.raises(InputError, match=r"expected texts to import, found none: d\.csv"):
        import_texts(access, [source_of_upload("d.csv", b"")])
    with pytest.raises(InputError, match="found none"):
        import_texts(access, [])


def test_the_same_import_again_does_nothing_and_read_otherwise_it_is_another(make: Make) -> None:
    access = make()
    sources = [source_of_upload("a.csv", "text,제목\n글 하나,제목 하나\n".encode())]
    first, again = import_texts(access, sources), import_texts(access, sources)
    assert not first.was_done and again.was_done and again.new_texts == 1
    assert len(rows_of(access)) == 1
    other = import_texts(access, sources, ReadOptions(text_column="제목"))
    assert other.new_texts == 1 and progress(access).texts == 2


def test_an_import_that_was_killed_goes_on_and_doubles_nothing(
    make: Make, any_url: str, tmp_path: Path
) -> None:
    access = make()
    path = tmp_path / "글.txt"
    path.write_text("\n".join(f"글 번호 {number}" for number in range(6_000)), "utf-8")
    command = [sys.executable, "-c", IMPORTER, any_url, str(path)]
    for most in (3_000, 5_000):
        with subprocess.Popen(
            [*command, str(most)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
    halfway = progress(access).texts
    assert 2_000 <= halfway < 6_000
    seen: list[int] = []
    report = import_texts(access, find_sources(path), progress=seen.append)
    assert seen[0] > halfway and report.rows == report.new_texts == 6_000
    assert [row["place"] for row in rows_of(access)] == [str(n) for n in range(1, 6_001)]


def test_two_who_import_the_same_at_once_double_nothing(
    make: Make, any_url: str, tmp_path: Path
) -> None:
    access = make()
    path = tmp_path / "글.txt"
    path.write_text("\n".join(f"글 번호 {number}" for number in range(3_000)), "utf-8")
    command = [sys.executable, "-c", IMPORTER, any_url, str(path), "1000000"]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in processes]
    assert 0 in [process.returncode for process in processes]
    for process, errors in zip(processes, said, strict=True):
        assert process.returncode == 0 or "found somebody else who does" in errors
    import_texts(access, find_sources(path))
    assert len(rows_of(access)) == progress(access).texts == 3_000


def test_labelling_goes_on_while_texts_are_imported(make: Make) -> None:
    access = make()
    lines = "\n".join(f"글 번호 {number}" for number in range(2_500)).encode()
    found: list[list[LeasedText]] = []
    import_texts(
        access,
        [source_of_upload("글.txt", lines)],
        progress=lambda _rows: found.append(lease_texts(access, 1)),
    )
    assert len(found) == 3 and all(found)
