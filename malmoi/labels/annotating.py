"""What annotators do, appended to the log: label, skip, flag, note, and the undo of any of these.

Nothing is changed or deleted. What holds is the latest act of each kind of an annotator on a text
that no undo withdraws; a label and a skip are of one kind.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, insert, select, update

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.comments import Comment, read_threads, seen_by
from malmoi.labels.label_book import LabelBook, ShownLabel
from malmoi.labels.projects import newest_guideline
from malmoi.labels.stored_text import checked, checked_note, checked_request
from malmoi.labels.tables import AnnotationRow, PlaceRow, TextRow
from malmoi.labels.text_conditions import undone
from malmoi.labels.text_state import recount, require_text
from malmoi.labels.webhooks import announce
from malmoi.messages import Phrase

ActKind = Literal["label", "skip", "flag", "note", "undo"]
_DECISIONS = ("label", "skip")


@dataclass(frozen=True)
class Saved:
    """The row of an act or a decision, and whether this call wrote it."""

    id: int
    new: bool


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """What the annotator saw of the model: its label, its probability for it, and its name."""

    label: str
    score: float
    model: str


@dataclass(frozen=True, kw_only=True)
class Act:
    """One act of an annotator on one text.

    Attributes:
        text_id: of the text that was on screen.
        kind: what was done.
        request_id: names the act; the same one arriving twice is one row.
        labels: of a label: one, or any number where the project is `multi`; by name, or as they
            were on screen.
        shown: hash of the text that was on screen (`sha256_of`); None: nobody looked at it.
        flagged: of a flag: up or down.
        note: of a note; an empty one takes the last away.
        withdraws: of an undo: the request id of the act that holds no longer.
        suggestion: None where none was shown.
        seconds: from the text's appearance to the act.
        guideline_version: that was on screen; None: the newest.
    """

    text_id: int
    kind: ActKind
    request_id: str
    labels: Sequence[str | ShownLabel] = ()
    shown: str | None = None
    flagged: bool = True
    note: str = ""
    withdraws: str | None = None
    suggestion: Suggestion | None = None
    seconds: float | None = None
    guideline_version: int | None = None

    def __post_init__(self) -> None:
        checked_request(self.request_id)
        if self.kind not in ("label", "skip", "flag", "note", "undo"):
            raise InputError(
                "expected an act of label, skip, flag, note, undo, found {kind!r}", kind=self.kind
            )
        if (self.withdraws is None) != (self.kind != "undo"):
            raise InputError("expected the request that an undo withdraws, and of nothing else")
        checked_note(self.note)
        if self.seconds is not None and not 0 <= self.seconds < float("inf"):
            raise InputError("expected seconds of 0 or more, found {seconds}", seconds=self.seconds)
        if self.suggestion is not None:
            checked(self.suggestion.label, Phrase("a suggested label"))
            checked(self.suggestion.model, Phrase("the name of a model"))
            if not 0 <= self.suggestion.score <= 1:
                raise InputError(
                    "expected a score from 0 to 1, found {score}", score=self.suggestion.score
                )


@dataclass(frozen=True, kw_only=True)
class OwnWork:
    """What an annotator has said about a text.

    Attributes:
        text: as it was imported.
        state: labelled or skipped.
        labels: of the label that holds; empty for a skip.
        flagged: whether the flag is up.
        note: the last one, or "".
        comments: the notes about the text that they may see.
        request_id: of the decision that holds, to undo it by; None without one.
    """

    text_id: int
    text: str
    state: str
    labels: tuple[str, ...]
    flagged: bool
    note: str
    comments: tuple[Comment, ...]
    request_id: str | None


def save_acts(access: ProjectAccess, acts: Sequence[Act]) -> list[Saved]:
    """Append acts in one transaction: all of them, or none.

    A label is taken even where its lease has expired or others have filled the places of the text:
    work that somebody did is not thrown away.

    Args:
        acts: in the order in which they were done.

    Returns:
        For each the row, and whether this call wrote it.

    Raises:
        InputError: the person is no member, or an act does not fit the project; nothing is saved.
    """
    with access.writing("annotator") as connection:
        writer = _writer(access, connection)
        return [writer.save(act) for act in acts]


def take_back(access: ProjectAccess, requests: Sequence[tuple[int, str]]) -> int:
    """Undo acts of the person that still hold, in one transaction; others are left as they are.

    A text without a decision then is free for everybody: unlike one whose label is undone where
    texts are handed out, it is on nobody's screen.

    Args:
        access: of an annotator.
        requests: (text, request id) of each act, in the order in which they were done.

    Returns:
        How many acts were undone by this call.

    Raises:
        InputError: an act is not this person's, or the project is archived; nothing is undone.
    """
    with access.writing("annotator") as connection:
        writer = _writer(access, connection)
        return sum(writer.take_back(text_id, request) for text_id, request in reversed(requests))


def _writer(access: ProjectAccess, connection: Connection) -> "_Writer":
    project = access.row(connection)
    return _Writer(
        access=access,
        connection=connection,
        book=LabelBook(access, connection),
        project=project,
        guideline_version=newest_guideline(connection, access.project_id)[0],
        now=database_time(connection),
    )


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Acts of one person in one transaction."""

    access: ProjectAccess
    connection: Connection
    book: LabelBook
    project: Mapping[str, Any]
    guideline_version: int
    now: datetime

    def save(self, act: Act) -> Saved:
        known = _row_of_request(self.connection, act.request_id)
        if known is not None:
            self._refuse_another(known, act)
            return Saved(known["id"], new=False)
        require_text(self.connection, self.access.project_id, act.text_id, act.shown)
        withdrawn = None
        if act.withdraws is not None:
            withdrawn = self._withdrawn(act)
            if self._is_undone(withdrawn):
                raise InputError(
                    "expected an act that holds, found {request}, which is undone already; label "
                    "the text again",
                    request=act.withdraws,
                )
        return Saved(self._append(act, withdrawn), new=True)

    def take_back(self, text_id: int, request: str) -> bool:
        """Undo one act unless that is done; whether it was done by this."""
        undo = Act(
            text_id=text_id,
            kind="undo",
            withdraws=request,
            request_id=hashlib.sha256(f"undo:{request}".encode()).hexdigest(),
        )
        withdrawn = self._withdrawn(undo)
        if self._is_undone(withdrawn):
            return False
        self._append(undo, withdrawn, on_screen=False)
        return True

    def _append(self, act: Act, withdrawn: dict[str, Any] | None, *, on_screen: bool = True) -> int:
        """Write the row of an act, and let what follows from it hold; returns its id."""
        values = self._values(act, None if withdrawn is None else withdrawn["id"])
        made = self.connection.execute(insert(AnnotationRow).values(**values))
        (identifier,) = made.inserted_primary_key or (0,)
        if act.kind in _DECISIONS or (withdrawn and withdrawn["kind"] in _DECISIONS):
            self._hold(act.text_id, on_screen)
            recount(self.connection, self.project, [act.text_id])
            announce(self.access, self.connection, "text.labelled", {identifier: act.text_id})
        return identifier

    def _refuse_another(self, known: dict[str, Any], act: Act) -> None:
        """A request id that is met again names the same act of the same person, or is a forgery."""
        mine = (self.access.project_id, self.access.person.name, act.text_id, act.kind)
        if tuple(known[name] for name in ("project_id", "annotator", "text_id", "kind")) != mine:
            raise InputError(
                "expected a new id of a request, found {request}, which names another act",
                request=act.request_id,
            )

    def _withdrawn(self, act: Act) -> dict[str, Any]:
        """The act that an undo withdraws: one of the same person on the same text."""
        row = _row_of_request(self.connection, act.withdraws or "")
        mine = (self.access.project_id, self.access.person.name, act.text_id)
        if row is None or (row["project_id"], row["annotator"], row["text_id"]) != mine:
            raise InputError(
                "expected the request of an act of {person} on text {text_id} to undo, found "
                "{request}",
                person=self.access.person.name,
                text_id=act.text_id,
                request=act.withdraws,
            )
        if row["kind"] == "undo":
            raise InputError(
                "expected an act to undo, found {request}, which is an undo; label the text again",
                request=act.withdraws,
            )
        return row

    def _is_undone(self, row: dict[str, Any]) -> bool:
        undo = select(AnnotationRow.id).where(AnnotationRow.withdraws == row["id"])
        return self.connection.scalar(undo) is not None

    def _values(self, act: Act, withdraws: int | None) -> dict[str, Any]:
        version = act.guideline_version or self.guideline_version
        if not 1 <= version <= self.guideline_version:
            raise InputError(
                "expected a version of the guideline up to {guideline_version}, found {version}",
                guideline_version=self.guideline_version,
                version=version,
            )
        shown = act.suggestion
        drawn = select(PlaceRow.drawn).where(
            PlaceRow.text_id == act.text_id, PlaceRow.annotator == self.access.person.name
        )
        return {
            "project_id": self.access.project_id,
            "text_id": act.text_id,
            "annotator": self.access.person.name,
            "kind": act.kind,
            "choice": self.book.choice(act.labels) if act.kind == "label" else None,
            "flagged": act.flagged if act.kind == "flag" else None,
            "note": act.note if act.kind == "note" else None,
            "withdraws": withdraws,
            "guideline_version": version,
            "suggested_label": None if shown is None else shown.label,
            "suggested_score": None if shown is None else shown.score,
            "suggested_model": None if shown is None else shown.model,
            "drawn": self.connection.scalar(drawn),
            "seconds": act.seconds,
            "request_id": act.request_id,
            "created_at": self.now,
        }

    def _hold(self, text_id: int, on_screen: bool) -> None:
        """Let the annotator's place on a text be what the log says.

        Without a decision it is leased where the text is on the annotator's screen again.
        """
        latest = latest_decision(self.connection, text_id, self.access.person.name)
        values: dict[str, Any]
        if latest is None:
            values = {"state": "returned", "expires_at": None}
            if on_screen:
                lease = timedelta(seconds=self.project["lease_seconds"])
                values = {"state": "leased", "expires_at": self.now + lease}
            values |= {"annotation_id": None, "choice": None}
        else:
            state = "labelled" if latest["kind"] == "label" else "skipped"
            values = {"state": state, "expires_at": None}
            values |= {"annotation_id": latest["id"], "choice": latest["choice"]}
        mine = (PlaceRow.text_id == text_id, PlaceRow.annotator == self.access.person.name)
        moved = self.connection.execute(update(PlaceRow).where(*mine).values(**values))
        if not moved.rowcount:
            values |= {"project_id": self.access.project_id, "text_id": text_id}
            values["annotator"] = self.access.person.name
            self.connection.execute(insert(PlaceRow).values(**values))


