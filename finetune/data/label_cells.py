"""The labels in one cell: a name, several with a separator, or a list as programs write them.

Read as lists are JSON's `["a", "b"]`, Python's `['a', 'b']` with its tuples and sets, what numpy
prints (`['a' 'b']`), and Label Studio's `{"choices": ["a", "b"]}`, however deep it lies.
"""

import ast
import json
import re
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.names import normal_label

_OPENING = ("[", "{", "(")
# numpy prints no commas, and Python would join the texts.
_WITHOUT_COMMA = re.compile(r"""(['"])\s+(?=['"])""")
_CHOICES = "choices"


def labels_in(cell: str, separator: str | None, where: str) -> list[str]:
    """The names in a cell, each once, in order; none for an empty cell or list.

    Args:
        cell: as `malmoi.text.reading.records` gives it; lists of JSON and Parquet are JSON text.
        separator: what stands between names outside of lists; None where a cell has one.
        where: for the message.

    Raises:
        InputError: nothing stands between two separators, or a list holds no names.
    """
    if not normal_label(cell):
        return []
    listed = _listed(cell)
    if listed is not None:
        names = [normal_label(name) for name in _names(listed, where)]
    elif separator is None:
        names = [normal_label(cell)]
    else:
        names = [normal_label(part) for part in cell.split(separator)]
    if "" in names:
        raise InputError(
            f"{where}: expected labels between the separators {separator!r}, found {cell!r}; "
            "correct the row or give another data.label_separator"
        )
    return list(dict.fromkeys(names))


def write_list(names: list[str]) -> str:
    """Names as a cell that `labels_in` reads back, whatever they contain."""
    return json.dumps(names, ensure_ascii=False)


def _listed(cell: str) -> Any | None:
    """The list, or mapping, that a cell spells; None for any other text."""
    text = cell.strip()
    if not text.startswith(_OPENING):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        found = ast.literal_eval(_WITHOUT_COMMA.sub(r"\1, ", text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None  # a name in brackets, such as "[공지]"
    return found if isinstance(found, list | tuple | set | dict) else None


def _names(listed: Any, where: str) -> list[str]:
    found = listed
    if isinstance(listed, dict) or any(isinstance(one, dict) for one in listed):
        found = _choices(listed)
        if found is None:
            raise InputError(
                f'{where}: expected label names or "{_CHOICES}" in the cell, found '
                f"{str(listed)[:60]!r}; name another column with --label-column"
            )
    if isinstance(found, str):
        found = [found]
    wrong = [one for one in found if isinstance(one, list | tuple | dict | set) or one is None]
    if wrong:
        raise InputError(
            f"{where}: expected label names in a list, found {str(wrong[0])[:60]!r}; "
            "--label-column must name labels of whole texts"
        )
    # The order of a set is no order.
    return [str(one) for one in (sorted(found, key=str) if isinstance(found, set) else found)]


def _choices(value: Any) -> list[Any] | None:
    """All that stands under "choices" at any depth; None where there is no such key."""
    if isinstance(value, dict):
        own = value.get(_CHOICES)
        if own is not None:
            return list(own) if isinstance(own, list) else [own]
        value = list(value.values())
    found = [_choices(one) for one in value] if isinstance(value, list | tuple) else []
    known = [one for one in found if one is not None]
    return [one for some in known for one in some] if known else None
