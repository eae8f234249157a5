"""Which text comes next: k annotators a text, each by a lease that expires.

A text has as many places as annotators per text. A place is taken by a label, or by a lease that
has not expired by the clock of the database. The choice and its lease are one transaction, and
those of a project come one after the other, so the last place is never given twice.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    false,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.tables import (
    AnnotationRow,
    PlaceRow,
    ScoreVersionRow,
    TextRow,
    TextScoreRow,
)
from malmoi.labels.text_conditions import decided_by
from malmoi.labels.text_state import first_of_its_kind

MOST_LEASES = 200
# Texts drawn by chance that have labels before the order of a model begins. As long as labels are
# few, that order makes no better model, and intervals of shares are twice as wide
# (lab.benchmarks.quality.interval_keys).
LABELS_BY_CHANCE = 200
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
        second_label: what it would say next.
        second_score: the probability of that.
        model: its name; None without a suggestion.
        kind: the same for texts that are nearly the same; None for one that is like no other.
        alike: how many others of its kind need labels.
    """

    text_id: int
    text: str
    expires_at: datetime
    drawn: Drawn
    suggested_label: str | None = None
    suggested_score: float | None = None
    second_label: str | None = None
    second_score: float | None = None
    model: str | None = None
    kind: int | None = None
    alike: int = 0


def lease_texts(
    access: ProjectAccess, count: int = 1, *, spared: Collection[int] | None = None
) -> list[LeasedText]:
    """The next texts for this annotator: those that they hold already, then new ones.

    Args:
        count: how many to hold, up to `MOST_LEASES`.
        spared: texts that no other annotator may lose. Of the last ones, when nobody else's are
            left, each gets a fair share of what others hold. None: all keep what they have.

    Returns:
        At most `count`, fewer where nothing is left for this annotator; leases are renewed.

    Raises:
        InputError: the person is no member, or the count is out of bounds.
    """
    if not 1 <= count <= MOST_LEASES:
        raise InputError(
            "expected 1 to {most} texts at a time, found {count}", most=MOST_LEASES, count=count
        )
    with access.writing("annotator") as connection:
        chooser = _Chooser(access, connection)
        held = chooser.held(count)
        fresh = chooser.choose(count - len(held)) if len(held) < count else {}
        if spared is not None and len(held | fresh) < count:
            fresh |= chooser.taken_over(held | fresh, count, spared)
        expires_at = chooser.lease(held | fresh)
        return _with_texts(chooser, held | fresh, expires_at)


def lease_by_chance(access: ProjectAccess, count: int) -> int:
    """Let this annotator hold the next texts of the random sample, and no others.

    Args:
        count: how many, up to `MOST_LEASES`; fewer where no more are left.

    Returns:
        How many they hold now.

    Raises:
        InputError: the person is no member.
    """
    return_leases(access)
    with access.writing("annotator") as connection:
        chooser = _Chooser(access, connection)
        texts = chooser.by_chance(min(count, MOST_LEASES))
        chooser.lease(texts)
    return len(texts)


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
    ]
    if text_ids is not None:
        mine.append(PlaceRow.text_id.in_(text_ids))
    with access.writing("annotator") as connection:
        return give_back(connection, *mine)


def give_back(connection: Connection, *which: ColumnElement[bool]) -> int:
    """End the leases among some rows of `PlaceRow`; how many."""
    leased = update(PlaceRow).where(*which, PlaceRow.state == "leased")
    return connection.execute(leased.values(state="returned", expires_at=None)).rowcount


def order_and_hold(access: ProjectAccess, text_ids: Collection[int]) -> tuple[int | None, bool]:
    """Which order of a model holds, and whether this annotator holds all of these texts still.

    Returns:
        The version of the order, None before the first; whether none of the texts was given away.

    Raises:
        AccessError: the person is no member.
    """
    held = select(func.count()).where(
        PlaceRow.annotator == access.person.name,
        PlaceRow.state == "leased",
        PlaceRow.text_id.in_(text_ids),
    )
    with access.reading() as connection:
        version = access.row(connection)["scores_version"]
        return version, connection.scalar(held) == len(text_ids)


def count_left(access: ProjectAccess, most: int) -> int:
    """How many texts this annotator holds or could be handed, counted up to `most`.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        chooser = _Chooser(access, connection)
        return chooser.counted(chooser.candidates(held=True), most)


def count_held_by_others(access: ProjectAccess) -> int:
    """How many texts that this annotator could label others have on their screens.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        held = (
            select(func.count(PlaceRow.text_id.distinct()))
            .join(TextRow, TextRow.id == PlaceRow.text_id)
            .where(
                PlaceRow.project_id == access.project_id,
                PlaceRow.annotator != access.person.name,
                PlaceRow.state == "leased",
                PlaceRow.expires_at > database_time(connection),
                TextRow.is_open,
                ~decided_by(access.person.name),
                ~_Chooser(access, connection).withheld(),
            )
        )
        return connection.scalar(held) or 0


