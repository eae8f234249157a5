"""A name for what is added beside others: that of a column or of a project."""

from collections.abc import Container


def free_name(name: str, taken: Container[str]) -> str:
    """`name`, or with a number behind it where it is taken, as "label (2)"."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free
