"""The reader of labelled texts: every row is cleaned and checked, each text taken once."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from malmoi.errors import InputError
from malmoi.finetune.data.examples import Contradiction, Examples, OwnTest
from malmoi.finetune.data.folds import letters_of_all, numbered
from malmoi.finetune.data.label_cells import annotated, labels_in
from malmoi.finetune.data.labelled_rows import found_form, iter_rows
from malmoi.finetune.data.own_test import Parts
from malmoi.finetune.data.rare_labels import JOINED, LEAST_KEPT, treat_rare
from malmoi.finetune.data.row_format import RowFormat
from malmoi.finetune.data.source import DataPlace
from malmoi.finetune.settings import Rare
from malmoi.inference.learnt_texts import text_keys
from malmoi.inference.tasks import REGRESSION_LABELS, has_values
from malmoi.labels.database import label_database
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


def read_examples(
    path: DataPlace,
    labels: Sequence[str] | None = None,
    form: RowFormat | None = None,
    *,
    per_label: int = 1,
    rare: Rare | None = None,
    notes: ReadingNotes | None = None,
    test: DataPlace | None = None,
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
        test: files that are the test; else what `form` says.

    Raises:
        InputError: rows without a label (for `multi`, beside ones with an empty list), several
            labels in a cell (but for `multi`), labels on one side only or nearly equal ones, too
            few texts of a label, one label only, an id twice, or a value that is no number.
    """
    if isinstance(path, Path):
        path = label_database(path) or path
    form = found_form(path, form or RowFormat())
    given = form.label_separator
    reader, parts, held_out = _read(path, labels, form, notes)
    while given is None and (mark := reader.mixed_separator()):
        form = replace(form, label_separator=f"{form.label_separator or ','} {mark}")
        reader, parts, held_out = _read(path, labels, form, None)
    origin = parts.origin
    if test is not None:
        origin = str(test)
        held_out = _read_test(test, form, notes)
    examples = reader.examples()
    if form.label_separator != given:
        examples = replace(examples, separators=form.label_separator or "")
    before = len(examples.texts)
    if origin:
        examples = held_out.without(examples)
    in_both = before - len(examples.texts)
    if rare is not None:
        examples = treat_rare(examples, rare, per_label)
        per_label = min(per_label, LEAST_KEPT) if rare == "keep" else per_label
    reader.check_enough(examples, per_label)
    if not origin:
        return examples
    own_test = OwnTest(
        examples=held_out.examples(known=examples.labels, joined=examples.joined_labels),
        origin=origin,
        in_both=in_both,
        joined=parts.joined,
    )
    return replace(examples, own_test=own_test)


def read_test(
    path: DataPlace,
    known: Sequence[str],
    form: RowFormat,
    notes: ReadingNotes | None = None,
) -> Examples:
    """Read labelled texts that a finished classifier is asked about; arguments as `read_examples`.

    Args:
        known: its labels. Those of the data that are none of them stand behind them.

    Raises:
        InputError: as `read_examples`, but for too few texts; or no label is known.
    """
    return _read_test(path, form, notes).examples(known=known)


def _read_test(path: DataPlace, form: RowFormat, notes: ReadingNotes | None) -> "_Reader":
    if isinstance(path, Path):
        path = label_database(path) or path
    form = replace(form, own_test=False, group_column=None, label_columns=())
    return _read(path, None, found_form(path, form), notes)[0]


def _read(
    path: DataPlace,
    labels: Sequence[str] | None,
    form: RowFormat,
    notes: ReadingNotes | None,
) -> tuple["_Reader", Parts, "_Reader"]:
    """Take every row: of what is learnt, and of the test."""
    reader, parts, test = _Reader(path, labels, form), Parts(path, form), _Reader(path, None, form)
    for record in iter_rows(path, form, notes):
        (test if parts.is_test(record) else reader).add(record)
    parts.check()
    return reader, parts, test


class _Reader:
    """Takes row after row; remembers what is wrong until all rows were seen."""

    def __init__(self, path: DataPlace, labels: Sequence[str] | None, form: RowFormat) -> None:
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
        if has_values(self._task):
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
        if has_values(self._task):
            found = [repr(_number(plain, where))]  # 4.50 is 4.5
        if self._task == "multi" and listed(cell) is None:
            self._written.update(found)
            self._has_several |= len(found) > 1
        names = tuple(sorted(found))
        names = self._names.setdefault(names, names)  # one object for all equal ones
        if not has_values(self._task):
            self._found.update(names)
            for name in names:
                self._first_seen.setdefault(name, where)
        return names

    def without(self, others: Examples) -> Examples:
        """Other texts but for those that have the letters and digits of one taken here."""
        pairs = [second for _, second in self._kept] if self._form.paired else None
        texts = [text for text, _ in self._kept]
        taken = set(letters_of_all(texts, pairs))
        letters = letters_of_all(others.texts, others.pairs)
        # What the classifier will say that it has learnt, `learnt_texts`.
        keys = np.isin(text_keys(others.texts, others.pairs), text_keys(texts, pairs))
        return others.only(np.flatnonzero(~keys & [one not in taken for one in letters]))

    def examples(self, known: Sequence[str] | None = None, joined: Sequence[str] = ()) -> Examples:
        """All that was taken, once every row is known to be right.

        Args:
            known: of a test, the labels that are learnt.
            joined: other labels that are learnt as `JOINED`.
        """
        self._check_unlabelled()
        if known is not None:
            self._join(joined)
        labels = self._checked_labels() if known is None else self._labels_of_test(known)
        places = {label: index for index, label in enumerate(labels)}
        label_ids: list[int] = []
        label_sets: list[tuple[int, ...]] = []
        values: list[float] = []
        for _, names, _ in self._kept.values():
            if has_values(self._task):
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

    def _join(self, labels: Sequence[str]) -> None:
        """Take these labels for `JOINED`."""
        for label in set(labels) & self._found.keys():
            self._found[JOINED] += self._found.pop(label)
        for text, (place, names, group) in self._kept.items():
            if not set(labels).isdisjoint(names):
                other = {JOINED if name in labels else name for name in names}
                self._kept[text] = place, tuple(sorted(other)), group

    def _labels_of_test(self, known: Sequence[str]) -> list[str]:
        """Those that are learnt, and behind them those that only the test has."""
        if not self._kept:
            raise InputError(
                "expected labelled texts to test with in {path}, found none", path=self._path
            )
        if has_values(self._task):
            return REGRESSION_LABELS
        more = [label for label in in_order(self._found) if label not in known]
        if len(more) == len(self._found):
            raise InputError(
                "expected labels that the classifier knows ({known}) in {path}, found {found}; "
                "write them alike",
                known=", ".join(known[:_SHOWN_LABELS]),
                path=self._path,
                found=self._told(more, known) or "none",
            )
        return [*known, *more]

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
        if has_values(self._task):
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
        if has_values(examples.task):
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
            "{path} has {count} different {what}, fewer than folds; add some or lower --folds",
            path=examples.path,
            count=len(examples.texts),
            what=examples.what,
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
        value = float(cell.removesuffix("점"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            "expected a number as the value, found {cell!r}; correct it, with a point "
            "before decimals",
            place=where,
            cell=cell,
        )
    return value
