"""Many texts decided at once by a reviewer, and that undone as one.

Each text gets a decision of its own in the log of adjudications, as if it had been decided alone;
the audit trail has one entry for all, and its id names the whole.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.orm import aliased

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import in_parts
from malmoi.labels.label_book import LabelBook, ShownLabel
from malmoi.labels.review import append_decisions, decision_of_request
from malmoi.labels.searching import MOST_COUNTED, Search, matching_ids
from malmoi.labels.stored_text import checked_note, checked_request
from malmoi.labels.tables import AdjudicationRow, AuditRow, TextRow

MOST_RELABELLED = MOST_COUNTED
_RELABEL, _UNDO = "relabel", "undo relabel"
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
        which: as for `relabel`.

    Raises:
        InputError: the person is no reviewer, or a label of the search is none of the project.
    """
    disagreeing = short = decided = 0
    with access.reading("reviewer") as connection:
        ids = chosen_ids(access, connection, which)
        for some in in_parts(ids):
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
    labels: Sequence[str | ShownLabel],
    *,
    request_id: str,
    expected: int,
    note: str = "",
) -> Relabelling:
    """Decide many texts at once: all of them, or none.

    Args:
        which: ids of texts of the project, or all that a search finds.
        request_id: names the change; the same one arriving twice is one. Up to 100 characters.
        expected: how many texts the person was told.

    Raises:
        InputError: the person is no reviewer, the labels do not fit, there are none or more than
            10,000 texts, or another number than expected; nothing is changed.
    """
    checked_request(request_id, _LONGEST_REQUEST)
    checked_note(note)
    with access.writing("reviewer") as connection:
        known = decision_of_request(connection, f"{request_id}:1")
        if known is not None:
            return _of_decision(access, connection, known)
        ids = chosen_ids(access, connection, which)
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
        book = LabelBook(access, connection)
        choice = book.choice(labels)
        decisions = [(one, choice, f"{request_id}:{n}") for n, one in enumerate(ids, 1)]
        first, last = append_decisions(access, connection, decisions, note)
        details = {"labels": list(book.labels(choice)), "texts": len(ids)}
        details |= {"first": first, "last": last}
        made = access.note(connection, _RELABEL, details)
        return _relabelling(_entry(access, connection, made))


def undo_relabelling(access: ProjectAccess, relabelling_id: int) -> int:
    """Give each text back what was decided of it before, in one transaction.

    Texts that somebody has decided again since stay as they are. Undoing twice does nothing more.

    Args:
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
        if decision_of_request(connection, f"{request_id}:1") is not None:
            return 0
        before = _before(connection, access.project_id, details["first"], details["last"])
        if not before:
            return 0
        decisions = [
            (text_id, choice, f"{request_id}:{n}") for n, (text_id, choice) in enumerate(before, 1)
        ]
        append_decisions(access, connection, decisions, "")
        access.note(connection, _UNDO, {"relabelling": relabelling_id, "texts": len(before)})
        return len(before)


def latest_relabellings(access: ProjectAccess) -> list[Relabelling]:
    """The latest ten bulk changes of a project, newest first.

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
    return [replace(one, undone=one.id in undone) for one in made[:10]]


def chosen_ids(
    access: ProjectAccess, connection: Connection, which: Sequence[int] | Search
) -> list[int]:
    """Those of some texts that are the project's, or what a search finds; `MOST_RELABELLED` + 1
    of them stand for more."""
    if isinstance(which, Search):
        return sorted(matching_ids(access, connection, which, MOST_RELABELLED))
    wanted = sorted(set(which))[: MOST_RELABELLED + 1]
    found: list[int] = []
    for some in in_parts(wanted):
        query = select(TextRow.id).where(
            TextRow.project_id == access.project_id, TextRow.id.in_(some)
        )
        found += connection.scalars(query)
    return sorted(found)


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
