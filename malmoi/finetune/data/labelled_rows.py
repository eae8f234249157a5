"""Rows of labelled texts or labelled pairs, from files or from the app's label database."""

import unicodedata
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path, PurePath

from malmoi.errors import InputError
from malmoi.finetune.data.label_cells import write_list
from malmoi.finetune.data.row_format import RowFormat
from malmoi.inference.tasks import Task
from malmoi.labels.database import LabelDatabase
from malmoi.labels.listed_labels import ANNOTATIONS
from malmoi.labels.names import normal_label
from malmoi.text.reading.columns import ID_COLUMN, LABEL_COLUMNS, PAIR_COLUMNS, TEXT_COLUMNS
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_records, load_table
from malmoi.text.reading.sources import find_sources
from malmoi.text.record import Record

# Label columns of pairs, tried in this order.
_PAIR_LABELS: dict[Task, tuple[str, ...]] = {
    "pair": ("is_duplicate", "gold_label", "labels.binary-label", "label"),
    "pair-regression": ("score", "labels.real-label", "labels.label", "label"),
}
# Cells of a column that says whether a text has a label, in NFKC and lower case.
_YES = ("1", "true", "o", "○", "y", "yes", "예", "네")
_NO = ("0", "false", "x", "×", "n", "no", "아니오", "아니요", "")
# A column of which so few cells say something else was meant as one of labels (assumption).
_MISTAKES = 0.1

LabelledRow = tuple[Record, str | None]


def found_form(path: Path | LabelDatabase, form: RowFormat) -> RowFormat:
    """`form` with the columns named that a file has: those of pairs, or of 0 and 1 for `multi`.

    Raises:
        InputError: single labels are wanted of a table that has columns of 0 and 1 instead, or a
            few cells of such a column say something else.
    """
    if isinstance(path, LabelDatabase):
        return form
    if form.paired:
        return _found_columns(path, form)
    named = form.label_column
    if named is not None:
        names = tuple(name.strip() for name in named.split(","))
        if form.task != "multi" or len(names) == 1 or _has_label(path, form):
            return form
        return replace(form, label_column=None, label_columns=names)
    if _has_label(path, form):
        return form
    columns = _zero_one_columns(path, form)
    if len(columns) > 1 and form.task != "multi":
        raise InputError(
            f"{path} has no label column, but columns of 0 and 1 ({', '.join(columns)}): give "
            "--task multi to learn each as a label, or name a column with --label-column"
        )
    return replace(form, label_columns=columns) if len(columns) > 1 else form


def iter_groups(path: Path | LabelDatabase, form: RowFormat) -> Iterator[Record]:
    """Each row with what stands in its group column as its label, in the order of `iter_rows`.

    Raises:
        InputError: as `malmoi.text.reading.records.iter_records`, naming the key of this column.
    """
    if isinstance(path, LabelDatabase):
        raise InputError(f"{path} is the app's label database; leave out data.group_column")
    records = iter_records(
        path, label_column=form.group_column, need_label=True, options=form.reading
    )
    try:
        yield from records
    except InputError as error:
        told = str(error).replace("--label-column", "--set data.group_column")
        raise InputError(told.replace("no label column", "no group column")) from error


def grouped_rows(
    rows: Iterator[LabelledRow], path: Path | LabelDatabase, form: RowFormat
) -> Iterator[tuple[Record, str | None, str | None]]:
    """Each of the rows of `iter_rows` with its group, None where no column of groups is named.

    Raises:
        InputError: as `iter_groups`, or a row is not in both readings.
    """
    if form.group_column is None:
        yield from ((record, pair, None) for record, pair in rows)
        return
    pairs: deque[str | None] = deque()

    def records() -> Iterator[Record]:
        for record, pair in rows:
            pairs.append(pair)
            yield record

    for record, group in _side_by_side(records(), iter_groups(path, form)):
        yield record, pairs.popleft(), group.label


def iter_rows(
    path: Path | LabelDatabase,
    form: RowFormat,
    notes: ReadingNotes | None = None,
) -> Iterator[LabelledRow]:
    """Record and second text of every row.

    Args:
        form: as `found_form` gives it.
        notes: gets how the files are read.

    Raises:
        InputError: as `iter_records`, or a label database where pairs or a column
            are asked for.
    """
    if isinstance(path, LabelDatabase):
        if form.paired:
            raise InputError(f"{path} holds labels of single texts; --task {form.task} needs pairs")
        for flag, column in (("text", form.text_column), ("label", form.label_column)):
            if column is not None:
                raise InputError(
                    f"{path} is the app's label database, whose columns are known, so "
                    f"--{flag}-column has no effect; leave it out"
                )
        from malmoi.labels.records import iter_label_records  # SQLAlchemy takes a while

        records = iter_label_records(path)
    elif form.paired:
        yield from _pair_rows(path, form, notes)
        return
    elif form.label_columns:
        records = _zero_one_records(path, form, notes)
    else:
        records = iter_records(
            path,
            label_column=form.label_column,
            need_label=True,
            options=form.reading,
            notes=notes,
        )
    # Label Studio's list of what people said: empty where nobody has said anything.
    of_people = form.label_column in ANNOTATIONS
    for record in records:
        yield replace(record, label="") if of_people and record.label == "[]" else record, None


