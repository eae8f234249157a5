"""Texts that an annotator brings along: typed in, or met in a file that a model has labelled."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.stored_text import checked, checked_name, text_hash
from malmoi.labels.tables import TextImportRow, TextSourceRow
from malmoi.labels.text_import import import_row
from malmoi.labels.text_state import add_missing_texts
from malmoi.messages import Phrase
from malmoi.text.table_writing import json_line

Cell = str | int | float | bool | None
# One transaction takes a fraction of a second at this size.
_MOST = 1_000
# The column of the texts themselves.
_TEXT = "text"


def add_texts(
    access: ProjectAccess,
    texts: Sequence[str],
    source: str,
    columns: Sequence[Mapping[str, Cell]] = (),
) -> list[int]:
    """Make texts part of the project, so that they can be labelled; those that it has stay.

    Args:
        texts: at most 1,000; those that are equal once clean (`text_hash`) are one.
        source: where they come from, such as a file's name.
        columns: what else is known of each text; those of a text that was there are kept, too.

    Returns:
        The id of each text, in order.

    Raises:
        InputError: the person is no member, the project is archived, or a text or a column is empty
            or cannot be stored; nothing is added.
    """
    if len(texts) > _MOST:
        raise InputError(
            "expected at most {most:,} texts at a time, found {count:,}",
            most=_MOST,
            count=len(texts),
        )
    checked(source, Phrase("the source of texts"))
    for text in texts:
        if not checked(text, Phrase("a text")).strip():
            raise InputError("expected a text, found an empty one")
    for name in dict.fromkeys(name for cells in columns for name in cells):
        if checked_name(name, Phrase("a column")) == _TEXT:
            raise InputError("expected columns beside {text}, found it among them", text=_TEXT)
    hashes = [text_hash(text) for text in texts]
    with access.writing("annotator") as connection:
        by_hash = dict(zip(hashes, texts, strict=True))
        known, new = add_missing_texts(connection, access.project_id, by_hash)
        ids = [known[one][0] for one in hashes]
        rows = list(zip(ids, columns or [{}] * len(ids), strict=True))
        _note_source(connection, access, source, rows, set(new))
    return ids


def _note_source(
    connection: Connection,
    access: ProjectAccess,
    source: str,
    rows: Sequence[tuple[int, Mapping[str, Cell]]],
    new: Collection[int],
) -> None:
    """One import for all that a person brings from one source; the same row again is none."""
    told = dict.fromkeys(
        (one, json_line(dict(cells))) for one, cells in rows if cells or one in new
    )
    if not told:
        return
    named = f"found\0{source}\0{access.person.name}".encode()
    row = import_row(connection, access, hashlib.sha256(named).hexdigest())
    held = select(TextSourceRow.text_id, TextSourceRow.cells).where(
        TextSourceRow.import_id == row["id"], TextSourceRow.text_id.in_({one for one, _ in told})
    )
    there = set(connection.execute(held).tuples())
    added = [
        {"text_id": one, "import_id": row["id"], "source": source, "place": "", "cells": cells}
        for one, cells in told
        if (one, cells) not in there
    ]
    if not added:
        return
    connection.execute(insert(TextSourceRow), added)
    names = dict.fromkeys(name for _, cells in rows for name in cells)
    columns = json.loads(row["columns"] or "{}")
    if names:
        before = columns.get(source, {"names": [_TEXT]})["names"]
        columns[source] = {"text": _TEXT, "names": list(dict.fromkeys([*before, *names]))}
    connection.execute(
        update(TextImportRow)
        .where(TextImportRow.id == row["id"])
        .values(
            rows_read=row["rows_read"] + len(added),
            new_texts=row["new_texts"] + len(new),
            columns=json.dumps(columns, ensure_ascii=False) if columns else None,
            finished_at=row["finished_at"] or row["started_at"],
        )
    )
