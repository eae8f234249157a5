"""Where the labelled texts of a run are: files, a task's own, or a label database."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from malmoi.errors import InputError
from malmoi.labels.database import LabelDatabase, label_database
from malmoi.labels.tasks import TaskDefinition, is_task, read_task, task_with_labels
from malmoi.text.reading.sources import Source

# Where labelled texts are: a file or folder, the app's database, or a table in memory.
DataPlace = Path | LabelDatabase | Source


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """What to read.

    Attributes:
        place: file, folder, label database or table.
        labels: the names expected, in the order in which they are learnt; None: those of the data.
        task: whose texts they are, where a task.toml says so.
    """

    place: DataPlace
    labels: list[str] | None = None
    task: TaskDefinition | None = None

    def prompt(self, given: Path | None) -> Path | None:
        """The file with the prompt for a chat model that was given, else the task's, if it has one.

        None leaves it to the labels.
        """
        if given is not None or self.task is None or self.task.prompt is None:
            return given
        return self.task.path


def find_data(
    data: str | Path | Source | None, labels: Sequence[str] | None, *, has_labels: bool = True
) -> DataSource:
    """What `--data` names, else the texts of the project's task with the labels of `--labels`.

    A task.toml, or a folder with one, names file, columns and labels.

    Args:
        labels: as `malmoi.labels.label_names.parse_labels` has them, or None.
        has_labels: whether what is learnt are labels, not numbers.

    Raises:
        InputError: no task has these labels, or its file cannot be used.
    """
    wanted = None if labels is None else list(labels)
    if data is None:
        task = task_with_labels(wanted or [])
        if task is None:
            raise InputError(
                "no sample of the project has the labels {labels}; give your labelled texts with "
                "--data",
                labels=", ".join(wanted or []),
            )
        return DataSource(place=task.data, labels=wanted, task=task)
    if isinstance(data, Source):
        return DataSource(place=data, labels=wanted)
    database = label_database(data)
    if database is not None:
        return DataSource(place=database, labels=wanted)
    if not is_task(Path(data)):
        return DataSource(place=Path(data), labels=wanted)
    task = read_task(Path(data))
    if wanted is None and has_labels:
        wanted = task.label_names
    return DataSource(place=task.data, labels=wanted, task=task)
