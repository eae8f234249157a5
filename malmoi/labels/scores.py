"""The order that a model gives to texts, and the random sample that it is judged on.

A model is judged on texts that were drawn by nothing but chance. Every text has a lottery number
from its import on, and a share of what is handed out follows these numbers. So the texts below the
first number that still waits for labels are a random sample of all texts, whichever others were
chosen for being hard.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.project import Project
from malmoi.labels.stored_text import checked
from malmoi.labels.tables import (
    PlaceRow,
    ProjectLabelRow,
    ProjectRow,
    ScoreVersionRow,
    TextRow,
    TextScoreRow,
)
from malmoi.labels.text_state import first_of_its_kind
from malmoi.labels.webhooks import announce
from malmoi.messages import Phrase

_ROWS = 5_000


class OutdatedOrderError(InputError):
    """An order of texts that was overtaken while its model computed."""


@dataclass(frozen=True, kw_only=True)
class TextScore:
    """How much a label of a text would help, and what the model would say.

    Attributes:
        text_id: names it.
        priority: the highest come first; finite. None: the text needs no label.
        label: what the model would say, or None.
        score: its probability for it, from 0 to 1.
        second_label: what it would say next, or None.
        second_score: its probability for that, from 0 to 1.
        doubt: of a labelled text, one less the probability of its label by a model that had not
            learnt from it, from 0 to 1; None of others.

    Raises:
        InputError: a number is out of its bounds.
    """

    text_id: int
    priority: float | None
    label: str | None = None
    score: float | None = None
    second_label: str | None = None
    second_score: float | None = None
    doubt: float | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not math.isfinite(self.priority):
            raise InputError(
                "text {text_id}: expected a finite priority, found {priority}",
                text_id=self.text_id,
                priority=self.priority,
            )
        for name in ("score", "second_score", "doubt"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise InputError(
                    "text {text_id}: expected a {name} from 0 to 1, found {value}",
                    text_id=self.text_id,
                    name=name,
                    value=value,
                )


@dataclass(frozen=True, kw_only=True)
class ModelQuality:
    """How good the model was that had learnt from the labels when an order of texts was written.

    Attributes:
        labels: labelled texts that it had learnt from.
        cross_validated_f1: macro F1 out of fold over all of them, 0 to 1; None: not measured.
        sample_f1: the same over those that are a random sample of the project.
        sample_texts: how many these are.
        chosen_f1: macro F1 of the model that is chosen for the project, over those of these texts
            that it had not learnt from; None: none is chosen, or these were too few.
        kinds: different labels that it knew; None: nobody has written it down.
        drawn_texts: labelled texts that were drawn from all others by nothing but chance.
        drawn_right: of these, the ones that it gave the label of people out of fold.

    Raises:
        InputError: a number is out of its bounds.
    """

    labels: int
    cross_validated_f1: float | None = None
    sample_f1: float | None = None
    sample_texts: int = 0
    chosen_f1: float | None = None
    kinds: int | None = None
    drawn_texts: int = 0
    drawn_right: int = 0

    def __post_init__(self) -> None:
        if min(self.labels, self.sample_texts) < 0:
            raise InputError(
                "expected numbers of texts from 0 on, found {labels} and {sample_texts}",
                labels=self.labels,
                sample_texts=self.sample_texts,
            )
        for name in ("cross_validated_f1", "sample_f1", "chosen_f1"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise InputError(
                    "expected a {name} from 0 to 1, found {value}", name=name, value=value
                )


@dataclass(frozen=True, kw_only=True)
class ScoreVersion:
    """A model that wrote an order of texts: a point of the learning curve."""

    version: int
    model: str
    created_at: datetime
    quality: ModelQuality


def write_scores(
    access: ProjectAccess,
    model: str,
    scores: Iterable[TextScore],
    quality: ModelQuality | None = None,
    *,
    project: Project | None = None,
) -> int:
    """Replace the order of texts; the one before holds until all of this one is written.

    Texts without a score come after those with one, in the order of import.

    Args:
        access: of an admin. Learning runs as a local person of the server's own, on behalf of the
            project: whose label was the twentieth, an annotator's most often, decides nothing.
        scores: one for each text, of any number of texts.
        quality: how good it is, for the learning curve; None: it is no point of it.
        project: as it was when the model began, where its labels or its chosen model may have
            changed since.

    Returns:
        The version.

    Raises:
        OutdatedOrderError: a newer order was written meanwhile, or the project has changed; the
            order that held stays.
        InputError: a text is twice or not of the project; the order that held stays.
    """
    checked(model, Phrase("the name of a model"))
    with access.writing("admin") as connection:
        measured = {} if quality is None else asdict(quality)
        made = connection.execute(
            insert(ScoreVersionRow).values(
                project_id=access.project_id,
                model=model,
                created_at=database_time(connection),
                **measured,
            )
        )
        (version,) = made.inserted_primary_key or (0,)
    try:
        rest = iter(scores)
        while batch := list(islice(rest, _ROWS)):
            _write_batch(access, version, batch)
        with access.writing("admin") as connection:
            if project is not None:
                _refuse_changed(access, connection, project)
            _let_hold(access, connection, version)
            if quality is not None:
                announce(access, connection, "model.learnt", {version: None})
    except BaseException:
        _drop(access, ScoreVersionRow.id == version)
        with access.writing("admin") as connection:
            connection.execute(delete(ScoreVersionRow).where(ScoreVersionRow.id == version))
        raise
    _drop(access, ScoreVersionRow.id < version)
    return version


def _refuse_changed(access: ProjectAccess, connection: Connection, before: Project) -> None:
    """Refuse what was computed of other labels, or with a model that is no longer chosen."""
    names = {label.id: label.name for label in before.labels if not label.retired}
    labels = select(ProjectLabelRow.id, ProjectLabelRow.name).where(
        ProjectLabelRow.project_id == access.project_id, ProjectLabelRow.retired.is_(False)
    )
    same_labels = dict(connection.execute(labels).tuples().all()) == names
    if not same_labels or access.row(connection)["model"] != before.settings.model:
        raise OutdatedOrderError(
            "expected the labels and the model that the project had when its texts were scored, "
            "found others; score the texts again"
        )


def _let_hold(access: ProjectAccess, connection: Connection, version: int) -> None:
    """Let texts be handed out in this order."""
    held = access.row(connection)["scores_version"]
    if held is not None and held > version:
        # Whoever wrote it has dropped the rows of this one.
        raise OutdatedOrderError(
            "expected to write the newest order of texts, found a newer one that was written "
            "meanwhile; score the texts again"
        )
    # By the texts of this order: those of the project may be a million.
    closed = (
        select(TextRow.id)
        .join(TextScoreRow, TextScoreRow.text_id == TextRow.id)
        .where(TextScoreRow.version == version, TextRow.is_open.is_(False))
    )
    connection.execute(
        update(TextScoreRow)
        .where(TextScoreRow.version == version, TextScoreRow.text_id.in_(closed))
        .values(priority=None)
    )
    connection.execute(
        update(ProjectRow).where(ProjectRow.id == access.project_id).values(scores_version=version)
    )


def score_versions(access: ProjectAccess, newest: int | None = None) -> list[ScoreVersion]:
    """The learning curve: one point for each model that was measured, the oldest first.

    Args:
        newest: only so many, the last ones.

    Raises:
        AccessError: the person is no member.
    """
    query = (
        select(ScoreVersionRow.__table__)
        .where(ScoreVersionRow.project_id == access.project_id, ScoreVersionRow.labels.is_not(None))
        .order_by(ScoreVersionRow.id.desc())
        .limit(newest)
    )
    with access.reading() as connection:
        return [
            ScoreVersion(
                version=row["id"],
                model=row["model"],
                created_at=row["created_at"],
                quality=ModelQuality(
                    labels=row["labels"],
                    cross_validated_f1=row["cross_validated_f1"],
                    sample_f1=row["sample_f1"],
                    sample_texts=row["sample_texts"] or 0,
                    chosen_f1=row["chosen_f1"],
                    kinds=row["kinds"],
                    drawn_texts=row["drawn_texts"] or 0,
                    drawn_right=row["drawn_right"] or 0,
                ),
            )
            for row in reversed(connection.execute(query).mappings().all())
        ]


def _write_batch(access: ProjectAccess, version: int, batch: Sequence[TextScore]) -> None:
    ids = {score.text_id for score in batch}
    known = select(func.count()).where(TextRow.project_id == access.project_id, TextRow.id.in_(ids))
    for score in batch:
        for label in filter(None, (score.label, score.second_label)):
            checked(label, Phrase("a label"))
    rows = [{"version": version, **asdict(score)} for score in batch]
    twice = InputError("expected one score for each text, found a text twice; leave one out")
    if len(ids) < len(batch):
        raise twice
    with access.writing("admin") as connection:
        if connection.scalar(known) != len(ids):
            raise InputError(
                "expected scores for texts of project {project_id}, found others among them",
                project_id=access.project_id,
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


def scores_version(access: ProjectAccess) -> int | None:
    """Which order of a model holds; None before the first.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        version: int | None = access.row(connection)["scores_version"]
    return version


