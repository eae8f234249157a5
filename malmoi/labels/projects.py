"""The projects of a label database: made, found, changed, archived; their members and audit trail.

Nothing of a project is shown to who is no member of it, nor whether it exists.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Unpack

from sqlalchemy import Connection, case, delete, func, insert, select, update
from sqlalchemy.engine import URL

from malmoi.errors import InputError
from malmoi.labels.access import (
    ProjectAccess,
    begin_writing,
    database_errors,
    database_time,
    reading_of_one_moment,
)
from malmoi.labels.database import DATABASE_VARIABLE
from malmoi.labels.leasing import give_back
from malmoi.labels.people import AccessError, Person, person_name
from malmoi.labels.project import (
    NewProject,
    Project,
    ProjectLabel,
    ProjectSettings,
    SettingsChange,
    complete_labels,
)
from malmoi.labels.roles import Role, checked_role
from malmoi.labels.schema import open_engine
from malmoi.labels.stored_text import checked, checked_name
from malmoi.labels.tables import (
    ERASED,
    AccessKeyRow,
    AuditRow,
    GuidelineRow,
    MemberRow,
    PlaceRow,
    ProjectLabelRow,
    ProjectRow,
    ScoreVersionRow,
    TextRow,
    TextScoreRow,
)
from malmoi.messages import Phrase


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """One change of a project: who, what, when, and what it was about."""

    person: str
    action: str
    details: Mapping[str, Any]
    created_at: datetime


class ProjectStore:
    """The projects of one database; safe to use from several threads and processes at once."""

    def __init__(self, url: str | URL | None = None, place: str = DATABASE_VARIABLE) -> None:
        """Open the database, making or migrating it where that is needed.

        Args:
            url: SQLAlchemy URL; `malmoi.labels.connection.database_url()` without one.
            place: where a person gave it, for messages.

        Raises:
            InputError: the URL or the database cannot be used.
        """
        self.engine = open_engine(url, place)

    def create(self, person: Person, new: NewProject) -> ProjectAccess:
        """Make a project; the person becomes its admin.

        Raises:
            AccessError: a key of the person opens one project alone.
            InputError: there is one of this name, or the database cannot be used.
        """
        if person.only_project is not None:
            raise AccessError(
                "expected whoever runs the server to make a project, found {person}; ask them",
                person=person.name,
            )
        with database_errors(self.engine), self.engine.begin() as connection:
            begin_writing(connection)
            taken = select(ProjectRow.id).where(ProjectRow.name == new.name)
            if connection.scalar(taken) is not None:
                raise InputError(
                    "expected a new name for a project, found {project}, which another one has",
                    project=new.name,
                )
            made = connection.execute(
                insert(ProjectRow).values(
                    name=new.name,
                    kind=new.kind,
                    created_by=person.name,
                    created_at=database_time(connection),
                    **asdict(new.settings),
                )
            )
            (project_id,) = made.inserted_primary_key or (0,)
            access = ProjectAccess(engine=self.engine, project_id=project_id, person=person)
            _write_labels(connection, project_id, new.labels)
            _write_guideline(connection, access, new.guideline)
            connection.execute(
                insert(MemberRow).values(project_id=project_id, person=person.name, role="admin")
            )
            access.note(connection, "create", {"name": new.name})
        return access

    def access(self, person: Person, project: int | str) -> ProjectAccess:
        """A project for a person, by its id or name.

        Raises:
            AccessError: there is none of which the person is a member.
        """
        if isinstance(project, str):
            query = select(ProjectRow.id).where(
                ProjectRow.name == checked_name(project, Phrase("a project"))
            )
            with reading_of_one_moment(self.engine) as connection:
                found = connection.scalar(query)
            if found is None:
                raise AccessError(_unknown(project, person))
            project_id = found
        else:
            project_id = project
        access = ProjectAccess(engine=self.engine, project_id=project_id, person=person)
        try:
            with access.reading() as connection:
                access.row(connection)
        except AccessError as error:
            raise AccessError(_unknown(project, person)) from error
        return access

    def list(self, person: Person, *, archived: bool = False) -> list[Project]:
        """The projects of which the person is a member, by name.

        Args:
            archived: those that are archived, too.
        """
        query = select(ProjectRow.id).order_by(ProjectRow.name)
        query = query.where(ProjectRow.kind != ERASED)
        if not archived:
            query = query.where(ProjectRow.archived_at.is_(None))
        if not person.is_local:
            mine = select(MemberRow.project_id).where(MemberRow.person == person.name)
            query = query.where(ProjectRow.id.in_(mine))
        if person.only_project is not None:
            query = query.where(ProjectRow.id == person.only_project)
        with reading_of_one_moment(self.engine) as connection:
            return [
                _project(
                    ProjectAccess(engine=self.engine, project_id=one, person=person), connection
                )
                for one in connection.scalars(query).all()
            ]


def _unknown(project: int | str, person: Person) -> Phrase:
    return Phrase(
        "expected a project of which {person} is a member, found {project}; ask one of its admins "
        "to add you",
        person=person.name,
        project=project,
    )


def read_project(access: ProjectAccess) -> Project:
    """The project as it is now.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        return _project(access, connection)