def texts_alike(access: ProjectAccess, text_id: int) -> list[int]:
    """The other texts that are nearly the same, and that this annotator could be given now.

    Args:
        text_id: of a text of the project; another one has none.

    Raises:
        AccessError: the person is no member.
    """
    kind = select(TextRow.alike).where(TextRow.id == text_id).scalar_subquery()
    with access.reading() as connection:
        texts = _Chooser(access, connection).candidates(held=True)
        others = texts.where(TextRow.alike == kind, TextRow.id != text_id)
        return list(connection.scalars(others.order_by(TextRow.id).limit(MOST_LEASES)))


def suggestion_of(access: ProjectAccess, text_id: int) -> tuple[str, str] | None:
    """What an annotator may see of the model for a text: its label and its name; None: nothing.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        found = _suggestions(_Chooser(access, connection), [text_id]).get(text_id)
    return None if found is None else (found["suggested_label"], found["model"])


class _Chooser:
    """Chooses for one annotator within one transaction."""

    def __init__(self, access: ProjectAccess, connection: Connection) -> None:
        self.access, self.connection = access, connection
        self.project = access.row(connection)
        self.now = database_time(connection)
        self.me = access.person.name

    def held(self, count: int) -> dict[int, Drawn]:
        """Open texts that this annotator holds by a lease that has not expired."""
        query = (
            select(PlaceRow.text_id, PlaceRow.drawn)
            .join(TextRow, TextRow.id == PlaceRow.text_id)
            .where(
                TextRow.is_open,
                PlaceRow.project_id == self.access.project_id,
                PlaceRow.annotator == self.me,
                PlaceRow.state == "leased",
                PlaceRow.expires_at > self.now,
            )
            .order_by(case((TextRow.assigned_to == self.me, 0), else_=1), PlaceRow.id)
            .limit(count)
        )
        rows = self.connection.execute(query)
        return {text_id: cast(Drawn, how or "plain") for text_id, how in rows}

    def taken_over(
        self, mine: Collection[int], count: int, spared: Collection[int]
    ) -> dict[int, Drawn]:
        """Of the last texts, which others hold all, enough for a fair share, up to `count`.

        Each time one from whoever has the most, the last of theirs.
        """
        held = (
            select(PlaceRow.annotator, PlaceRow.text_id, PlaceRow.drawn)
            .join(TextRow, TextRow.id == PlaceRow.text_id)
            .where(
                TextRow.is_open,
                PlaceRow.project_id == self.access.project_id,
                PlaceRow.annotator != self.me,
                PlaceRow.state == "leased",
                PlaceRow.expires_at > self.now,
                ~decided_by(self.me),
                ~self.withheld(),
            )
            .order_by(PlaceRow.id)
        )
        piles: dict[str, list[tuple[int, Drawn]]] = {}
        for annotator, text_id, drawn in self.connection.execute(held):
            piles.setdefault(annotator, []).append((text_id, cast(Drawn, drawn or "plain")))
        fair = (len(mine) + sum(map(len, piles.values()))) // (len(piles) + 1)
        taken: dict[int, Drawn] = {}
        while piles and len(mine) + len(taken) < min(count, fair):
            annotator = max(piles, key=lambda name: len(piles[name]))
            pile = piles[annotator]
            if len(pile) <= fair:
                break
            place = next(
                (one for one in reversed(range(len(pile))) if pile[one][0] not in spared), None
            )
            if place is None:
                del piles[annotator]
                continue
            text_id, drawn = pile.pop(place)
            if text_id in mine or text_id in taken:
                continue
            theirs = and_(PlaceRow.annotator == annotator, PlaceRow.text_id == text_id)
            give_back(self.connection, theirs)
            taken[text_id] = drawn
        return taken

    def counted(self, query: Select[int], most: int) -> int:
        """How many rows there are, up to so many."""
        rows = query.limit(most).subquery()
        return self.connection.scalar(select(func.count()).select_from(rows)) or 0

    def choose(self, count: int) -> dict[int, Drawn]:
        """New texts, and how each was chosen: first those that were given to this annotator.

        Of texts that are nearly the same only the first is handed out, until no other text is left.
        """
        chosen: dict[int, Drawn] = {}
        given = self.candidates().where(TextRow.assigned_to == self.me).order_by(TextRow.id)
        self._fill(chosen, count, [given], "plain")
        first = self.candidates().where(first_of_its_kind())
        order = self.project["text_order"]
        if order == "adaptive":
            order = "random" if self._needs_chance() else "scores"
        if order == "scores":
            share = self.project["random_share"]
            wanted = sum(random.random() < share for _ in range(count - len(chosen)))
            self._fill(chosen, len(chosen) + wanted, self._at_random(first), "random")
            self._fill(chosen, count, self._by_scores(first), "scores")
        elif order == "random":
            self._fill(chosen, count, self._at_random(first), "random")
        self._fill(chosen, count, self._plain(first), "plain")
        self._fill(chosen, count, [self.candidates().order_by(TextRow.id)], "plain")
        return chosen

    def _needs_chance(self) -> bool:
        """Whether fewer than `LABELS_BY_CHANCE` texts drawn by chance have a label."""
        drawn = select(PlaceRow.text_id).where(
            PlaceRow.project_id == self.access.project_id,
            PlaceRow.state == "labelled",
            PlaceRow.drawn == "random",
        )
        return self.counted(drawn.distinct(), LABELS_BY_CHANCE) < LABELS_BY_CHANCE

    def by_chance(self, count: int) -> dict[int, Drawn]:
        """New texts by their lottery numbers alone."""
        chosen: dict[int, Drawn] = {}
        first = self.candidates().where(first_of_its_kind())
        self._fill(chosen, count, self._at_random(first), "random")
        return chosen

    def _fill(
        self, chosen: dict[int, Drawn], count: int, queries: Sequence[Select[int]], drawn: Drawn
    ) -> None:
        """Add the first texts of queries until there are `count`; some may be chosen already."""
        for query in queries:
            if len(chosen) >= count:
                return
            for text_id in self.connection.scalars(query.limit(count + len(chosen))):
                if len(chosen) < count:
                    chosen.setdefault(text_id, drawn)

    def lease(self, texts: dict[int, Drawn]) -> datetime:
        """Write the leases, or renew them; returns when they expire."""
        expires_at = self.now + timedelta(seconds=self.project["lease_seconds"])
        mine = and_(PlaceRow.annotator == self.me, PlaceRow.text_id.in_(texts))
        had = self.connection.execute(select(PlaceRow.text_id, PlaceRow.drawn).where(mine))
        known = dict(had.tuples().all())
        values: dict[str, Any] = {"state": "leased", "expires_at": expires_at}
        if known:
            self.connection.execute(update(PlaceRow).where(mine).values(**values))
        for drawn in set(texts.values()):
            moved = [one for one in known if texts[one] == drawn != known[one]]
            if moved:
                place = and_(PlaceRow.annotator == self.me, PlaceRow.text_id.in_(moved))
                self.connection.execute(update(PlaceRow).where(place).values(drawn=drawn))
        fresh = [
            {"project_id": self.access.project_id, "annotator": self.me, "text_id": text_id}
            | {"drawn": drawn, **values}
            for text_id, drawn in texts.items()
            if text_id not in known
        ]
        if fresh:
            self.connection.execute(insert(PlaceRow), fresh)
        return expires_at

    # What follows are queries that are tried in turn: from where this annotator has come to, and
    # from the beginning. A text that needs others, too, stays open when this one has decided it,
    # and all of those would be looked through again and again. What was passed over comes at the
    # end.

    def _plain(self, candidates: Select[int]) -> list[Select[int]]:
        whole = candidates.order_by(TextRow.id)
        passed = self._passed(TextRow.id, "plain")
        return [whole] if passed is None else [whole.where(TextRow.id > passed), whole]

    def _at_random(self, candidates: Select[int]) -> list[Select[int]]:
        whole = candidates.order_by(TextRow.lottery)
        passed = self._passed(TextRow.lottery, "random")
        return [whole] if passed is None else [whole.where(TextRow.lottery > passed), whole]

    def _by_scores(self, candidates: Select[int]) -> list[Select[int]]:
        version = self.project["scores_version"]
        if version is None:
            return []
        whole = (
            candidates.join(TextScoreRow, TextScoreRow.text_id == TextRow.id)
            .where(TextScoreRow.version == version, TextScoreRow.priority.is_not(None))
            .order_by(TextScoreRow.priority.desc(), TextScoreRow.text_id.desc())
        )
        passed = self._passed(TextScoreRow.priority, "scores", version)
        return [whole] if passed is None else [whole.where(TextScoreRow.priority <= passed), whole]

    def _passed(
        self, place: InstrumentedAttribute[Any], drawn: Drawn, version: int | None = None
    ) -> Any:
        """How far this annotator has come in an order; None: not at all, or it does not matter.

        By their latest acts, however many there are. An order of scores may be newer than some of
        them, which then tell nothing, so it is the least far of those since it was written.
        """
        if self.project["annotators_per_text"] == 1:
            return None
        latest = (
            select(AnnotationRow.text_id, AnnotationRow.drawn, AnnotationRow.created_at)
            .where(
                AnnotationRow.project_id == self.access.project_id,
                AnnotationRow.annotator == self.me,
            )
            .order_by(AnnotationRow.id.desc())
            .limit(2 * MOST_LEASES)
            .subquery()
        )
        query = select(func.max(place)).select_from(latest).where(latest.c.drawn == drawn)
        if version is None:
            return self.connection.scalar(query.join(TextRow, TextRow.id == latest.c.text_id))
        written = select(ScoreVersionRow.created_at).where(ScoreVersionRow.id == version)
        query = query.where(latest.c.created_at > written.scalar_subquery())
        of_version = and_(TextScoreRow.text_id == latest.c.text_id, TextScoreRow.version == version)
        return self.connection.scalar(query.join(TextScoreRow, of_version))

    def candidates(self, *, held: bool = False) -> Select[int]:
        """Open texts with a free place that this annotator has neither decided nor on screen.

        Args:
            held: those that this annotator has a lease of, too.
        """
        mine, others = aliased(PlaceRow), aliased(PlaceRow)
        decided = select(mine.id).where(
            mine.text_id == TextRow.id,
            mine.annotator == self.me,
            or_(mine.state.in_(("labelled", "skipped")), false() if held else self._is_held(mine)),
        )
        taken = select(func.count()).where(
            others.text_id == TextRow.id,
            others.annotator != self.me,
            or_(others.state == "labelled", self._is_held(others)),
        )
        return select(TextRow.id).where(
            TextRow.project_id == self.access.project_id,
            TextRow.is_open,
            ~self.withheld(),
            ~decided.exists(),
            taken.scalar_subquery() < self.project["annotators_per_text"],
        )

    def withheld(self) -> ColumnElement[bool]:
        """The text is given to somebody else, who has not decided it."""
        theirs = TextRow.assigned_to
        return and_(theirs.is_not(None), theirs != self.me, ~decided_by(theirs))

    def _is_held(self, place: type[PlaceRow]) -> ColumnElement[bool]:
        return and_(place.state == "leased", place.expires_at > self.now)


def _with_texts(
    chooser: _Chooser, chosen: dict[int, Drawn], expires_at: datetime
) -> list[LeasedText]:
    query = select(TextRow.id, TextRow.text, TextRow.alike).where(TextRow.id.in_(chosen))
    texts = {one: (words, alike) for one, words, alike in chooser.connection.execute(query)}
    alike = _alike(chooser, {kind for _, kind in texts.values() if kind is not None})
    suggested = _suggestions(chooser, chosen)
    return [
        LeasedText(
            text_id=text_id,
            text=texts[text_id][0],
            expires_at=expires_at,
            drawn=drawn,
            kind=texts[text_id][1],
            alike=max(0, alike.get(texts[text_id][1], 0) - 1),
            **suggested.get(text_id, {}),
        )
        for text_id, drawn in chosen.items()
    ]


def _alike(chooser: _Chooser, kinds: Collection[int]) -> dict[int | None, int]:
    """How many texts of each kind need labels."""
    if not kinds:
        return {}
    # By the kind alone: SQLite would go through all open texts if it were asked for those.
    needed = func.sum(case((TextRow.is_open, 1), else_=0))
    query = select(TextRow.alike, needed).where(TextRow.alike.in_(kinds)).group_by(TextRow.alike)
    return dict(chooser.connection.execute(query).tuples().all())


def _suggestions(chooser: _Chooser, texts: Collection[int]) -> dict[int, dict[str, Any]]:
    """Those fields of `LeasedText` that are the model's, by text; none where they are hidden."""
    version = chooser.project["scores_version"]
    if version is None or not chooser.project["show_suggestion"]:
        return {}
    named = select(ScoreVersionRow.model).where(ScoreVersionRow.id == version)
    model = chooser.connection.scalar(named)
    query = select(
        TextScoreRow.text_id,
        TextScoreRow.label.label("suggested_label"),
        TextScoreRow.score.label("suggested_score"),
        TextScoreRow.second_label,
        TextScoreRow.second_score,
    ).where(
        TextScoreRow.version == version,
        TextScoreRow.text_id.in_(texts),
        TextScoreRow.label.is_not(None),
    )
    found = {}
    for row in chooser.connection.execute(query).mappings():
        values = dict(row) | {"model": model}
        found[values.pop("text_id")] = values
    return found
