"""Real memos."""

import csv
from pathlib import Path

import pytest

MEMOS = Path(__file__).parents[4] / "corpora" / "memos" / "memos.csv"


@pytest.fixture(scope="session")
def memos() -> list[tuple[str, str]]:
    """All memos of the project that have one label, with it."""
    with MEMOS.open(encoding="utf-8-sig", newline="") as file:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(file)]
    labels = ("꿈", "일기", "일정", "메모", "오류")
    return [(text, label) for text, label in dict(rows).items() if label in labels]
