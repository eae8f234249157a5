"""Rows of labelled texts or labelled pairs, from files or from the app's label database."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from malmoi.errors import InputError
from malmoi.finetune.data.label_cells import write_list
from malmoi.finetune.data.own_test import SPLIT_COLUMN
from malmoi.finetune.data.row_format import RowFormat
from malmoi.finetune.data.source import DataPlace
from malmoi.inference.tasks import Task, has_values
from malmoi.labels.database import LabelDatabase
from malmoi.labels.label_names import normal_label
from malmoi.labels.listed_labels import ANNOTATIONS
from malmoi.messages import Phrase
from malmoi.text.reading.bad_rows import BadRows, EmptySourceError
from malmoi.text.reading.columns import (
    ID_COLUMN,
    LABEL_COLUMNS,
    TEXT_COLUMNS,
    ColumnRequest,
    label_text,
)
from malmoi.text.reading.layouts import layout_of
from malmoi.text.reading.notes import ReadingNotes, SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_requested
from malmoi.text.reading.sources import Source, find_sources
from malmoi.text.reading.table import Table
from malmoi.text.reading.tables import open_table, places_in
from malmoi.text.record import Record

# Label columns of pairs and values, tried in this order.
_USUAL_LABELS: dict[Task, tuple[str, ...]] = {
    "pair": ("is_duplicate", "gold_label", "labels.binary-label", "label"),
    "value": ("rating", "stars", "star", "score", "별점", "평점", "점수", *LABEL_COLUMNS),
    "pair-regression": ("score", "labels.real-label", "labels.label", "label"),
}
# Cells of a column that says whether a text has a label, in NFKC and lower case.
_YES = ("1", "true", "o", "○", "y", "yes", "예", "네")
_NO = ("0", "false", "x", "×", "n", "no", "아니오", "아니요", "")
# A column of which so few cells say something else was meant as one of labels (assumption).
_MISTAKES = 0.1
# How many people, or which share of them, chose a label: 3, 0.25, 25%.
_SHARE = re.compile(r"\d{1,2}|100|[01]?\.\d+|\d{1,3}(\.\d+)?%")
# Different cells of a column beyond which it is none of 0 and 1.
_MOST_DIFFERENT = 1_000


def found_form(path: DataPlace, form: RowFormat) -> RowFormat:
    """`form` with the columns of 0 and 1 named that a file has instead of a label column.

    Raises:
        InputError: single labels are wanted of a table that has such columns, or a few cells of
            one say something else.
    """
    if isinstance(path, LabelDatabase) or form.paired or has_values(form.task):
        return form
    names = tuple(name.strip() for name in (form.label_column or "").split(","))
    if form.label_column is not None and (form.task != "multi" or len(names) == 1):
        return form
    request = ColumnRequest(text=form.reading.text_column, any_sheet=True)
    for source in find_sources(path):
        try:
            notes, bad = SourceNotes(source=source.name), BadRows(skip=True)
            with open_table(source, request, form.reading, notes, bad) as table:
                if _has_label(table, source, form):
                    return form
                counts = _cells_by_column(table, form)
        except EmptySourceError:
            continue
        except InputError:
            return form  # reading it says what is wrong
        if form.label_column is not None:
            _refuse_counts(path, {name: counts[name] for name in names if name in counts})
            return replace(form, label_column=None, label_columns=names)
        columns, mistaken = _zero_one_columns(counts)
        if len(columns) < 2:
            _refuse_counts(path, counts)
        if columns and mistaken is not None:
            raise InputError(
                "expected 0 or 1 in every cell of {column}, as in {columns}, found {cell!r} and "
                "the like in {count:,} of {rows:,}; correct them, or name the columns of labels "
                "with --task multi --label-column {named}",
                place=path,
                column=mistaken.name,
                columns=", ".join(columns),
                cell=mistaken.cell,
                count=mistaken.cells,
                rows=mistaken.rows,
                named=",".join(columns),
            )
        if len(columns) > 1 and form.task != "multi":
            raise InputError(
                "{path} has no label column, but columns of 0 and 1 ({columns}): give --task "
                "multi to learn each as a label, or name a column with --label-column",
                path=path,
                columns=", ".join(columns),
            )
        return replace(form, label_columns=columns) if len(columns) > 1 else form
    return form


def iter_rows(
    path: DataPlace,
    form: RowFormat,
    notes: ReadingNotes | None = None,
) -> Iterator[Record]:
    """The labelled record of every row: of pairs with the second text, of groups with its group.

    Args:
        path: files, or the app's database.
        form: as `found_form` gives it.

    Raises:
        InputError: as `iter_records`, or a label database where pairs or a column
            are asked for.
    """
    if isinstance(path, LabelDatabase):
        _refuse_columns(path, form)
        from malmoi.labels.training_texts import iter_label_records  # SQLAlchemy takes a while

        counted = SourceNotes(source=path.name)
        yield from iter_label_records(path, counted.counts)
        if notes is not None:
            notes.sources.append(counted)
            notes.finished()
        return
    # Label Studio's list of what people said: empty where nobody has said anything.
    of_people = form.label_column in ANNOTATIONS
    for record in iter_requested(find_sources(path), _request(form), form.reading, notes):
        if form.label_columns:
            yield replace(record, label=_names_with_yes(record, form.label_columns))
        elif of_people and record.label == "[]":
            yield replace(record, label="")
        else:
            yield record


def _request(form: RowFormat) -> ColumnRequest:
    others = dict.fromkeys(form.label_columns, "label")
    if form.group_column is not None:
        others[form.group_column] = "group"
    optional: tuple[str, ...] = ()
    if form.own_test:
        optional = (SPLIT_COLUMN,) if form.test_after is None else form.date_columns
    return ColumnRequest(
        text=form.reading.text_column,
        label=form.label_column,
        need_label=not form.label_columns,
        pair=form.pair_column,
        any_pair=form.paired,
        usual_labels=_USUAL_LABELS.get(form.task, LABEL_COLUMNS),
        others=others,
        optional=optional,
    )


def _refuse_columns(path: LabelDatabase, form: RowFormat) -> None:
    for key, given in (("group_column", form.group_column), ("test_after", form.test_after)):
        if given is not None:
            raise InputError(
                "{path} is the app's label database; leave out data.{key}", path=path, key=key
            )
    if form.paired:
        raise InputError(
            "{path} holds labels of single texts; --task {task} needs pairs",
            path=path,
            task=form.task,
        )
    for flag, column in (("text", form.reading.text_column), ("label", form.label_column)):
        if column is not None:
            raise InputError(
                "{path} is the app's label database, whose columns are known, so --{flag}-column "
                "has no effect; leave it out",
                path=path,
                flag=flag,
            )


def _has_label(table: Table, source: Source, form: RowFormat) -> bool:
    layout = layout_of(source) if form.reading == ReadOptions() else None
    if layout is not None and layout.label is not None:
        return True
    try:
        places_in(table, _request(form), source)
    except InputError:
        return False
    return True


class _Mistake(NamedTuple):
    """Cells of a column of 0 and 1 that say something else: one of them, and how many."""

    name: str
    cell: str
    cells: int
    rows: int


def _cells_by_column(table: Table, form: RowFormat) -> dict[str, Counter[str]]:
    """How often each cell stands in the columns that may be labels; not of a file that is no table.

    Of a column with very many different cells not all are counted.
    """
    names = {name: name.strip().lower() for name in table.columns}
    if table.is_list or set(LABEL_COLUMNS) & set(names.values()):
        return {}  # something else is wrong
    others = {form.reading.text_column, ID_COLUMN, *TEXT_COLUMNS}
    counts = {name: Counter[str]() for name, plain in names.items() if not {name, plain} & others}
    for cells in _cells_of(table, list(counts)):
        for name, cell in zip(counts, cells, strict=True):
            if len(counts[name]) <= _MOST_DIFFERENT:
                counts[name][label_text(cell, "") or ""] += 1
    return counts


def _zero_one_columns(
    counts: Mapping[str, Counter[str]],
) -> tuple[tuple[str, ...], _Mistake | None]:
    """Columns that hold nothing but 0 and 1 (or O and X, yes and no); the first that nearly does.

    Args:
        counts: of `_cells_by_column`.
    """
    found, mistaken = [], list[_Mistake]()
    for name, cells_of_column in counts.items():
        said = {cell: _is_yes(cell) for cell in cells_of_column}
        wrong = [cell for cell, yes in said.items() if yes is None]
        count, rows = sum(cells_of_column[cell] for cell in wrong), cells_of_column.total()
        if True not in said.values() or count > _MISTAKES * rows:
            continue
        if wrong:
            mistaken.append(_Mistake(name, wrong[0], count, rows))
        else:
            found.append(name)
    return tuple(found), next(iter(mistaken), None)


def _refuse_counts(path: DataPlace, counts: Mapping[str, Counter[str]]) -> None:
    """Refuse columns that say how many people, or which share of them, chose each label.

    Args:
        path: for the message.
        counts: of `_cells_by_column`.
    """
    shares, votes = list[str](), list[str]()
    for name, cells in counts.items():
        numbers = [_SHARE.fullmatch(cell.strip()) for cell in cells]
        if None in numbers or len(cells) > _MOST_DIFFERENT:
            continue
        if any("." in cell or "%" in cell for cell in cells):
            shares.append(name)
        elif "0" in cells:
            votes.append(name)
    several = [name for name in votes if counts[name].keys() - {"0", "1"}]
    what, columns = Phrase("shares"), shares
    if len(shares) < 2:
        what, columns = Phrase("votes"), votes if len(several) > 1 else []
    if len(columns) > 1:
        raise InputError(
            "expected one label in each row, found {what} in the columns {columns:, }; write the "
            "name of the column with the most into a column label, or for --task multi 1 for each "
            "label that holds and 0 for the others",
            place=path,
            what=what,
            columns=columns,
        )


def _cells_of(table: Table, columns: Sequence[str]) -> Iterator[Sequence[object]]:
    if table.objects is not None:
        for _, row in table.objects:
            yield [row.get(name) for name in columns]
        return
    picks = [table.columns.index(name) for name in columns]
    for _, _, cells in table.read(picks, [0]):
        yield cells


def _names_with_yes(record: Record, columns: Sequence[str]) -> str:
    """The list of the labels whose columns say yes."""
    names = []
    where = f"{record.source}:{record.place}"
    for name in columns:
        said = label_text(record.cells[name], where) or ""
        yes = _is_yes(said)
        if yes is None:
            raise InputError(
                "expected 0 or 1 in {name}, found {said!r}; correct it or name the label columns "
                "with --label-column",
                place=where,
                name=name,
                said=said,
            )
        if yes:
            names.append(name)
    return write_list(names)


def _is_yes(cell: str) -> bool | None:
    """Whether a cell says that a text has a label; None where it says something else."""
    said = unicodedata.normalize("NFKC", normal_label(cell)).lower()
    return True if said in _YES else False if said in _NO else None
