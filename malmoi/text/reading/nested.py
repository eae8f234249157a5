"""Rows of JSON with objects and lists of objects inside their cells."""

from collections.abc import Iterable, Iterator
from typing import Any

# What is shown of a text, and how many paths to texts are (assumptions).
_EXAMPLE_CHARACTERS = 20
_MOST_PATHS = 6
# Items of a list that are looked at for texts.
_SAMPLE_ITEMS = 3


def with_inner_keys(row: dict[str, Any]) -> dict[str, Any]:
    """A row, and below it what its objects hold: `{"a": {"b": 1}}` has `a` and `a.b`.

    Keys of its own come first and are never replaced. Lists stay as they are.
    """
    inner = [(key, value) for key, value in row.items() if isinstance(value, dict)]
    if not inner:
        return row
    found = dict(row)
    while inner:
        name, value = inner.pop(0)
        for key, cell in value.items():
            path = f"{name}.{key}"
            found.setdefault(path, cell)
            if isinstance(cell, dict):
                inner.append((path, cell))
    return found


def through_lists(row: dict[str, Any], path: str) -> Iterator[dict[str, Any]]:
    """A row for each item of the lists that a path leads through, the item in the list's place.

    `{"topic": "a", "talk": [{"form": "b"}, {"form": "c"}]}` is, by `talk.form`, the rows
    `{"topic": "a", "talk": {"form": "b"}}` and `{"topic": "a", "talk": {"form": "c"}}`. A row
    without a list on the way comes back as it is.
    """
    name, _, rest = path.partition(".")
    value = row.get(name)
    if isinstance(value, list) and value and all(isinstance(item, dict | str) for item in value):
        for item in value:
            yield from through_lists({**row, name: item}, path)
    elif rest and isinstance(value, dict):
        for inner in through_lists(value, rest):
            yield {**row, name: inner}
    else:
        yield row


def texts_inside(rows: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Paths to texts inside objects and lists, the longest first, each with how one begins."""
    found: dict[str, str] = {}

    def look(value: object, path: str, is_inside: bool) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                look(inner, f"{path}.{key}" if path else key, bool(path))
        elif isinstance(value, list):
            for item in value[:_SAMPLE_ITEMS]:
                look(item, path, True)
        elif is_inside and isinstance(value, str) and any(map(str.isalpha, value)):
            found[path] = max(found.get(path, ""), value, key=len)

    for row in rows:
        look(row, "", False)
    longest = sorted(found.items(), key=lambda pair: -len(pair[1]))[:_MOST_PATHS]
    return {path: " ".join(text.split())[:_EXAMPLE_CHARACTERS] for path, text in longest}
