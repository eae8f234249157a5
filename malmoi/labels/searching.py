"""Searching a project: texts by their words, labels, scores, annotators, dates and states.

A search is a page of texts, found from where the page before ended; nothing is counted but up to a
bound. Annotators find all texts, and of the labels their own: what others gave, and what reviewers
decided, neither is shown to them nor can be searched by.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Select, func, select, tuple_

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.comments import Comment, seen_by
from malmoi.labels.people import AccessError
from malmoi.labels.review import ReviewedText, Vote, reviewed_texts
from malmoi.labels.roles import allows
from malmoi.labels.search_conditions import SearchConditions
from malmoi.labels.stored_text import checked
from malmoi.labels.tables import AnnotationRow, PlaceRow, TextRow, TextScoreRow
from malmoi.labels.text_state import require_text
from malmoi.messages import Phrase

SearchState = Literal["open", "labelled", "disagreeing", "decided", "skipped"]
SearchOrder = Literal["imported", "doubt", "surest", "least sure", "newest"]
STATES: tuple[SearchState, ...] = ("open", "labelled", "disagreeing", "decided", "skipped")
ORDERS: tuple[SearchOrder, ...] = ("imported", "doubt", "surest", "least sure", "newest")
# A search is counted no further.
MOST_COUNTED = 10_000
MOST_ON_PAGE = 200
_LONGEST_WORDS = 200
_MOST_WORDS = 10
# Where the next page begins: the value of its order, if that is not the id, and the id.
Cursor = tuple[float | None, int]


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is looked for; every part that is given has to hold.

    Attributes:
        words: parts of the text with space between them, whatever their case and normal form.
        label: that a reviewer decided, or else an annotator gave. With `annotator`, `since`,
            `until` or `at_random`: that is the label of such a vote.
        suggested: what the model says.
        score_from: the least probability of what the model says.
        score_to: the greatest; 0 to 1 finds texts without a score, too.
        annotator: who has labelled or skipped it.
        assigned_to: to whom it was given, see `malmoi.labels.assigning`.
        since: when a label was given at the earliest.
        until: before when.
        flagged: whether an annotator has a flag up on it.
        noted: whether an annotator has written a note to it.
        source: part of the name of a file that it came from.
        at_random: whether it came to an annotator by chance.
        state: open (needs labels), labelled (has one), disagreeing (and nobody has decided),
            decided, skipped. For an annotator open and labelled are about their own label.
        order: of import; likely errors first; by the probability of what the model says; newest
            label first. Texts without a doubt, a score or a label are left out of such an order.
        nearest: ids of texts in an order of the caller's, which takes the place of that of import;
            others are not found. None: all are looked through.

    Raises:
        InputError: a value is out of bounds.
    """

    words: str = ""
    label: str | None = None
    suggested: str | None = None
    score_from: float = 0.0
    score_to: float = 1.0
    annotator: str | None = None
    assigned_to: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    flagged: bool = False
    noted: bool = False
    source: str = ""
    at_random: bool = False
    state: SearchState | None = None
    order: SearchOrder = "imported"
    nearest: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        checked(self.words, Phrase("words to search for"))
        checked(self.source, Phrase("the name of a file to search for"))
        if len(self.words) > _LONGEST_WORDS or len(self.words.split()) > _MOST_WORDS:
            raise InputError(
                "expected at most {most} words of {longest} characters to search for, found "
                "{words} of {characters:,}; leave some out",
                most=_MOST_WORDS,
                longest=_LONGEST_WORDS,
                words=len(self.words.split()),
                characters=len(self.words),
            )
        if not 0 <= self.score_from <= self.score_to <= 1:
            raise InputError(
                "expected scores from 0 to 1, the lower one first, found {score_from} to "
                "{score_to}",
                score_from=self.score_from,
                score_to=self.score_to,
            )
        if self.state is not None and self.state not in STATES:
            raise InputError(
                "expected a state of {states}, found {state!r}",
                states=", ".join(STATES),
                state=self.state,
            )
        if self.order not in ORDERS:
            raise InputError(
                "expected an order of {orders}, found {order!r}",
                orders=", ".join(ORDERS),
                order=self.order,
            )

    @property
    def by_scores(self) -> bool:
        """Whether it asks what the model says."""
        bounded = (self.score_from, self.score_to) != (0.0, 1.0)
        return bounded or self.suggested is not None or self.order in ("surest", "least sure")


@dataclass(frozen=True, kw_only=True)
class ModelView:
    """What the model that wrote the scores says of a text: its first two labels.

    Attributes:
        doubt: of a labelled text: one less the probability of its label.
    """

    label: str | None
    score: float | None
    second_label: str | None
    second_score: float | None
    doubt: float | None


