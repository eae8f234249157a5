"""The parts of a table that are compared: values of its columns, weeks and months."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from malmoi.errors import InputError
from malmoi.inference.inputs import text_of_cell

if TYPE_CHECKING:
    import pandas as pd

Period = Literal["week", "month"]
# Values of a column that stand by themselves; the others are one part.
MOST_VALUES = 20
# The latest weeks or months.
MOST_PERIODS = 60
# Weeks up to half a year, months beyond (assumption: so many points are still told apart).
_MOST_WEEKS = 27
# Cells of a column of dates that must be dates.
_DATES = 0.9
_SHOWN = 3
# Year, month and day as they are written: 2026-03-05 14:20, 26.3.5, 2026년 3월, 20260305.
_DATE = (
    r"^\D?(?P<year>(?:19|20)?\d\d)(?:[-./년\s]+|(?=\d{4}\b))(?P<month>0[1-9]|1[0-2]|[1-9])"
    r"(?:(?:[-./월\s]+|(?<=\d{6}))(?P<day>[0-2]?\d|3[01]))?(?!\d)"
)


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """Which part each of N texts is in.

    Attributes:
        column: what they are made of.
        period: of a column of dates; None of one of values.
        names: G of them, the largest first or, of dates, in their order.
        codes: int64 [N], -1 of a text in none: its cell is empty.
        others: how many rarer values the last part has, 0 where it is one like the others; of
            dates how many earlier periods are left out.
    """

    column: str
    period: Period | None
    names: Sequence[str]
    codes: np.ndarray
    others: int = 0


def parts_by_value(cells: "pd.Series", column: str) -> Grouping:
    """The texts of each value, the commonest first; rare values together are the last part."""
    import pandas as pd

    written = cells.map(_written)
    counts = written[written != ""].value_counts()
    names = counts.index.tolist()
    kept = names if len(names) <= MOST_VALUES + 1 else names[:MOST_VALUES]
    others = len(names) - len(kept)
    codes = np.asarray(pd.Index(kept).get_indexer(pd.Index(written)), dtype=np.int64)
    if others:
        codes = np.where((codes < 0) & (written != "").to_numpy(), len(kept), codes)
    return Grouping(
        column=column,
        period=None,
        names=[*kept, *([""] if others else [])],
        codes=codes,
        others=others,
    )


def parts_by_time(cells: "pd.Series", column: str, period: Period | None) -> Grouping:
    """The texts of each week (by its Monday) or month; of neither where it is chosen by the span.

    Raises:
        InputError: the column holds no dates.
    """
    import pandas as pd

    dates = _dates(cells, column)
    known = dates.dropna()
    first, last = known.min(), known.max()
    if period is None:
        period = "week" if (last - first).days <= 7 * _MOST_WEEKS else "month"
    spans = pd.period_range(first, last, freq="W" if period == "week" else "M")
    written = "%Y-%m-%d" if period == "week" else "%Y-%m"
    names = [f"{span.start_time:{written}}" for span in spans]
    codes = np.full(len(dates), -1, dtype=np.int64)
    there = dates.notna().to_numpy()
    codes[there] = spans.start_time.searchsorted(dates[there], side="right") - 1
    early = max(0, len(names) - MOST_PERIODS)
    codes = np.maximum(codes - early, -1)
    return Grouping(column=column, period=period, names=names[early:], codes=codes, others=early)


def _dates(cells: "pd.Series", column: str) -> "pd.Series":
    import pandas as pd

    # Of many texts a few days.
    codes, days = pd.factorize(cells.map(_written))
    written = pd.Series(days)
    named = written.str.extract(_DATE).fillna("")
    year = named["year"].where(named["year"].str.len() != 2, "20" + named["year"])
    plain = year + "-" + named["month"] + "-" + named["day"].where(named["day"] != "", "1")
    found = pd.to_datetime(plain, errors="coerce", format="%Y-%m-%d")
    times = np.bincount(codes, minlength=len(days)) * (written != "").to_numpy()
    wrong = found.isna().to_numpy() & (times > 0)
    if not times.any() or times[wrong].sum() > (1 - _DATES) * times.sum():
        raise InputError(
            "expected dates such as 2026-03-05 in the column {column}, found {found}; name another "
            "column, or none",
            column=column,
            found=", ".join(written[wrong].unique()[:_SHOWN]) or "no cell with words",
        )
    return found.take(codes).reset_index(drop=True)


def _written(cell: object) -> str:
    return str(text_of_cell(cell)).strip()
