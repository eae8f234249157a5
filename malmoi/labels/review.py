"""Review (검수): texts on which annotators differ, and what a reviewer decides about them.

A decision is a row of its own log beside the annotations, which stay as they are: what an annotator
has to do and what a reviewer has decided are two states.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, func, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.annotating import read_remarks
from malmoi.labels.choices import LabelBook
from malmoi.labels.project_models import AdjudicationRow, PlaceRow, TextRow
from malmoi.labels.projects import newest_guideline
from malmoi.labels.store import Saved
from malmoi.labels.stored_text import checked_note, checked_request
from malmoi.labels.text_state import require_text

ReviewState = Literal["disagreeing", "adjudicated"]


@dataclass(frozen=True, kw_only=True)
class Vote:
    """What one annotator says about a text now.

    Attributes:
        labels: empty for a skip, or for a text that has none of the labels (`multi`).
        skipped: whether it is a skip.
    """

    annotator: str
    labels: tuple[str, ...]
    skipped: bool
    flagged: bool
    note: str


@dataclass(frozen=True, kw_only=True)
class Remark:
    """The flag and the note of one annotator on a text, who need not have labelled it."""

    annotator: str
    flagged: bool
    note: str


@dataclass(frozen=True, kw_only=True)
class ReviewedText:
    """A text with all votes.

    Attributes:
        remarks: of all annotators that made one, by name; a vote repeats its own.
        adjudicated: the reviewer's labels; None where nobody has decided.
        reviewer: who decided.
    """

    text_id: int
    text: str
    votes: tuple[Vote, ...]
    adjudicated: tuple[str, ...] | None
    reviewer: str | None
    remarks: tuple[Remark, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Each as "annotator: note"."""
        return [f"{one.annotator}: {one.note}" for one in self.remarks if one.note]


@dataclass(frozen=True, kw_only=True)
class ProjectProgress:
    """How far a project is.

    Attributes:
        texts: all.
        finished: those with all their labels.
        disagreeing: those whose annotators differ, decided or not.
        to_review: those of them on which no reviewer has decided.
        mine: texts that the person who asks has labelled.
        my_skips: texts that they skipped.
    """

    texts: int
    finished: int
    disagreeing: int
    to_review: int
    mine: int
    my_skips: int


def texts_to_review(
    access: ProjectAccess,
    state: ReviewState = "disagreeing",
    *,
    limit: int = 50,
    after: int = 0,
) -> list[ReviewedText]:
    """Texts whose annotators differ and no reviewer has decided, or those that one has.

    Args:
        access: of a reviewer.
        state: which of the two.
        limit: how many at most.
        after: the id of the last text of the page before.

    Raises:
        AccessError: the person is no reviewer.
    """
    query = select(TextRow.id).where(TextRow.project_id == access.project_id, TextRow.id > after)
    if state == "disagreeing":
        query = query.where(TextRow.disagrees, TextRow.adjudication_id.is_(None))
    else:
        query = query.where(TextRow.adjudication_id.is_not(None))
    with access.reading("reviewer") as connection:
        ids = list(connection.scalars(query.order_by(TextRow.id).limit(limit)))
        return reviewed_texts(access, connection, ids)


def texts_with_votes(access: ProjectAccess, text_ids: Sequence[int]) -> list[ReviewedText]:
    """Some texts with their votes, such as those behind a number of `agreement`.

    Args:
        access: of a reviewer.
        text_ids: ids of other projects are passed over.

    Raises:
        AccessError: the person is no reviewer.
    """
    query = select(TextRow.id).where(
        TextRow.project_id == access.project_id, TextRow.id.in_(text_ids)
    )
    with access.reading("reviewer") as connection:
        return reviewed_texts(access, connection, list(connection.scalars(query)))


