"""Many texts decided at once by a reviewer, and that undone as one.

Each text gets a decision of its own in the log of adjudications, as if it had been decided alone;
the audit trail has one entry for all, and its id names the whole.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.orm import aliased

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.label_book import LabelBook
from malmoi.labels.projects import newest_guideline
from malmoi.labels.searching import MOST_COUNTED, Search, matching_ids
from malmoi.labels.stored_text import checked_note, checked_request
from malmoi.labels.tables import AdjudicationRow, AuditRow, TextRow

MOST_RELABELLED = MOST_COUNTED
_RELABEL, _UNDO = "relabel", "undo relabel"
_ROWS = 500
# Of a request here, as each of its decisions has a number behind it.
_LONGEST_REQUEST = 100
# The latest bulk changes are looked for among so many entries of the audit trail.
_ENTRIES = 5_000


@dataclass(frozen=True, kw_only=True)
class Relabelling:
    """Texts that were decided together.

    Attributes:
        id: names it, to undo it by.
        person: who did it.
        labels: what the texts became.
        texts: how many.
        undone: whether it was undone.
    """

    id: int
    person: str
    labels: tuple[str, ...]
    texts: int
    created_at: datetime
    undone: bool = False


@dataclass(frozen=True, kw_only=True)
class TextsToDecide:
    """What a bulk change would decide, as whoever confirms it has to know.

    Attributes:
        texts: how many; 10,001 stands for more than 10,000.
        disagreeing: those on which annotators differ and nobody has decided.
        short: those that have fewer labels than the project asks for and that nobody has decided.
            A text may be both.
        decided: those of which a reviewer's decision holds, which the change takes the place of.
    """

    texts: int
    disagreeing: int
    short: int
    decided: int


def texts_to_decide(access: ProjectAccess, which: Sequence[int] | Search) -> TextsToDecide:
    """What `relabel` would decide now.

    Args:
        access: of a reviewer.
        which: as for `relabel`.

    Raises:
        InputError: the person is no reviewer, or a label of the search is none of the project.
    """
    disagreeing = short = decided = 0
    with access.reading("reviewer") as connection:
        ids = _ids(access, connection, which)
        for some in _parts(ids):
            query = select(TextRow.disagrees, TextRow.is_open, TextRow.adjudication_id).where(
                TextRow.id.in_(some),
                TextRow.adjudication_id.is_not(None) | TextRow.disagrees | TextRow.is_open,
            )
            for disagrees, is_open, adjudication in connection.execute(query):
                undecided = adjudication is None
                disagreeing += disagrees and undecided
                short += is_open and undecided
                decided += not undecided
    return TextsToDecide(texts=len(ids), disagreeing=disagreeing, short=short, decided=decided)


def relabel(
    access: ProjectAccess,
    which: Sequence[int] | Search,
    labels: Sequence[str],
    *,
    request_id: str,
    expected: int,
    note: str = "",
) -> Relabelling:
    """Decide many texts at once: all of them, or none.

    Args:
        access: of a reviewer.
        which: ids of texts of the project, or all that a search finds.
        labels: what they are.
        request_id: names the change; the same one arriving twice is one. Up to 100 characters.
        expected: how many texts the person was told.
        note: why.

    Raises:
        InputError: the person is no reviewer, the labels do not fit, there are none or more than
            10,000 texts, or another number than expected; nothing is changed.
    """
    checked_request(request_id)
    checked_note(note)
    if len(request_id) > _LONGEST_REQUEST:
        raise InputError(
            "expected the id of a request of at most {longest} characters, found {count}",
            longest=_LONGEST_REQUEST,
            count=len(request_id),
        )
    with access.writing("reviewer") as connection:
        known = _row_of_request(connection, f"{request_id}:1")
        if known is not None:
            return _of_decision(access, connection, known)
        ids = _ids(access, connection, which)
        if len(ids) > MOST_RELABELLED:
            raise InputError(
                "expected at most {most:,} texts to decide at once, found more; narrow the search",
                most=MOST_RELABELLED,
            )
        if len(ids) != expected or not ids:
            raise InputError(
                "expected {expected:,} texts to decide, found {count:,}: others were changed "
                "meanwhile; look at them again",
                expected=expected,
                count=len(ids),
            )
        book = LabelBook(connection, access.project_id, access.row(connection)["kind"])
        choice = book.choice(labels)
        first, last = _decide(
            access, connection, [(one, choice) for one in ids], request_id, note or None
        )
        details = {"labels": list(book.labels(choice)), "texts": len(ids)}
        details |= {"first": first, "last": last}
        access.note(connection, _RELABEL, details)
        return _newest(access, connection)


def undo_relabelling(access: ProjectAccess, relabelling_id: int) -> int:
    """Give each text back what was decided of it before, in one transaction.

    Texts that somebody has decided again since stay as they are. Undoing twice does nothing more.

    Args:
        access: of a reviewer.
        relabelling_id: of `Relabelling`.

    Returns:
        How many texts were changed.

    Raises:
        InputError: the person is no reviewer, or the project has no such change.
    """
    with access.writing("reviewer") as connection:
        entry = _entry(access, connection, relabelling_id)
        details = json.loads(entry["details"])
        request_id = f"undo-relabel-{relabelling_id}"
        if _row_of_request(connection, f"{request_id}:1") is not None:
            return 0
        before = _before(connection, access.project_id, details["first"], details["last"])
        if not before:
            return 0
        _decide(access, connection, before, request_id, None)
        access.note(connection, _UNDO, {"relabelling": relabelling_id, "texts": len(before)})
        return len(before)


def latest_relabellings(access: ProjectAccess, limit: int = 10) -> list[Relabelling]:
    """The latest bulk changes of a project, newest first.

    Raises:
        AccessError: the person is no reviewer.
    """
    newest = (
        select(AuditRow.__table__)
        .where(AuditRow.project_id == access.project_id)
        .order_by(AuditRow.id.desc())
        .limit(_ENTRIES)
        .subquery()
    )
    query = select(newest).where(newest.c.action.in_((_RELABEL, _UNDO)))
    with access.reading("reviewer") as connection:
        rows = connection.execute(query.order_by(newest.c.id.desc())).mappings().all()
    undone = {json.loads(row["details"])["relabelling"] for row in rows if row["action"] == _UNDO}
    made = [_relabelling(row) for row in rows if row["action"] == _RELABEL]
    return [replace(one, undone=one.id in undone) for one in made[:limit]]


def _ids(access: ProjectAccess, connection: Connection, which: Sequence[int] | Search) -> list[int]:
    if isinstance(which, Search):
        return sorted(matching_ids(access, connection, which, MOST_RELABELLED))
    wanted = sorted(set(which))[: MOST_RELABELLED + 1]
    found: list[int] = []
    for some in _parts(wanted):
        query = select(TextRow.id).where(
            TextRow.project_id == access.project_id, TextRow.id.in_(some)
        )
        found += connection.scalars(query)
    return sorted(found)


def _decide(
    access: ProjectAccess,
    connection: Connection,
    choices: Sequence[tuple[int, str | None]],
    request_id: str,
    note: str | None,
) -> tuple[int, int]:
    """Append a decision for each text; returns the first and the last id.

    Nobody else writes to the project meanwhile, so all its decisions between the two are these.
    """
    shared = {
        "project_id": access.project_id,
        "reviewer": access.person.name,
        "note": note,
        "guideline_version": newest_guideline(connection, access.project_id)[0],
        "created_at": database_time(connection),
    }
    rows = [
        {"text_id": text_id, "choice": choice, "request_id": f"{request_id}:{place}", **shared}
        for place, (text_id, choice) in enumerate(choices, 1)
    ]
    for some in _parts(rows):
        connection.execute(insert(AdjudicationRow), some)
    made: dict[int, tuple[int, str | None]] = {}
    for part in _parts([row["request_id"] for row in rows]):
        query = select(AdjudicationRow.id, AdjudicationRow.text_id, AdjudicationRow.choice).where(
            AdjudicationRow.request_id.in_(part)
        )
        made |= {row[0]: (row[1], row[2]) for row in connection.execute(query)}
    own = AdjudicationRow.__table__.alias("made")
    for part in _parts(sorted(made)):
        held = select(own.c.id).where(own.c.text_id == TextRow.id, own.c.id.in_(part))
        for is_withdrawn in (False, True):
            some = [made[one][0] for one in part if (made[one][1] is None) == is_withdrawn]
            value: Any = None if is_withdrawn else held.scalar_subquery()
            connection.execute(
                update(TextRow).where(TextRow.id.in_(some)).values(adjudication_id=value)
            )
    return min(made), max(made)


def _before(
    connection: Connection, project_id: int, first: int, last: int
) -> list[tuple[int, str | None]]:
    """What was decided before of the texts whose decision of these still holds."""
    earlier = aliased(AdjudicationRow)
    previous = (
        select(earlier.choice)
        .where(earlier.text_id == AdjudicationRow.text_id, earlier.id < first)
        .order_by(earlier.id.desc())
        .limit(1)
    )
    query = (
        select(AdjudicationRow.text_id, previous.scalar_subquery())
        .join(TextRow, TextRow.id == AdjudicationRow.text_id)
        .where(
            TextRow.adjudication_id == AdjudicationRow.id,
            AdjudicationRow.project_id == project_id,
            AdjudicationRow.id.between(first, last),
        )
        .order_by(AdjudicationRow.id)
    )
    return [(text_id, choice) for text_id, choice in connection.execute(query)]


def _row_of_request(connection: Connection, request_id: str) -> Any:
    table = AdjudicationRow.__table__
    found = connection.execute(select(table).where(table.c.request_id == request_id))
    return found.mappings().one_or_none()


def _of_decision(access: ProjectAccess, connection: Connection, row: Any) -> Relabelling:
    """The change that a decision belongs to; a request id that is somebody else's is refused."""
    if (row["project_id"], row["reviewer"]) == (access.project_id, access.person.name):
        query = (
            select(AuditRow.__table__)
            .where(
                AuditRow.project_id == access.project_id,
                AuditRow.person == access.person.name,
                AuditRow.action == _RELABEL,
                AuditRow.created_at >= row["created_at"],
            )
            .order_by(AuditRow.id)
        )
        for entry in connection.execute(query).mappings():
            if json.loads(entry["details"])["first"] == row["id"]:
                return _relabelling(entry)
    raise InputError("expected a new id of a request, found one that names another decision")


def _newest(access: ProjectAccess, connection: Connection) -> Relabelling:
    query = (
        select(AuditRow.__table__)
        .where(AuditRow.project_id == access.project_id)
        .order_by(AuditRow.id.desc())
        .limit(1)
    )
    return _relabelling(connection.execute(query).mappings().one())


def _entry(access: ProjectAccess, connection: Connection, relabelling_id: int) -> Any:
    table = AuditRow.__table__
    query = select(table).where(
        table.c.id == relabelling_id,
        table.c.project_id == access.project_id,
        table.c.action == _RELABEL,
    )
    found = connection.execute(query).mappings().one_or_none()
    if found is None:
        raise InputError(
            "expected a bulk change of project {project_id}, found {relabelling_id}",
            project_id=access.project_id,
            relabelling_id=relabelling_id,
        )
    return found


def _relabelling(row: Any) -> Relabelling:
    details = json.loads(row["details"])
    return Relabelling(
        id=row["id"],
        person=row["person"],
        labels=tuple(details["labels"]),
        texts=details["texts"],
        created_at=row["created_at"],
    )


def _parts(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(rows), _ROWS):
        yield rows[start : start + _ROWS]
