"""The one shape in which a text walks through every room."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The one column of a plain list of texts.
LINE_COLUMN = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One text, where it came from, and what else its row says.

    Attributes:
        id: the row's own `id`, or "file:line".
        text: the text as read; cleaned text once it went through `malmoi.text.cleaning.cleaner`.
        label: the class name, or None for an unlabelled text.
        source: the file it was read from, relative to the folder that was given.
        line: where it begins there, a line or a row of a sheet, from 1; 0 if that is not known.
        pair: the second text; None where none was asked for.
        cells: by column: all in the order of the file, or those that were asked for by the names
            that were asked for; texts, numbers, dates, lists.
        text_column: which of the columns the text is.
        place: in the file: a line, or a sheet and a row ("12", "sheet:12").
    """

    id: str
    text: str
    label: str | None = None
    source: str = ""
    line: int = field(default=0, compare=False)
    pair: str | None = None
    cells: Mapping[str, Any] = field(default_factory=dict, compare=False)
    text_column: str = field(default=LINE_COLUMN, compare=False)
    place: str = field(default="", compare=False)
