"""Texts that an annotator brings along: typed in, or met in a file that a model has labelled."""

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.stored_text import checked, text_hash
from malmoi.labels.tables import TextImportRow, TextRow, TextSourceRow
from malmoi.labels.text_state import new_text, texts_by_hash
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
        known = texts_by_hash(connection, access.project_id, hashes)
        new = {one: text for one, text in zip(hashes, texts, strict=True) if one not in known}
        if new:
            connection.execute(
                insert(TextRow),
                [new_text(access.project_id, one, text) for one, text in new.items()],
            )
            known = texts_by_hash(connection, access.project_id, hashes)
            _note_source(connection, access, source, [known[one][0] for one in new])
    return [known[one][0] for one in hashes]


def _note_source(
    connection: Connection, access: ProjectAccess, source: str, text_ids: Sequence[int]
) -> None:
    """One import for all that a person brings from one source."""
    named = f"found\0{source}\0{access.person.name}".encode()
    key = hashlib.sha256(named).hexdigest()
    mine = (TextImportRow.project_id == access.project_id, TextImportRow.content_key == key)
    import_id = connection.scalar(select(TextImportRow.id).where(*mine))
    now = database_time(connection)
    if import_id is None:
        made = connection.execute(
            insert(TextImportRow).values(
                project_id=access.project_id,
                content_key=key,
                person=access.person.name,
                rows_read=0,
                new_texts=0,
                started_at=now,
                finished_at=now,
            )
        )
        (import_id,) = made.inserted_primary_key or (0,)
    connection.execute(
        update(TextImportRow)
        .where(TextImportRow.id == import_id)
        .values(
            rows_read=TextImportRow.rows_read + len(text_ids),
            new_texts=TextImportRow.new_texts + len(text_ids),
        )
    )
    connection.execute(
        insert(TextSourceRow),
        [
            {"text_id": one, "import_id": import_id, "source": source, "place": "", "cells": "{}"}
            for one in text_ids
        ],
    )