def scoring_model(access: ProjectAccess) -> str | None:
    """The model whose order holds and whose suggestions are shown; None before the first.

    Raises:
        AccessError: the person is no member.
    """
    query = select(ScoreVersionRow.model).join(
        ProjectRow, ProjectRow.scores_version == ScoreVersionRow.id
    )
    with access.reading() as connection:
        model: str | None = connection.scalar(query.where(ProjectRow.id == access.project_id))
    return model


def drawn_by_chance(access: ProjectAccess) -> set[int]:
    """The labelled texts that chance alone had chosen among those without labels.

    What is true of them is true of the texts that nobody has labelled, on the safe side: the ones
    that were chosen for being hard are in neither.

    Raises:
        AccessError: the person is no reviewer.
    """
    drawn = select(PlaceRow.text_id).where(
        PlaceRow.project_id == access.project_id,
        PlaceRow.state == "labelled",
        PlaceRow.drawn == "random",
    )
    with access.reading("reviewer") as connection:
        return set(connection.scalars(drawn))


def random_sample(access: ProjectAccess) -> list[int]:
    """The texts with all their labels that are a random sample of the project, by lottery number.

    Of texts that are nearly the same the first stands for all, as it is handed out. What somebody
    skipped does not end the sample, for it may never get its labels; it is no part of it.

    Raises:
        AccessError: the person is no reviewer.
    """
    mine = (TextRow.project_id == access.project_id, first_of_its_kind())
    skipped = select(PlaceRow.id).where(PlaceRow.text_id == TextRow.id, PlaceRow.state == "skipped")
    # Not min(), which would look at all that are open.
    first_open = (
        select(TextRow.lottery)
        .where(*mine, TextRow.is_open, ~skipped.exists())
        .order_by(TextRow.lottery)
        .limit(1)
    )
    query = select(TextRow.id).where(*mine, TextRow.is_open.is_(False)).order_by(TextRow.lottery)
    with access.reading("reviewer") as connection:
        end = connection.scalar(first_open)
        if end is not None:
            query = query.where(TextRow.lottery < end)
        return list(connection.scalars(query))
