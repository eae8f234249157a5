"""Review (검수): texts on which annotators differ, and what a reviewer decides about them.

A decision is a row of its own log beside the annotations, which stay as they are: what an annotator
has to do and what a reviewer has decided are two states.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, bindparam, func, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.annotating import Saved, read_remarks
from malmoi.labels.comments import Comment, read_threads
from malmoi.labels.connection import in_parts
from malmoi.labels.label_book import LabelBook, ShownLabel
from malmoi.labels.projects import newest_guideline
from malmoi.labels.stored_text import checked_note, checked_request
from malmoi.labels.tables import AdjudicationRow, AnnotationRow, PlaceRow, TextRow
from malmoi.labels.text_conditions import decided, flagged_texts, skipped_texts, without_index
from malmoi.labels.text_state import require_text
from malmoi.labels.webhooks import announce
from malmoi.messages import Phrase

ReviewState = Literal["disagreeing", "flagged", "skipped", "adjudicated"]
# The queue is counted no further.
MOST_COUNTED = 2_000


@dataclass(frozen=True, kw_only=True)
class Vote:
    """What one annotator says about a text now.

    Attributes:
        labels: empty for a skip, or for a text that has none of the labels (`multi`).
        skipped: whether it is a skip.
        made_at: when it was given.
        seconds: that it took; None where nobody measured it.
    """

    annotator: str
    labels: tuple[str, ...]
    skipped: bool
    flagged: bool
    note: str
    made_at: datetime | None = None
    seconds: float | None = None


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
        comments: all notes about it, as a thread.
        adjudicated: the reviewer's labels; None where nobody has decided.
        reviewer: who decided.
        decision_id: of the decision that holds; None where nobody has decided.
        decided_at: when.
        decision_note: why, or "".
    """

    text_id: int
    text: str
    votes: tuple[Vote, ...]
    adjudicated: tuple[str, ...] | None
    reviewer: str | None
    remarks: tuple[Remark, ...] = ()
    comments: tuple[Comment, ...] = ()
    decision_id: int | None = None
    decided_at: datetime | None = None
    decision_note: str = ""

    @property
    def notes(self) -> list[str]:
        """The thread, each as "person: note"."""
        return [f"{one.person}: {one.text}" for one in self.comments]


@dataclass(frozen=True, kw_only=True)
class ProjectProgress:
    """How far a project is.

    Attributes:
        texts: all.
        finished: those with all their labels.
        disagreeing: those whose annotators differ, decided or not.
        to_review: those of them on which no reviewer has decided.
    """

    texts: int
    finished: int
    disagreeing: int
    to_review: int


@dataclass(frozen=True, kw_only=True)
class OwnCounts:
    """How many texts one person has labelled, and how many they skipped."""

    labelled: int
    skipped: int


@dataclass(frozen=True, kw_only=True)
class DisagreeingPair:
    """Two choices between which annotators are divided.

    Attributes:
        choices: as they stand in the log, to ask `texts_to_review` for the texts.
        first: labels of the one.
        second: labels of the other.
        texts: that wait for a reviewer and have votes for both.
    """

    choices: tuple[str, str]
    first: tuple[str, ...]
    second: tuple[str, ...]
    texts: int


@dataclass(frozen=True, kw_only=True)
class ReviewCounts:
    """How much waits for reviewers; each number up to `MOST_COUNTED` + 1, which stands for more.

    Attributes:
        disagreeing: texts whose annotators differ.
        flagged: texts with a flag up.
        skipped: texts that somebody skipped.
        adjudicated: texts on which a reviewer has decided.
        pairs: by falling number of texts, over the first `MOST_COUNTED` that disagree.
    """

    disagreeing: int
    flagged: int
    skipped: int
    adjudicated: int
    pairs: tuple[DisagreeingPair, ...]


