"""Journeys of texts: clean, stats, sample, tokenizer."""

import json
from pathlib import Path

import pandas as pd

from malmoi.text.cleaning.cleaner import clean_text, reason_to_drop
from tests.journeys.files import DirtyFile
from tests.journeys.laws import journey, must_be_read, render, run, table_of
from tests.journeys.strategies import files, journeys


def _left_out(report: dict[str, object]) -> int:
    """Rows and lines that a report names as left out because they are none."""
    reading = report["reading"]
    assert isinstance(reading, dict)
    counts = [file.get("counts", {}) for file in reading["files"]]
    return sum(number for count in counts for what, number in count.items() if "left out" in what)


_TWO = (("배송이 빨라서 정말 좋았어요", "긍정"), ("사진이랑 색이 너무 달라요", "부정"))
KEPT = [
    DirtyFile(rows=_TWO, form="txt", dirt=("blank in middle",)),
    DirtyFile(rows=_TWO, form="csv", dirt=("blank at start", "header again")),
    DirtyFile(rows=_TWO, form="jsonl", dirt=("blank in middle",)),
    DirtyFile(rows=_TWO, form="xlsx", dirt=("blank in middle", "header again"), seed=1),
    # A quoted text over two lines in a row that lacks its last field.
    DirtyFile(rows=_TWO * 2, form="tsv", dirt=("line breaks in cells", "short rows"), seed=1),
]


@journeys(500, [{"file": file} for file in KEPT], file=files())
def test_texts_are_cleaned_and_every_row_is_accounted_for(file: DirtyFile) -> None:
    with journey() as home:
        written = render(file, home)
        done = run("clean", written.path, "--output", "깨끗", "--rejects", "버림.jsonl")
        cleaned = {
            clean: None
            for text in written.texts
            if reason_to_drop(text, clean := clean_text(text)) is None
        }
        # Where nothing is worth keeping, that is said instead.
        written.must_be_read &= bool(cleaned)
        if not must_be_read(written, done):
            return
        report = json.loads(Path("깨끗/_report.json").read_text(encoding="utf-8"))
        kept = pd.read_parquet("깨끗")
        assert report["read"] == len(written.rows)
        assert _left_out(report) == written.left_out
        assert report["kept"] == len(kept)
        assert report["read"] == report["kept"] + sum(report["dropped"].values())
        assert len(table_of(Path("버림.jsonl"))) == report["read"] - report["kept"]

        assert list(kept["text"]) == list(cleaned)

        if file.seed % 2:
            # Once more, the same bytes.
            again = run("clean", written.path, "--output", "또", "--rejects", "또.jsonl")
            assert again.code == 0
            assert _bytes(Path("깨끗")) == _bytes(Path("또"))
        else:
            # What was written is read by the next command, and nothing more is to clean.
            assert run("stats", "깨끗").code == 0
            assert run("clean", "깨끗", "--output", "둘").code == 0
            assert list(pd.read_parquet("둘")["text"]) == list(kept["text"])
            assert run("sample", written.path).code == 0


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
