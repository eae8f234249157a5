"""Which columns of a table hold the texts, their pairs and their labels, and how they are meant."""

from dataclasses import dataclass, field
from datetime import date

from malmoi.inference.tasks import Task, reads_pairs
from malmoi.text.reading.options import ReadOptions


@dataclass(frozen=True, kw_only=True)
class RowFormat:
    """What a row of labelled texts is; of a column None looks for known names.

    Attributes:
        task: what a row is.
        reading: how the files are read, and the column of the text, or the first of two.
        pair_column: the second text.
        label_column: the label, or several.
        label_columns: instead, columns of 0 and 1 that are named like the labels (`multi`).
        label_separator: what stands between the labels of one cell, for `multi`, or several such
            with blanks between them; None is a comma, and asks where another one seems to be meant.
        group_column: what texts that belong together have in common.
        ignore_ids: number the rows instead of reading a column `id`.
        skip_unlabelled: leave out rows whose label cell is empty, not those with an empty list.
        own_test: what the data calls its test is in no fold, see `own_test`.
        test_after: the last day of what is learnt; later rows are the test. None looks for a column
            `split` and for files that are named so.
        date_columns: where a row's day stands, the first that is there.
    """

    task: Task = "single"
    reading: ReadOptions = field(default_factory=ReadOptions)
    pair_column: str | None = None
    label_column: str | None = None
    label_columns: tuple[str, ...] = ()
    label_separator: str | None = None
    group_column: str | None = None
    ignore_ids: bool = False
    skip_unlabelled: bool = False
    own_test: bool = False
    test_after: date | None = None
    date_columns: tuple[str, ...] = ()

    @property
    def paired(self) -> bool:
        return reads_pairs(self.task)