def texts_to_review(
    access: ProjectAccess,
    state: ReviewState = "disagreeing",
    *,
    limit: int = 50,
    after: int = 0,
    pair: tuple[str, str] | None = None,
) -> list[ReviewedText]:
    """Texts that no reviewer has decided and whose annotators differ, or that one has flagged or
    skipped; or those that a reviewer has decided.

    Args:
        state: which of these.
        after: the id of the last text of the page before.
        pair: `DisagreeingPair.choices`: only texts that have votes for both.

    Raises:
        AccessError: the person is no reviewer.
    """
    with access.reading("reviewer") as connection:
        query = select(TextRow.id).where(TextRow.id > after, *_waiting(access, connection, state))
        for choice in pair or ():
            vote = select(PlaceRow.id).where(
                PlaceRow.text_id == TextRow.id,
                PlaceRow.state == "labelled",
                PlaceRow.choice == choice,
            )
            query = query.where(vote.exists())
        ids = list(connection.scalars(query.order_by(TextRow.id).limit(limit)))
        return reviewed_texts(access, connection, ids)


def latest_decisions(access: ProjectAccess, *, limit: int = 50) -> list[ReviewedText]:
    """Texts that reviewers have decided, the latest decision first.

    Raises:
        AccessError: the person is no reviewer.
    """
    query = (
        select(AdjudicationRow.text_id)
        .join(TextRow, TextRow.id == AdjudicationRow.text_id)
        .where(
            AdjudicationRow.project_id == access.project_id,
            TextRow.adjudication_id == AdjudicationRow.id,
        )
        .order_by(AdjudicationRow.id.desc())
        .limit(limit)
    )
    with access.reading("reviewer") as connection:
        texts = reviewed_texts(access, connection, list(connection.scalars(query)))
    return sorted(texts, key=lambda text: text.decision_id or 0, reverse=True)


def review_counts(access: ProjectAccess) -> ReviewCounts:
    """How much waits for reviewers.

    Raises:
        AccessError: the person is no reviewer.
    """
    with access.reading("reviewer") as connection:
        counts: dict[ReviewState, int] = {}
        for state in ("disagreeing", "flagged", "skipped", "adjudicated"):
            some = (
                select(TextRow.id)
                .where(*_waiting(access, connection, state))
                .limit(MOST_COUNTED + 1)
            )
            number = select(func.count()).select_from(some.subquery())
            counts[state] = connection.scalar(number) or 0
        return ReviewCounts(**counts, pairs=_pairs(access, connection))


def _waiting(
    access: ProjectAccess, connection: Connection, state: ReviewState
) -> list[ColumnElement[bool]]:
    if state == "disagreeing":
        return [
            TextRow.project_id == access.project_id,
            TextRow.adjudication_id.is_(None),
            TextRow.disagrees.is_(True),
        ]
    # The others are few, so that they are looked up one by one.
    mine = without_index(connection, TextRow.__table__.c.project_id) == access.project_id
    if state == "adjudicated":
        return [mine, *decided(access.project_id)]
    undecided = [mine, TextRow.adjudication_id.is_(None)]
    if state == "flagged":
        return [*undecided, TextRow.id.in_(flagged_texts(access.project_id))]
    return [*undecided, TextRow.id.in_(skipped_texts(access.project_id))]


def _pairs(access: ProjectAccess, connection: Connection) -> tuple[DisagreeingPair, ...]:
    some = (
        select(TextRow.id).where(*_waiting(access, connection, "disagreeing")).order_by(TextRow.id)
    )
    ids = some.limit(MOST_COUNTED).subquery()
    cast = (
        select(PlaceRow.text_id, PlaceRow.choice)
        .join(ids, ids.c.id == PlaceRow.text_id)
        .where(PlaceRow.state == "labelled")
        .distinct()
    )
    choices: dict[int, list[str]] = {}
    for text_id, choice in connection.execute(cast):
        choices.setdefault(text_id, []).append(str(choice))
    counts = Counter(pair for one in choices.values() for pair in combinations(sorted(one), 2))
    book = LabelBook(access, connection)
    return tuple(
        DisagreeingPair(
            choices=pair, first=book.labels(pair[0]), second=book.labels(pair[1]), texts=number
        )
        for pair, number in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    )


