"""Texts of a project, and what holds now of them, kept up to date with the log."""

import random
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    distinct,
    func,
    insert,
    or_,
    select,
    update,
)

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import in_parts
from malmoi.labels.stored_text import sha256_of
from malmoi.labels.tables import PlaceRow, TextRow, TextScoreRow


def has_texts(access: ProjectAccess) -> bool:
    """Whether the project has any text.

    Raises:
        AccessError: the person is no member.
    """
    query = select(TextRow.id).where(TextRow.project_id == access.project_id).limit(1)
    with access.reading() as connection:
        return connection.scalar(query) is not None


def require_text(
    connection: Connection, project_id: int, text_id: int, shown: str | None = None
) -> str:
    """A text of the project, as it was imported.

    Args:
        shown: `sha256_of` the text that somebody has seen under this id; None: nobody has.

    Raises:
        InputError: there is none of this id in the project, or it is another than was seen.
    """
    query = select(TextRow.text).where(TextRow.id == text_id, TextRow.project_id == project_id)
    found = connection.scalar(query)
    if found is None:
        raise InputError(
            "expected the id of a text of project {project_id}, found {text_id}",
            project_id=project_id,
            text_id=text_id,
        )
    if shown is not None and shown != sha256_of(found):
        # Of a database that was replaced by a backup, say, in which others have its ids.
        raise InputError(
            "expected the text that was on screen as text {text_id}, found another; look at the "
            "text that is there now",
            text_id=text_id,
        )
    return found


def recount(connection: Connection, project: Mapping[str, Any], text_ids: Collection[int]) -> None:
    """Count the votes of texts again: whether they need more, and whether they differ.

    Args:
        connection: of the transaction that writes to the log.
        project: the row of `ProjectRow` whose texts they are.
        text_ids: which.
    """
    for some in in_parts(list(text_ids)):
        counts = (
            select(PlaceRow.text_id, func.count(), func.count(distinct(PlaceRow.choice)))
            .where(PlaceRow.text_id.in_(some), PlaceRow.state == "labelled")
            .group_by(PlaceRow.text_id)
        )
        votes = {text: (count, choices) for text, count, choices in connection.execute(counts)}
        connection.execute(
            update(TextRow).where(TextRow.id == bindparam("counted")),
            [
                {
                    "counted": text,
                    "votes": votes.get(text, (0, 0))[0],
                    "is_open": votes.get(text, (0, 0))[0] < project["annotators_per_text"],
                    "disagrees": votes.get(text, (0, 0))[1] > 1,
                }
                for text in some
            ],
        )
        wanted, version = project["annotators_per_text"], project["scores_version"]
        closed = [one for one, (count, _) in votes.items() if count >= wanted]
        if closed and version is not None:
            # Out of the order of scores, so that nobody looks through what is done.
            connection.execute(
                update(TextScoreRow)
                .where(TextScoreRow.version == version, TextScoreRow.text_id.in_(closed))
                .values(priority=None)
            )


def first_of_its_kind() -> ColumnElement[bool]:
    """The condition that no text before this one is nearly the same."""
    return or_(TextRow.alike.is_(None), TextRow.alike == TextRow.id)


def add_missing_texts(
    connection: Connection, project_id: int, texts: Mapping[str, str]
) -> tuple[dict[str, tuple[int, str]], list[int]]:
    """Add those of some texts that the project does not have; nobody has labelled them.

    Args:
        connection: of a transaction that writes.
        texts: by `text_hash`.

    Returns:
        Id and spelling of each text, by its hash; and the ids of those that were new.
    """
    query = select(TextRow.text_sha256, TextRow.id, TextRow.text).where(
        TextRow.project_id == project_id, TextRow.text_sha256.in_(texts)
    )
    known = {one: (identifier, text) for one, identifier, text in connection.execute(query)}
    new = {
        one: {
            "project_id": project_id,
            "text": text,
            "text_sha256": one,
            "lottery": random.random(),
            "votes": 0,
            "is_open": True,
            "disagrees": False,
        }
        for one, text in texts.items()
        if one not in known
    }
    if new:
        connection.execute(insert(TextRow), list(new.values()))
        known = {one: (identifier, text) for one, identifier, text in connection.execute(query)}
    return known, [known[one][0] for one in new]
