"""Journeys of tables through `malmoi predict`, and of texts through `malmoi explain`."""

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import strategies as st

from malmoi.text.cleaning.cleaner import clean_text
from tests.journeys.conftest import LABELS
from tests.journeys.files import DirtyFile, Written
from tests.journeys.laws import journey, must_be_read, render, run, table_of
from tests.journeys.strategies import files, journeys

OUTPUTS = ("csv", "xlsx", "jsonl", "json", "parquet")


def _output_form(file: DirtyFile, other: str) -> str:
    # A third of them in another form than the input's.
    return other if file.seed % 3 == 0 or file.form in ("txt", "tsv") else file.form


_ONE = (("배송이 빨라서 정말 좋았어요", "긍정"),)
KEPT = [
    DirtyFile(rows=_ONE, form="xlsx", dirt=("unnamed last column",), seed=1),
    # Once more, the same bytes: not so of a workbook before.
    DirtyFile(rows=_ONE * 3, form="xlsx", dirt=("long cell", "typed cells")),
    # A bar behind each text parts nothing; of two texts, it parts nothing anywhere.
    DirtyFile(rows=(("색이 예뻐요 |", "긍정"),) * 4, form="txt", dirt=("zero width",)),
    DirtyFile(rows=(("가방 | 색이 예뻐요", "긍정"),) * 2, form="txt"),
]


@journeys(
    390,
    [{"file": file, "other": "xlsx"} for file in KEPT],
    file=files(),
    other=st.sampled_from(OUTPUTS),
)
def test_a_table_comes_back_with_labels(file: DirtyFile, other: str, classifier: Path) -> None:
    with journey() as home:
        written = render(file, home)
        form = _output_form(file, other)
        flags = ["--model", classifier, "--engine", "torch-fp32"]
        done = run("predict", written.path, *flags, "--output", f"답.{form}")
        if not must_be_read(written, done):
            return
        found = table_of(Path(f"답.{form}"))
        assert len(found) == len(written.in_place)
        blank = [row for row, given in zip(found, written.in_place, strict=True) if given is None]
        everything = found
        found = [row for row, given in zip(found, written.in_place, strict=True) if given]
        _same_cells(written, found, file.form, form)
        if file.form == form == "parquet" and file.parts == 1:
            schema = pq.read_schema(f"답.{form}")
            assert list(schema)[: len(written.columns)] == list(pq.read_schema(written.path))
        names = list(found[0])
        label = next(name for name in reversed(names) if name.split(" (")[0] == "label")
        of_file = ("source_file", "source_sheet")
        assert not any(
            _shown(row.get(name)) for row in blank for name in names if name not in of_file
        )
        for row, text in zip(found, written.texts, strict=True):
            assert (row[label] in LABELS) == bool(clean_text(text)), row

        match file.seed // 3 % 3:
            case 0:
                again = run("predict", written.path, *flags, "--output", f"또.{form}")
                assert again.code == 0
                assert Path(f"또.{form}").read_bytes() == Path(f"답.{form}").read_bytes()
            case 1:
                # Into a pipe: the same rows.
                piped = run("predict", written.path, *flags, "--output", "-")
                lines = [json.loads(line) for line in piped.out.splitlines()]
                assert [line[label] for line in lines] == [
                    _shown(row[label]) or None for row in everything
                ]
            case _:
                # What was written is read again, and means the same.
                reread = run("predict", f"답.{form}", *flags, "--output", "셋.jsonl")
                assert reread.code == 0, reread
                texts = [str(row[written.text_column] or "") for row in table_of(Path("셋.jsonl"))]
                assert [clean_text(text) for text in texts if text] == [
                    clean_text(text) for text in written.texts if text
                ]


def _shown(cell: Any) -> str:
    """A cell as a person reads it, whatever the form of its file made of it."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False, default=_shown)
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, datetime.date):
        return cell.isoformat().removesuffix("T00:00:00")
    text = str(cell)
    # Which keeps a table program from taking it for a formula.
    text = text.lstrip("\u200b").removesuffix(" 00:00:00")
    text = text.lower() if text in ("True", "False") else text
    return text.removesuffix(".0")


def _same_cells(written: Written, found: list[dict[str, Any]], form: str, output: str) -> None:
    added = ("source_file", "source_sheet")
    if form == output and form in ("jsonl", "json"):
        for row, given in zip(found, written.rows, strict=True):
            own = [(name, cell) for name, cell in row.items() if name not in added]
            assert own[: len(given)] == list(given.items())
        return
    names = [name for name in found[0] if name not in added]
    # Of objects: keys in the order in which they are met.
    columns = list(dict.fromkeys(name for row in written.rows for name in row))
    if form not in ("jsonl", "json"):
        columns = written.columns
    expected = [name or f"column {place}" for place, name in enumerate(columns, 1)]
    assert names[: len(expected)] == expected
    for row, given in zip(found, written.rows, strict=True):
        for name, shown in zip(columns, expected, strict=True):
            # A row of JSON may lack what another one has.
            assert _shown(given.get(name)) == _shown(row.get(shown)), (name, given, row)
            if form == output == "xlsx" and isinstance(given.get(name), datetime.date | float):
                assert isinstance(row[shown], datetime.datetime | int | float), (name, row)