def _project(access: ProjectAccess, connection: Connection) -> Project:
    row = access.row(connection)
    version, guideline = newest_guideline(connection, access.project_id)
    role = access.role(connection)
    assert role is not None
    return Project(
        **{name: row[name] for name in ("id", "name", "kind", "created_by")},
        created_at=row["created_at"],
        archived_at=row["archived_at"],
        labels=read_labels(connection, access.project_id),
        guideline=guideline,
        guideline_version=version,
        settings=_settings(row),
        role=role,
    )


def read_labels(connection: Connection, project_id: int) -> tuple[ProjectLabel, ...]:
    """The labels in order, retired ones last."""
    query = (
        select(ProjectLabelRow.__table__)
        .where(ProjectLabelRow.project_id == project_id)
        .order_by(ProjectLabelRow.retired, ProjectLabelRow.position, ProjectLabelRow.id)
    )
    names = ProjectLabel.__dataclass_fields__
    return tuple(
        ProjectLabel(**{name: row[name] for name in names})
        for row in connection.execute(query).mappings()
    )


def newest_guideline(connection: Connection, project_id: int) -> tuple[int, str]:
    """Its version and Markdown."""
    query = (
        select(GuidelineRow.version, GuidelineRow.markdown)
        .where(GuidelineRow.project_id == project_id)
        .order_by(GuidelineRow.version.desc())
        .limit(1)
    )
    version, markdown = connection.execute(query).one()
    return version, markdown


def guideline_of(access: ProjectAccess, version: int) -> str:
    """An earlier version of the guideline.

    Raises:
        InputError: there is none.
    """
    query = select(GuidelineRow.markdown).where(
        GuidelineRow.project_id == access.project_id, GuidelineRow.version == version
    )
    with access.reading() as connection:
        found = connection.scalar(query)
    if found is None:
        raise InputError("expected a version of the guideline, found {version}", version=version)
    return found


def change_guideline(access: ProjectAccess, markdown: str) -> int:
    """Write the next version of the guideline; returns its number. The same text makes none.

    Raises:
        InputError: the person is no admin, or the text cannot be stored.
    """
    checked(markdown, Phrase("a guideline"))
    with access.writing("admin") as connection:
        version, now = newest_guideline(connection, access.project_id)
        if now == markdown:
            return version
        version = _write_guideline(connection, access, markdown)
        access.note(connection, "guideline", {"version": version})
        return version


def change_settings(access: ProjectAccess, **changes: Unpack[SettingsChange]) -> None:
    """Change the settings that are named; all others stay, whoever changes those meanwhile.

    Raises:
        InputError: the person is no admin, or a value is out of bounds.
    """
    with access.writing("admin") as connection:
        old = _settings(access.row(connection))
        new = replace(old, **changes)
        if new == old:
            return
        before, after = asdict(old), asdict(new)
        changed = {
            name: [before[name], after[name]] for name in changes if before[name] != after[name]
        }
        connection.execute(
            update(ProjectRow).where(ProjectRow.id == access.project_id).values(**after)
        )
        if "annotators_per_text" in changed:
            is_open = TextRow.votes < new.annotators_per_text
            connection.execute(
                update(TextRow)
                .where(TextRow.project_id == access.project_id, TextRow.is_open != is_open)
                .values(is_open=is_open)
            )
        if "model" in changed:
            _withdraw_order_of(connection, access, old.model)
        access.note(connection, "settings", changed)


