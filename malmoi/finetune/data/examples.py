"""Labelled texts, cleaned and checked, as k-fold fine-tuning needs them."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.errors import InputError
from malmoi.finetune.data.folds import numbered
from malmoi.finetune.data.label_cells import annotated, labels_in, write_list
from malmoi.finetune.data.labelled_rows import found_form, iter_rows
from malmoi.finetune.data.rare_labels import LEAST_KEPT, treat_rare
from malmoi.finetune.data.row_format import RowFormat
from malmoi.finetune.settings import Rare
from malmoi.inference.tasks import REGRESSION_LABELS, Task
from malmoi.labels.database import LabelDatabase, label_database
from malmoi.labels.label_names import (
    SEPARATORS,
    in_order,
    joined_by,
    nearest_label,
    nearly_equal,
    normal_label,
    says_nothing,
    separator_between,
)
from malmoi.labels.listed_labels import listed
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.columns import label_text
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.record import Record

_SHOWN_LABELS = 20
# Named one by one; nobody looks at more.
_CONTRADICTIONS_KEPT = 1_000
# All are held in memory, and a small compressed file may hold any number (assumption: nobody labels
# that many, and no one machine goes through them five times).
MOST_ROWS = 5_000_000
MOST_CHARACTERS = 1 << 29


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """A row left out because its text had been there with another label.

    Attributes:
        text: cleaned; of a pair the first one.
        id: of the row.
        label: its label; several with commas between them.
        kept_id: of the row that is learnt.
        kept_label: its label.
    """

    text: str
    id: str
    label: str
    kept_id: str
    kept_label: str


@dataclass(frozen=True, kw_only=True)
class Examples:
    """N texts with labels, each text once.

    Attributes:
        path: the file, folder or label database they were read from.
        labels: K names; a label's place is its id. One name, "score", for a regression.
        ids: of the records.
        texts: cleaned.
        label_ids: one a text; empty for `multi` and `pair-regression`.
        repeats: rows left out because text and label had been there before.
        contradictions: rows left out because the text had been there with another label.
        empty: rows left out because nothing was left of the text after cleaning.
        task: what the labels are.
        pairs: the second text of each row, cleaned; None where a row has one text.
        label_sets: for `multi`, the label ids of each text, rising.
        values: for `pair-regression`, the value of each pair.
        groups: [N] int64, equal for texts with equal cells of the group column; None without one.
        label_columns: the columns of 0 and 1 that the labels were read from, if they were.
        unlabelled: rows that were left out since they have no label.
        contradicting: the first of the rows with another label.
        separators: that stand between the labels of a cell, where they are mixed.
        rare: labels with too few texts that were left out or joined, and their texts.
        rare_texts: how many texts were left out for that.
    """

    path: Path | LabelDatabase
    labels: list[str]
    ids: list[str]
    texts: list[str]
    label_ids: list[int]
    repeats: int
    contradictions: int
    empty: int
    task: Task = "single"
    pairs: list[str] | None = None
    label_sets: list[tuple[int, ...]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    groups: np.ndarray | None = None
    label_columns: tuple[str, ...] = ()
    unlabelled: int = 0
    contradicting: tuple[Contradiction, ...] = ()
    separators: str = ""
    rare: Mapping[str, int] = field(default_factory=dict)
    rare_texts: int = 0

    def only(self, places: np.ndarray) -> "Examples":
        """These of the texts, the same labels; `places` is int64, rising."""

        def some(values: list[Any]) -> list[Any]:
            return [values[place] for place in places] if values else []

        return replace(
            self,
            ids=some(self.ids),
            texts=some(self.texts),
            label_ids=some(self.label_ids),
            pairs=None if self.pairs is None else some(self.pairs),
            label_sets=some(self.label_sets),
            values=some(self.values),
            groups=None if self.groups is None else self.groups[places],
        )

    @cached_property
    def targets(self) -> np.ndarray:
        """What is learned: int64 [N] label ids, float32 [N, K] 0 and 1 for `multi`, float32 [N]."""
        if self.task == "multi":
            hot = np.zeros((len(self.texts), len(self.labels)), dtype=np.float32)
            for place, ids in enumerate(self.label_sets):
                hot[place, list(ids)] = 1
            return hot
        if self.task == "pair-regression":
            return np.array(self.values, dtype=np.float32)
        return np.array(self.label_ids, dtype=np.int64)

    @property
    def counts(self) -> dict[str, int]:
        """Texts of each label, in the order of the labels; empty for a regression."""
        if self.task == "pair-regression":
            return {}
        all_ids = (one for ids in self.label_sets for one in ids)
        found = Counter(all_ids if self.task == "multi" else self.label_ids)
        return {label: found[index] for index, label in enumerate(self.labels)}

    @property
    def what(self) -> str:
        """What there are N of, for a sentence."""
        return "texts" if self.pairs is None else "pairs"

    @property
    def without_label(self) -> int:
        """Texts that have none of the labels; there are some for `multi` only."""
        return sum(not ids for ids in self.label_sets)

    def label_of(self, place: int) -> str:
        """The label of a text as a cell; for `multi` a list, see `label_cells.write_list`."""
        if self.task == "multi":
            return write_list([self.labels[index] for index in self.label_sets[place]])
        if self.task == "pair-regression":
            return f"{self.values[place]:g}"
        return self.labels[self.label_ids[place]]

    @property
    def sha256(self) -> str:
        """Hash of cleaned texts and labels, in order: equal hashes, equal training data."""
        digest = hashlib.sha256()
        for place, text in enumerate(self.texts):
            row = [text, *([self.pairs[place]] if self.pairs else []), self.label_of(place)]
            digest.update(json.dumps(row, ensure_ascii=False).encode())
        return digest.hexdigest()


def read_examples(
    path: Path | LabelDatabase,
    labels: Sequence[str] | None = None,
    form: RowFormat | None = None,
    *,
    per_label: int = 1,
    rare: Rare | None = None,
    notes: ReadingNotes | None = None,
) -> Examples:
    """Read, clean and check all labelled texts of a file or folder.

    A text that stands there more than once is kept once, with its first label: two copies in two
    folds would be trained on and tested on at the same time.

    Args:
        path: anything that `iter_records` reads, or the app's label database, also by its path.
        labels: the names expected, as `normal_label` spells them; those of the data, sorted,
            when None.
        form: what a row is; of a label column for `multi` also columns of 0 and 1, commas between.
        per_label: how many texts each label needs, once repeats are left out.
        rare: what becomes of labels with fewer; None refuses them.
        notes: gets how the files are read.

    Raises:
        InputError: rows without a label (for `multi`, beside ones with an empty list), several
            labels in a cell (but for `multi`), labels on one side only or nearly equal ones, too
            few texts of a label, one label only, an id twice, or a value that is no number.
    """
    if isinstance(path, Path):
        path = label_database(path) or path
    form = found_form(path, form or RowFormat())
    given = form.label_separator
    reader = _read(path, labels, form, notes)
    while given is None and (mark := reader.mixed_separator()):
        form = replace(form, label_separator=f"{form.label_separator or ','} {mark}")
        reader = _read(path, labels, form, None)
    examples = reader.examples()
    if form.label_separator != given:
        examples = replace(examples, separators=form.label_separator or "")
    if rare is not None:
        examples = treat_rare(examples, rare, per_label)
        per_label = min(per_label, LEAST_KEPT) if rare == "keep" else per_label
    reader.check_enough(examples, per_label)
    return examples


def _read(
    path: Path | LabelDatabase,
    labels: Sequence[str] | None,
    form: RowFormat,
    notes: ReadingNotes | None,
) -> "_Reader":
    """Take every row."""
    reader = _Reader(path, labels, form)
    for record in iter_rows(path, form, notes):
        reader.add(record)
    return reader


class _Reader:
    """Takes row after row; remembers what is wrong until all rows were seen."""

    def __init__(
        self, path: Path | LabelDatabase, labels: Sequence[str] | None, form: RowFormat
    ) -> None:
        self._path, self._form, self._task = path, form, form.task
        self._expected = None if labels is None else set(labels)
        self._labels = None if labels is None else list(labels)
        # Text (and pair) to the record's id, its labels and its group.
        self._kept: dict[tuple[str, str], tuple[str, tuple[str, ...], str | None]] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        # Of cells that are no lists: their names, and whether one has several.
        self._written: set[str] = set()
        self._has_several = False
        self._ids: set[str] = set()
        self._characters = 0
        self._rows = self._unlabelled = self._repeats = self._contradictions = self._empty = 0
        self._contradicting: list[Contradiction] = []
        self._first_unlabelled = ""
        self._nothings: Counter[str] = Counter()  # such as NULL, by how they are spelt
        self._from_label_studio = False
        self._nones = 0  # rows that say by an empty list that they have none of the labels
        self._found: Counter[str] = Counter()
        self._with_text: set[str] = set()
        self._first_seen: dict[str, str] = {}

    def add(self, record: Record) -> None:
        """Take a row."""
        pair, group = record.pair, None
        if self._form.group_column is not None:
            cell = record.cells[self._form.group_column]
            group = label_text(cell, f"{record.source}:{record.place}")
        self._rows += 1
        self._characters += sum(map(len, (record.id, record.text, record.label or "", pair or "")))
        if self._rows > MOST_ROWS or self._characters > MOST_CHARACTERS:
            raise InputError(
                "expected at most {rows:,} labelled rows and {characters:,} characters, found "
                "more; give a part of them",
                place=self._path,
                rows=MOST_ROWS,
                characters=MOST_CHARACTERS,
            )
        # A record's own id says nothing about the file; the default one is "file:line" already.
        own = not record.id.startswith(record.source)
        place = f"{record.source}:{record.line}"
        where = f"{place}, id {record.id}" if own else record.id
        identifier = record.id
        if own and self._form.ignore_ids:
            # Several objects of a JSON file may stand in one line.
            identifier = place if place not in self._ids else f"{place}, row {self._rows}"
        if identifier in self._ids:
            raise InputError(
                "expected every id once, found {where} again; make the ids different, or number "
                "the rows instead with --set data.ignore_ids=true",
                place=self._path,
                where=where,
            )
        self._ids.add(identifier)
        names = self._names_of(record.label, where)
        if names is None:
            return
        text, second = clean_text(record.text), clean_text(pair or "")
        if not text or (pair is not None and not second):
            self._empty += 1
            return
        self._with_text.update(names)
        before = self._kept.setdefault((text, second), (identifier, names, group))
        if before[0] == identifier:
            return
        if before[1] == names:
            self._repeats += 1
            return
        self._contradictions += 1
        if len(self._contradicting) < _CONTRADICTIONS_KEPT:
            self._contradicting.append(
                Contradiction(
                    text=text,
                    id=identifier,
                    label=", ".join(names),
                    kept_id=before[0],
                    kept_label=", ".join(before[1]),
                )
            )

    def _names_of(self, label: str | None, where: str) -> tuple[str, ...] | None:
        """The label names of a cell, checked and counted; None where something is wrong."""
        cell = annotated(label or "", where)
        self._from_label_studio |= cell != (label or "")
        plain = normal_label(cell)
        if says_nothing(plain) and plain not in (self._expected or ()):
            self._nothings[plain] += 1
            cell = ""
        if self._task == "pair-regression":
            found = [plain] if cell.strip() else []
        else:
            separator = (self._form.label_separator or ",") if self._task == "multi" else None
            found = labels_in(cell, separator, where)
        if not found:
            # An empty list says that a text has none of several labels; an empty cell says nothing.
            none = self._task == "multi" and bool(normal_label(cell))
            self._nones += none
            self._unlabelled += not none
            if not none:
                self._first_unlabelled = self._first_unlabelled or where
                if self._task != "multi" or self._form.skip_unlabelled:
                    return None
        if self._task != "multi" and len(found) > 1:
            raise InputError(
                "expected one label, found {count} ({found}); give --task multi to learn several "
                "labels a text, or keep one in each cell",
                place=where,
                count=len(found),
                found=", ".join(found),
            )
        if self._task == "pair-regression":
            found = [repr(_number(plain, where))]  # 4.50 is 4.5
        if self._task == "multi" and listed(cell) is None:
            self._written.update(found)
            self._has_several |= len(found) > 1
        names = tuple(sorted(found))
        names = self._names.setdefault(names, names)  # one object for all equal ones
        if self._task != "pair-regression":
            self._found.update(names)
            for name in names:
                self._first_seen.setdefault(name, where)
        return names

    def examples(self) -> Examples:
        """All that was taken, once every row is known to be right."""
        self._check_unlabelled()
        labels = self._checked_labels()
        places = {label: index for index, label in enumerate(labels)}
        label_ids: list[int] = []
        label_sets: list[tuple[int, ...]] = []
        values: list[float] = []
        for _, names, _ in self._kept.values():
            if self._task == "pair-regression":
                values.append(float(names[0]))
            elif self._task == "multi":
                label_sets.append(tuple(sorted(places[name] for name in names)))
            else:
                label_ids.append(places[names[0]])
        return Examples(
            path=self._path,
            labels=labels,
            ids=[identifier for identifier, _, _ in self._kept.values()],
            texts=[text for text, _ in self._kept],
            label_ids=label_ids,
            repeats=self._repeats,
            contradictions=self._contradictions,
            contradicting=tuple(self._contradicting),
            empty=self._empty,
            unlabelled=self._unlabelled if self._form.skip_unlabelled else 0,
            task=self._task,
            pairs=[second for _, second in self._kept] if self._form.paired else None,
            label_sets=label_sets,
            values=values,
            groups=(
                None
                if self._form.group_column is None
                else numbered([group for _, _, group in self._kept.values()])
            ),
            label_columns=self._form.label_columns,
        )

    def _check_unlabelled(self) -> None:
        """Refuse rows without a label, unless they are to be left out or are texts of no label."""
        several = self._task == "multi"
        # Of Label Studio a text that nobody has labelled is told from one of no label.
        is_told = bool(self._nones or self._nothings) or self._from_label_studio
        if not self._unlabelled or self._form.skip_unlabelled or (several and not is_told):
            return
        if self._labels is None and not several:
            self._ask_about_separator()  # some with none and some with several are for `multi`
        but = f", while {self._nones:,} say by [] that none of the labels fits"
        but = but if several and self._nones and not self._from_label_studio else ""
        if self._nothings:
            raise InputError(
                "{unlabelled:,} of {rows:,} rows of {path} have no label but {said:, } or nothing, "
                "the first is {first_unlabelled}; leave them out with --set "
                "data.skip_unlabelled=true, or name all labels with --labels if it is one",
                unlabelled=self._unlabelled,
                rows=self._rows,
                path=self._path,
                said=list(self._nothings),
                first_unlabelled=self._first_unlabelled,
            )
        raise InputError(
            "{unlabelled:,} of {rows:,} rows of {path} have no label, the first is "
            "{first_unlabelled}{but}; label or remove them, or leave them out with --set "
            "data.skip_unlabelled=true",
            unlabelled=self._unlabelled,
            rows=self._rows,
            path=self._path,
            first_unlabelled=self._first_unlabelled,
            but=but,
        )

    def _checked_labels(self) -> list[str]:
        if self._task == "pair-regression":
            return REGRESSION_LABELS
        if self._labels is None:
            self._ask_about_separator()
            self._ask_about_nearly_equal()
            if len(self._found) < 2:
                found = f"only {', '.join(self._found)}" if self._found else "none"
                raise InputError(
                    "expected at least two labels in {path}, found {found}; there is nothing to "
                    "tell apart",
                    path=self._path,
                    found=found,
                )
            return in_order(self._found)
        more = self._found.keys() - set(self._labels)
        if more:
            shown = sorted(more, key=lambda name: -self._found[name])
            raise InputError(
                "{path} has labels that --labels lacks: {labels}; add or remove them",
                path=self._path,
                labels=self._told(shown, self._labels),
            )
        absent = [label for label in self._labels if label not in self._found]
        if absent:
            raise InputError(
                "--labels has labels that {path} lacks: {absent}; it has {found}",
                path=self._path,
                absent=", ".join(absent),
                found=", ".join(in_order(self._found)),
            )
        return self._labels

    def mixed_separator(self) -> str | None:
        """What stands between labels in some cells, while in others it is what was looked for."""
        if not self._has_several:
            return None
        names = self._written - set(self._labels or ())
        return separator_between(names, set(self._labels or self._found))

    def _ask_about_separator(self) -> None:
        """Refuse names that seem to be several labels of a text, joined by some character."""
        several, mixed = self._task == "multi", self._has_several
        told = self._form.label_separator
        if not mixed and (told is not None or any(len(names) > 1 for names in self._names)):
            return
        separators = SEPARATORS[several:]  # at the comma they are cut already
        names = self._written if mixed else self._found
        mark = joined_by(sorted(names), separators, alone=not several or mixed)
        if mark is None:
            return
        example = next(name for name in self._found if mark in name)
        marks = f"{told or ','} {mark}" if mixed else mark
        way = f'give {"" if several else "--task multi "}--set data.label_separator="{marks}"'
        insists = several and not mixed
        apart = '--set data.label_separator=","' if insists else "--labels with all of them"
        apart = "another character than the comma" if mark == "," else apart
        raise InputError(
            "expected {expected} in each cell, found what seems several with {mark!r} between "
            "them ({example}); {way}, or {apart} if they are one",
            place=self._path,
            expected="labels with commas between them" if several else "a label",
            mark=mark,
            example=self._told([example], []),
            way=way,
            apart=apart,
        )

    def _ask_about_nearly_equal(self) -> None:
        """Refuse names that a person may have meant to be one label."""
        pairs = nearly_equal(self._found)
        if pairs:
            raise InputError(
                "expected labels that differ in more than case, width or spaces, found {pairs}; "
                "spell them alike, or keep them apart by naming all labels with --labels",
                place=self._path,
                pairs="; ".join(self._told(names, []) for names in pairs[:3]),
            )

    def _told(
        self,
        names: Sequence[str],
        others: Sequence[str],
        counts: Mapping[str, int] | None = None,
    ) -> str:
        """How often and where labels were met, and which others they may have been meant to be."""
        counts = self._found if counts is None else counts
        shown = []
        for name in names[:_SHOWN_LABELS]:
            near = nearest_label(name, others)
            advice = f"; did you mean {near}?" if near else ""
            first = self._first_seen.get(name)  # a joined label stands nowhere
            where = "" if first is None else f", first {first}"
            shown.append(f"{name} ({counts[name]:,}{where}{advice})")
        return ", ".join(shown) + (" ..." if len(names) > _SHOWN_LABELS else "")

    def check_enough(self, examples: Examples, per_label: int) -> None:
        """Refuse labels, or pairs with values, that do not reach for every fold."""
        if examples.task == "pair-regression":
            _check_values(examples, per_label)
            return
        few = [label for label, count in examples.counts.items() if count < per_label]
        bare = [label for label in few if label not in self._with_text]
        if bare:
            raise InputError(
                "expected texts of each label, found no text in any row of {bare}; add the texts, "
                "or remove these rows",
                place=examples.path,
                bare=self._told(bare, []),
            )
        if few:
            enough = [label for label in examples.labels if label not in few]
            raise InputError(
                "{path} has too few different texts of {few}: each label needs at least "
                "{per_label}, one a fold; correct or add texts, lower --folds, or give --rare drop "
                "(leave them out), join (into one label) or keep (learn them from two texts on)",
                path=examples.path,
                few=self._told(few, enough, examples.counts),
                per_label=per_label,
            )


def _check_values(examples: Examples, least: int) -> None:
    if len(examples.texts) < least:
        raise InputError(
            "{path} has {pairs} different pairs, fewer than folds; add pairs or lower --folds",
            path=examples.path,
            pairs=len(examples.texts),
        )
    if min(examples.values) == max(examples.values):
        raise InputError(
            "all {values:,} values of {path} are {value:g}; there is nothing to tell apart",
            values=len(examples.values),
            path=examples.path,
            value=examples.values[0],
        )


def _number(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            "expected a number as the value of the pair, found {cell!r}; correct it, with a point "
            "before decimals",
            place=where,
            cell=cell,
        )
    return value
