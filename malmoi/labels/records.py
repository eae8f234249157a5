"""The labels that hold now, as records to train on."""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from malmoi.errors import InputError
from malmoi.labels.connection import reading_engine, reason
from malmoi.labels.database import LabelDatabase
from malmoi.labels.models import Label, names_in, sets_within
from malmoi.labels.queries import known_sets, latest_ids, of_sets
from malmoi.text.record import Record

_ROWS_AT_ONCE = 1_000


def iter_label_records(
    database: LabelDatabase, labels: Sequence[str] | None = None
) -> Iterator[Record]:
    """The current label of every text of one task, oldest first; nothing is changed.

    Args:
        labels: of which task, where the database names no part; None: it has one only.

    Raises:
        InputError: there is no such table, it is damaged or locked for long, its part has no
            labels, or it has several tasks of which none is named.
    """
    try:
        with Session(reading_engine(database)) as session:
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
            f"{database}: expected the label database of the app (a table labels), found "
            f"{reason(error)}; export the labels in the app as CSV instead"
        ) from error


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
                f"{database}: expected labels of {','.join(part)}, found those of {_shown(sets)}"
            )
        return of_sets(chosen, part)
    if labels is not None:
        # Where none fits, all are read, so that what is unexpected is named.
        chosen = sets_within(sets, labels)
        return of_sets(chosen if chosen or _without_set(session, labels) else sets, labels)
    largest: list[str] = max(map(names_in, sets), key=len, default=[])
    if len(sets_within(sets, largest)) < len(sets):
        raise InputError(
            f"{database}: expected labels of one task, found those of {_shown(sets)}; name one's "
            "by --labels, or behind # at the end of --data"
        )
    return of_sets(sets, None)


def _without_set(session: Session, labels: Sequence[str]) -> bool:
    """Whether rows that name no set have any of these labels."""
    query = select(Label.id).where(Label.label_set.is_(None), Label.label.in_(labels)).limit(1)
    return session.scalar(query) is not None


def _shown(sets: Sequence[str]) -> str:
    return " and ".join(",".join(names_in(one)) for one in sets) or "none"