def _withdraw_order_of(connection: Connection, access: ProjectAccess, model: str | None) -> None:
    """Suggest no more what a model says that is no longer chosen; the next round writes anew."""
    by_model = select(ScoreVersionRow.id).where(
        ScoreVersionRow.project_id == access.project_id, ScoreVersionRow.model == model
    )
    connection.execute(
        update(ProjectRow)
        .where(ProjectRow.id == access.project_id, ProjectRow.scores_version.in_(by_model))
        .values(scores_version=None)
    )


def _settings(row: Mapping[str, Any]) -> ProjectSettings:
    return ProjectSettings(**{name: row[name] for name in ProjectSettings.__dataclass_fields__})


def change_labels(access: ProjectAccess, labels: Sequence[ProjectLabel]) -> None:
    """Replace what is offered; labels keep what was labelled with them, by their ids.

    One with an id is renamed or changed, one without is added, and one that is left out is retired.

    Raises:
        InputError: the person is no admin, an id is twice or not of this project, or names do not
            fit.
    """
    named = [replace(label, name=checked_name(label.name, Phrase("a label"))) for label in labels]
    with access.writing("admin") as connection:
        kind = access.row(connection)["kind"]
        known = {label.id: label for label in read_labels(connection, access.project_id)}
        whole = complete_labels(_with_retired(named, known), kind)
        # Names first become unlike any, so that two can be swapped.
        for label in known.values():
            _update_label(connection, label.id, {"name": f"\x01{label.id}"})
        _write_labels(connection, access.project_id, whole)
        _rename_suggestions(connection, access, known, whole)
        changes = {
            "before": [asdict(label) for label in known.values()],
            "after": [asdict(label) for label in whole if label != known.get(label.id)],
        }
        access.note(connection, "labels", changes)


def _rename_suggestions(
    connection: Connection,
    access: ProjectAccess,
    known: Mapping[int | None, ProjectLabel],
    whole: Sequence[ProjectLabel],
) -> None:
    """Let what a model has suggested have the new names; a retired label is suggested no more."""
    now = {label.id: None if label.retired else label.name for label in whole}
    renamed = {
        label.name: now[id_]
        for id_, label in known.items()
        if not label.retired and now[id_] != label.name
    }
    version = access.row(connection)["scores_version"]
    if not renamed or version is None:
        return
    for place in (TextScoreRow.label, TextScoreRow.second_label):
        new = case(*[(place == old, name) for old, name in renamed.items()])
        mine = (TextScoreRow.version == version, place.in_(renamed))
        connection.execute(update(TextScoreRow).where(*mine).values({place: new}))


def _with_retired(
    labels: Sequence[ProjectLabel], known: Mapping[int | None, ProjectLabel]
) -> list[ProjectLabel]:
    """The labels, and those that were there before as retired; a name that comes back is the label
    that had it."""
    given = [label.id for label in labels if label.id is not None]
    if strange := [label.name for label in labels if label.id and label.id not in known]:
        raise InputError(
            "expected labels of this project, found others: {strange}", strange=", ".join(strange)
        )
    if len(set(given)) < len(given):
        raise InputError("expected each label of the project once, found one twice; leave one out")
    ids = {label.name: label.id for label in known.values() if label.id not in given}
    whole = [
        label if label.id is not None else replace(label, id=ids.get(label.name))
        for label in labels
    ]
    kept = {label.id for label in whole}
    gone = [label for label in known.values() if label.id not in kept]
    return whole + [replace(label, retired=True, key=None) for label in gone]


