"""The order that a model gives to texts, and the random sample that it is judged on.

A model is judged on texts that were drawn by nothing but chance. Every text has a lottery number
from its import on, and a share of what is handed out follows these numbers. So the texts below the
first number that still waits for labels are a random sample of all texts, whichever others were
chosen for being hard.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.project_models import ProjectRow, ScoreVersionRow, TextRow, TextScoreRow
from malmoi.labels.stored_text import checked
from malmoi.labels.text_state import first_of_its_kind

_ROWS = 5_000


@dataclass(frozen=True, kw_only=True)
class TextScore:
    """How much a label of a text would help: its uncertainty, say, with diversity.

    Attributes:
        text_id: names it.
        priority: the highest come first; finite.
        label: what the model would say, or None.
        score: its probability for it, from 0 to 1.
    """

    text_id: int
    priority: float
    label: str | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.priority):
            raise InputError(
                f"text {self.text_id}: expected a finite priority, found {self.priority}"
            )
        if self.score is not None and not 0 <= self.score <= 1:
            raise InputError(
                f"text {self.text_id}: expected a score from 0 to 1, found {self.score}"
            )


def write_scores(access: ProjectAccess, model: str, scores: Iterable[TextScore]) -> int:
    """Replace the order of texts; the one before holds until all of this one is written.

    Texts without a score come after those with one, in the order of import.

    Args:
        access: of an admin; a model that runs beside the app acts as a local person.
        model: which one this is.
        scores: one for each text, of any number of texts.

    Returns:
        The version.

    Raises:
        InputError: a text is twice or not of the project, or a newer order was written meanwhile;
            the order that held stays.
    """
    checked(model, "the name of a model")
    with access.writing("admin") as connection:
        made = connection.execute(
            insert(ScoreVersionRow).values(
                project_id=access.project_id, model=model, created_at=database_time(connection)
            )
        )
        (version,) = made.inserted_primary_key or (0,)
    try:
        rest = iter(scores)
        while batch := list(islice(rest, _ROWS)):
            _write_batch(access, version, batch)
        with access.writing("admin") as connection:
            held = access.row(connection)["scores_version"]
            if held is not None and held > version:
                # Whoever wrote it has dropped the rows of this one.
                raise InputError(
                    "expected to write the newest order of texts, found a newer one that was "
                    "written meanwhile; score the texts again"
                )
            closed = select(TextRow.id).where(
                TextRow.project_id == access.project_id, TextRow.is_open.is_(False)
            )
            connection.execute(
                update(TextScoreRow)
                .where(TextScoreRow.version == version, TextScoreRow.text_id.in_(closed))
                .values(priority=None)
            )
            connection.execute(
                update(ProjectRow)
                .where(ProjectRow.id == access.project_id)
                .values(scores_version=version)
            )
    except BaseException:
        _drop(access, ScoreVersionRow.id == version)
        raise
    _drop(access, ScoreVersionRow.id < version)
    return version


def _write_batch(access: ProjectAccess, version: int, batch: Sequence[TextScore]) -> None:
    ids = {score.text_id for score in batch}
    known = select(func.count()).where(TextRow.project_id == access.project_id, TextRow.id.in_(ids))
    rows = [
        {
            "version": version,
            "text_id": score.text_id,
            "priority": score.priority,
            "label": None if score.label is None else checked(score.label, "a label"),
            "score": score.score,
        }
        for score in batch
    ]
    twice = InputError("expected one score for each text, found a text twice; leave one out")
    if len(ids) < len(batch):
        raise twice
    with access.writing("admin") as connection:
        if connection.scalar(known) != len(ids):
            raise InputError(
                f"expected scores for texts of project {access.project_id}, found others among them"
            )
        try:
            connection.execute(insert(TextScoreRow), rows)
        except IntegrityError as error:
            raise twice from error


def _drop(access: ProjectAccess, which: ColumnElement[bool]) -> None:
    """Remove the rows of orders of this project that do not hold."""
    with access.writing("admin") as connection:
        gone = select(ScoreVersionRow.id).where(
            ScoreVersionRow.project_id == access.project_id,
            which,
        )
        connection.execute(delete(TextScoreRow).where(TextScoreRow.version.in_(gone)))


def iter_open_texts(access: ProjectAccess) -> Iterator[tuple[int, str]]:
    """Id and words of the texts that need labels, for a model to score; memory is that of a batch.

    Raises:
        AccessError: the person is no admin.
    """
    last = 0
    while True:
        query = (
            select(TextRow.id, TextRow.text)
            .where(TextRow.project_id == access.project_id, TextRow.is_open, TextRow.id > last)
            .order_by(TextRow.id)
            .limit(_ROWS)
        )
        with access.reading("admin") as connection:
            rows = connection.execute(query).tuples().all()
        if not rows:
            return
        yield from rows
        last = rows[-1][0]


def random_sample(access: ProjectAccess) -> list[int]:
    """The texts with all their labels that are a random sample of the project, by lottery number.

    Of texts that are nearly the same only the first counts, as only that one is handed out.

    Raises:
        AccessError: the person is no reviewer.
    """
    mine = and_(TextRow.project_id == access.project_id, first_of_its_kind())
    first_open = select(func.min(TextRow.lottery)).where(mine, TextRow.is_open)
    with access.reading("reviewer") as connection:
        end = connection.scalar(first_open)
        query = select(TextRow.id).where(mine).order_by(TextRow.lottery)
        if end is not None:
            query = query.where(TextRow.lottery < end)
        return list(connection.scalars(query))
