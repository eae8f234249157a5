"""Lists of labels as programs write them into one cell.

JSON's `["a", "b"]`, Python's `['a', 'b']` with its tuples and sets, numpy's `['a' 'b']`, and Label
Studio's `{"choices": ["a", "b"]}`, however deep it lies.
"""

import ast
import json
import re
from typing import Any

_OPENING = ("[", "{", "(")
# numpy prints no commas, and Python would join the texts.
_WITHOUT_COMMA = re.compile(r"""(['"])\s+(?=['"])""")
CHOICES = "choices"


def listed(cell: str) -> Any | None:
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


def chosen(value: Any) -> list[Any] | None:
    """All that stands under "choices" at any depth; None where there is no such key."""
    if isinstance(value, dict):
        own = value.get(CHOICES)
        if own is not None:
            return list(own) if isinstance(own, list) else [own]
        value = list(value.values())
    found = [chosen(one) for one in value] if isinstance(value, list | tuple) else []
    known = [one for one in found if one is not None]
    return [one for some in known for one in some] if known else None
