"""Which text comes next: k annotators a text, each by a lease that expires.

A text has as many places as annotators per text. A place is taken by a label, or by a lease that
has not expired by the clock of the database. The choice and its lease are one transaction, and
those of a project come one after the other, so the last place is never given twice.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, and_, func, insert, or_, select, update
from sqlalchemy.orm import aliased

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.project import ORDERS, TextOrder
from malmoi.labels.project_models import PlaceRow, TextRow, TextScoreRow

MOST_LEASES = 200
Drawn = Literal["plain", "scores", "random"]


@dataclass(frozen=True, kw_only=True)
class LeasedText:
    """A text that is to be labelled now.

    Attributes:
        text_id: names it.
        text: as it was imported.
        expires_at: when others may get its place.
        drawn: how it was chosen; `random` ones are for an honest evaluation.
        suggested_label: what the model that wrote the scores would say; None where the project
            hides it or there is none.
        suggested_score: its probability.
    """

    text_id: int
    text: str
    expires_at: datetime
    drawn: Drawn
    suggested_label: str | None = None
    suggested_score: float | None = None


def lease_texts(
    access: ProjectAccess, count: int = 1, *, order: TextOrder | None = None
) -> list[LeasedText]:
    """The next texts for this annotator: those that they hold already, then new ones.

    Args:
        access: of an annotator.
        count: how many to hold, up to `MOST_LEASES`.
        order: None: that of the project.

    Returns:
        At most `count`, fewer where nothing is left for this annotator; leases are renewed.

    Raises:
        InputError: the person is no member, or a value is out of bounds.
    """
    if not 1 <= count <= MOST_LEASES:
        raise InputError(f"expected 1 to {MOST_LEASES} texts at a time, found {count}")
    if order is not None and order not in ORDERS:
        raise InputError(f"expected an order of {', '.join(ORDERS)}, found {order!r}")
    with access.writing("annotator") as connection:
        chooser = _Chooser(access, connection, order)
        held = chooser.held(count)
        fresh = chooser.choose(count - len(held)) if len(held) < count else {}
        expires_at = chooser.lease(held | fresh)
        return _with_texts(chooser, held | fresh, expires_at)


def next_text(access: ProjectAccess, *, order: TextOrder | None = None) -> LeasedText | None:
    """The next text for this annotator, or None; see `lease_texts`."""
    found = lease_texts(access, 1, order=order)
    return found[0] if found else None


def return_leases(access: ProjectAccess, text_ids: Sequence[int] | None = None) -> int:
    """Give texts back that were not labelled, for others or for later.

    Args:
        access: of the annotator who holds them.
        text_ids: None: all that this annotator holds.

    Returns:
        How many were given back.
    """
    mine = [
        PlaceRow.project_id == access.project_id,
        PlaceRow.annotator == access.person.name,
        PlaceRow.state == "leased",
    ]
    if text_ids is not None:
        mine.append(PlaceRow.text_id.in_(text_ids))
    with access.writing("annotator") as connection:
        given = update(PlaceRow).where(*mine).values(state="returned", expires_at=None)
        return connection.execute(given).rowcount


class _Chooser:
    """Chooses for one annotator within one transaction."""

    def __init__(
        self, access: ProjectAccess, connection: Connection, order: TextOrder | None
    ) -> None:
        self.access, self.connection = access, connection
        self.project = access.row(connection)
        self.order = order or self.project["text_order"]
        self.now = database_time(connection)
        self.me = access.person.name

    def held(self, count: int) -> dict[int, Drawn]:
        """Texts that this annotator holds by a lease that has not expired."""
        query = (
            select(PlaceRow.text_id, PlaceRow.drawn)
            .where(
                PlaceRow.project_id == self.access.project_id,
                PlaceRow.annotator == self.me,
                PlaceRow.state == "leased",
                PlaceRow.expires_at > self.now,
            )
            .order_by(PlaceRow.id)
            .limit(count)
        )
        rows = self.connection.execute(query)
        return {text_id: _drawn(how) for text_id, how in rows}

    def choose(self, count: int) -> dict[int, Drawn]:
        """New texts, and how each was chosen."""
        if self.order == "plain":
            chosen: dict[int, Drawn] = {}
            self._fill(chosen, count, self._plain().where(TextRow.id > self._passed()), "plain")
            self._fill(chosen, count, self._plain(), "plain")
            return chosen
        if self.order == "random":
            return dict.fromkeys(self._first(self._at_random(), count), "random")
        share = self.project["random_share"]
        wanted = sum(random.random() < share for _ in range(count))
        chosen = dict.fromkeys(self._first(self._at_random(), wanted), "random")
        self._fill(chosen, count, self._by_scores(), "scores")
        self._fill(chosen, count, self._plain(), "plain")
        return chosen

    def _passed(self) -> int:
        """The last text that this annotator has decided in plain order, to go on from there.

        Where a text needs others, too, all that this annotator has done would be looked through
        again. What was passed over comes at the end.
        """
        if self.project["annotators_per_text"] == 1:
            return 0
        last = [
            self.connection.scalar(
                select(func.max(PlaceRow.text_id)).where(
                    PlaceRow.project_id == self.access.project_id,
                    PlaceRow.annotator == self.me,
                    PlaceRow.state == state,
                    PlaceRow.drawn == "plain",
                )
            )
            for state in ("labelled", "skipped")
        ]
        return max(one or 0 for one in last)

    def _fill(
        self, chosen: dict[int, Drawn], count: int, query: Select[int] | None, drawn: Drawn
    ) -> None:
        """Add the first texts of a query until there are `count`; some may be chosen already."""
        if query is None or len(chosen) >= count:
            return
        for text_id in self._first(query, count + len(chosen)):
            if len(chosen) < count:
                chosen.setdefault(text_id, drawn)

    def lease(self, texts: dict[int, Drawn]) -> datetime:
        """Write the leases, or renew them; returns when they expire."""
        expires_at = self.now + timedelta(seconds=self.project["lease_seconds"])
        mine = and_(PlaceRow.annotator == self.me, PlaceRow.text_id.in_(texts))
        known = set(self.connection.scalars(select(PlaceRow.text_id).where(mine)))
        values: dict[str, Any] = {"state": "leased", "expires_at": expires_at}
        for text_id, drawn in texts.items():
            if text_id in known:
                place = and_(PlaceRow.annotator == self.me, PlaceRow.text_id == text_id)
                self.connection.execute(update(PlaceRow).where(place).values(drawn=drawn, **values))
        fresh = [
            {"project_id": self.access.project_id, "annotator": self.me, "text_id": text_id}
            | {"drawn": drawn, **values}
            for text_id, drawn in texts.items()
            if text_id not in known
        ]
        if fresh:
            self.connection.execute(insert(PlaceRow), fresh)
        return expires_at

    def _first(self, query: Select[int], count: int) -> list[int]:
        return list(self.connection.scalars(query.limit(count))) if count else []

    def _plain(self) -> Select[int]:
        return self._candidates().order_by(TextRow.id)

    def _at_random(self) -> Select[int]:
        return self._candidates().order_by(TextRow.lottery)

    def _by_scores(self) -> Select[int] | None:
        version = self.project["scores_version"]
        if version is None:
            return None
        return (
            self._candidates()
            .join(TextScoreRow, TextScoreRow.text_id == TextRow.id)
            .where(TextScoreRow.version == version, TextScoreRow.priority.is_not(None))
            .order_by(TextScoreRow.priority.desc(), TextScoreRow.text_id.desc())
        )

    def _candidates(self) -> Select[int]:
        """Open texts with a free place that this annotator has neither decided nor on screen."""
        mine, others = aliased(PlaceRow), aliased(PlaceRow)
        decided = select(mine.id).where(
            mine.text_id == TextRow.id,
            mine.annotator == self.me,
            or_(mine.state.in_(("labelled", "skipped")), self._is_held(mine)),
        )
        taken = select(func.count()).where(
            others.text_id == TextRow.id,
            others.annotator != self.me,
            or_(others.state == "labelled", self._is_held(others)),
        )
        return select(TextRow.id).where(
            TextRow.project_id == self.access.project_id,
            TextRow.is_open,
            ~decided.exists(),
            taken.scalar_subquery() < self.project["annotators_per_text"],
        )

    def _is_held(self, place: type[PlaceRow]) -> ColumnElement[bool]:
        return and_(place.state == "leased", place.expires_at > self.now)


def _drawn(how: str | None) -> Drawn:
    return "scores" if how == "scores" else "random" if how == "random" else "plain"


def _with_texts(
    chooser: _Chooser, chosen: dict[int, Drawn], expires_at: datetime
) -> list[LeasedText]:
    query = select(TextRow.id, TextRow.text).where(TextRow.id.in_(chosen))
    texts = dict(chooser.connection.execute(query).tuples().all())
    suggested: dict[int, tuple[str | None, float | None]] = {}
    version = chooser.project["scores_version"]
    if version is not None and chooser.project["show_suggestion"]:
        shown = select(TextScoreRow.text_id, TextScoreRow.label, TextScoreRow.score).where(
            TextScoreRow.version == version, TextScoreRow.text_id.in_(chosen)
        )
        suggested = {one: (label, score) for one, label, score in chooser.connection.execute(shown)}
    found = []
    for text_id, drawn in chosen.items():
        label, score = suggested.get(text_id, (None, None))
        found.append(
            LeasedText(
                text_id=text_id,
                text=texts[text_id],
                expires_at=expires_at,
                drawn=drawn,
                suggested_label=label,
                suggested_score=score,
            )
        )
    return found
