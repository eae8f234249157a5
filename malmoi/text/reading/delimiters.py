"""What stands between the fields of a text file, told by its first lines."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from malmoi.errors import InputError
from malmoi.messages import Flag
from malmoi.text.characters import visible_in_nfc
from malmoi.text.reading.columns import has_text_column, shown_columns

SAMPLE_LINES = 200
# How --delimiter names them; "none" reads every line as one text.
NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}
NO_DELIMITER = "none"
# Lines that must have as many delimiters as most have.
_NEARLY_ALL = 0.95
# Lines that a delimiter must part below a header that is known.
_MOST = 0.5
# A bar also stands in titles of texts: fewer lines than these say nothing.
_LINES_WITH_BARS = 3
_NUMBER = re.compile(r"\s*[-+]?\d+(?:[.,]\d+)*\s*")
# A column of labels has few different, short cells (assumptions).
_LABEL_CHARACTERS = 20
_NOTHING = {"", "n/a", "na", "nan", "null", "none", "-", "?"}
_LABEL_SHARE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What kind of table a text file is.

    Attributes:
        delimiter: what parts the fields; empty for a file of one text a line.
        has_header: whether the first row names the columns.
        text: number of the text column from 1 where only its cells tell which it is.
        label: the same of the label column.
        is_chat: the lines are those of a saved chat.
    """

    delimiter: str
    has_header: bool = True
    text: int | None = None
    label: int | None = None
    is_chat: bool = False


def named_delimiter(name: str) -> str:
    """The character that `--delimiter` names; empty for none.

    Raises:
        InputError: it is no name of one, and no single character.
    """
    if name.casefold() == NO_DELIMITER:
        return ""
    character = NAMES.get(name.casefold(), name.replace("\\t", "\t"))
    if len(character) != 1 or character in '"\r\n':
        raise InputError(
            "expected {flag} {names}, {no_delimiter} or one character, found {name!r}",
            flag=Flag("--delimiter"),
            names=", ".join(NAMES),
            no_delimiter=NO_DELIMITER,
            name=name,
        )
    return character


def shown_delimiter(character: str) -> str:
    """What `--delimiter` calls this character."""
    return next((name for name, known in NAMES.items() if known == character), repr(character))


def delimiter_of_table(lines: Sequence[str], usual: str, text: str | None) -> str:
    """What parts the fields of a file that is called a table.

    Args:
        usual: what its suffix promises.
        text: name of the text column, if one was given.
    """
    if not lines:
        return usual
    others = [usual, *(one for one in NAMES.values() if one != usual)]
    for delimiter in others:
        header = split(lines[0], delimiter)
        if (len(header) > 1 or delimiter == usual) and has_text_column(header, text):
            return delimiter
    parted = [d for d in others if d in lines[0] and _width(lines, d) > 1]
    return parted[0] if parted else usual


def shape_of_lines(lines: Sequence[str], text: str | None, where: str) -> Shape:
    """Whether a file that is called plain text is a table, and which.

    Args:
        lines: its first lines that are not blank.
        text: name of the text column, if one was given.

    Raises:
        InputError: it is a table whose text column cannot be told.
    """
    if not lines:
        return Shape(delimiter="")
    for delimiter in ("\t", ",", "|", ";"):
        header = split(lines[0], delimiter)
        known = len(header) > 1 and has_text_column(header, text)
        # Rows of another width are told as such, once most lines are rows at all.
        parted = sum(len(split(line, delimiter)) > 1 for line in lines)
        if known and (delimiter == "\t" or parted >= _MOST * len(lines)):
            return Shape(delimiter=delimiter)
    if len(lines) > 1 and _width(lines, "\t") > 1:
        return headerless_shape(lines, "\t", text, where)
    if len(lines) >= _LINES_WITH_BARS and _width(lines, "|") > 1 and _fills_columns(lines, "|"):
        return headerless_shape(lines, "|", text, where)
    return Shape(delimiter="")


def _fills_columns(lines: Sequence[str], delimiter: str) -> bool:
    """Whether something is seen in every column: what ends each of the lines parts nothing."""
    rows = [split(line, delimiter) for line in lines]
    columns = zip_longest(*rows, fillvalue="")
    return all(any(visible_in_nfc(cell).strip() for cell in column) for column in columns)


