"""A table of texts and what was said of them, put together: shares, changes, words, themes.

Legend: N texts, K labels.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from malmoi.analysis.parts import Grouping, Period, parts_by_time, parts_by_value
from malmoi.analysis.shares import (
    Counts,
    Labelling,
    Shares,
    counted,
    difference,
    shares,
    texts_to_halve,
    wilson,
)
from malmoi.analysis.themes import Theme, find_themes, spread_out
from malmoi.errors import InputError
from malmoi.free_names import free_name
from malmoi.labels.label_names import normal_label
from malmoi.labels.project import PALETTE
from malmoi.text.cleaning.personal_data import mask_personal_data
from malmoi.text.label_keywords import LabelKeyword, WordTable, word_table

if TYPE_CHECKING:
    from malmoi.inference.vectors.sentence_encoder import SentenceEncoder

# Chance of one false statement among those that are made (Benjamini & Hochberg 1995).
_FALSE = 0.05
# Sentence vectors take ten milliseconds a text, words a tenth of one: the page is to come soon.
_THEME_TEXTS = 500
_WORD_TEXTS = 20_000
_WORDS, _EXAMPLES = 12, 3
# Shorter texts stand for nothing.
_FEWEST_CHARACTERS = 8
# Parts that stand out whose words are told.
_MOST_PARTS = 12
_SHARE_COLUMNS = ("column", "part", "label", "texts", "read", "said", "share", "low", "high")
_CHANGE_COLUMNS = (
    *("column", "part", "label", "compared", "texts", "share", "other", "difference"),
    *("low", "high", "p"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """What a table says; every table of it is computed once, when it is asked for.

    Attributes:
        originals: N texts.
        cells: the other columns of the table, N rows.
        labels: K names.
        labelling: of the N texts.
        confidence: of the model, float [N]; nan where it said nothing.
        by: columns whose values are compared.
        time: column of dates, or None.
        period: of dates; None: by their span.
        model: its name, or None.
        encoder: gives sentence vectors; None: there are no themes.
        vectors: float32 [N, H], where they are there already; 0 of texts without.
        title: of the page.
        learnt: texts that people read and the model has learnt, so that they do not count.
        blank: rows that were left out because they have no text.
        colors: `#rrggbb` of labels; the others have the next of the palette.
    """

    originals: Sequence[str]
    cells: pd.DataFrame
    labels: Sequence[str]
    labelling: Labelling
    confidence: np.ndarray
    by: Sequence[str] = ()
    time: str | None = None
    period: Period | None = None
    model: str | None = None
    encoder: "SentenceEncoder | Callable[[Sequence[str]], np.ndarray] | None" = None
    vectors: np.ndarray | None = None
    title: str = ""
    learnt: int = 0
    blank: int = 0
    colors: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[Grouping]:
        """All texts, then the parts of each column, dates last."""
        every = np.zeros(len(self.originals), dtype=np.int64)
        found = [Grouping(column="", period=None, names=[""], codes=every)]
        by = dict.fromkeys(name for name in self.by if name != self.time)
        found += [parts_by_value(self._column(name), name) for name in by]
        if self.time is not None:
            found.append(parts_by_time(self._column(self.time), self.time, self.period))
        return found

    @cached_property
    def part_names(self) -> list[list[str]]:
        """Of each of `parts`, as a table writes them: masked, and rare values as their number."""
        named: list[list[str]] = []
        for parts in self.parts:
            names: list[str] = []
            for name in parts.names:
                # Two that look the same are two still.
                names.append(free_name(mask_personal_data(name), names))
            if parts.others and parts.period is None:
                names[-1] = f"+{parts.others:,}"
            named.append(names)
        return named

    @cached_property
    def counts(self) -> list[Counts]:
        """Of each of `parts`."""
        return [counted(self.labelling, one.codes, len(one.names)) for one in self.parts]

    @cached_property
    def found(self) -> list[Shares]:
        """The shares in each of `parts`."""
        return [self._shares(one) for one in self.counts]

    @cached_property
    def shares(self) -> pd.DataFrame:
        """The share of each label in all (an empty `column`) and in each part.

        `said` is what the model says, `read` how many texts people have read; `low` and `high` are
        those of the 95% interval.
        """
        rows = [
            (
                *(parts.column, names[part], self.labels[label]),
                *(found.texts[part], found.drawn[part], found.said[part, label]),
                *(found.share[part, label], found.low[part, label], found.high[part, label]),
            )
            for parts, names, found in zip(self.parts, self.part_names, self.found, strict=True)
            for part in range(len(names))
            for label in range(len(self.labels))
            if found.texts[part]
        ]
        return pd.DataFrame(rows, columns=list(_SHARE_COLUMNS))

    @cached_property
    def changes(self) -> pd.DataFrame:
        """What the intervals say is unusual: a part against all others, the latest period.

        Of all that was looked at, at most one in twenty of these is false to be expected.
        """
        from scipy.stats import false_discovery_control

        rows = []
        every = zip(self.parts, self.part_names, self.counts, self.found, strict=True)
        for parts, names, counts, found in every:
            if not parts.column or not self.labels:
                continue
            if parts.period is None:
                others, places = self._shares(counts.others()), list(range(len(parts.names)))
            else:
                there = np.flatnonzero(found.texts)
                if len(there) < 2:
                    continue
                others, places = found.of(int(there[-2])), [int(there[-1])]
                found = found.of(places[0])
            gap, low, high, chance = difference(found, others)
            for row, part in enumerate(places):
                if not min(found.texts[row], others.texts[row]):
                    continue
                compared = "" if parts.period is None else names[int(there[-2])]
                rows += [
                    (
                        *(parts.column, names[part], name, compared),
                        *(found.texts[row], found.share[row, label], others.share[row, label]),
                        *(gap[row, label], low[row, label], high[row, label], chance[row, label]),
                    )
                    for label, name in enumerate(self.labels)
                    if np.isfinite(chance[row, label])
                ]
        table = pd.DataFrame(rows, columns=list(_CHANGE_COLUMNS))
        if rows:
            table["p"] = false_discovery_control(table["p"])
        sure = table[(table["p"] < _FALSE) & ((table["low"] > 0) | (table["high"] < 0))]
        return sure.sort_values("difference", key=abs, ascending=False, ignore_index=True)

    @cached_property
    def halving(self) -> tuple[int, float, float] | None:
        """How many more texts drawn by chance halve the widest interval: see `texts_to_halve`."""
        return texts_to_halve(self.labelling) if self.labels else None

    @cached_property
    def texts(self) -> pd.DataFrame:
        """Every text, masked, with its label, whose it is, and the columns that are compared."""
        return self.texts_at(np.arange(len(self.originals)))

    def texts_at(self, places: np.ndarray) -> pd.DataFrame:
        """The same of some rows, int64."""
        names = np.array(self.labels, dtype=object)
        drawn = self.labelling.drawn[places]
        columns = [*self.by, *([] if self.time is None else [self.time])]
        return pd.DataFrame(
            {
                "text": [mask_personal_data(self.originals[place]) for place in places.tolist()],
                "label": [", ".join(names[row]) for row in self.has_label[places]],
                "labelled_by": np.where(drawn, "person", "model" if self.model else ""),
                "confidence": np.where(drawn, np.nan, self.confidence[places]),
                **{name: _masked(self._column(name).iloc[places]) for name in columns},
            }
        )

    @cached_property
    def has_label(self) -> np.ndarray:
        """Which labels each text has, people's before the model's; bool [N, K]."""
        labelling = self.labelling
        return np.where(labelling.drawn[:, None], labelling.given, labelling.said)

    @cached_property
    def sample(self) -> np.ndarray:
        """Texts whose words are read, drawn by chance where there are more; int64."""
        return _drawn(np.arange(len(self.originals)), _WORD_TEXTS)

    @cached_property
    def word_table(self) -> WordTable:
        """The words of `sample`."""
        return word_table(self.originals[place] for place in self.sample.tolist())

    @cached_property
    def words(self) -> pd.DataFrame:
        """Words of each label, and of each part that stands out, against the label elsewhere."""
        rows: list[tuple[object, ...]] = []

        def add(column: str, part: str, label: str, found: Sequence[LabelKeyword]) -> None:
            rows.extend((column, part, label, one.word, one.texts, one.score) for one in found)

        has = self.has_label[self.sample]
        for place, label in enumerate(self.labels):
            add("", "", label, self.word_table.standing_out(has[:, place], count=_WORDS))
        for change in rows_of(self.changes.head(_MOST_PARTS)):
            inside = self.in_part(change.column, change.part)[self.sample]
            mine = has[:, self.labels.index(change.label)]
            found = self.word_table.standing_out(mine & inside, mine & ~inside, count=_WORDS)
            add(change.column, change.part, change.label, found)
        return pd.DataFrame(rows, columns=["column", "part", "label", "word", "texts", "score"])

    @cached_property
    def examples(self) -> pd.DataFrame:
        """Three texts that stand for each label, and the three that the model is surest of."""
        rows: list[tuple[str, str, str]] = []
        table = self.word_table
        for place, label in enumerate(self.labels):
            has = self.has_label[self.sample, place]
            if not has.any() or not len(table.words):
                continue
            weights = np.clip(table.scores(has, ~has)[0], 0, None)[table.ids]
            found = np.bincount(table.rows, weights, minlength=table.texts)
            fit = found / np.sqrt(np.bincount(table.rows, minlength=table.texts) + 3)
            sure = np.nan_to_num(self.confidence[self.sample], nan=0.0)
            model_too = has & self.labelling.said[self.sample, place]
            for kind, by, mine in (("typical", fit, has), ("extreme", sure, model_too)):
                ranked = self.sample[np.argsort(-np.where(mine, by, -1), kind="stable")]
                ranked = ranked[: int(mine.sum())]
                long = [one for one in ranked if len(self.originals[one]) >= _FEWEST_CHARACTERS]
                chosen = np.array(long or ranked, dtype=np.int64)
                for one in spread_out(chosen, self.originals, _EXAMPLES):
                    rows.append((label, kind, mask_personal_data(self.originals[one])))
        return pd.DataFrame(rows, columns=["label", "kind", "text"])

    @cached_property
    def themes(self) -> pd.DataFrame:
        """Themes of all texts and within each label, with their shares and three texts.

        `share` is that among the texts of the label; `places` are rows of the table.
        """
        rows, total = [], len(self.originals)
        for label, theme, among in self._themes():
            size = np.array(len(theme.places) / among)
            low, high = wilson(size * among, np.array(among))
            if among == (self.has_label[:, self.labels.index(label)].sum() if label else total):
                low = high = size  # all were looked at
            texts = [
                mask_personal_data(self.originals[one])
                for one in spread_out(theme.places, self.originals, _EXAMPLES)
            ]
            name = " · ".join(theme.words) or texts[0][:20]
            rows.append(
                (
                    *(label, name, len(theme.places), float(size), float(low), float(high)),
                    *(texts, theme.places.tolist()),
                )
            )
        columns = ["label", "theme", "texts", "share", "low", "high", "examples", "places"]
        return pd.DataFrame(rows, columns=columns)

    def save(self, path: str | Path, *, language: str = "ko") -> None:
        """Write the page, whole or not at all; a name that ends with .xlsx gets the workbook.

        Args:
            path: a new or an old file.
            language: `ko` or `en`.

        Raises:
            InputError: the name ends with something else.
        """
        from malmoi.analysis.page import report_page
        from malmoi.analysis.workbook import write_workbook
        from malmoi.files import write_at_once

        place = Path(path)
        if place.suffix.lower() == ".xlsx":
            write_workbook(place, self, language=language)
        elif place.suffix.lower() in (".html", ".htm"):
            write_at_once(place, report_page(self, language=language))
        else:
            raise InputError(
                "expected a name that ends with .html or .xlsx for the report, found {path}",
                path=path,
            )

    def __repr__(self) -> str:
        """How many texts, and the shares."""
        return f"{len(self.originals):,} texts\n{self.shares.round(4).to_string()}"

    def _repr_html_(self) -> str:
        from html import escape

        from malmoi.analysis.page import report_page

        # In a frame, so that its style stays its own.
        page = escape(report_page(self))
        return f'<iframe srcdoc="{page}" style="width:100%;height:45rem;border:0"></iframe>'

    def compared(self, by: Sequence[str], time: str | None) -> "Report":
        """The same texts by other columns; what was read of them is kept.

        Raises:
            InputError: there is no such column, or `time` holds no dates.
        """
        other = replace(self, by=by, time=time)
        for name in ("sample", "word_table", "has_label", "examples", "themes", "halving"):
            other.__dict__[name] = getattr(self, name)
        _ = other.parts
        return other

    def in_part(self, column: str, part: str) -> np.ndarray:
        """Which texts are in a part, by its name; bool [N]."""
        place = [one.column for one in self.parts].index(column)
        return np.asarray(self.parts[place].codes == self.part_names[place].index(part))

    def behind(self, column: str, part: str, label: str) -> np.ndarray:
        """Rows of the texts behind a number of `shares`, in an order of chance; int64."""
        mine = self.in_part(column, part) & self.has_label[:, self.labels.index(label)]
        return np.random.default_rng(0).permutation(np.flatnonzero(mine))

    @cached_property
    def color_of(self) -> dict[str, str]:
        """Of each label, everywhere the same."""
        return {
            label: self.colors.get(label, PALETTE[place % len(PALETTE)])
            for place, label in enumerate(self.labels)
        }

    def like(self, colors: Mapping[str, str]) -> "Report":
        """The same with labels in the colours and in the order of a project's; others follow."""
        order = [normal_label(name) for name in colors]
        known = [normal_label(label) for label in self.labels]
        places = sorted(
            range(len(known)),
            key=lambda place: order.index(known[place]) if known[place] in order else len(order),
        )
        whole = self.labelling
        confusion = None if whole.confusion is None else whole.confusion[np.ix_(places, places)]
        labelling = replace(
            whole,
            said=whole.said[:, places],
            given=whole.given[:, places],
            confusion=confusion,
        )
        labels = [self.labels[place] for place in places]
        return replace(self, labels=labels, labelling=labelling, colors=colors)

    def _shares(self, counts: Counts) -> Shares:
        return shares(counts, None if self.labelling.drawn.any() else self.labelling.confusion)

    def _column(self, name: str) -> "pd.Series":
        if name not in self.cells.columns:
            raise InputError(
                "expected a column {column}, found {columns:, }; name one of these",
                column=name,
                columns=list(map(str, self.cells.columns)),
            )
        return self.cells[name]

    def _themes(self) -> list[tuple[str, Theme, int]]:
        """With its label ("" of all texts), and the texts that were looked at."""
        among = [("", np.ones(len(self.sample), dtype=bool))]
        among += [(one, self.has_label[self.sample, k]) for k, one in enumerate(self.labels)]
        vectors = np.zeros((0, 0))
        if self.vectors is not None:
            vectors = self.vectors[self.sample]
            read = np.flatnonzero(vectors.any(axis=1))
        elif self.encoder is not None:
            read = _drawn(np.arange(len(self.sample)), _THEME_TEXTS)
            found = self.encoder([self.originals[self.sample[one]] for one in read])
            vectors = np.zeros((len(self.sample), found.shape[1]), dtype=np.float32)
            vectors[read] = found
        else:
            return []
        result = []
        for label, inside in among:
            places = read[inside[read]]
            for theme in find_themes(vectors, self.word_table, places):
                moved = Theme(words=theme.words, places=self.sample[theme.places])
                result.append((label, moved, len(places)))
        return result


def rows_of(table: pd.DataFrame) -> Iterator[Any]:
    """The rows of one of the tables, with their columns by name."""
    yield from table.itertuples(index=False)


def _masked(cells: "pd.Series[Any]") -> list[str]:
    """As texts; of a column that is compared there are few, so that each is looked at once."""
    known: dict[str, str] = {}
    written = ["" if one != one else str(one) for one in cells.tolist()]
    return [
        known[one] if one in known else known.setdefault(one, mask_personal_data(one))
        for one in written
    ]


def _drawn(places: np.ndarray, most: int) -> np.ndarray:
    """Some of the places, drawn by chance, in their order; all where there are no more."""
    if len(places) <= most:
        return places
    return np.sort(np.random.default_rng(0).choice(places, most, replace=False))
