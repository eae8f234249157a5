"""Many labels, skips and notes of other people at once, by a few statements for all of them.

What comes out in the tables is what `annotating.save_acts` writes one act after the other, in a
fraction of the time, which an import of 200,000 labelled rows needs.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.annotating import Act
from malmoi.labels.label_book import LabelBook
from malmoi.labels.people import person_name
from malmoi.labels.projects import newest_guideline
from malmoi.labels.tables import AnnotationRow, PlaceRow, TextRow
from malmoi.labels.text_state import recount

# What annotators had to do with texts before: rows of `PlaceRow`, by text and annotator.
Places = Mapping[tuple[int, str], Mapping[str, Any]]


def save_acts_of_others(
    access: ProjectAccess,
    acts: Sequence[tuple[str, Act]],
    times: Mapping[str, datetime] = MappingProxyType({}),
) -> int:
    """Append labels, skips and notes that other people made elsewhere, in one transaction.

    No webhook hears of them.

    Args:
        acts: who did what, a few hundred at most; they need not be members. Those whose request is
            known already are passed over.
        times: when they were done, by request; now, where that is not told or is still to come.

    Returns:
        How many were new.

    Raises:
        InputError: the person is no admin, or an act does not fit the project; nothing is saved.
    """
    named = [(person_name(name), act) for name, act in acts]
    with access.writing("admin") as connection:
        new = _new(connection, access.project_id, named)
        if not new:
            return 0
        ids = {act.text_id for _, act in new}
        mine = (TextRow.project_id == access.project_id, TextRow.id.in_(ids))
        if unknown := ids - set(connection.scalars(select(TextRow.id).where(*mine))):
            raise InputError(
                "expected ids of texts of project {project_id}, found {strange}",
                project_id=access.project_id,
                strange=min(unknown),
            )
        query = select(PlaceRow.__table__).where(PlaceRow.text_id.in_(ids))
        held = connection.execute(query).mappings().all()
        places = {(place["text_id"], place["annotator"]): dict(place) for place in held}
        rows = _rows(access, connection, new, places, times)
        connection.execute(insert(AnnotationRow), rows)
        votes = [row for row in rows if row["kind"] != "note"]
        _hold(connection, access.project_id, votes, places)
        recount(connection, access.row(connection), {row["text_id"] for row in votes})
    return len(new)


def _new(
    connection: Connection, project_id: int, acts: Sequence[tuple[str, Act]]
) -> list[tuple[str, Act]]:
    """Those whose request is not known; one that names another act is refused."""
    columns = (
        AnnotationRow.request_id,
        AnnotationRow.project_id,
        AnnotationRow.annotator,
        AnnotationRow.text_id,
        AnnotationRow.kind,
    )
    query = select(*columns).where(
        AnnotationRow.request_id.in_([act.request_id for _, act in acts])
    )
    known = {row[0]: tuple(row[1:]) for row in connection.execute(query)}
    new = []
    for name, act in acts:
        mine = (project_id, name, act.text_id, act.kind)
        held = known.setdefault(act.request_id, mine)
        if held != mine:
            raise InputError(
                "expected a new id of a request, found {request}, which names another act",
                request=act.request_id,
            )
        if held is mine:
            new.append((name, act))
    return new


def _rows(
    access: ProjectAccess,
    connection: Connection,
    acts: Sequence[tuple[str, Act]],
    places: Places,
    times: Mapping[str, datetime],
) -> list[dict[str, Any]]:
    """The rows of the log, in order."""
    book = LabelBook(access, connection)
    version = newest_guideline(connection, access.project_id)[0]
    now: datetime = database_time(connection)
    return [
        {
            "project_id": access.project_id,
            "text_id": act.text_id,
            "annotator": name,
            "kind": act.kind,
            "choice": book.choice(act.labels) if act.kind == "label" else None,
            "note": act.note if act.kind == "note" else None,
            "guideline_version": version,
            "drawn": places.get((act.text_id, name), {}).get("drawn"),
            "seconds": act.seconds,
            "request_id": act.request_id,
            "created_at": min(now, times.get(act.request_id, now)),
        }
        for name, act in acts
    ]


def _hold(
    connection: Connection,
    project_id: int,
    rows: Sequence[dict[str, Any]],
    places: Places,
) -> None:
    """Let each place be what the last of these acts says: the log has nothing later."""
    query = select(AnnotationRow.request_id, AnnotationRow.id).where(
        AnnotationRow.request_id.in_([row["request_id"] for row in rows])
    )
    ids = dict(connection.execute(query).tuples().all())
    last = {(row["text_id"], row["annotator"]): row for row in rows}
    added, moved = [], []
    for (text_id, annotator), row in last.items():
        values = {
            "state": "labelled" if row["kind"] == "label" else "skipped",
            "expires_at": None,
            "annotation_id": ids[row["request_id"]],
            "choice": row["choice"],
        }
        if (text_id, annotator) in places:
            moved.append(values | {"place": places[text_id, annotator]["id"]})
        else:
            of_whom = {"project_id": project_id, "text_id": text_id, "annotator": annotator}
            added.append(values | of_whom)
    if added:
        connection.execute(insert(PlaceRow), added)
    if moved:
        connection.execute(update(PlaceRow).where(PlaceRow.id == bindparam("place")), moved)
