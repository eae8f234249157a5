"""Lists of labels as programs write them into one cell.

JSON's `["a", "b"]`, Python's `['a', 'b']` with its tuples and sets, numpy's `['a' 'b']`, and Label
Studio's `{"choices": ["a", "b"]}`, however deep it lies.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from malmoi.errors import InputError
from malmoi.messages import Phrase

_OPENING = ("[", "{", "(")
# numpy prints no commas, and Python would join the texts.
_WITHOUT_COMMA = re.compile(r"""(['"])\s+(?=['"])""")
CHOICES = "choices"
# Where Label Studio's annotations stand: in exports of today, and before its version 1.0.
ANNOTATIONS = ("annotations", "completions")


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


def names_in_list(cell: Any, where: str = "") -> list[str]:
    """The names in what `listed` gives of a cell.

    Raises:
        InputError: something in it is no name.
    """
    found = cell
    if isinstance(cell, dict) or any(isinstance(one, dict) for one in cell):
        found = chosen(cell)
        if found is None:
            raise InputError(
                'expected label names or "{choices}" in the cell, found {cell!r}; name another '
                "column with --label-column",
                place=where,
                choices=CHOICES,
                cell=str(cell)[:60],
            )
    wrong = [one for one in found if isinstance(one, list | tuple | dict | set) or one is None]
    if wrong:
        raise InputError(
            "expected label names in a list, found {found!r}; --label-column must name labels of "
            "whole texts",
            place=where,
            found=str(wrong[0])[:60],
        )
    # The order of a set is no order.
    return [str(one) for one in (sorted(found, key=str) if isinstance(found, set) else found)]


def is_annotations(found: Any) -> bool:
    """Whether a list is what Label Studio keeps of one text, an object for each who annotated."""
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(one, dict) and "result" in one for one in found)
    )


def agreed(annotations: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The labels that all who labelled a text gave it, or that are its ground truth.

    Args:
        annotations: of Label Studio; those that were cancelled do not count, whatever they hold.

    Returns:
        The labels, none where that is what they say; None where nobody has labelled the text.

    Raises:
        InputError: they differ.
    """
    held = [one for one in annotations if not one.get("was_cancelled")]
    truths = [one for one in held if one.get("ground_truth")] or held
    said = [[str(name) for name in chosen(one["result"]) or ()] for one in truths]
    for other in said[1:]:
        if set(other) != set(said[0]):
            first, second = (", ".join(names) or Phrase("none") for names in (said[0], other))
            raise InputError(
                "expected annotators who agree on a text, found {first} and {second}; import the "
                "file into a project of the app and decide there, or keep one annotation a text",
                first=first,
                second=second,
            )
    return said[0] if said else None


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
