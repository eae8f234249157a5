"""The app's labels, read straight from its SQLite file.

The table is that of `malmoi/labels/store.py`, of which five columns are read:

    labels(id INTEGER, text TEXT, text_sha256 TEXT, label TEXT, label_set TEXT, ...)

It is a log: a correction is a later row, so the label of a text is its row with the highest id. One
file may hold labels of several tasks: `label_set` has the names that could have been chosen.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from malmoi.errors import InputError
from malmoi.text.record import Record

_MAGIC = b"SQLite format 3\x00"
# Without a set: rows of an app that did not know of them yet.
_CURRENT = """SELECT id, text, label FROM labels WHERE id IN (
    SELECT MAX(id) FROM labels
    WHERE label_set IN (SELECT value FROM json_each(:sets))
        OR label_set IS NULL
        AND (:labels IS NULL OR label IN (SELECT value FROM json_each(:labels)))
    GROUP BY text_sha256
) ORDER BY id"""
_LABELS_WITHOUT_SET = "SELECT DISTINCT label FROM labels WHERE label_set IS NULL"
_CURRENT_WITHOUT_SETS = """SELECT id, text, label FROM labels
WHERE id IN (SELECT MAX(id) FROM labels GROUP BY text_sha256) ORDER BY id"""


def label_set(labels: Collection[str]) -> str:
    """The labels that one could choose from, as they stand in the database."""
    return json.dumps(sorted(labels), ensure_ascii=False)


def sets_within(sets: Collection[str], labels: Collection[str]) -> list[str]:
    """Those of the sets that have no label but these: of the same task, or of its beginnings.

    Whoever adds a label to a task keeps what was saved before.
    """
    return [one for one in sets if set(json.loads(one)) <= set(labels)]


def is_label_database(path: Path) -> bool:
    """Whether `path` is a SQLite file, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def iter_label_records(path: Path, labels: Sequence[str] | None = None) -> Iterator[Record]:
    """The current label of every text, oldest first; the file is not changed.

    Args:
        labels: of which task; None where the file has one only.

    Raises:
        InputError: it has no such table, is damaged, is locked for long, or has several tasks of
            which none is named.
    """
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            for identifier, text, label in _rows(connection, path, labels):
                name = f"{path.name}:{identifier}"
                yield Record(id=name, text=text or "", label=label, source=path.name)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InputError(
            f"{path}: expected the label database of the app (table labels with id, text, "
            f"text_sha256 and label), found {error}; export the labels in the app as CSV instead"
        ) from error


def _rows(
    connection: sqlite3.Connection, path: Path, labels: Sequence[str] | None
) -> Iterator[tuple[int, str | None, str]]:
    columns = {column[1] for column in connection.execute("PRAGMA table_info(labels)")}
    if "label_set" not in columns:
        yield from connection.execute(_CURRENT_WITHOUT_SETS)
        return
    query = "SELECT DISTINCT label_set FROM labels WHERE label_set IS NOT NULL ORDER BY 1"
    sets = [one for (one,) in connection.execute(query)]
    if labels is None:
        largest: list[str] = max((json.loads(one) for one in sets), key=len, default=[])
        chosen = sets_within(sets, largest)
        if len(chosen) < len(sets):
            shown = " and ".join(",".join(json.loads(one)) for one in sets)
            raise InputError(
                f"{path}: expected labels of one task, found those of {shown}; name one's by "
                "--labels"
            )
    else:
        chosen = sets_within(sets, labels)
        known = {one for (one,) in connection.execute(_LABELS_WITHOUT_SET)}
        if not chosen and not known & set(labels):
            chosen = sets  # none of them fits: what is unexpected is then named
    given = {
        "sets": json.dumps(chosen, ensure_ascii=False),
        "labels": None if labels is None else json.dumps(list(labels), ensure_ascii=False),
    }
    yield from connection.execute(_CURRENT, given)