def texts_with_votes(access: ProjectAccess, text_ids: Sequence[int]) -> list[ReviewedText]:
    """Some texts with their votes, such as those behind a number of `agreement`.

    Args:
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
    book = LabelBook(access, connection)
    remarks = read_remarks(connection, text_ids)
    threads = read_threads(connection, text_ids)
    votes: dict[int, list[Vote]] = {one: [] for one in text_ids}
    cast = (
        select(
            PlaceRow.text_id,
            PlaceRow.annotator,
            PlaceRow.state,
            PlaceRow.choice,
            AnnotationRow.created_at,
            AnnotationRow.seconds,
        )
        .join(AnnotationRow, AnnotationRow.id == PlaceRow.annotation_id, isouter=True)
        .where(PlaceRow.text_id.in_(text_ids), PlaceRow.state.in_(("labelled", "skipped")))
        .order_by(PlaceRow.annotator)
    )
    for text_id, annotator, state, choice, made_at, seconds in connection.execute(cast):
        flagged, note = remarks.get((text_id, annotator), (False, ""))
        votes[text_id].append(
            Vote(
                annotator=annotator,
                labels=() if choice is None else book.labels(choice),
                skipped=state == "skipped",
                flagged=flagged,
                note=note,
                made_at=made_at,
                seconds=seconds,
            )
        )
    made: dict[int, list[Remark]] = {one: [] for one in text_ids}
    for (text_id, annotator), (flagged, note) in sorted(remarks.items()):
        made[text_id].append(Remark(annotator=annotator, flagged=flagged, note=note))
    query = (
        select(
            TextRow.id,
            TextRow.text,
            AdjudicationRow.choice,
            AdjudicationRow.reviewer,
            AdjudicationRow.id,
            AdjudicationRow.created_at,
            AdjudicationRow.note,
        )
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
            comments=threads.get(text_id, ()),
            decision_id=decision_id,
            decided_at=decided_at,
            decision_note=note or "",
        )
        for text_id, text, choice, reviewer, decision_id, decided_at, note in connection.execute(
            query
        )
    ]


def adjudicate(
    access: ProjectAccess,
    text_id: int,
    labels: Sequence[str | ShownLabel] | None,
    *,
    request_id: str,
    note: str = "",
    shown: str | None = None,
    shown_decision: int | None = -1,
    decided_at: datetime | None = None,
    announces: bool = True,
) -> Saved:
    """Append a reviewer's decision about a text.

    Args:
        labels: what it is, by name or as they were on screen; None withdraws the decision before.
        request_id: names the decision; the same one arriving twice is one row.
        shown: hash of the text that was on screen (`sha256_of`); None: nobody looked at it.
        shown_decision: `ReviewedText.decision_id` as the person saw it, so that nobody's decision
            is replaced unseen; -1: whichever it is.
        decided_at: when that was, where it was decided elsewhere.
        announces: whether webhooks hear of it; not of an import.

    Raises:
        InputError: the person is no reviewer, the labels do not fit the project, the note is too
            long, the request names another decision, the text is another than was seen, or
            somebody has decided meanwhile.
    """
    checked_request(request_id)
    checked_note(note)
    with access.writing("reviewer") as connection:
        known = _known_decision(access, connection, text_id, request_id)
        if known is not None:
            return Saved(known, new=False)
        require_text(connection, access.project_id, text_id, shown)
        if shown_decision != -1:
            _refuse_unseen(connection, text_id, shown_decision)
        book = LabelBook(access, connection)
        choice = None if labels is None else book.choice(labels)
        decision = (text_id, choice, request_id)
        identifier, _ = append_decisions(
            access, connection, [decision], note, decided_at, announces=announces
        )
        decided = None if choice is None else book.labels(choice)
        access.note(connection, "adjudicate", {"text": text_id, "labels": decided})
        return Saved(identifier, new=True)


def append_decisions(
    access: ProjectAccess,
    connection: Connection,
    decisions: Sequence[tuple[int, str | None, str]],
    note: str,
    decided_at: datetime | None = None,
    *,
    announces: bool = True,
) -> tuple[int, int]:
    """Append decisions to the log, and let them hold.

    Args:
        connection: of a transaction that writes, and has asked for the role.
        decisions: id of the text, choice as it stands in the log (None withdraws), and id of the
            request of each; a text once.
        decided_at: when they were made; by default now.
        announces: whether webhooks hear of them.

    Returns:
        The first and the last id of them. Nobody else writes to the project meanwhile, so all its
        decisions between the two are these.
    """
    now = database_time(connection)
    shared = {
        "project_id": access.project_id,
        "reviewer": access.person.name,
        "note": note or None,
        "guideline_version": newest_guideline(connection, access.project_id)[0],
        "created_at": now if decided_at is None else min(now, decided_at),
    }
    made: dict[int, int] = {}
    for some in in_parts(decisions):
        rows = [
            {"text_id": text_id, "choice": choice, "request_id": request_id, **shared}
            for text_id, choice, request_id in some
        ]
        connection.execute(insert(AdjudicationRow), rows)
        query = select(AdjudicationRow.id, AdjudicationRow.text_id, AdjudicationRow.choice).where(
            AdjudicationRow.request_id.in_([row["request_id"] for row in rows])
        )
        found = connection.execute(query).all()
        made |= {row.id: row.text_id for row in found}
        connection.execute(
            update(TextRow)
            .where(TextRow.id == bindparam("decided"))
            .values(adjudication_id=bindparam("decision")),
            [
                {"decided": row.text_id, "decision": None if row.choice is None else row.id}
                for row in found
            ],
        )
    if announces:
        announce(access, connection, "text.decided", made)
    return min(made), max(made)


def decision_of_request(connection: Connection, request_id: str) -> Mapping[str, Any] | None:
    """The row of `AdjudicationRow` that a request has made."""
    table = AdjudicationRow.__table__
    found = connection.execute(select(table).where(table.c.request_id == request_id))
    row = found.mappings().one_or_none()
    return None if row is None else dict(row)


def _known_decision(
    access: ProjectAccess, connection: Connection, text_id: int, request_id: str
) -> int | None:
    """The decision that a request made before; it is the same one, or the id is refused."""
    row = decision_of_request(connection, request_id)
    if row is None:
        return None
    mine = (access.project_id, access.person.name, text_id)
    if (row["project_id"], row["reviewer"], row["text_id"]) != mine:
        raise InputError(
            "expected a new id of a request, found {request}, which names another decision",
            request=request_id,
        )
    identifier: int = row["id"]
    return identifier


def _refuse_unseen(connection: Connection, text_id: int, shown: int | None) -> None:
    query = (
        select(AdjudicationRow.id, AdjudicationRow.reviewer)
        .join(TextRow, TextRow.adjudication_id == AdjudicationRow.id)
        .where(TextRow.id == text_id)
    )
    held = connection.execute(query).one_or_none()
    if (None if held is None else held[0]) != shown:
        by = Phrase("was withdrawn")
        if held is not None:
            by = Phrase("is {reviewer}'s", reviewer=held[1])
        raise InputError(
            "expected the decision of text {text_id} to be the one that was on screen, found that "
            "it {by} now; look at the text again",
            text_id=text_id,
            by=by,
        )


def progress(access: ProjectAccess) -> ProjectProgress:
    """How far the project is, whoever asks.

    Raises:
        AccessError: the person is no member.
    """
    texts = select(func.count()).where(TextRow.project_id == access.project_id)
    differing = texts.where(TextRow.disagrees)
    queries = {
        "texts": texts,
        "finished": texts.where(TextRow.is_open.is_(False)),
        "disagreeing": differing,
        "to_review": differing.where(TextRow.adjudication_id.is_(None)),
    }
    with access.reading() as connection:
        return ProjectProgress(
            **{name: connection.scalar(query) or 0 for name, query in queries.items()}
        )


def own_counts(access: ProjectAccess) -> OwnCounts:
    """What the person who asks has done; an index has it, so that it can be asked at every click.

    Raises:
        AccessError: the person is no member.
    """
    query = (
        select(PlaceRow.state, func.count())
        .where(
            PlaceRow.project_id == access.project_id,
            PlaceRow.annotator == access.person.name,
            PlaceRow.state.in_(("labelled", "skipped")),
        )
        .group_by(PlaceRow.state)
    )
    with access.reading() as connection:
        found = dict(connection.execute(query).tuples().all())
    return OwnCounts(labelled=found.get("labelled", 0), skipped=found.get("skipped", 0))
