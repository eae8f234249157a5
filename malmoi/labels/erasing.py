"""Texts, a person's name or a whole project erased for good, as a law may ask for.

Nothing of it is left in the tables or in the free pages of a database; what stays is an entry of
the audit trail that says what kind of thing was erased, by whom and when. To put a project away is
`malmoi.labels.projects.archive`. Files beside the database: `malmoi.labels.erased_files`.
"""

import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time, reading_of_one_moment
from malmoi.labels.connection import in_parts, reason
from malmoi.labels.people import person_name
from malmoi.labels.stored_text import text_hash
from malmoi.labels.tables import (
    ERASED,
    NAMES,
    AccessKeyRow,
    AdjudicationRow,
    AnnotationRow,
    AuditRow,
    Base,
    GuidelineRow,
    MemberRow,
    PlaceRow,
    ProjectLabelRow,
    ProjectRow,
    ScoreVersionRow,
    TextImportRow,
    TextRow,
    TextScoreRow,
    TextSourceRow,
    WebhookDeliveryRow,
    WebhookRow,
)

# What belongs to a text, and to a project beside its texts: those that others name come last.
_OF_TEXT = (
    *(WebhookDeliveryRow, TextScoreRow, TextSourceRow),
    *(PlaceRow, AnnotationRow, AdjudicationRow),
)
_OF_PROJECT = (
    *(WebhookDeliveryRow, WebhookRow),
    *(TextImportRow, ScoreVersionRow, GuidelineRow, MemberRow, ProjectLabelRow, AuditRow),
    AccessKeyRow,
)
_NAMES = (*NAMES, MemberRow.person, AuditRow.person)
_WORDS = (TextRow.text, AnnotationRow.note, AdjudicationRow.note, GuidelineRow.markdown)
# Columns of our own exports in which names stand among other words.
_WITH_NAMES = ("votes", "reviewer", "flagged_by")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be erased, as every copy of a database can find it.

    Attributes:
        texts: `text_hash` of each.
        words: the same as they are written, to say where else they stand; may be empty.
        person: a name.
        is_project: all of each project goes, and not a part of it.
    """

    texts: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    person: str | None = None
    is_project: bool = False


@dataclass(frozen=True, kw_only=True)
class ErasedPart:
    """How much of it there is in one project.

    Attributes:
        texts: that go, by `text_hash`.
        acts: labels, skips, flags, notes and their undoing; of a person, those that get another
            name.
        decisions: of reviewers.
        rows: of imported files.
        mentions: texts, notes and guidelines that have the words in them and stay as they are.
    """

    access: ProjectAccess
    name: str
    texts: frozenset[str]
    acts: int
    decisions: int
    rows: int
    mentions: int


def wanted_texts(
    accesses: Sequence[ProjectAccess], ids: Iterable[int], texts: Iterable[str]
) -> Wanted:
    """Texts by their ids in these projects, and as they are written.

    Raises:
        InputError: an id is none of them.
    """
    hashes, words = {text_hash(text) for text in texts}, list(texts)
    for text_id in ids:
        for access in accesses:
            query = select(TextRow.text_sha256, TextRow.text).where(
                TextRow.id == text_id, TextRow.project_id == access.project_id
            )
            with access.reading("admin") as connection:
                row = connection.execute(query).one_or_none()
            if row is not None:
                hashes.add(row[0])
                words.append(row[1])
                break
        else:
            raise InputError(
                "expected the id of a text to erase, found {text_id}, which none has",
                text_id=text_id,
            )
    return Wanted(texts=frozenset(hashes), words=tuple(words))


def find(accesses: Iterable[ProjectAccess], wanted: Wanted) -> list[ErasedPart]:
    """What an erasure would take, in each project that has any of it.

    Raises:
        AccessError: the person is no admin of one of them.
    """
    found = []
    for access in accesses:
        with access.reading("admin") as connection:
            one = _find(access, connection, wanted)
        if wanted.is_project or one.texts or one.acts or one.decisions or one.rows:
            found.append(one)
    return found


def _find(access: ProjectAccess, connection: Connection, wanted: Wanted) -> ErasedPart:
    def count(*conditions: ColumnElement[bool]) -> int:
        return connection.scalar(select(func.count()).where(*conditions)) or 0

    project = access.project_id
    texts: list[tuple[int, str]] = []
    name = None if wanted.person is None else person_name(wanted.person)
    acts = decisions = rows = 0
    if name is None:
        texts = _texts(connection, project, wanted)
        for ids in in_parts([text_id for text_id, _ in texts]):
            acts += count(AnnotationRow.text_id.in_(ids))
            decisions += count(AdjudicationRow.text_id.in_(ids))
            rows += count(TextSourceRow.text_id.in_(ids))
    else:
        acts = count(AnnotationRow.project_id == project, AnnotationRow.annotator == name)
        mine = AdjudicationRow.project_id == project
        decisions = count(mine, AdjudicationRow.reviewer == name)
        rows = len(_cells_with(connection, project, name))
        # As a member, or in the trail alone.
        rows += sum(
            count(column.class_.project_id == project, column == name) for column in _NAMES[3:]
        )
        rows += count(ProjectRow.id == project, ProjectRow.created_by == name)
    mentions = 0
    for words in wanted.words if name is None else (name,):
        for column in _WORDS:
            mentions += count(
                column.class_.project_id == project, column.contains(words, autoescape=True)
            )
    return ErasedPart(
        access=access,
        name=connection.scalar(select(ProjectRow.name).where(ProjectRow.id == project)) or "",
        texts=frozenset(one for _, one in texts),
        acts=acts,
        decisions=decisions,
        rows=rows,
        # The text that goes is none of those that stay.
        mentions=max(0, mentions - (len(texts) if wanted.words else 0)),
    )


def _texts(connection: Connection, project: int, wanted: Wanted) -> list[tuple[int, str]]:
    query = select(TextRow.id, TextRow.text_sha256).where(TextRow.project_id == project)
    if wanted.is_project:
        return list(connection.execute(query).tuples())
    parts = in_parts(sorted(wanted.texts))
    wheres = [TextRow.text_sha256.in_(part) for part in parts]
    return [row for one in wheres for row in connection.execute(query.where(one)).tuples()]


def erase(found: Sequence[ErasedPart], wanted: Wanted) -> None:
    """Erase what was found, each project in a transaction; then `rewrite` each database.

    Raises:
        InputError: the person is no admin, or the database is in use: what is erased is erased
            from the tables, and the message says how the rest of it goes.
    """
    other = f"erased-{secrets.token_hex(3)}"
    for one in found:
        access = one.access
        with access.writing("admin", even_archived=True) as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            details: dict[str, Any] = {"texts": 0, "acts": one.acts, "decisions": one.decisions}
            if wanted.person is None:
                ids = [text_id for text_id, _ in _texts(connection, access.project_id, wanted)]
                _erase_texts(connection, ids)
                details |= {"what": "texts", "texts": len(ids)}
            if wanted.is_project:
                _erase_project(connection, access)
                details["what"] = "project"
            if wanted.person is not None:
                details |= {"what": "person", "now": other}
            access.note(connection, "erase", details)
            if wanted.person is not None:
                _rename(connection, access.project_id, person_name(wanted.person), other)
    for engine in {one.access.engine: None for one in found}:
        rewrite(engine)


def _erase_texts(connection: Connection, ids: Sequence[int]) -> None:
    for part in in_parts(ids):
        for table in _OF_TEXT:
            connection.execute(delete(table).where(table.text_id.in_(part)))
        # The next of those that are nearly the same is the first of them now.
        alike = select(TextRow.alike, func.min(TextRow.id), func.count()).where(
            TextRow.alike.in_(part), TextRow.id.not_in(part)
        )
        connection.execute(delete(TextRow).where(TextRow.id.in_(part)))
        for gone, first, count in connection.execute(alike.group_by(TextRow.alike)).all():
            connection.execute(
                update(TextRow)
                .where(TextRow.alike == gone)
                .values(alike=first if count > 1 else None)
            )


def _erase_project(connection: Connection, access: ProjectAccess) -> None:
    """All but a row without a name, which the entry of the trail belongs to."""
    for table in _OF_PROJECT:
        connection.execute(delete(table).where(table.project_id == access.project_id))
    connection.execute(
        update(ProjectRow)
        .where(ProjectRow.id == access.project_id)
        .values(
            name=f"{ERASED} {access.project_id}",
            kind=ERASED,
            model=None,
            scores_version=None,
            created_by=ERASED,
            archived_at=database_time(connection),
        )
    )


def _rename(connection: Connection, project: int, name: str, other: str) -> None:
    """Give what a person did to nobody in particular, whom no key lets in."""
    keys = (AccessKeyRow.project_id == project, AccessKeyRow.person == name)
    connection.execute(delete(AccessKeyRow).where(*keys))
    for column in _NAMES:
        connection.execute(
            update(column.class_)
            .where(column.class_.project_id == project, column == name)
            .values({column.key: other})
        )
    # Else nobody would be handed it.
    given = (TextRow.project_id == project, TextRow.assigned_to == other)
    connection.execute(update(TextRow).where(*given).values(assigned_to=None))
    made = (ProjectRow.id == project, ProjectRow.created_by == name)
    connection.execute(update(ProjectRow).where(*made).values(created_by=other))
    for table in (AnnotationRow, AdjudicationRow):
        with_name = table.request_id.contains(name, autoescape=True)
        query = select(table.id).where(table.project_id == project, with_name)
        for row in connection.scalars(query).all():
            new = f"erased:{secrets.token_hex(16)}"
            connection.execute(update(table).where(table.id == row).values(request_id=new))
    for row, cells in _cells_with(connection, project, name):
        new = json.dumps(_without(json.loads(cells), name, other), ensure_ascii=False)
        connection.execute(update(TextSourceRow).where(TextSourceRow.id == row).values(cells=new))
    trail = select(AuditRow.id, AuditRow.details).where(AuditRow.project_id == project)
    for row, details in connection.execute(trail).all():
        new = json.dumps(_without(json.loads(details), name, other), ensure_ascii=False)
        if new != details:
            connection.execute(update(AuditRow).where(AuditRow.id == row).values(details=new))


def _cells_with(connection: Connection, project: int, name: str) -> list[tuple[int, str]]:
    """Rows of files that have a name in a cell of its own, or in a column of votes."""
    query = (
        select(TextSourceRow.id, TextSourceRow.cells)
        .join(TextRow, TextRow.id == TextSourceRow.text_id)
        .where(
            TextRow.project_id == project,
            or_(
                *(
                    TextSourceRow.cells.contains(json.dumps(name, ensure_ascii=spell)[1:-1])
                    for spell in (True, False)
                )
            ),
        )
    )
    return [
        (row, cells)
        for row, cells in connection.execute(query).tuples()
        if _without(loaded := json.loads(cells), name, "") != loaded
    ]


def _without(value: Any, name: str, other: str, *, of_people: bool = False) -> Any:
    """The same with another name in place of one."""
    if isinstance(value, dict):
        return {
            (other if key == name else key): _without(
                one, name, other, of_people=of_people or key in _WITH_NAMES
            )
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_without(one, name, other, of_people=of_people) for one in value]
    if isinstance(value, str) and of_people:
        return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", other, value)
    return other if value == name else value


def erased_projects(engine: Engine) -> list[tuple[int, str, datetime]]:
    """Id of each project that was erased, by whom and when."""
    query = (
        select(ProjectRow.id, AuditRow.person, AuditRow.created_at)
        .join(AuditRow, AuditRow.project_id == ProjectRow.id)
        .where(ProjectRow.kind == ERASED)
        .order_by(AuditRow.id)
    )
    with reading_of_one_moment(engine) as connection:
        return list(connection.execute(query).tuples())


def rewrite(engine: Engine) -> None:
    """Write a database anew without what was deleted: SQLite's free pages and log, PostgreSQL's
    dead rows.

    Raises:
        InputError: somebody reads or writes it for longer than we wait.
    """
    refused = None
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
                connection.exec_driver_sql("VACUUM")
                if connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]:
                    refused = "locked"
            else:
                for table in Base.metadata.sorted_tables:
                    connection.exec_driver_sql(f"VACUUM FULL {table.name}")
    except SQLAlchemyError as error:
        refused = reason(error)
    if refused is not None:
        raise InputError(
            "it is erased from the tables, but the database is in use ({error}), so its old bytes "
            "are still in its file; stop the app, and give `malmoi labels erase --yes` alone",
            error=refused,
        )
