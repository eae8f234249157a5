"""What annotators and reviewers write to each other about a text: their notes, as a thread."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from malmoi.labels.access import ProjectAccess
from malmoi.labels.roles import allows
from malmoi.labels.tables import AnnotationRow, MemberRow
from malmoi.labels.text_conditions import undone


@dataclass(frozen=True, kw_only=True)
class Comment:
    """One note of a thread."""

    person: str
    text: str
    written_at: datetime


def read_threads(
    connection: Connection, text_ids: Sequence[int], only_of: Collection[str] | None = None
) -> dict[int, tuple[Comment, ...]]:
    """The notes of texts that hold, oldest first; texts without one are left out.

    A note takes the place of the last one of its writer until somebody else has answered; an empty
    one takes that away.

    Args:
        connection: of a transaction that has asked for the role.
        text_ids: which texts.
        only_of: whose notes may be seen; None: all.
    """
    query = (
        select(
            AnnotationRow.text_id,
            AnnotationRow.annotator,
            AnnotationRow.note,
            AnnotationRow.created_at,
        )
        .where(
            AnnotationRow.text_id.in_(text_ids),
            AnnotationRow.kind == "note",
            ~undone(),
        )
        .order_by(AnnotationRow.id)
    )
    threads: dict[int, list[Comment]] = {}
    for text_id, person, note, written_at in connection.execute(query):
        thread = threads.setdefault(text_id, [])
        if thread and thread[-1].person == person:
            thread.pop()
        elif not note:
            mine = [one for one in thread if one.person == person]
            threads[text_id] = [one for one in thread if one not in mine[-1:]]
        if note:
            thread.append(Comment(person=person, text=note, written_at=written_at))
    return {
        text_id: seen
        for text_id, thread in threads.items()
        if (seen := tuple(one for one in thread if only_of is None or one.person in only_of))
    }


def seen_by(access: ProjectAccess, connection: Connection) -> Collection[str] | None:
    """Whose notes a person may see: an annotator their own and those of reviewers; None: all."""
    if allows(access.role(connection), "reviewer"):
        return None
    mine = MemberRow.project_id == access.project_id
    reviewers = select(MemberRow.person).where(mine, MemberRow.role != "annotator")
    return {access.person.name, *connection.scalars(reviewers)}
