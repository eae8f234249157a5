"""Which columns of a table hold the texts, their pairs and their labels."""

from dataclasses import dataclass, field

from malmoi.errors import InputError
from malmoi.inference.tasks import Task, reads_pairs
from malmoi.text.reading.options import ReadOptions


@dataclass(frozen=True, kw_only=True)
class RowFormat:
    """Which columns hold what; None looks for known names.

    Attributes:
        task: what a row is.
        reading: how the files are read, and the column of the text, or the first of two.
        pair_column: the second text.
        label_column: the label, or several.
        label_columns: instead, columns of 0 and 1 that are named like the labels (`multi`).
        group_column: what texts that belong together have in common.

    Raises:
        InputError: a pair column for a task of single texts.
    """

    task: Task = "single"
    reading: ReadOptions = field(default_factory=ReadOptions)
    pair_column: str | None = None
    label_column: str | None = None
    label_columns: tuple[str, ...] = ()
    group_column: str | None = None

    def __post_init__(self) -> None:
        if self.pair_column is not None and not self.paired:
            raise InputError(
                "--pair-column names a second text, and --task {task} reads one; leave it out or "
                "give --task pair or pair-regression",
                task=self.task,
            )

    @property
    def text_column(self) -> str | None:
        """The text, or the first of two."""
        return self.reading.text_column

    @property
    def paired(self) -> bool:
        """Whether a row has two texts."""
        return reads_pairs(self.task)
