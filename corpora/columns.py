"""Which column of a table is the text, the label and the id, and what its cells say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpora.errors import InputError

TEXT_COLUMNS = (
    *("text", "document", "review", "comment", "comments", "content"),
    *("리뷰", "댓글", "내용", "본문"),
)
LABEL_COLUMNS = ("label", "라벨", "감정")
ID_COLUMN = "id"

# A file without a header row shows its first text as a column: keep the message readable.
SHOWN_COLUMNS = 12
SHOWN_CHARACTERS = 30

# Halves of surrogate pairs: JSON can escape a single one, as programs write that cut texts by
# UTF-16 units, and Excel both of a pair.
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelNames:
    """What the cells of a label column mean.

    Attributes:
        names: label by cell.
        separator: what stands between the labels of one cell, None where a cell holds one; the
            labels' names are joined by it again.
    """

    names: Mapping[str, str]
    separator: str | None = None

    def of(self, cell: str, where: str) -> str:
        """The name of a cell's label, or of its labels.

        Raises:
            InputError: the cell holds a label without a name.
        """
        parts = [cell] if self.separator is None else cell.split(self.separator)
        for part in parts:
            if part.strip() not in self.names:
                known = ", ".join(list(self.names)[:SHOWN_COLUMNS])
                raise InputError(
                    f"{where}: expected a label of {known}"
                    f"{', …' if len(self.names) > SHOWN_COLUMNS else ''}, found {part.strip()!r}; "
                    "fetch the file again or read it under another name"
                )
        return (self.separator or "").join(self.names[part.strip()] for part in parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnRequest:
    """What the caller asked for.

    Attributes:
        text: name of the text column, or None to look for a known one.
        label: name of the label column, or None to look for a known one.
        need_label: whether a table without a label column is an error.
        header: the column names of a table that has no header row.
        names: what the cells of the label column mean; None keeps them as they are.
    """

    text: str | None = None
    label: str | None = None
    need_label: bool = False
    header: tuple[str, ...] | None = None
    names: LabelNames | None = None

    @property
    def wants_label(self) -> bool:
        """Whether a label column must be there."""
        return self.need_label or self.label is not None

    def locate(self, columns: Sequence[str], where: str) -> "ColumnPlaces":
        """Find the columns in a header, ignoring case and surrounding space.

        Raises:
            InputError: a column that must be there is not.
        """
        text = _place(columns, (self.text,) if self.text is not None else TEXT_COLUMNS)
        if text is None:
            raise _missing(where, columns, "text", self.text, TEXT_COLUMNS)
        label = _place(columns, (self.label,) if self.label is not None else LABEL_COLUMNS)
        if label is None and self.wants_label:
            raise _missing(where, columns, "label", self.label, LABEL_COLUMNS)
        identifier = _place(columns, (ID_COLUMN,))
        return ColumnPlaces(text=text, label=label, id=identifier)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnPlaces:
    """Positions in the header, from 0; None where a table has no such column."""

    text: int
    label: int | None
    id: int | None


def has_text_column(columns: Sequence[str], requested: str | None) -> bool:
    """Whether this line is a header with a text column that we know or were told of."""
    names = TEXT_COLUMNS if requested is None else (*TEXT_COLUMNS, requested)
    return _place(columns, names) is not None


def whole_characters(text: str) -> str:
    """The text with halves of characters joined, or left out: UTF-8 cannot hold one."""
    if _HALVES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def cell_text(cell: object, where: str) -> str:
    """A cell as text: "" for nothing, "1" for 1.0, otherwise as it prints, without half emoji.

    Raises:
        InputError: the cell holds a list, a mapping or bytes.
    """
    if isinstance(cell, str):
        return whole_characters(cell)
    if cell is None:
        return ""
    if isinstance(cell, float):
        if cell != cell:  # NaN is how pandas writes an empty cell
            return ""
        return str(int(cell)) if cell.is_integer() else str(cell)
    if isinstance(cell, list | tuple | dict | set | bytes):
        raise InputError(
            f"{where}: expected text or a number in the cell, found {type(cell).__name__}; "
            "write it as text"
        )
    return str(cell)


def _place(columns: Sequence[str], names: Sequence[str]) -> int | None:
    plain = [column.strip("\ufeff \t\r\n").lower() for column in columns]
    for name in names:
        if name in columns:
            return columns.index(name)
        if name.strip().lower() in plain:
            return plain.index(name.strip().lower())
    return None


def shown_columns(columns: Sequence[str]) -> str:
    """The first of these names, cut where they are long, for a message."""
    shown = [
        column if len(column) <= SHOWN_CHARACTERS else f"{column[:SHOWN_CHARACTERS]}…"
        for column in columns[:SHOWN_COLUMNS]
    ]
    if len(columns) > SHOWN_COLUMNS:
        shown.append(f"and {len(columns) - SHOWN_COLUMNS} more")
    return ", ".join(shown)


def _missing(
    where: str, columns: Sequence[str], kind: str, requested: str | None, known: Sequence[str]
) -> InputError:
    expected = f"a column named {requested!r}" if requested else f"one of {', '.join(known)}"
    return InputError(
        f"{where}: no {kind} column: expected {expected}, found the columns "
        f"{shown_columns(columns)}; name the right one with --{kind}-column (the first row must be "
        "the header)"
    )