def reviewed_texts(
    access: ProjectAccess, connection: Connection, text_ids: Sequence[int]
) -> list[ReviewedText]:
    """Texts of the project with their votes, for callers that have asked for the role."""
    book = LabelBook(connection, access.project_id, access.row(connection)["kind"])
    remarks = read_remarks(connection, text_ids)
    votes: dict[int, list[Vote]] = {one: [] for one in text_ids}
    cast = (
        select(PlaceRow.text_id, PlaceRow.annotator, PlaceRow.state, PlaceRow.choice)
        .where(PlaceRow.text_id.in_(text_ids), PlaceRow.state.in_(("labelled", "skipped")))
        .order_by(PlaceRow.annotator)
    )
    for text_id, annotator, state, choice in connection.execute(cast):
        flagged, note = remarks.get((text_id, annotator), (False, ""))
        votes[text_id].append(
            Vote(
                annotator=annotator,
                labels=() if choice is None else book.labels(choice),
                skipped=state == "skipped",
                flagged=flagged,
                note=note,
            )
        )
    made: dict[int, list[Remark]] = {one: [] for one in text_ids}
    for (text_id, annotator), (flagged, note) in sorted(remarks.items()):
        made[text_id].append(Remark(annotator=annotator, flagged=flagged, note=note))
    query = (
        select(TextRow.id, TextRow.text, AdjudicationRow.choice, AdjudicationRow.reviewer)
        .join(AdjudicationRow, AdjudicationRow.id == TextRow.adjudication_id, isouter=True)
        .where(TextRow.id.in_(text_ids))
        .order_by(TextRow.id)
    )
    return [
        ReviewedText(
            text_id=text_id,
            text=text,
            votes=tuple(votes[text_id]),
            adjudicated=None if choice is None else book.labels(choice),
            reviewer=reviewer,
            remarks=tuple(made[text_id]),
        )
        for text_id, text, choice, reviewer in connection.execute(query)
    ]


def adjudicate(
    access: ProjectAccess,
    text_id: int,
    labels: Sequence[str] | None,
    *,
    request_id: str,
    note: str = "",
) -> Saved:
    """Append a reviewer's decision about a text.

    Args:
        access: of a reviewer.
        text_id: of the text.
        labels: what it is; None withdraws the decision before.
        request_id: names the decision; the same one arriving twice is one row.
        note: why.

    Raises:
        InputError: the person is no reviewer, the labels do not fit the project, the note is too
            long, or the request names another decision.
    """
    checked_request(request_id)
    checked_note(note)
    with access.writing("reviewer") as connection:
        table = AdjudicationRow.__table__
        known = connection.execute(select(table).where(table.c.request_id == request_id))
        if (row := known.mappings().one_or_none()) is not None:
            mine = (access.project_id, access.person.name, text_id)
            if (row["project_id"], row["reviewer"], row["text_id"]) != mine:
                raise InputError(
                    f"expected a new id of a request, found {request_id}, which names another "
                    "decision"
                )
            return Saved(row["id"], new=False)
        require_text(connection, access.project_id, text_id)
        book = LabelBook(connection, access.project_id, access.row(connection)["kind"])
        made = connection.execute(
            insert(AdjudicationRow).values(
                project_id=access.project_id,
                text_id=text_id,
                reviewer=access.person.name,
                choice=None if labels is None else book.choice(labels),
                note=note or None,
                guideline_version=newest_guideline(connection, access.project_id)[0],
                request_id=request_id,
                created_at=database_time(connection),
            )
        )
        (identifier,) = made.inserted_primary_key or (0,)
        connection.execute(
            update(TextRow)
            .where(TextRow.id == text_id)
            .values(adjudication_id=None if labels is None else identifier)
        )
        decided = None if labels is None else list(labels)
        access.note(connection, "adjudicate", {"text": text_id, "labels": decided})
        return Saved(identifier, new=True)


def progress(access: ProjectAccess) -> ProjectProgress:
    """How far the project is, and what the person who asks has done.

    Raises:
        AccessError: the person is no member.
    """
    texts = select(func.count()).where(TextRow.project_id == access.project_id)
    differing = texts.where(TextRow.disagrees)
    places = select(func.count()).where(
        PlaceRow.project_id == access.project_id, PlaceRow.annotator == access.person.name
    )
    queries = {
        "texts": texts,
        "finished": texts.where(TextRow.is_open.is_(False)),
        "disagreeing": differing,
        "to_review": differing.where(TextRow.adjudication_id.is_(None)),
        "mine": places.where(PlaceRow.state == "labelled"),
        "my_skips": places.where(PlaceRow.state == "skipped"),
    }
    with access.reading() as connection:
        return ProjectProgress(
            **{name: connection.scalar(query) or 0 for name, query in queries.items()}
        )
