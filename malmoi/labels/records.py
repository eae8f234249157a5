"""The labels that hold now, as records to train on."""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from malmoi.errors import InputError
from malmoi.labels.connection import reading_engine, reason
from malmoi.labels.database import LabelDatabase, as_part
from malmoi.labels.models import Label, names_in, sets_within
from malmoi.labels.names import normal_label
from malmoi.labels.project_records import iter_project_records, project_id_of, project_names
from malmoi.labels.queries import known_sets, latest_ids, of_sets
from malmoi.labels.tasks import task_named
from malmoi.messages import Phrase
from malmoi.text.record import Record

_ROWS_AT_ONCE = 1_000
# Projects that an error names.
_NAMED = 10


def iter_label_records(
    database: LabelDatabase, labels: Sequence[str] | None = None
) -> Iterator[Record]:
    """The current label of every text of one task, oldest first; nothing is changed.

    A part that names a project of the database reads that one (`project_records`). So does no part,
    where the project is the only one, and nothing was labelled before there were projects.

    Args:
        database: of the app, and which part of it.
        labels: of which task, where the database names no part; None: it has one only.

    Raises:
        InputError: there is no such database, it is not the app's, damaged or locked for long, it
            has several projects or tasks of which none is named, its part names none of them, or
            both a project and a task that has labels from before there were projects.
    """
    try:
        engine = reading_engine(database)
        with Session(engine) as session:
            project_id = _project(session, database)
            if project_id is not None:
                yield from iter_project_records(engine, project_id, database.name)
                return
            latest = latest_ids(_of_one_task(session, database, labels))
            query = select(Label.id, Label.text, Label.label).where(Label.id.in_(latest))
            rows = session.execute(
                query.order_by(Label.id), execution_options={"yield_per": _ROWS_AT_ONCE}
            )
            for identifier, text, label in rows:
                name = f"{database.name}:{identifier}"
                yield Record(id=name, text=text, label=label, source=database.name)
    except (SQLAlchemyError, ImportError) as error:
        raise InputError(
            "expected the label database of the app (a table labels), found {error}; export the "
            "labels in the app as CSV instead",
            place=database,
            error=reason(error),
        ) from error


def _project(session: Session, database: LabelDatabase) -> int | None:
    """The project that the part names, if it does."""
    if database.part is None:
        return _only_project(session, database)
    project_id = project_id_of(session.connection(), normal_label(database.part))
    if project_id is None:
        names = project_names(session.connection())
        is_other = "," in database.part or task_named(database.part) is not None
        if names and not is_other:
            raise InputError(
                "expected one of the projects of this database, {names}, found #{part}",
                place=database,
                names=_behind(names),
                part=database.part,
            )
        return None
    task = task_named(database.part)
    if task is not None and sets_within(known_sets(session), task.label_names):
        raise InputError(
            "expected the name of a project or of a task, found both with labels; write "
            "#{label_names} for those of the task, or rename the project",
            place=database,
            label_names=",".join(task.label_names),
        )
    return project_id


def _only_project(session: Session, database: LabelDatabase) -> int | None:
    """The project of a database that has nothing else; None where it has none."""
    names = project_names(session.connection())
    if not names or session.scalar(select(Label.id).limit(1)) is not None:
        return None
    if len(names) > 1:
        raise InputError(
            "expected the name of a project behind it, {names}, found none; write it at the end of "
            "--data",
            place=database,
            names=_behind(names),
        )
    return project_id_of(session.connection(), names[0])


def _behind(names: Sequence[str]) -> str:
    """Names of projects as they are written behind a database, the first of many."""
    shown = [f"#{as_part(name)}" for name in names[:_NAMED]]
    return ", ".join(shown) + (" …" if len(names) > _NAMED else "")


def _of_one_task(
    session: Session, database: LabelDatabase, labels: Sequence[str] | None
) -> ColumnElement[bool]:
    """The condition for rows of the part, else of the task with `labels`, else of the only one."""
    sets = known_sets(session)
    part = database.labels()
    if part is not None:
        chosen = sets_within(sets, part)
        if not chosen and not _without_set(session, part):
            raise InputError(
                "expected labels of {part}, found those of {sets: and }",
                place=database,
                part=",".join(part),
                sets=_shown(sets),
            )
        return of_sets(chosen, part)
    if labels is not None:
        # Where none fits, all are read, so that what is unexpected is named.
        chosen = sets_within(sets, labels)
        return of_sets(chosen if chosen or _without_set(session, labels) else sets, labels)
    largest: list[str] = max(map(names_in, sets), key=len, default=[])
    if len(sets_within(sets, largest)) < len(sets):
        raise InputError(
            "expected labels of one task, found those of {sets: and }; name one's by --labels, or "
            "behind # at the end of --data",
            place=database,
            sets=_shown(sets),
        )
    return of_sets(sets, None)


def _without_set(session: Session, labels: Sequence[str]) -> bool:
    """Whether rows that name no set have any of these labels."""
    query = select(Label.id).where(Label.label_set.is_(None), Label.label.in_(labels)).limit(1)
    return session.scalar(query) is not None


def _shown(sets: Sequence[str]) -> list[str]:
    return [",".join(names_in(one)) for one in sets] or [Phrase("none")]
