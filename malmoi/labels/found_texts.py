"""Texts that an annotator brings along: typed in, or met in a file that a model has labelled."""

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, insert, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.stored_text import checked, text_hash
from malmoi.labels.tables import TextImportRow, TextSourceRow
from malmoi.labels.text_import import import_row
from malmoi.labels.text_state import add_missing_texts
from malmoi.messages import Phrase

# One transaction takes a fraction of a second at this size.
_MOST = 1_000


def add_texts(access: ProjectAccess, texts: Sequence[str], source: str) -> list[int]:
    """Make texts part of the project, so that they can be labelled; those that it has stay.

    Args:
        access: of an annotator.
        texts: at most 1,000; those that are equal once clean (`text_hash`) are one.
        source: where they come from, such as a file's name.

    Returns:
        The id of each text, in order.

    Raises:
        InputError: the person is no member, the project is archived, or a text is empty or cannot
            be stored; nothing is added.
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
    hashes = [text_hash(text) for text in texts]
    with access.writing("annotator") as connection:
        by_hash = dict(zip(hashes, texts, strict=True))
        known, new = add_missing_texts(connection, access.project_id, by_hash)
        if new:
            _note_source(connection, access, source, new)
    return [known[one][0] for one in hashes]


def _note_source(
    connection: Connection, access: ProjectAccess, source: str, text_ids: Sequence[int]
) -> None:
    """One import for all that a person brings from one source."""
    named = f"found\0{source}\0{access.person.name}".encode()
    row = import_row(connection, access, hashlib.sha256(named).hexdigest())
    connection.execute(
        update(TextImportRow)
        .where(TextImportRow.id == row["id"])
        .values(
            rows_read=row["rows_read"] + len(text_ids),
            new_texts=row["new_texts"] + len(text_ids),
            finished_at=row["finished_at"] or row["started_at"],
        )
    )
    connection.execute(
        insert(TextSourceRow),
        [
            {"text_id": one, "import_id": row["id"], "source": source, "place": "", "cells": "{}"}
            for one in text_ids
        ],
    )
