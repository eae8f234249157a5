"""Rows of JSON with objects inside their cells."""

from typing import Any


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