def archive(access: ProjectAccess, *, away: bool = True) -> None:
    """Put the project away, or open it again; nothing in it is lost.

    Raises:
        InputError: the person is no admin.
    """
    with access.writing("admin", even_archived=True) as connection:
        when = database_time(connection) if away else None
        connection.execute(
            update(ProjectRow).where(ProjectRow.id == access.project_id).values(archived_at=when)
        )
        access.note(connection, "archive" if away else "open again", {})


def members(access: ProjectAccess) -> dict[str, Role]:
    """The role of each member, by name.

    Raises:
        AccessError: the person is no reviewer; annotators label without knowing who else does.
    """
    query = select(MemberRow.person, MemberRow.role).where(
        MemberRow.project_id == access.project_id
    )
    with access.reading("reviewer") as connection:
        return {name: checked_role(role) for name, role in connection.execute(query)}


def set_member(access: ProjectAccess, name: str, role: Role | None) -> None:
    """Add a member, give one another role, or take one away (None). What they did stays.

    Raises:
        InputError: the person is no admin, the role is unknown, or no admin would be left.
    """
    name = person_name(name)
    if role is not None:
        checked_role(role)
    with access.writing("admin") as connection:
        write_member(connection, access, name, role)


def write_member(
    connection: Connection, access: ProjectAccess, name: str, role: Role | None
) -> None:
    """As `set_member`, in a transaction of an admin; who is taken away loses their keys, their
    leases and what was given to them.

    Raises:
        InputError: no admin would be left.
    """
    mine = MemberRow.project_id == access.project_id
    connection.execute(delete(MemberRow).where(mine, MemberRow.person == name))
    if role is not None:
        connection.execute(
            insert(MemberRow).values(project_id=access.project_id, person=name, role=role)
        )
    else:
        connection.execute(
            update(AccessKeyRow)
            .where(
                AccessKeyRow.project_id == access.project_id,
                AccessKeyRow.person == name,
                AccessKeyRow.withdrawn_at.is_(None),
            )
            .values(withdrawn_at=database_time(connection))
        )
        give_back(connection, PlaceRow.project_id == access.project_id, PlaceRow.annotator == name)
        given = (TextRow.project_id == access.project_id, TextRow.assigned_to == name)
        connection.execute(update(TextRow).where(*given).values(assigned_to=None))
    admins = select(func.count()).select_from(MemberRow).where(mine, MemberRow.role == "admin")
    if not connection.scalar(admins):
        raise InputError(
            "{name} is the only admin of the project: expected another one; make one first",
            name=name,
        )
    access.note(connection, "member", {"person": name, "role": role})


def audit_trail(access: ProjectAccess, limit: int = 1_000) -> list[AuditEntry]:
    """The latest changes, newest first.

    Raises:
        AccessError: the person is no admin.
    """
    query = (
        select(AuditRow.__table__)
        .where(AuditRow.project_id == access.project_id)
        .order_by(AuditRow.id.desc())
        .limit(limit)
    )
    with access.reading("admin") as connection:
        return [
            AuditEntry(
                person=row["person"],
                action=row["action"],
                details=json.loads(row["details"]),
                created_at=row["created_at"],
            )
            for row in connection.execute(query).mappings()
        ]


def _write_labels(connection: Connection, project_id: int, labels: Sequence[ProjectLabel]) -> None:
    for position, label in enumerate(labels):
        values = asdict(label) | {"position": position}
        identifier = values.pop("id")
        if identifier is None:
            connection.execute(insert(ProjectLabelRow).values(project_id=project_id, **values))
        else:
            _update_label(connection, identifier, values)


def _update_label(connection: Connection, identifier: int | None, values: dict[str, Any]) -> None:
    connection.execute(
        update(ProjectLabelRow).where(ProjectLabelRow.id == identifier).values(**values)
    )


def _write_guideline(connection: Connection, access: ProjectAccess, markdown: str) -> int:
    newest = select(func.coalesce(func.max(GuidelineRow.version), 0)).where(
        GuidelineRow.project_id == access.project_id
    )
    version = (connection.scalar(newest) or 0) + 1
    connection.execute(
        insert(GuidelineRow).values(
            project_id=access.project_id,
            version=version,
            markdown=markdown,
            author=access.person.name,
            created_at=database_time(connection),
        )
    )
    return version
