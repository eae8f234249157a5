"""Two names made one person's: all that was done under the one is the other's from then on."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, or_, select, update
from sqlalchemy.orm import aliased

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.people import person_name
from malmoi.labels.roles import ROLES
from malmoi.labels.tables import NAMES, AdjudicationRow, MemberRow, PlaceRow, ProjectRow
from malmoi.labels.text_state import recount


@dataclass(frozen=True, kw_only=True)
class PeopleJoin:
    """What becomes of joining two names.

    Attributes:
        texts: labelled or skipped under the name that goes.
        decisions: of review under it.
        both: of the texts those that were labelled or skipped under the other name, too.
        differing: of those the ones where the two said different things.
    """

    texts: int
    decisions: int
    both: int
    differing: int


def join_people(
    access: ProjectAccess, name: str, into: str, *, only_count: bool = False
) -> PeopleJoin:
    """Let all that was done under one name be of another: labels, notes, decisions and their times.

    Of two votes on a text the later one of the log holds, as ever. Keys of the name that goes open
    the project as the other, who has the higher of the two roles.

    Args:
        name: that goes.
        into: that stays.
        only_count: change nothing.

    Raises:
        InputError: the person is no admin, or the names are not two.
    """
    gone, stays = person_name(name), person_name(into)
    if gone == stays:
        raise InputError("expected two names of one person, found {name} twice", name=gone)
    manager = access.reading("admin") if only_count else access.writing("admin")
    with manager as connection:
        found, pairs = _count(connection, access.project_id, gone, stays)
        if not only_count:
            _move(connection, access.project_id, gone, stays)
            recount(connection, access.row(connection), [text_id for text_id, _ in pairs])
            details = {"from": gone, "into": stays, "texts": found.texts, "both": found.both}
            access.note(connection, "join people", details)
        return found


def _count(
    connection: Connection, project: int, gone: str, stays: str
) -> tuple[PeopleJoin, list[tuple[int, bool]]]:
    """What is to be said of it; and the texts of both, each with whether the two agree."""
    other = aliased(PlaceRow)
    mine = (
        PlaceRow.project_id == project,
        PlaceRow.annotator == gone,
        PlaceRow.annotation_id.is_not(None),
    )
    same = func.coalesce(PlaceRow.choice, "") == func.coalesce(other.choice, "")
    query = select(PlaceRow.text_id, same).join(other, other.text_id == PlaceRow.text_id)
    theirs = (other.annotator == stays, other.annotation_id.is_not(None))
    pairs = list(connection.execute(query.where(*mine, *theirs)).tuples())
    decided = (AdjudicationRow.project_id == project, AdjudicationRow.reviewer == gone)
    found = PeopleJoin(
        texts=connection.scalar(select(func.count()).where(*mine)) or 0,
        decisions=connection.scalar(select(func.count()).where(*decided)) or 0,
        both=len(pairs),
        differing=sum(not agree for _, agree in pairs),
    )
    return found, pairs


def _move(connection: Connection, project: int, gone: str, stays: str) -> None:
    # Of each text one place is left: that of the later act, or else the one that stays.
    other = aliased(PlaceRow)
    act, their_act = (func.coalesce(one.annotation_id, 0) for one in (PlaceRow, other))
    for name, rival, loses in (
        (stays, gone, act < their_act),
        (gone, stays, or_(act < their_act, act == their_act)),
    ):
        beaten = (
            select(PlaceRow.id)
            .join(other, other.text_id == PlaceRow.text_id)
            .where(PlaceRow.project_id == project, PlaceRow.annotator == name)
            .where(other.annotator == rival, loses)
        )
        connection.execute(delete(PlaceRow).where(PlaceRow.id.in_(beaten)))
    # The trail stays as it is: it says who was joined.
    for column in NAMES:
        mine = (column.class_.project_id == project, column == gone)
        connection.execute(update(column.class_).where(*mine).values({column.key: stays}))
    made = (ProjectRow.id == project, ProjectRow.created_by == gone)
    connection.execute(update(ProjectRow).where(*made).values(created_by=stays))
    members = (MemberRow.project_id == project, MemberRow.person.in_((gone, stays)))
    roles = connection.scalars(select(MemberRow.role).where(*members)).all()
    connection.execute(delete(MemberRow).where(*members))
    if roles:
        role = max(roles, key=lambda one: [*map(str, ROLES)].index(one))
        row = {"project_id": project, "person": stays, "role": role}
        connection.execute(insert(MemberRow).values(**row))
