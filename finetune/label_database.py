"""The app's labels, read straight from its SQLite file.

The table is that of `app/store.py`, of which four columns are read:

    labels(id INTEGER, text TEXT, text_sha256 TEXT, label TEXT, ...)

It is a log: a correction is a later row, so the label of a text is its row with the highest id.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from corpora.errors import InputError
from corpora.record import Record

_MAGIC = b"SQLite format 3\x00"
_CURRENT = """SELECT id, text, label FROM labels
WHERE id IN (SELECT MAX(id) FROM labels GROUP BY text_sha256) ORDER BY id"""


def is_label_database(path: Path) -> bool:
    """Whether `path` is a SQLite file, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def iter_label_records(path: Path) -> Iterator[Record]:
    """The current label of every text, oldest first; the file is not changed.

    Raises:
        InputError: it has no such table, is damaged, or is locked for long.
    """
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            for identifier, text, label in connection.execute(_CURRENT):
                name = f"{path.name}:{identifier}"
                yield Record(id=name, text=text or "", label=label, source=path.name)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InputError(
            f"{path}: expected the label database of the app (table labels with id, text, "
            f"text_sha256 and label), found {error}; export the labels in the app as CSV instead"
        ) from error
