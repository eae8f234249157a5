"""The one shape in which a text walks through every room."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One text, where it came from, and its label if it has one.

    Attributes:
        id: the row's own `id`, or "file:line".
        text: the text as read; cleaned text once it went through `malmoi.text.cleaning.cleaner`.
        label: the class name, or None for an unlabelled text.
        source: the file it was read from, relative to the folder that was given.
        line: where it begins there, a line or a row of a sheet, from 1; 0 if that is not known.
    """

    id: str
    text: str
    label: str | None = None
    source: str = ""
    line: int = field(default=0, compare=False)
