"""Secrets that let one person in: the links of invitations, and tokens for programs.

A secret is shown once, to whoever makes it; the database has its hash. It opens one project as its
person, whose role is that of the member; what a key says of a role is what it was made with.
"""

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Literal

from sqlalchemy import Engine, insert, select, union, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, begin_writing, database_errors, database_time
from malmoi.labels.people import AccessError, Person, person_name
from malmoi.labels.projects import ProjectStore, write_member
from malmoi.labels.roles import Role, checked_role
from malmoi.labels.tables import AccessKeyRow, AdjudicationRow, PlaceRow

KeyKind = Literal["invitation", "token"]
_BYTES = 32
# That a key is in use is written down this often, for each use would be a write.
_SELDOM = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class AccessKey:
    """A key as its project's admins see it, without its secret."""

    id: int
    person: str
    role: Role
    kind: KeyKind
    created_by: str
    created_at: datetime
    withdrawn_at: datetime | None
    last_used_at: datetime | None


def make_key(access: ProjectAccess, person: str, role: Role, kind: KeyKind) -> str:
    """Let a person in, who becomes a member with the role; a former key of theirs stays good.

    Returns:
        The secret, which nobody can read again.

    Raises:
        InputError: who asks is no admin, the name or the role cannot be, or no admin would be left.
    """
    name = person_name(person)
    checked_role(role)
    with access.writing("admin") as connection:
        write_member(connection, access, name, role)
        secret = secrets.token_urlsafe(_BYTES)
        connection.execute(
            insert(AccessKeyRow).values(
                project_id=access.project_id,
                person=name,
                role=role,
                kind=kind,
                sha256=_hashed(secret),
                created_by=access.person.name,
                created_at=database_time(connection),
            )
        )
        access.note(connection, f"make {kind}", {"person": name, "role": role})
    return secret


def make_owner_key(
    access: ProjectAccess, kind: KeyKind = "invitation", *, instead: bool = False
) -> str:
    """The key of whoever runs the server: every right in every project.

    Args:
        access: of whoever has that already.
        kind: what it opens.
        instead: all former ones of this kind are taken back.

    Raises:
        AccessError: who asks has not that already.
    """
    if not access.person.is_local:
        raise AccessError(
            "expected whoever runs the server, found {person}", person=access.person.name
        )
    secret = secrets.token_urlsafe(_BYTES)
    with database_errors(access.engine), access.engine.begin() as connection:
        begin_writing(connection)
        now = database_time(connection)
        if instead:
            good = (
                AccessKeyRow.project_id.is_(None),
                AccessKeyRow.withdrawn_at.is_(None),
                AccessKeyRow.kind == kind,
            )
            connection.execute(update(AccessKeyRow).where(*good).values(withdrawn_at=now))
            if kind == "invitation":
                access.note(connection, "renew owner link", {})
        connection.execute(
            insert(AccessKeyRow).values(
                project_id=None,
                person=access.person.name,
                role="admin",
                kind=kind,
                sha256=_hashed(secret),
                created_by=access.person.name,
                created_at=now,
            )
        )
    return secret


def person_of(store: ProjectStore, secret: str, kind: KeyKind) -> Person | None:
    """Who comes with a secret; None: nobody, or it was taken back.

    Raises:
        InputError: the database cannot be used.
    """
    found = _hashed(secret)
    query = select(AccessKeyRow.__table__).where(
        AccessKeyRow.sha256 == found,
        AccessKeyRow.kind == kind,
        AccessKeyRow.withdrawn_at.is_(None),
    )
    with database_errors(store.engine), store.engine.connect() as connection:
        row = connection.execute(query).mappings().one_or_none()
        if row is None or not hmac.compare_digest(row["sha256"], found):
            return None
        now = database_time(connection)
    if row["last_used_at"] is None or now - row["last_used_at"] > _SELDOM:
        with database_errors(store.engine), store.engine.begin() as connection:
            mine = update(AccessKeyRow).where(AccessKeyRow.id == row["id"])
            connection.execute(mine.values(last_used_at=now))
    is_owner = row["project_id"] is None
    return Person(name=row["person"], is_local=is_owner, only_project=row["project_id"])


def people_at_work(access: ProjectAccess) -> list[str]:
    """Everybody who has labelled or decided in a project, members or not.

    Raises:
        AccessError: the person is no reviewer.
    """
    mine = access.project_id
    votes = select(PlaceRow.annotator).where(PlaceRow.project_id == mine)
    votes = votes.where(PlaceRow.state.in_(("labelled", "skipped")))
    decisions = select(AdjudicationRow.reviewer).where(AdjudicationRow.project_id == mine)
    with access.reading("reviewer") as connection:
        return sorted(connection.scalars(union(votes, decisions)))


def withdraw(access: ProjectAccess, key: int) -> None:
    """Take a key back; what was done with it stays.

    Raises:
        InputError: who asks is no admin, or the project has no such key.
    """
    mine = (AccessKeyRow.id == key, AccessKeyRow.project_id == access.project_id)
    with access.writing("admin") as connection:
        row = connection.execute(select(AccessKeyRow.__table__).where(*mine)).mappings().first()
        if row is None:
            raise InputError("expected a key of this project, found {key}", key=key)
        if row["withdrawn_at"] is None:
            now = database_time(connection)
            connection.execute(update(AccessKeyRow).where(*mine).values(withdrawn_at=now))
            access.note(connection, f"withdraw {row['kind']}", {"person": row["person"]})


def list_keys(access: ProjectAccess, kind: KeyKind) -> list[AccessKey]:
    """The keys of a project that are good, newest first.

    Raises:
        AccessError: the person is no admin.
    """
    names = AccessKey.__dataclass_fields__
    query = (
        select(AccessKeyRow.__table__)
        .where(
            AccessKeyRow.project_id == access.project_id,
            AccessKeyRow.kind == kind,
            AccessKeyRow.withdrawn_at.is_(None),
        )
        .order_by(AccessKeyRow.id.desc())
    )
    with access.reading("admin") as connection:
        rows = connection.execute(query).mappings()
        return [AccessKey(**{name: row[name] for name in names}) for row in rows]


def asks_for_invitation(engine: Engine) -> bool:
    """Whether anybody was invited, so that nobody comes in without an invitation.

    Those that were taken back count: else the last to go would open the door.
    """
    query = select(AccessKeyRow.id).where(AccessKeyRow.kind == "invitation").limit(1)
    with database_errors(engine), engine.connect() as connection:
        return connection.scalar(query) is not None


def _hashed(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
