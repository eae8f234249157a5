"""Two labels made one: all that was said with the one is said with the other from then on."""

import json
from dataclasses import dataclass, replace

from sqlalchemy import Connection, and_, case, distinct, or_, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import in_parts
from malmoi.labels.label_names import normal_label
from malmoi.labels.project import ProjectLabel, complete_labels
from malmoi.labels.projects import read_labels
from malmoi.labels.tables import (
    AdjudicationRow,
    AnnotationRow,
    PlaceRow,
    ProjectLabelRow,
    TextRow,
    TextScoreRow,
)
from malmoi.labels.text_state import recount

_LOGS = (AnnotationRow, PlaceRow, AdjudicationRow)


@dataclass(frozen=True, kw_only=True)
class LabelMerge:
    """What becomes of a merge.

    Attributes:
        texts: that have the first label by a vote or a decision that holds.
        agreeing: of those on which people differ now, that no longer will.
    """

    texts: int
    agreeing: int


def merge_labels(
    access: ProjectAccess, name: str, into: str, *, only_count: bool = False
) -> LabelMerge:
    """Let votes, decisions, suggestions and their history with one label be of another.

    The one that is empty then is retired, so that its id names nothing else. Of two votes of one
    person on a text the later one holds, as ever.

    Args:
        name: of the label that goes; it may be retired already.
        into: of the label that stays and is offered.
        only_count: change nothing.

    Raises:
        InputError: the person is no admin, the labels are not two of the project, or too few would
            be left.
    """
    manager = access.reading("admin") if only_count else access.writing("admin")
    with manager as connection:
        project = access.row(connection)
        labels = read_labels(connection, access.project_id)
        gone, stays = _two(labels, name, into)
        left = [replace(one, retired=True, key=None) if one is gone else one for one in labels]
        complete_labels(left, project["kind"])
        moved = {old: _moved(old, gone, stays) for old in _choices(connection, access, gone)}
        texts = _texts_with(connection, access, list(moved))
        before = _disagreeing(connection, texts)
        agreeing = len(before - _disagreeing(connection, texts, moved))
        counted = LabelMerge(texts=len(texts), agreeing=agreeing)
        if only_count:
            return counted
        for old, new in moved.items():
            for log in _LOGS:
                mine = (log.project_id == access.project_id, log.choice == old)
                connection.execute(update(log).where(*mine).values(choice=new))
        recount(connection, project, texts)
        _move_suggestions(connection, access, project["scores_version"], gone.name, stays.name)
        connection.execute(
            update(ProjectLabelRow)
            .where(ProjectLabelRow.id == gone.id)
            .values(retired=True, key=None)
        )
        details = {"from": gone.name, "into": stays.name, "texts": counted.texts}
        access.note(connection, "merge labels", details)
        return counted


def _two(
    labels: tuple[ProjectLabel, ...], name: str, into: str
) -> tuple[ProjectLabel, ProjectLabel]:
    known = {label.name: label for label in labels}
    gone, stays = known.get(normal_label(name)), known.get(normal_label(into))
    if gone is None or stays is None or gone is stays or stays.retired:
        raise InputError(
            "expected a label and another one that is offered, of {names}, found {name!r} and "
            "{into!r}",
            names=", ".join(known),
            name=name,
            into=into,
        )
    return gone, stays


def _choices(connection: Connection, access: ProjectAccess, gone: ProjectLabel) -> list[str]:
    """All choices in the log that have the label."""
    found: set[str] = set()
    for log in _LOGS:
        query = select(distinct(log.choice)).where(
            log.project_id == access.project_id, log.choice.is_not(None)
        )
        said = connection.scalars(query)
        found |= {one for one in said if one is not None and gone.id in json.loads(one)}
    return sorted(found)


def _moved(choice: str, gone: ProjectLabel, stays: ProjectLabel) -> str:
    return json.dumps(sorted({stays.id if one == gone.id else one for one in json.loads(choice)}))


def _texts_with(connection: Connection, access: ProjectAccess, choices: list[str]) -> list[int]:
    votes = select(PlaceRow.text_id).where(
        PlaceRow.project_id == access.project_id, PlaceRow.choice.in_(choices)
    )
    decisions = (
        select(TextRow.id)
        .join(AdjudicationRow, AdjudicationRow.id == TextRow.adjudication_id)
        .where(TextRow.project_id == access.project_id, AdjudicationRow.choice.in_(choices))
    )
    return sorted({*connection.scalars(votes), *connection.scalars(decisions)})


def _disagreeing(
    connection: Connection, texts: list[int], moved: dict[str, str] | None = None
) -> set[int]:
    """Texts on which votes differ, as they are or with other choices in their place."""
    said: dict[int, set[str]] = {}
    for some in in_parts(texts):
        query = select(PlaceRow.text_id, PlaceRow.choice).where(
            PlaceRow.text_id.in_(some), PlaceRow.state == "labelled"
        )
        for text_id, choice in connection.execute(query):
            if choice is not None:
                said.setdefault(text_id, set()).add((moved or {}).get(choice, choice))
    return {text_id for text_id, choices in said.items() if len(choices) > 1}


def _move_suggestions(
    connection: Connection, access: ProjectAccess, version: int | None, gone: str, stays: str
) -> None:
    """What was on screen at a label, and what the order that holds would say."""
    seen = (
        AnnotationRow.project_id == access.project_id,
        AnnotationRow.suggested_label == gone,
    )
    connection.execute(update(AnnotationRow).where(*seen).values(suggested_label=stays))
    names = (gone, stays)
    first, second = TextScoreRow.label, TextScoreRow.second_label
    both = and_(first.in_(names), second.in_(names))
    together = TextScoreRow.score + TextScoreRow.second_score
    connection.execute(
        update(TextScoreRow)
        .where(TextScoreRow.version == version, or_(first == gone, second == gone))
        .values(
            label=case((first == gone, stays), else_=first),
            score=case((both, together), else_=TextScoreRow.score),
            second_label=case((both, None), (second == gone, stays), else_=second),
            second_score=case((both, None), else_=TextScoreRow.second_score),
        )
    )
