"""What files say of their texts: one reader for each tool that writes such files."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from malmoi.errors import InputError
from malmoi.labels.project import TaskKind
from malmoi.text.reading.options import ReadOptions


@dataclass(frozen=True, kw_only=True)
class ImportedRow:
    """A row of an import, as the database has it.

    Attributes:
        id: of the row.
        text_id: of its text.
        place: as "file:place".
        cells: its columns but the text.
    """

    id: int
    text_id: int
    place: str
    cells: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ImportedAct:
    """What somebody has done elsewhere with the text of a row.

    Attributes:
        key: names it among the acts of its row.
        annotator: who did it.
        kind: a label, a skip, a note, or the decision of a reviewer.
        labels: of a label or a decision.
        note: of a note.
        seconds: that a label took.
        labelled_at: when it was done, as the file writes it.
    """

    key: str
    annotator: str
    kind: Literal["label", "skip", "note", "decision"] = "label"
    labels: Sequence[str] = ()
    note: str = ""
    seconds: float | None = None
    labelled_at: str | None = None


class LabelReader(Protocol):
    """Reads what the rows of one kind of file say.

    Attributes:
        name: begins the ids of all requests, so that the same file again does nothing.
        options: how the texts are read.
    """

    options: ReadOptions

    @property
    def name(self) -> str: ...

    def read(
        self, cells: Mapping[str, Any], kind: TaskKind, names: Collection[str]
    ) -> Iterator[ImportedAct | InputError]:
        """What a row says, and what is wrong with the parts of it that cannot be read.

        Args:
            cells: of the row.
            kind: of the project.
            names: of its labels.
        """
        ...

    def require_labels(self) -> None:
        """Refuse files of which no row had the column of labels.

        Raises:
            InputError: that is so; the texts are imported then.
        """
        ...


def without_labels(tool: str, keys: Collection[str]) -> InputError:
    """The error of a file of a tool that has labels under none of these keys."""
    return InputError(
        "expected labels under {keys: or } in what {tool} exports, found neither; the texts are "
        "imported, their labels are not: import the files as a table, or export them again with "
        "the names of the labels",
        keys=list(map(repr, keys)),
        tool=tool,
    )
