"""Which rows of labelled texts are a test of their own: by a column, by files, or by a date."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Literal

import numpy as np

from malmoi.errors import InputError
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.row_format import RowFormat
from malmoi.finetune.data.source import DataPlace
from malmoi.inference.learnt_texts import text_keys
from malmoi.labels.label_names import normal_label
from malmoi.text.reading.sources import find_sources
from malmoi.text.record import Record

Part = Literal["train", "dev", "test"]
SPLIT_COLUMN = "split"
# As they are met in tables of reviews and comments.
DATE_COLUMNS = (
    *("date", "datetime", "created_at", "created", "timestamp", "time"),
    *("날짜", "일자", "작성일", "작성일시", "작성일자", "등록일", "등록일시", "일시"),
)
_PARTS: dict[Part, re.Pattern[str]] = {
    "train": re.compile("train(ing)?|학습.*|훈련.*"),
    "dev": re.compile("dev|val|valid|validation|검증.*"),
    "test": re.compile("test|테스트.*|평가.*|시험.*"),
}
# What stands between the words of a file's name: data/train-00000-of-00001.parquet, 1.Training.
_BETWEEN = re.compile(r"[\W\d_]+")
_DAY = re.compile(r"\s*(\d{4})\s*[-./년]?\s*(\d{1,2})\s*[-./월]?\s*(\d{1,2})(?!\d{5})")


def part_named(name: str) -> Part | None:
    """The part that a cell or a word names."""
    word = normal_label(name).casefold()
    return next((part for part, words in _PARTS.items() if words.fullmatch(word)), None)


def parts_of_files(names: Sequence[str]) -> dict[str, Part]:
    """The part of each file, by words of its path; none where no file is of the test, or none else.

    A file that names no part is learnt: what it shares with the test is left out of training.
    """
    found: dict[str, Part] = {}
    for name in names:
        words = map(part_named, _BETWEEN.split(name))
        found[name] = next((word for word in words if word), "train")
    named = {part_named(word) for name in names for word in _BETWEEN.split(name)}
    return found if {"train", "test"} <= named and {"test"} < set(found.values()) else {}


def day_of(cell: object) -> date | None:
    """The day that a cell begins with: 2024-03-01, 2024.3.1 12:00, 20240301, 2024년 3월 1일."""
    day = _DAY.match(str(cell))
    try:
        return date(*map(int, day.groups())) if day else None
    except ValueError:
        return None


class Parts:
    """Tells row by row what is the test, and remembers what was met."""

    def __init__(self, path: DataPlace, form: RowFormat) -> None:
        self._path, self._form = path, form
        self._files: dict[str, Part] = {}
        if form.own_test and isinstance(path, Path):
            self._files = parts_of_files([source.name for source in find_sources(path)])
        self._counts: Counter[Part] = Counter()
        self._strange = ""  # a cell of the column that names no part
        self._by_column = False
        self._latest: date | None = None

    def is_test(self, record: Record) -> bool:
        """Whether a row is of the test.

        Raises:
            InputError: its day is asked for, and it has none.
        """
        if not self._form.own_test:
            return False
        after = self._form.test_after
        part = self._by_day(record, after) if after is not None else self._by_name(record)
        self._counts[part] += 1
        return part == "test"

    def _by_name(self, record: Record) -> Part:
        if SPLIT_COLUMN not in record.cells:
            return self._files.get(record.source, "train")
        cell = record.cells[SPLIT_COLUMN]
        part = part_named("" if cell is None else str(cell))
        self._by_column |= part == "test"
        if part is None and not self._strange:
            self._strange = f"{cell!r} in {record.source}:{record.place}"
        return part or "train"

    def _by_day(self, record: Record, after: date) -> Part:
        cells = [record.cells[name] for name in self._form.date_columns if name in record.cells]
        where = f"{record.source}:{record.place or record.line}"
        if not cells:
            raise InputError(
                "no date column: expected one of {names:, }; name it with --set data.date_column, "
                "or leave out data.test_after",
                place=where,
                names=self._form.date_columns,
            )
        day = day_of(cells[0])
        if day is None:
            raise InputError(
                "expected a day such as 2024-03-01, found {cell!r}; correct it, or name another "
                "column with --set data.date_column",
                place=where,
                cell=str(cells[0]),
            )
        self._latest = max(day, self._latest or day)
        return "test" if day > after else "train"

    def check(self) -> None:
        """Refuse a column that says test of some rows and something else than a part of others.

        Raises:
            InputError: so it is, or no row is after the day.
        """
        if self._form.test_after is not None and self._latest and not self._counts["test"]:
            raise InputError(
                "expected rows after {day} (data.test_after), found none in {path}: the latest is "
                "of {latest}; give an earlier day",
                day=self._form.test_after,
                path=self._path,
                latest=self._latest,
            )
        if self._by_column and self._strange:
            raise InputError(
                "expected train, valid or test in every cell of the column {column}, found "
                "{found}; correct it, or take all rows as one with --set data.own_test=false",
                place=self._path,
                column=SPLIT_COLUMN,
                found=self._strange,
            )

    @property
    def joined(self) -> int:
        """Rows of a part for development, which are learnt."""
        return self._counts["dev"]

    @property
    def origin(self) -> str:
        """Which rows the test is, for a sentence."""
        if self._form.test_after is not None:
            return f"rows after {self._form.test_after} (data.test_after)"
        if self._by_column:
            return f"rows with test in the column {SPLIT_COLUMN}"
        files = [name for name, part in self._files.items() if part == "test"]
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        return f"files named test, {files[0]}{more}" if files else ""


def test_without(learnt: np.ndarray, examples: Examples, model: str) -> Examples:
    """The texts of a test that a classifier has not learnt.

    Args:
        learnt: keys of what it has, see `learnt_texts`.
        examples: the test.

    Raises:
        InputError: it has learnt all of them.
    """
    known = np.isin(text_keys(examples.texts, examples.pairs), learnt)
    if known.all():
        raise InputError(
            "{model} has learnt all {texts:,} texts of {path}, which a score on them would only "
            "repeat; give texts that it has not learnt",
            model=model,
            texts=len(known),
            path=examples.path,
        )
    return examples.only(np.flatnonzero(~known))
