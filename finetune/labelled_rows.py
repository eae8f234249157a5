"""Rows of labelled texts or labelled pairs, from files or from the app's label database."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from corpora.errors import InputError
from corpora.reading import iter_records
from corpora.record import Record
from finetune.label_database import is_label_database, iter_label_records
from finetune.row_format import RowFormat
from finetune.tasks import Task

# Text, pair and label columns of pairs, tried in this order: KorSTS, Question pair, and our own.
_PAIR_COLUMNS = (("sentence1", "sentence2"), ("question1", "question2"), ("text", "pair"))
_PAIR_LABELS: dict[Task, tuple[str, ...]] = {
    "pair": ("is_duplicate", "gold_label", "label"),
    "pair-regression": ("score", "label"),
}

Row = tuple[Record, str | None]


def iter_rows(path: Path, form: RowFormat, labels: Sequence[str] | None = None) -> Iterator[Row]:
    """Record and second text of every row.

    Args:
        labels: say which labels of the app's database are meant, where it has several tasks'.

    Raises:
        InputError: as `corpora.reading.iter_records`, or a label database where pairs or a column
            are asked for.
    """
    if path.is_file() and is_label_database(path):
        if form.paired:
            raise InputError(f"{path} holds labels of single texts; --task {form.task} needs pairs")
        for flag, column in (("text", form.text_column), ("label", form.label_column)):
            if column is not None:
                raise InputError(
                    f"{path} is the app's label database, whose columns are known, so "
                    f"--{flag}-column has no effect; leave it out"
                )
        records = iter_label_records(path, labels)
    elif form.paired:
        yield from _pair_rows(path, _found_columns(path, form))
        return
    else:
        records = iter_records(
            path, text_column=form.text_column, label_column=form.label_column, need_label=True
        )
    for record in records:
        yield record, None


def _pair_rows(path: Path, form: RowFormat) -> Iterator[Row]:
    """Both texts of each row: the file is read twice at the same time, once for each column."""
    firsts = iter_records(
        path, text_column=form.text_column, label_column=form.label_column, need_label=True
    )
    seconds = iter_records(path, text_column=form.pair_column, label_column=form.label_column)
    for first, second in zip_longest(firsts, seconds):
        yield first, second.text


def _found_columns(path: Path, form: RowFormat) -> RowFormat:
    """`form` with every column named; those of a known pair of columns that the file has."""
    pairs = [
        (form.text_column or text, form.pair_column or pair)
        for text, pair in _PAIR_COLUMNS
        if (form.text_column or text) != (form.pair_column or pair)
    ]
    labels = (form.label_column,) if form.label_column else _PAIR_LABELS[form.task]
    for text, pair in pairs:
        if not (_has_column(path, text) and _has_column(path, pair)):
            continue
        for label in labels:
            if _has_column(path, text, label):
                return replace(form, text_column=text, pair_column=pair, label_column=label)
    # None fits: the last names that could have, so that reading says what is missing.
    text, pair = next((p for p in pairs if _has_column(path, p[0])), pairs[-1])
    if not _has_column(path, pair):
        # Otherwise the label column would be complained about first.
        next(iter_records(path, text_column=text))
        try:
            next(iter_records(path, text_column=pair))
        except InputError as error:
            told = str(error).replace("--text-column", "--pair-column")
            raise InputError(told.replace("no text column", "no second text column")) from error
    return replace(form, text_column=text, pair_column=pair, label_column=labels[-1])


def _has_column(path: Path, text: str, label: str | None = None) -> bool:
    try:
        next(iter_records(path, text_column=text, label_column=label), None)
    except InputError:
        return False
    return True
