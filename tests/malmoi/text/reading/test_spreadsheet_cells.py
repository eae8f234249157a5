"""A CSV file for people runs nothing in a spreadsheet, and its texts come back as they were."""

import csv
import io
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.corpus.parquet_parts import FileWriter
from malmoi.text.reading.records import iter_records, load_table
from malmoi.text.reading.spreadsheet_cells import guarded, unguarded
from malmoi.text.table_writing import table_writer

FORMULAS = [
    "=1+1",
    "=cmd|'/C calc'!A0",
    "+82-10-0000-0000",
    "-_- 별로",
    "@아무나",
    "＝1+1",
    " =1+1",
    "\n=1+1",
    "\t=1+1",
    "\t들여 쓴 글",
    "\r=1+1",
    "\x01=1+1",
    "\u200b=1+1",
    "\u200b\u200b-_-",
    "-",
]
HARMLESS = ["", "좋아요", "'-' 이런", "'=1+1", "-5", "+0.5", "-1e-05", "1-2", "\u200b글", "\u200b"]


def runs_something(cell: str) -> bool:
    """What a spreadsheet may take for a formula: by its first character, blanks left out."""
    try:
        float(cell)
    except ValueError:
        return cell[:1] in ("\t", "\r") or cell.lstrip(" \t\r\n\x00\x01")[:1] in tuple(
            "=+-@＝＋－＠"
        )
    return False


def through_csv(cells: list[str]) -> list[str]:
    """Written as a table for people, read as an upload."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["text", "x"], *([guarded(cell), "1"] for cell in cells)])
    return load_table("a.csv", file.getvalue().encode("utf-8-sig"))["text"].tolist()


@pytest.mark.parametrize("cell", FORMULAS)
def test_formulas_become_texts_and_come_back(cell: str) -> None:
    assert not runs_something(guarded(cell))
    assert unguarded(guarded(cell)) == cell
    # Whoever reads the file with something else cleans it to the same text.
    assert clean_text(guarded(cell)) == clean_text(cell)


@pytest.mark.parametrize("cell", HARMLESS)
def test_what_runs_nothing_is_left_alone(cell: str) -> None:
    assert guarded(cell) == cell == unguarded(cell)


@given(st.text("\u200b=+-@ \t\r\n\x00a글1.'", max_size=8))
def test_every_text_comes_back_but_for_nul(cell: str) -> None:
    assert unguarded(guarded(cell)) == cell.replace("\x00", "")
    assert not runs_something(guarded(cell))


def test_a_file_gives_back_its_texts() -> None:
    cells = [*FORMULAS, *HARMLESS]
    assert through_csv(cells) == cells


def test_rejects_run_nothing_and_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "rejects.csv"
    schema = pa.schema([("text", pa.string()), ("=reason", pa.string())])
    writer = FileWriter(path, schema)
    texts = [cell for cell in FORMULAS if clean_text(cell)]
    writer.write(pa.table({"text": texts, "=reason": ["short"] * len(texts)}, schema=schema))
    writer.close()
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert not any(runs_something(cell) for row in csv.reader(file) for cell in row)
    assert [record.text for record in iter_records(path)] == texts
    assert list(load_table("r.csv", path.read_bytes()).columns) == ["text", "=reason"]


def test_a_file_that_a_spreadsheet_saved_with_tabs(tmp_path: Path) -> None:
    path = tmp_path / "saved.tsv"
    path.write_text(f"text\tlabel\n{guarded('-_- 별로')}\t부정\n", encoding="utf-8")
    assert [record.text for record in iter_records(path)] == ["-_- 별로"]


def test_numbers_that_a_spreadsheet_would_round_are_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "ids.xlsx"
    ids = [1234567890123456789, 1234567890123456790, -(10**15), 999_999_999_999_999, 7]
    with table_writer(path, ["id"], ["int"]) as write_row:
        for number in ids:
            write_row([number])
    assert load_table("ids.xlsx", path.read_bytes())["id"].tolist() == list(map(str, ids))
    sheet = openpyxl.load_workbook(path).active
    assert sheet is not None
    assert [sheet[f"A{row}"].value for row in (5, 6)] == [999_999_999_999_999, 7]
