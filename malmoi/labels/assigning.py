"""Texts given to one person, who is handed them before all others, and nobody else is."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, func, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import in_parts
from malmoi.labels.leasing import give_back
from malmoi.labels.people import person_name
from malmoi.labels.relabelling import MOST_RELABELLED, chosen_ids
from malmoi.labels.searching import Search
from malmoi.labels.tables import PlaceRow, TextRow
from malmoi.labels.text_conditions import decided_by


@dataclass(frozen=True, kw_only=True)
class GivenTexts:
    """How many texts were given to a person, and how many of them are left to label."""

    person: str
    texts: int
    left: int


def assign_texts(access: ProjectAccess, which: Sequence[int] | Search, person: str) -> int:
    """Give texts to a person; those that are done, and those that they have decided, are left out.

    Whoever has them on screen gets others, and so does the person until these are done.

    Args:
        access: of a reviewer.
        which: ids of texts of the project, or all that a search finds.
        person: need not have labelled before.

    Returns:
        How many texts were given.

    Raises:
        InputError: the person who asks is no reviewer, the name cannot be, or these are more than
            10,000 texts.
    """
    name = person_name(person)
    with access.writing("reviewer") as connection:
        ids = chosen_ids(access, connection, which)
        if len(ids) > MOST_RELABELLED:
            raise InputError(
                "expected at most {most:,} texts to give at once, found more; narrow the search",
                most=MOST_RELABELLED,
            )
        given = 0
        for some in in_parts(ids):
            wanted = (TextRow.id.in_(some), TextRow.is_open, ~decided_by(name))
            given += connection.execute(
                update(TextRow).where(*wanted).values(assigned_to=name)
            ).rowcount
            give_back(connection, PlaceRow.text_id.in_(some))
        give_back(connection, *_places_of(access, name))
        if given:
            access.note(connection, "assign", {"person": name, "texts": given})
        return given


def take_back_assigned(access: ProjectAccess, person: str) -> int:
    """Let all get again what was given to a person; how many texts.

    Raises:
        AccessError: the person who asks is no reviewer.
    """
    mine = (TextRow.project_id == access.project_id, TextRow.assigned_to == person)
    with access.writing("reviewer") as connection:
        taken = connection.execute(update(TextRow).where(*mine).values(assigned_to=None)).rowcount
        give_back(connection, *_places_of(access, person))
        if taken:
            access.note(connection, "take back assigned", {"person": person, "texts": taken})
        return taken


def given_texts(access: ProjectAccess) -> list[GivenTexts]:
    """What was given to whom, by name.

    Raises:
        AccessError: the person who asks is no reviewer.
    """
    is_left = case((TextRow.is_open & ~decided_by(TextRow.assigned_to), 1), else_=0)
    query = (
        select(TextRow.assigned_to, func.count(), func.sum(is_left))
        .where(TextRow.project_id == access.project_id, TextRow.assigned_to.is_not(None))
        .group_by(TextRow.assigned_to)
    )
    with access.reading("reviewer") as connection:
        return [
            GivenTexts(person=str(person), texts=texts, left=left)
            for person, texts, left in sorted(connection.execute(query).tuples())
        ]


def _places_of(access: ProjectAccess, person: str) -> tuple[ColumnElement[bool], ...]:
    return PlaceRow.project_id == access.project_id, PlaceRow.annotator == person
