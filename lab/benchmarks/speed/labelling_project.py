"""A big project to measure the labelling page on, written past the store's own functions.

Texts are of a few words each, one in ten nearly the same as the one before it. What annotators did
is written as the store would have left it: log, places, and what holds of the texts.
"""

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, insert, select, update

from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings, TextOrder
from malmoi.labels.projects import ProjectStore, read_project
from malmoi.labels.tables import (
    AnnotationRow,
    PlaceRow,
    ProjectRow,
    ScoreVersionRow,
    TextRow,
    TextScoreRow,
)
from malmoi.labels.text_state import first_of_its_kind

T = TypeVar("T")
LABELS = ("긍정", "부정", "중립")
MODEL = "benchmark"
_ROWS = 20_000
_ALIKE = 10
_WORDS = (
    *("배송이 빨라요", "색이 사진과 달라요", "포장이 꼼꼼해서 좋았어요", "다음에 또 살게요"),
    *("가격이 조금 비싸요", "소리가 커서 밤에는 못 쓰겠어요", "그냥 무난합니다", "향이 너무 세요"),
)


def make_project(
    store: ProjectStore, name: str, texts: int, settings: ProjectSettings | None = None
) -> ProjectAccess:
    """A project of one local person with this many texts, numbered from the first id."""
    new = NewProject(
        name=name,
        labels=[ProjectLabel(name=label) for label in LABELS],
        settings=settings or ProjectSettings(text_order="scores"),
    )
    access = store.create(Person(name="local", is_local=True), new)
    draw = random.Random(0)
    for numbers in _batched(range(texts), _ROWS):
        with access.writing("admin") as connection:
            connection.execute(insert(TextRow), list(_rows(access.project_id, numbers, draw)))
    with access.writing("admin") as connection:
        first = select(TextRow.id).where(TextRow.project_id == access.project_id)
        start = connection.scalar(first.order_by(TextRow.id).limit(1)) or 0
        mine = TextRow.project_id == access.project_id
        place = (TextRow.id - start) % _ALIKE
        for number in (0, 1):
            of_pair = update(TextRow).where(mine, place == number)
            connection.execute(of_pair.values(alike=TextRow.id - number))
    return access


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _rows(project_id: int, numbers: Sequence[int], draw: random.Random) -> Iterator[dict[str, Any]]:
    for number in numbers:
        words = " ".join(draw.choices(_WORDS, k=draw.randint(3, 25)))
        text = f"{words} {number}"
        yield {
            "project_id": project_id,
            "text": text,
            "text_sha256": hashlib.sha256(f"{project_id} {text}".encode()).hexdigest(),
            "lottery": draw.random(),
            "votes": 0,
            "is_open": True,
            "disagrees": False,
        }


def score_all(access: ProjectAccess) -> None:
    """An order of all texts, with a suggestion for each, as a model leaves it."""
    draw = random.Random(1)
    with access.writing("admin") as connection:
        made = connection.execute(
            insert(ScoreVersionRow).values(
                project_id=access.project_id, model=MODEL, created_at=database_time(connection)
            )
        )
        (version,) = made.inserted_primary_key or (0,)
        mine = select(TextRow.id).where(TextRow.project_id == access.project_id)
        for some in _batched(connection.scalars(mine).all(), _ROWS):
            rows = [
                {"version": version, "text_id": one, "priority": draw.random()}
                | {"label": draw.choice(LABELS), "score": 0.7}
                for one in some
            ]
            connection.execute(insert(TextScoreRow), rows)
        project = update(ProjectRow).where(ProjectRow.id == access.project_id)
        connection.execute(project.values(scores_version=version))


def label_many(access: ProjectAccess, texts: Sequence[int], drawn: str) -> None:
    """Labels of one annotator for these texts, in this order."""
    project = read_project(access)
    labels = [label.id for label in project.labels]
    closed = project.settings.annotators_per_text == 1
    with access.reading() as connection:
        first = _next_annotation(connection)
    for numbered in _batched(enumerate(texts, first), _ROWS):
        with access.writing("admin") as connection:
            now = database_time(connection)
            same = {"project_id": access.project_id, "annotator": access.person.name}
            same |= {"drawn": drawn}
            acts = [
                same
                | {"id": row, "text_id": text, "kind": "label", "guideline_version": 1}
                | {"choice": f"[{labels[row % len(labels)]}]", "seconds": 2.0}
                | {"request_id": f"benchmark-{access.project_id}-{row}", "created_at": now}
                for row, text in numbered
            ]
            connection.execute(insert(AnnotationRow), acts)
            places = [
                same
                | {"text_id": act["text_id"], "state": "labelled", "annotation_id": act["id"]}
                | {"choice": act["choice"]}
                for act in acts
            ]
            connection.execute(insert(PlaceRow), places)
            for some in _batched([text for _, text in numbered], 1000):
                texts_of = update(TextRow).where(TextRow.id.in_(some))
                connection.execute(texts_of.values(votes=TextRow.votes + 1, is_open=not closed))
                if closed:
                    _leave_order(connection, access.project_id, some)


def _next_annotation(connection: Connection) -> int:
    last = select(AnnotationRow.id).order_by(AnnotationRow.id.desc()).limit(1)
    return (connection.scalar(last) or 0) + 1


def _leave_order(connection: Connection, project_id: int, texts: Sequence[int]) -> None:
    version = select(ProjectRow.scores_version).where(ProjectRow.id == project_id)
    connection.execute(
        update(TextScoreRow)
        .where(TextScoreRow.version == version.scalar_subquery(), TextScoreRow.text_id.in_(texts))
        .values(priority=None)
    )


def first_texts(access: ProjectAccess, order: TextOrder, count: int) -> list[int]:
    """The first open texts of an order that no annotator has to do with."""
    touched = select(PlaceRow.id).where(PlaceRow.text_id == TextRow.id).exists()
    query = select(TextRow.id).where(
        TextRow.project_id == access.project_id, TextRow.is_open, ~touched, first_of_its_kind()
    )
    if order == "scores":
        version = select(ProjectRow.scores_version).where(ProjectRow.id == access.project_id)
        query = (
            query.join(TextScoreRow, TextScoreRow.text_id == TextRow.id)
            .where(TextScoreRow.version == version.scalar_subquery())
            .order_by(TextScoreRow.priority.desc(), TextScoreRow.text_id.desc())
        )
    else:
        query = query.order_by(TextRow.id if order == "plain" else TextRow.lottery)
    with access.writing("admin") as connection:
        # What was given back is no work.
        mine = PlaceRow.project_id == access.project_id
        connection.execute(delete(PlaceRow).where(mine, PlaceRow.state != "labelled"))
        return list(connection.scalars(query.limit(count)))
