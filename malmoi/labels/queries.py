"""Which rows of the log hold now: the latest of each text in a task."""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, true
from sqlalchemy.orm import Session

from malmoi.labels.models import Label, sets_within


def known_sets(session: Session) -> list[str]:
    """Every label set that rows name, sorted."""
    query = select(Label.label_set).where(Label.label_set.is_not(None)).distinct()
    return sorted(one for one in session.scalars(query) if one is not None)


def of_task(session: Session, labels: Sequence[str] | None) -> ColumnElement[bool]:
    """The condition that a row is of the task with these labels; of any task for None."""
    if labels is None:
        return true()
    return of_sets(sets_within(known_sets(session), labels), labels)


def of_sets(sets: Collection[str], labels: Sequence[str] | None) -> ColumnElement[bool]:
    """The condition that a row names one of the sets.

    Rows that name none count by their label, which is to be one of `labels`; None takes them all.
    """
    without: ColumnElement[bool] = Label.label_set.is_(None)
    if labels is not None:
        without = and_(without, Label.label.in_(labels))
    return or_(Label.label_set.in_(sets), without)


def latest_ids(condition: ColumnElement[bool], *, by_set: bool = False) -> Select[int]:
    """The id of the latest row of each text, among those that meet the condition.

    Args:
        by_set: a text has a latest row in each label set, instead of one in all.
    """
    columns = [Label.label_set] if by_set else []
    return select(func.max(Label.id)).where(condition).group_by(*columns, Label.text_sha256)