def latest_decision(connection: Connection, text_id: int, annotator: str) -> dict[str, Any] | None:
    """The label or skip of an annotator on a text that holds, by the log alone; or None."""
    query = (
        select(AnnotationRow.__table__)
        .where(
            AnnotationRow.text_id == text_id,
            AnnotationRow.annotator == annotator,
            AnnotationRow.kind.in_(_DECISIONS),
            ~undone(),
        )
        .order_by(AnnotationRow.id.desc())
        .limit(1)
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else dict(row)


def _row_of_request(connection: Connection, request_id: str) -> dict[str, Any] | None:
    query = select(AnnotationRow.__table__).where(AnnotationRow.request_id == request_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else dict(row)


def own_work(
    access: ProjectAccess, *, limit: int = 50, within: timedelta | None = None
) -> list[OwnWork]:
    """The texts that the person decided last, newest first, and behind them what else they skipped.

    Args:
        access: of an annotator, who sees nobody else's work here.
        limit: how many of both at most.
        within: only texts that were handed out to them, and decided no longer ago than this.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        book = LabelBook(access, connection)
        query = (
            select(
                PlaceRow.text_id,
                TextRow.text,
                PlaceRow.state,
                PlaceRow.choice,
                AnnotationRow.request_id,
            )
            .join(TextRow, TextRow.id == PlaceRow.text_id)
            .join(AnnotationRow, AnnotationRow.id == PlaceRow.annotation_id)
            .where(
                PlaceRow.project_id == access.project_id,
                PlaceRow.annotator == access.person.name,
                PlaceRow.state.in_(("labelled", "skipped")),
            )
            .order_by(PlaceRow.annotation_id.desc())
            .limit(limit)
        )
        if within is not None:
            since = database_time(connection) - within
            query = query.where(AnnotationRow.created_at > since, AnnotationRow.drawn.is_not(None))
        rows = connection.execute(query).all()
        last = [row[0] for row in rows]
        skipped = query.where(PlaceRow.state == "skipped", PlaceRow.text_id.not_in(last))
        rows = [*rows, *connection.execute(skipped).all()]
        remarks = read_remarks(connection, [row[0] for row in rows])
        threads = read_threads(connection, [row[0] for row in rows], seen_by(access, connection))
        found = []
        for text_id, words, state, choice, request_id in rows:
            flagged, note = remarks.get((text_id, access.person.name), (False, ""))
            labels = () if choice is None else book.labels(choice)
            found.append(
                OwnWork(
                    text_id=text_id,
                    text=words,
                    state=state,
                    labels=labels,
                    flagged=flagged,
                    note=note,
                    comments=threads.get(text_id, ()),
                    request_id=request_id,
                )
            )
        return found


def read_remarks(
    connection: Connection, text_ids: Sequence[int]
) -> dict[tuple[int, str], tuple[bool, str]]:
    """Flag and note that hold, by text and annotator; those who made none are left out."""
    query = (
        select(
            AnnotationRow.text_id,
            AnnotationRow.annotator,
            AnnotationRow.flagged,
            AnnotationRow.note,
        )
        .where(
            AnnotationRow.text_id.in_(text_ids),
            AnnotationRow.kind.in_(("flag", "note")),
            ~undone(),
        )
        .order_by(AnnotationRow.id)
    )
    found: dict[tuple[int, str], tuple[bool, str]] = {}
    for text_id, annotator, flag, text in connection.execute(query):
        flagged, note = found.get((text_id, annotator), (False, ""))
        found[text_id, annotator] = (
            flagged if flag is None else flag,
            note if text is None else text,
        )
    return found
