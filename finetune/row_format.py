"""Which columns of a table hold the texts, their pairs and their labels."""

from dataclasses import dataclass

from corpora.errors import InputError
from finetune.tasks import Task, reads_pairs


@dataclass(frozen=True, kw_only=True)
class RowFormat:
    """Which columns hold what; None looks for known names.

    Raises:
        InputError: a pair column for a task of single texts.
    """

    task: Task = "single"
    text_column: str | None = None
    pair_column: str | None = None
    label_column: str | None = None

    def __post_init__(self) -> None:
        if self.pair_column is not None and not self.paired:
            raise InputError(
                f"--pair-column names a second text, and --task {self.task} reads one; leave it "
                "out or give --task pair or pair-regression"
            )

    @property
    def paired(self) -> bool:
        """Whether a row has two texts."""
        return reads_pairs(self.task)