def _has_label(path: Path, form: RowFormat) -> bool:
    try:
        next(
            iter_records(
                path, label_column=form.label_column, need_label=True, options=form.reading
            ),
            None,
        )
    except InputError:
        return False
    return True


def _zero_one_columns(path: Path, form: RowFormat) -> tuple[str, ...]:
    """Columns that hold nothing but 0 and 1 (or O and X, yes and no), of the first file; none of
    one that is no table.

    Raises:
        InputError: a column is one of these but for a few cells.
    """
    source = find_sources(path)[0]
    try:
        with source.open_stored() as file:
            table = load_table(PurePath(source.name).name, file.read(), form.reading)
    except InputError:
        return ()  # reading it will say what is wrong
    names = {name: name.strip().lower() for name in table.columns}
    if set(LABEL_COLUMNS) & set(names.values()):
        return ()  # something else was wrong
    others = {form.text_column, ID_COLUMN, *TEXT_COLUMNS}
    found, mistaken = [], []
    for name, plain in names.items():
        counts = table[name].value_counts(sort=False)
        said = {cell: _is_yes(cell) for cell in counts.index}
        if {name, plain} & others or True not in said.values():
            continue
        wrong = [cell for cell, yes in said.items() if yes is None]
        if not wrong:
            found.append(name)
        elif counts[wrong].sum() <= _MISTAKES * len(table):
            mistaken.append((name, wrong[0], int(counts[wrong].sum())))
    if found and mistaken:
        name, cell, cells = mistaken[0]
        raise InputError(
            f"{path}: expected 0 or 1 in every cell of {name}, as in {', '.join(found)}, found "
            f"{cell!r} and the like in {cells:,} of {len(table):,}; correct them, or name the "
            f"columns of labels with --task multi --label-column {','.join(found)}"
        )
    return tuple(found)


def _zero_one_records(path: Path, form: RowFormat, notes: ReadingNotes | None) -> Iterator[Record]:
    """Records with the list of their labels: the file is read once for each of them, and once for
    the texts, so that no one of the columns is told as that of the labels.
    """
    texts = iter_records(path, options=form.reading, notes=notes)
    readers = [
        iter_records(path, label_column=name, need_label=True, options=form.reading)
        for name in form.label_columns
    ]
    for text, *records in _side_by_side(texts, *readers):
        names = []
        for name, record in zip(form.label_columns, records, strict=True):
            yes = _is_yes(record.label or "")
            if yes is None:
                raise InputError(
                    f"{record.source}:{record.line}: expected 0 or 1 in {name}, found "
                    f"{record.label!r}; correct it or name the label columns with --label-column"
                )
            if yes:
                names.append(name)
        yield replace(text, label=write_list(names))


def _is_yes(cell: str) -> bool | None:
    """Whether a cell says that a text has a label; None where it says something else."""
    said = unicodedata.normalize("NFKC", normal_label(cell)).lower()
    return True if said in _YES else False if said in _NO else None


def _pair_rows(path: Path, form: RowFormat, notes: ReadingNotes | None) -> Iterator[LabelledRow]:
    """Both texts of each row: the file is read twice at the same time, once for each column."""
    label, reading = form.label_column, form.reading
    firsts = iter_records(path, label_column=label, need_label=True, options=reading, notes=notes)
    seconds = iter_records(
        path, text_column=form.pair_column, label_column=label, options=reading, notes=notes
    )
    for first, second in _side_by_side(firsts, seconds):
        yield first, second.text


def _side_by_side(*readers: Iterator[Record]) -> Iterator[tuple[Record, ...]]:
    """The records of one row of several readings of the same files.

    Raises:
        InputError: the readings do not have the same rows.
    """
    for records in zip_longest(*readers):
        places = {None if one is None else (one.source, one.id) for one in records}
        if len(places) > 1:
            found = next(one for one in records if one is not None)
            raise InputError(
                f"{found.source}:{found.line}: expected every column in every row, found a row "
                "that lacks one; complete it, or take its file out"
            )
        yield records


def _found_columns(path: Path, form: RowFormat) -> RowFormat:
    """`form` with every column named; those of a known pair of columns that the file has."""
    pairs = [
        (form.text_column or text, form.pair_column or pair)
        for text, pair in PAIR_COLUMNS
        if (form.text_column or text) != (form.pair_column or pair)
    ]
    labels = (form.label_column,) if form.label_column else _PAIR_LABELS[form.task]
    for text, pair in pairs:
        if not (_has_column(path, form.reading, text) and _has_column(path, form.reading, pair)):
            continue
        for label in labels:
            if _has_column(path, form.reading, text, label):
                return form.with_text(text, pair_column=pair, label_column=label)
    # None fits: the last names that could have, so that reading says what is missing.
    text, pair = next((p for p in pairs if _has_column(path, form.reading, p[0])), pairs[-1])
    if not _has_column(path, form.reading, pair):
        # Otherwise the label column would be complained about first.
        next(iter_records(path, text_column=text, options=form.reading))
        try:
            next(iter_records(path, text_column=pair, options=form.reading))
        except InputError as error:
            told = str(error).replace("--text-column", "--pair-column")
            raise InputError(told.replace("no text column", "no second text column")) from error
    return form.with_text(text, pair_column=pair, label_column=labels[-1])


def _has_column(path: Path, reading: ReadOptions, text: str, label: str | None = None) -> bool:
    try:
        next(iter_records(path, text_column=text, label_column=label, options=reading), None)
    except InputError:
        return False
    return True
