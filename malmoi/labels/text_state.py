"""What holds now of a text, brought up to date in the transaction that writes to the log."""

import random
from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, distinct, func, insert, or_, select, update

from malmoi.errors import InputError
from malmoi.labels.tables import PlaceRow, ProjectRow, TextRow, TextScoreRow


def require_text(connection: Connection, project_id: int, text_id: int) -> None:
    """Refuse the id of a text of another project.

    Raises:
        InputError: it is one, or none.
    """
    query = select(TextRow.id).where(TextRow.id == text_id, TextRow.project_id == project_id)
    if connection.scalar(query) is None:
        raise InputError(
            "expected the id of a text of project {project_id}, found {text_id}",
            project_id=project_id,
            text_id=text_id,
        )


def recount(connection: Connection, text_id: int, annotators_per_text: int) -> None:
    """Count the votes of a text again: whether it needs more, and whether they differ."""
    votes, choices = connection.execute(
        select(func.count(), func.count(distinct(PlaceRow.choice))).where(
            PlaceRow.text_id == text_id, PlaceRow.state == "labelled"
        )
    ).one()
    is_open = votes < annotators_per_text
    connection.execute(
        update(TextRow)
        .where(TextRow.id == text_id)
        .values(votes=votes, is_open=is_open, disagrees=choices > 1)
    )
    if not is_open:
        # Out of the order of scores, so that nobody looks through what is done. By version first,
        # as the key of the table is: by text alone every row would be looked at.
        version = select(ProjectRow.scores_version).join(
            TextRow, TextRow.project_id == ProjectRow.id
        )
        connection.execute(
            update(TextScoreRow)
            .where(
                TextScoreRow.version == version.where(TextRow.id == text_id).scalar_subquery(),
                TextScoreRow.text_id == text_id,
            )
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
        project_id: the project's.
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