@dataclass(frozen=True, kw_only=True)
class FoundText:
    """A text with what the person who asks may see of it.

    Attributes:
        text_id: names it.
        votes: of all for a reviewer, one's own for an annotator.
        adjudicated: what a reviewer decided; None for an annotator.
        view: None where there is none, or where the project hides it from annotators.
        flagged: whether one of those whose votes are seen has a flag up.
        labelled_at: when the newest of these labels was given.
        comments: the notes that may be seen, oldest first.
    """

    text_id: int
    text: str
    votes: tuple[Vote, ...]
    adjudicated: tuple[str, ...] | None
    reviewer: str | None
    view: ModelView | None
    flagged: bool
    labelled_at: datetime | None
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SearchPage:
    """Some of the texts that were found.

    Attributes:
        texts: in order.
        next: where the next page begins; None after the last.
    """

    texts: tuple[FoundText, ...]
    next: Cursor | None


def search_texts(
    access: ProjectAccess, search: Search, *, after: Cursor | None = None, limit: int = 50
) -> SearchPage:
    """One page of a search.

    Args:
        access: of an annotator; some questions are for reviewers alone.
        after: `next` of the page before.
        limit: how many texts, up to 200.

    Raises:
        AccessError: the person may not ask this.
        InputError: a label is none of the project, or the limit is out of bounds.
    """
    if not 1 <= limit <= MOST_ON_PAGE:
        raise InputError(
            "expected 1 to {most} texts at a time, found {limit}", most=MOST_ON_PAGE, limit=limit
        )
    with access.reading() as connection:
        finder = _Finder(access, connection, search)
        rows = finder.rows(after, limit + 1)
        more = len(rows) > limit
        ids = [text_id for _, text_id in rows[:limit]]
        return SearchPage(texts=finder.details(ids), next=rows[limit - 1] if more else None)


def count_texts(access: ProjectAccess, search: Search) -> int:
    """How many texts a search finds; `MOST_COUNTED` + 1 stands for more.

    Raises:
        AccessError: the person may not ask this.
        InputError: a label is none of the project.
    """
    with access.reading() as connection:
        query = _Finder(access, connection, search).unordered().limit(MOST_COUNTED + 1).subquery()
        return connection.scalar(select(func.count()).select_from(query)) or 0


def matching_ids(
    access: ProjectAccess, connection: Connection, search: Search, most: int
) -> list[int]:
    """The ids that a search finds, at most `most` + 1; errors as `search_texts`."""
    query = _Finder(access, connection, search).unordered().limit(most + 1)
    return [row[-1] for row in connection.execute(query)]


def model_views(
    access: ProjectAccess, connection: Connection, text_ids: Sequence[int]
) -> dict[int, ModelView]:
    """What the newest scores say of texts, for callers that have asked for the role."""
    version = access.row(connection)["scores_version"]
    if version is None:
        return {}
    names = ("label", "score", "second_label", "second_score", "doubt")
    columns = [getattr(TextScoreRow, name) for name in names]
    query = select(TextScoreRow.text_id, *columns).where(
        TextScoreRow.version == version, TextScoreRow.text_id.in_(text_ids)
    )
    return {
        row[0]: ModelView(**dict(zip(names, row[1:], strict=True)))
        for row in connection.execute(query)
    }


def read_model_views(access: ProjectAccess, text_ids: Sequence[int]) -> dict[int, ModelView]:
    """What the newest scores say of texts.

    Raises:
        AccessError: the person is no reviewer.
    """
    with access.reading("reviewer") as connection:
        return model_views(access, connection, text_ids)


def found_text(access: ProjectAccess, connection: Connection, text_id: int) -> FoundText:
    """One text as a search would show it; errors as `search_texts`."""
    require_text(connection, access.project_id, text_id)
    return _Finder(access, connection, Search()).details([text_id])[0]


def read_texts(access: ProjectAccess, text_ids: Sequence[int]) -> tuple[FoundText, ...]:
    """Texts in this order, as a search would show them.

    Raises:
        InputError: the project has no such text.
    """
    with access.reading() as connection:
        for text_id in text_ids:
            require_text(connection, access.project_id, text_id)
        return _Finder(access, connection, Search()).details(text_ids)


