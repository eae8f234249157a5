"""What a model said against what people gave, over all texts and over a random sample of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Select, and_, func, literal, select
from sqlalchemy.sql.elements import ColumnElement

from malmoi.labels.access import ProjectAccess
from malmoi.labels.label_book import LabelBook
from malmoi.labels.review import ReviewedText, reviewed_texts
from malmoi.labels.tables import (
    AdjudicationRow,
    AnnotationRow,
    PlaceRow,
    TextRow,
    TextScoreRow,
)

# What was on the annotator's screen, or what the model that wrote the newest scores says.
Said = Literal["shown", "scores"]
SAID: tuple[Said, ...] = ("shown", "scores")
# By what the model said and what people gave.
Confusions = Mapping[tuple[str, str], int]


@dataclass(frozen=True, kw_only=True)
class ModelComparison:
    """Labels that hold now, by what the model said of their texts; a reviewer's decision counts in
    place of the vote.

    Attributes:
        said: which of the model's sayings.
        everywhere: over all of them.
        in_sample: over texts of the random sample alone (`malmoi.labels.scores.random_sample`),
            which were not chosen by what the model finds hard.
    """

    said: Said
    everywhere: Confusions
    in_sample: Confusions


def agreed_share(confusions: Confusions) -> float | None:
    """Of the labels, the share for which the model had said the same; None without any.

    A set of labels of a `multi` project is met by any one of its labels.
    """
    total = sum(confusions.values())
    if not total:
        return None
    met = sum(number for (said, given), number in confusions.items() if said in given.split(", "))
    return met / total


def model_comparison(access: ProjectAccess, said: Said) -> ModelComparison:
    """The model against people.

    Raises:
        AccessError: the person is no reviewer.
    """
    with access.reading("reviewer") as connection:
        book = LabelBook(access, connection)
        model, query = _labels(access, connection, said)
        given = func.coalesce(AdjudicationRow.choice, PlaceRow.choice)
        sample = _in_sample(access, connection)
        counted = query.with_only_columns(model, given, sample, func.count())
        everywhere: Counter[tuple[str, str]] = Counter()
        in_sample: Counter[tuple[str, str]] = Counter()
        for label, choice, is_in_sample, number in connection.execute(
            counted.group_by(model, given, sample)
        ):
            pair = (label, ", ".join(book.labels(choice)))
            everywhere[pair] += number
            if is_in_sample:
                in_sample[pair] += number
    return ModelComparison(said=said, everywhere=everywhere, in_sample=in_sample)


def texts_behind(
    access: ProjectAccess,
    said: Said,
    pair: tuple[str, str],
    *,
    in_sample: bool,
    limit: int = 50,
) -> list[ReviewedText]:
    """Texts that a number of `model_comparison` was counted from, in the order of import.

    Raises:
        AccessError: the person is no reviewer.
    """
    with access.reading("reviewer") as connection:
        book = LabelBook(access, connection)
        model, query = _labels(access, connection, said)
        given = func.coalesce(AdjudicationRow.choice, PlaceRow.choice)
        # Labels are counted by their names; a choice is found by what the log has of it.
        choices = connection.scalars(query.with_only_columns(given).distinct()).all()
        same = [one for one in choices if ", ".join(book.labels(one)) == pair[1]]
        query = query.with_only_columns(TextRow.id).where(model == pair[0], given.in_(same))
        if in_sample:
            query = query.where(_in_sample(access, connection))
        ids = connection.scalars(query.distinct().order_by(TextRow.id).limit(limit)).all()
        return reviewed_texts(access, connection, list(ids))


def _labels(access: ProjectAccess, connection: Connection, said: Said) -> tuple[Any, Select[Any]]:
    """What the model said, and the labels that hold of which it said something."""
    query = (
        select(PlaceRow.id)
        .join(TextRow, TextRow.id == PlaceRow.text_id)
        .join(AdjudicationRow, AdjudicationRow.id == TextRow.adjudication_id, isouter=True)
        .where(PlaceRow.project_id == access.project_id, PlaceRow.state == "labelled")
    )
    if said == "shown":
        held = and_(
            AnnotationRow.id == PlaceRow.annotation_id, AnnotationRow.suggested_label.is_not(None)
        )
        return AnnotationRow.suggested_label, query.join(AnnotationRow, held)
    version = access.row(connection)["scores_version"] or 0
    scored = and_(
        TextScoreRow.version == version,
        TextScoreRow.text_id == PlaceRow.text_id,
        TextScoreRow.label.is_not(None),
    )
    return TextScoreRow.label, query.join(TextScoreRow, scored)


def _in_sample(access: ProjectAccess, connection: Connection) -> ColumnElement[bool]:
    """Below the first lottery number that waits for labels; see `malmoi.labels.scores`."""
    first = select(func.min(TextRow.lottery)).where(
        TextRow.project_id == access.project_id, TextRow.is_open
    )
    end = connection.scalar(first)
    return TextRow.lottery < (2.0 if end is None else literal(end))
