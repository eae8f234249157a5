"""A project in numbers: how far it is, how fast, how balanced, and since when these hold.

All of this looks at every label, so whoever shows it keeps the result and asks `last_change`
whether it still holds, which costs the same however many labels there are.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import quantiles
from typing import Any

from sqlalchemy import Connection, func, select

from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.label_book import LabelBook
from malmoi.labels.review import ProjectProgress, progress
from malmoi.labels.roles import Role, allows
from malmoi.labels.tables import AnnotationRow, AuditRow, PlaceRow, TextRow
from malmoi.labels.text_conditions import undone

_DAYS_OF_PACE = 60
_TIMED_LABELS = 20_000


@dataclass(frozen=True, kw_only=True)
class LastChange:
    """Ids of the newest rows of a project's logs (0: none) and of the scores that hold.

    Attributes:
        annotation: of the newest act of an annotator.
        audit: of the newest entry of the audit trail, which has one for each decision of a
            reviewer, for labels and settings that were changed, and for texts that were imported.
        scores: of the version.
    """

    annotation: int
    audit: int
    scores: int


@dataclass(frozen=True, kw_only=True)
class SecondsPerLabel:
    """From a text's appearance to its label, over the newest 20,000 labels of the project.

    Attributes:
        labels: how many with a time.
        lower: the first quartile, in seconds.
        median: in seconds.
        upper: the third quartile, in seconds.
    """

    labels: int
    lower: float
    median: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class AnnotatorNumbers:
    """One annotator.

    Attributes:
        labelled: texts with a label of theirs that holds.
        skipped: texts that they skipped.
        seconds: None where no label has a time.
        labels: how often they gave each label, by name; those of a `multi` project count each.
    """

    name: str
    labelled: int
    skipped: int
    seconds: SecondsPerLabel | None
    labels: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class HourOfWork:
    """Labels that one annotator gave within an hour that begins at `begins` (UTC)."""

    begins: datetime
    name: str
    labels: int


@dataclass(frozen=True, kw_only=True)
class ProjectNumbers:
    """A project as one person may see it.

    Attributes:
        progress: of all texts.
        decided: texts on which a reviewer has decided; None for an annotator.
        annotators: all for a reviewer, oneself for an annotator; by falling number of labels.
        hours: of the last 60 days, those in which somebody worked.
        label_names: of the project, in order, retired ones last.
    """

    progress: ProjectProgress
    decided: int | None
    annotators: tuple[AnnotatorNumbers, ...]
    hours: tuple[HourOfWork, ...]
    label_names: tuple[str, ...]

    @property
    def labels(self) -> dict[str, int]:
        """How often each label was given by those who are shown, in the order of the project."""
        return {
            name: sum(one.labels.get(name, 0) for one in self.annotators)
            for name in self.label_names
        }


def last_change(access: ProjectAccess, needed: Role = "annotator") -> LastChange:
    """What a result has to be computed again for, when it differs.

    Args:
        access: of whoever is to see the result.
        needed: the role that this takes.

    Raises:
        AccessError: the person has not this role.
    """
    annotation = (
        select(AnnotationRow.id)
        .where(AnnotationRow.project_id == access.project_id)
        .order_by(AnnotationRow.created_at.desc(), AnnotationRow.id.desc())
        .limit(1)
    )
    audit = select(func.max(AuditRow.id)).where(AuditRow.project_id == access.project_id)
    with access.reading(needed) as connection:
        return LastChange(
            annotation=connection.scalar(annotation) or 0,
            audit=connection.scalar(audit) or 0,
            scores=access.row(connection)["scores_version"] or 0,
        )


def project_numbers(access: ProjectAccess) -> ProjectNumbers:
    """Progress, pace, balance and seconds per label: of all for a reviewer, else one's own.

    Raises:
        AccessError: the person is no member.
    """
    made = progress(access)
    decided = select(func.count()).where(
        TextRow.project_id == access.project_id, TextRow.adjudication_id.is_not(None)
    )
    with access.reading() as connection:
        sees_all = allows(access.role(connection), "reviewer")
        only_of = None if sees_all else access.person.name
        book = LabelBook(access, connection)
        return ProjectNumbers(
            progress=made,
            decided=(connection.scalar(decided) or 0) if sees_all else None,
            annotators=_annotators(access, connection, book, only_of),
            hours=_hours(access, connection, only_of),
            label_names=tuple(book.names),
        )


def _annotators(
    access: ProjectAccess, connection: Connection, book: LabelBook, only_of: str | None
) -> tuple[AnnotatorNumbers, ...]:
    query = (
        select(PlaceRow.annotator, PlaceRow.state, PlaceRow.choice, func.count())
        .where(
            PlaceRow.project_id == access.project_id,
            PlaceRow.state.in_(("labelled", "skipped")),
            *([] if only_of is None else [PlaceRow.annotator == only_of]),
        )
        .group_by(PlaceRow.annotator, PlaceRow.state, PlaceRow.choice)
    )
    totals: dict[tuple[str, str], int] = defaultdict(int)
    given: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, state, choice, number in connection.execute(query):
        totals[name, state] += number
        for label in () if choice is None else book.labels(choice):
            given[name][label] += number
    seconds = _seconds(access, connection, only_of)
    names = sorted({name for name, _ in totals}, key=lambda one: (-totals[one, "labelled"], one))
    return tuple(
        AnnotatorNumbers(
            name=name,
            labelled=totals[name, "labelled"],
            skipped=totals[name, "skipped"],
            seconds=seconds.get(name),
            labels=dict(given[name]),
        )
        for name in names
    )


def _seconds(
    access: ProjectAccess, connection: Connection, only_of: str | None
) -> dict[str, SecondsPerLabel]:
    query = (
        select(AnnotationRow.annotator, AnnotationRow.seconds)
        .where(
            AnnotationRow.project_id == access.project_id,
            AnnotationRow.kind == "label",
            AnnotationRow.seconds.is_not(None),
            *([] if only_of is None else [AnnotationRow.annotator == only_of]),
        )
        .order_by(AnnotationRow.created_at.desc())
        .limit(_TIMED_LABELS)
    )
    times: dict[str, list[float]] = defaultdict(list)
    for name, taken in connection.execute(query):
        times[name].append(float(taken or 0))
    found = {}
    for name, some in times.items():
        lower, median, upper = quantiles(some, n=4, method="inclusive") if some[1:] else some * 3
        found[name] = SecondsPerLabel(labels=len(some), lower=lower, median=median, upper=upper)
    return found


def _hours(
    access: ProjectAccess, connection: Connection, only_of: str | None
) -> tuple[HourOfWork, ...]:
    hour: Any
    if connection.dialect.name == "sqlite":
        hour = func.strftime("%Y-%m-%d %H", AnnotationRow.created_at)
    else:
        in_utc = func.timezone("UTC", AnnotationRow.created_at)
        hour = func.to_char(in_utc, "YYYY-MM-DD HH24")
    since = database_time(connection) - timedelta(days=_DAYS_OF_PACE)
    query = (
        select(hour.label("hour"), AnnotationRow.annotator, func.count())
        .where(
            AnnotationRow.project_id == access.project_id,
            AnnotationRow.kind == "label",
            AnnotationRow.created_at >= since,
            ~undone(),
            *([] if only_of is None else [AnnotationRow.annotator == only_of]),
        )
        .group_by("hour", AnnotationRow.annotator)
        .order_by("hour", AnnotationRow.annotator)
    )
    return tuple(
        HourOfWork(
            begins=datetime.strptime(written, "%Y-%m-%d %H").replace(tzinfo=UTC),
            name=name,
            labels=number,
        )
        for written, name, number in connection.execute(query)
    )