class _Finder:
    """One search of one person in one transaction."""

    def __init__(self, access: ProjectAccess, connection: Connection, search: Search) -> None:
        self.access, self.connection, self.search = access, connection, search
        self.project = access.row(connection)
        self.me = access.person.name
        self.sees_all = allows(access.role(connection), "reviewer")
        self.sees_model = self.sees_all or bool(self.project["show_suggestion"])
        self.notes_of = seen_by(access, connection)
        self._refuse_what_is_hidden()
        self.conditions = SearchConditions(
            connection=connection,
            project=self.project,
            only_of=None if self.sees_all else self.me,
            search=search,
        )

    def _refuse_what_is_hidden(self) -> None:
        search = self.search
        of_others = {search.annotator, search.assigned_to} - {None, self.me}
        decided = search.state in ("disagreeing", "decided") or search.order == "doubt"
        if not self.sees_all and (of_others or decided):
            raise AccessError(
                "expected the role reviewer in project {project_id} to search by what others said, "
                "found {person} as annotator; ask one of its admins",
                project_id=self.access.project_id,
                person=self.me,
            )
        if not self.sees_model and search.by_scores:
            raise AccessError(
                "project {project_id} hides what the model says from annotators: expected a search "
                "without it, found {person} as annotator",
                project_id=self.access.project_id,
                person=self.me,
            )

    def unordered(self) -> Select[Any]:
        """The ids of all that is found, in whichever order is fastest."""
        if self.search.order != "newest":
            return self.query()
        plain = _Finder(self.access, self.connection, replace(self.search, order="imported"))
        return plain.query().where(*plain.conditions.labelled())

    def query(self) -> Select[Any]:
        """The value of the order and the id of every text that is found."""
        search, conditions = self.search, self.conditions
        score = TextScoreRow.__table__.c
        query: Any
        if search.order == "newest":
            columns = (AnnotationRow.id, TextRow.id)
            query = select(*columns).where(*conditions.newest_labels())
        elif search.order == "imported" and not search.by_scores:
            query = select(TextRow.id)
        else:
            by = score.doubt if search.order == "doubt" else score.score
            query = select(by, TextRow.id).join(TextScoreRow, score.text_id == TextRow.id)
            query = query.where(score.version == (self.project["scores_version"] or 0))
            if search.order != "imported":
                query = query.where(by.is_not(None))
        found: Select[Any] = query.where(*conditions.of_texts())
        return found

    def rows(self, after: Cursor | None, limit: int) -> list[Cursor]:
        """The values of the order and the ids of one page."""
        order = self.search.order
        if self.search.nearest is not None and order == "imported":
            return self._nearest_rows(self.search.nearest, after, limit)
        score = TextScoreRow.__table__.c
        by = {
            "imported": (TextRow.id,),
            "doubt": (score.doubt, score.text_id),
            "surest": (score.score, score.text_id),
            "least sure": (score.score, score.text_id),
            "newest": (AnnotationRow.id, TextRow.id),
        }[order]
        query = self.query()
        if after is not None:
            here = tuple_(*by)
            place = tuple_(*(after if len(by) > 1 else after[1:]))
            rising = order in ("imported", "least sure")
            query = query.where(here > place if rising else here < place)
        if order == "newest":
            # In this order an index has them; nothing follows the id of the label.
            query = query.order_by(AnnotationRow.created_at.desc(), AnnotationRow.id.desc())
        else:
            falling = order in ("doubt", "surest")
            query = query.order_by(*(column.desc() if falling else column for column in by))
        found = self.connection.execute(query.limit(limit))
        return [(row[0] if len(row) > 1 else None, row[-1]) for row in found]

    def _nearest_rows(
        self, nearest: Sequence[int], after: Cursor | None, limit: int
    ) -> list[Cursor]:
        found = {row[-1] for row in self.connection.execute(self.query())}
        first = 0 if after is None else nearest.index(after[1]) + 1
        rows: list[Cursor] = [(None, one) for one in nearest[first:] if one in found]
        return rows[:limit]

    def details(self, text_ids: Sequence[int]) -> tuple[FoundText, ...]:
        """The texts in this order, with what the person may see of them."""
        texts = {
            text.text_id: text for text in reviewed_texts(self.access, self.connection, text_ids)
        }
        views = (
            model_views(self.access, self.connection, text_ids) if self.sees_model and texts else {}
        )
        moments = self._moments(text_ids)
        return tuple(self._found(texts[one], views.get(one), moments.get(one)) for one in text_ids)

    def _found(
        self, text: ReviewedText, view: ModelView | None, labelled_at: datetime | None
    ) -> FoundText:
        votes = [one for one in text.votes if self.sees_all or one.annotator == self.me]
        remarks = [one for one in text.remarks if self.sees_all or one.annotator == self.me]
        return FoundText(
            text_id=text.text_id,
            text=text.text,
            votes=tuple(votes),
            adjudicated=text.adjudicated if self.sees_all else None,
            reviewer=text.reviewer if self.sees_all else None,
            view=view,
            flagged=any(one.flagged for one in remarks),
            labelled_at=labelled_at,
            comments=tuple(
                one for one in text.comments if self.notes_of is None or one.person in self.notes_of
            ),
        )

    def _moments(self, text_ids: Sequence[int]) -> dict[int, datetime]:
        """When the newest label was given that holds and that the person may see."""
        query = (
            select(PlaceRow.text_id, func.max(AnnotationRow.created_at))
            .join(AnnotationRow, AnnotationRow.id == PlaceRow.annotation_id)
            .where(PlaceRow.text_id.in_(text_ids), PlaceRow.state == "labelled")
            .group_by(PlaceRow.text_id)
        )
        if not self.sees_all:
            query = query.where(PlaceRow.annotator == self.me)
        return dict(self.connection.execute(query).tuples().all())
