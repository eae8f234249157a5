"""A project as one person may use it: every read and write asks for their role where it happens."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import Connection, Engine, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from malmoi.errors import InputError
from malmoi.labels.connection import reason
from malmoi.labels.database import without_password
from malmoi.labels.people import AccessError, Person
from malmoi.labels.project import TaskKind
from malmoi.labels.roles import Role, allows
from malmoi.labels.tables import ERASED, AuditRow, MemberRow, ProjectRow

# First half of PostgreSQL's name for the lock of a project: "malm" in bytes.
_LOCK = int.from_bytes(b"malm")


@dataclass(frozen=True, kw_only=True)
class ProjectAccess:
    """One project for one person.

    Safe to use from several threads and processes; every call is a short transaction of its own.

    Attributes:
        engine: of the database.
        project_id: the project's.
        person: who acts.
    """

    engine: Engine
    project_id: int
    person: Person

    @contextmanager
    def reading(self, needed: Role = "annotator") -> Iterator[Connection]:
        """A transaction that reads; all that it reads is of one moment.

        Raises:
            AccessError: the person has not this role.
            InputError: the database cannot be used.
        """
        with reading_of_one_moment(self.engine) as connection:
            self._require(connection, needed)
            yield connection

    @contextmanager
    def writing(self, needed: Role, *, even_archived: bool = False) -> Iterator[Connection]:
        """A transaction that writes; those of one project come one after the other.

        Raises:
            AccessError: the person has not this role.
            InputError: there is no such project, it is archived, or the database cannot be used.
        """
        with database_errors(self.engine), self.engine.begin() as connection:
            begin_writing(connection, self.project_id)
            self._require(connection, needed)
            if not even_archived and self.row(connection)["archived_at"] is not None:
                raise InputError(
                    "project {project_id} is archived: expected an open one; open it again to "
                    "change it",
                    project_id=self.project_id,
                )
            yield connection

    def row(self, connection: Connection) -> Mapping[str, Any]:
        """The project's row of `ProjectRow`, by column.

        Raises:
            InputError: there is none.
        """
        table = ProjectRow.__table__
        found = connection.execute(select(table).where(table.c.id == self.project_id)).mappings()
        row = found.one_or_none()
        if row is None or row["kind"] == ERASED:
            raise InputError(
                "expected the id of a project, found {project_id}", project_id=self.project_id
            )
        return dict(row)

    def kind(self, connection: Connection) -> TaskKind:
        """Whether a text has one label or several; of a database of an earlier layout, too.

        Raises:
            InputError: there is no such project.
        """
        query = select(ProjectRow.kind).where(ProjectRow.id == self.project_id)
        found = connection.scalar(query)
        if found in (None, ERASED):
            raise InputError(
                "expected the id of a project, found {project_id}", project_id=self.project_id
            )
        return cast(TaskKind, found)

    def role(self, connection: Connection) -> Role | None:
        """What the person is in the project."""
        if self.person.is_local:
            return "admin"
        if self.person.only_project not in (None, self.project_id):
            return None
        query = select(MemberRow.role).where(
            MemberRow.project_id == self.project_id, MemberRow.person == self.person.name
        )
        role: Role | None = connection.scalar(query)
        return role

    def note(self, connection: Connection, action: str, details: Mapping[str, Any]) -> int:
        """Add to the audit trail, in the transaction of the change itself; the id of the entry."""
        made = connection.execute(
            insert(AuditRow).values(
                project_id=self.project_id,
                person=self.person.name,
                action=action,
                details=json.dumps(details, ensure_ascii=False),
                created_at=database_time(connection),
            )
        )
        (identifier,) = made.inserted_primary_key or (0,)
        return identifier

    def _require(self, connection: Connection, needed: Role) -> None:
        role = self.role(connection)
        if role is None:
            # Says the same whether there is such a project or not.
            raise AccessError(
                "expected a member of project {project_id}, found {person}; ask one of its admins "
                "to add you",
                project_id=self.project_id,
                person=self.person.name,
            )
        if not allows(role, needed):
            raise AccessError(
                "expected the role {needed} in project {project_id}, found {person} as {role}; ask "
                "one of its admins",
                needed=needed,
                project_id=self.project_id,
                person=self.person.name,
                role=role,
            )


def begin_writing(connection: Connection, project_id: int = 0) -> None:
    """Let no other transaction write to the project until this one ends; 0: for the list of them.

    SQLite has one writer at a time anyway; to ask for it at once is what makes it wait instead of
    fail, and what keeps a choice true until it is written.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    connection.execute(
        text("SELECT pg_advisory_xact_lock(:first, :second)"),
        {"first": _LOCK, "second": project_id},
    )


def database_time(connection: Connection) -> datetime:
    """Now in UTC by the clock of the database, which all writers share."""
    if connection.dialect.name == "sqlite":
        written = connection.scalar(select(func.strftime("%Y-%m-%d %H:%M:%f", "now")))
        return datetime.fromisoformat(str(written)).replace(tzinfo=UTC)
    now = connection.scalar(select(func.clock_timestamp()))
    assert isinstance(now, datetime)
    return now.astimezone(UTC)


@contextmanager
def reading_of_one_moment(engine: Engine) -> Iterator[Connection]:
    """A transaction whose reads do not see what others commit between them.

    Else a choice could name a label that was made after the labels were read.

    Raises:
        InputError: the database cannot be used.
    """
    with database_errors(engine), engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            # The driver begins a transaction only where something is written.
            connection.exec_driver_sql("BEGIN")
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


@contextmanager
def database_errors(engine: Engine) -> Iterator[None]:
    """The database's refusals as one line, without a password.

    Raises:
        InputError: in place of SQLAlchemy's errors.
    """
    try:
        yield
    except SQLAlchemyError as error:
        raise InputError(
            "the label database could not do it ({error}); try again, and check that {url} can be "
            "reached",
            error=reason(error),
            url=without_password(engine.url.render_as_string(hide_password=False)),
        ) from error