def headerless_shape(
    lines: Sequence[str], delimiter: str, text: str | None, where: str, *, certain: bool = False
) -> Shape:
    """The columns of a table whose first row names none that is known, told by their cells.

    Args:
        lines: its first lines that are not blank.
        delimiter: what parts their fields.
        text: name or number of the text column, if one was given.
        certain: that there is no header.

    Raises:
        InputError: which column holds the texts cannot be told.
    """
    rows = [split(line, delimiter) for line in lines]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if len(row) == width]
    below = rows[1:] or rows
    numeric = [_share(_NUMBER, [row[n] for row in below]) >= _NEARLY_ALL for n in range(width)]
    labels = [n for n in range(width) if not numeric[n] and _is_label([row[n] for row in below])]
    first_is_header = not certain and _is_header(rows[0], below, numeric, labels)
    if text is not None:
        return Shape(delimiter=delimiter, has_header=first_is_header)
    filled = [n for n in range(width) if any(row[n].strip() for row in below)]
    labels = [n for n in labels if n in filled]
    texts = [n for n in filled if not numeric[n] and n not in labels]
    if not texts and len(labels) == 1:
        texts, labels = labels, []
    if len(texts) != 1:
        raise InputError(
            "expected one text a line or a table with a known text column, found {width} columns "
            "parted by {delimiter}s: {columns}; name the column of the texts (--text-column NAME, "
            "or its number with {no_header}), or read whole lines by {whole_lines}",
            place=where,
            width=width,
            delimiter=shown_delimiter(delimiter),
            columns=shown_columns(rows[0]),
            no_header=Flag("--no-header"),
            whole_lines=Flag("--delimiter", NO_DELIMITER),
        )
    others = [n for n in filled if n != texts[0]]
    label = others[0] if len(others) == 1 else labels[0] if len(labels) == 1 else None
    return Shape(
        delimiter=delimiter,
        has_header=first_is_header,
        text=texts[0] + 1,
        label=None if label is None else label + 1,
    )


def _is_header(
    first: Sequence[str],
    below: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    labels: Sequence[int],
) -> bool:
    """Whether a row names the columns: words above numbers, or a label that never comes again."""
    if any(
        numeric[n] and cell.strip().casefold() not in _NOTHING and not _NUMBER.fullmatch(cell)
        for n, cell in enumerate(first)
    ):
        return True
    names = all(len(cell) <= _LABEL_CHARACTERS and len(cell.split()) <= 2 for cell in first)
    return names and any(first[n] not in {row[n] for row in below} for n in labels)


def split(line: str, delimiter: str) -> list[str]:
    """The fields of one line; where tabs part them, quotes count only around a whole field."""
    if delimiter == "\t":
        return [unquoted(field) for field in line.split("\t")]
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return line.split(delimiter)


def unquoted(field: str) -> str:
    """A field of a TSV file as pandas and Excel quote it, with the quotes inside doubled."""
    if len(field) >= 2 and field[0] == field[-1] == '"':
        inside = field[1:-1]
        if '"' not in inside:
            return inside
        if '"' not in inside.replace('""', ""):
            return inside.replace('""', '"')
    return field


def _width(lines: Sequence[str], delimiter: str) -> int:
    """Fields of nearly all lines; 1 where their number differs."""
    widths = Counter(len(split(line, delimiter)) for line in lines)
    width, count = widths.most_common(1)[0]
    return width if count >= _NEARLY_ALL * len(lines) else 1


def _share(form: re.Pattern[str], cells: Sequence[str]) -> float:
    filled = [cell for cell in cells if cell.strip()]
    return sum(form.fullmatch(cell) is not None for cell in filled) / max(1, len(filled))


def _is_label(cells: Sequence[str]) -> bool:
    """Few different short cells, each of them often."""
    if max(map(len, cells), default=0) > _LABEL_CHARACTERS or len(cells) < 4:
        return False
    return len(set(cells)) <= _LABEL_SHARE * len(cells)
