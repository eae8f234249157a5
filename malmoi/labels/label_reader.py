"""What files say of their texts: one reader for each tool that writes such files."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from malmoi.errors import InputError
from malmoi.labels.project import TaskKind
from malmoi.text.reading.options import ReadOptions


@dataclass(frozen=True, kw_only=True)
class ImportedAct:
    """What somebody, or a model, has said elsewhere of the text of a row.

    Attributes:
        key: names it among the acts of its row.
        annotator: who did it; None where the file does not say. Of a suggestion, the model.
        kind: a label, a skip, a note, the decision of a reviewer, or what a model suggests.
        labels: of a label, a decision or a suggestion.
        note: of a note.
        seconds: that a label took.
        labelled_at: when it was done, in UTC; None where the file does not say.
        score: of a suggestion: its probability.
    """

    key: str
    annotator: str | None = None
    kind: Literal["label", "skip", "note", "decision", "suggestion"] = "label"
    labels: Sequence[str] = ()
    note: str = ""
    seconds: float | None = None
    labelled_at: datetime | None = None
    score: float | None = None


@dataclass(kw_only=True)
class LabelReader(ABC):
    """Reads what the rows of one kind of file say.

    Attributes:
        options: how the texts are read.
        has_labels: whether a row had the place of labels.
    """

    options: ReadOptions
    has_labels: bool = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the way, which says other things of the same rows than another one."""

    @abstractmethod
    def read(
        self, cells: Mapping[str, Any], kind: TaskKind, names: Collection[str]
    ) -> Iterator[ImportedAct | InputError]:
        """What a row says, and what is wrong with the parts of it that cannot be read."""

    def kept(self, cells: Mapping[str, Any], text_column: str) -> Mapping[str, Any]:
        """The columns of a row that stay with its text, of those but `text_column`."""
        return cells

    @abstractmethod
    def require_labels(self) -> None:
        """Refuse files of which no row had the column of labels.

        Raises:
            InputError: that is so; the texts are imported then.
        """


def without_labels(tool: str, keys: Collection[str]) -> InputError:
    """The error of a file of a tool that has labels under none of these keys."""
    return InputError(
        "expected labels under {keys: or } in what {tool} exports, found neither; the texts come "
        "in alone: import the files as a table, or export them again with the names of the labels",
        keys=list(map(repr, keys)),
        tool=tool,
    )


def person_of(cell: Any, prefix: str = "") -> str | None:
    """Who is meant by an annotator's cell: a name, an e-mail address, or a number.

    Args:
        cell: as a file has it: an object of Label Studio, too.
        prefix: stands before a number.
    """
    if isinstance(cell, dict):
        cell = cell.get("email") or cell.get("username") or cell.get("id")
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    name = str(cell).strip()
    return (f"{prefix}{name}" if name.isdecimal() else name) or None


def seconds_of(cell: Any) -> float | None:
    """How long an act took, where the cell says so."""
    try:
        seconds = float(cell)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < float("inf") else None
