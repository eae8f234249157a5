"""What a search asks of texts, as conditions that SQLite and PostgreSQL answer fast."""

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, and_, collate, func, not_, or_, select
from sqlalchemy.orm import aliased

from malmoi.errors import InputError
from malmoi.labels.label_names import normal_label
from malmoi.labels.projects import read_labels
from malmoi.labels.tables import (
    AdjudicationRow,
    AnnotationRow,
    PlaceRow,
    TextRow,
    TextScoreRow,
    TextSourceRow,
)
from malmoi.labels.text_conditions import (
    decided,
    flagged_texts,
    noted_texts,
    skipped_texts,
    without_index,
)

if TYPE_CHECKING:
    from malmoi.labels.searching import Search

Condition = ColumnElement[bool]

# The letters that a syllable can begin with, in the order of Unicode's syllables.
_INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_SYLLABLES_OF_A_LETTER = 588
# Shorter words stand across two others too often.
_FEWEST_WITH_SPACES = 3


@dataclass(frozen=True, kw_only=True)
class SearchConditions:
    """The conditions of one search.

    Attributes:
        connection: of the transaction that they are used in.
        project: its row.
        only_of: whose labels, flags, notes and skips count; None: everybody's.
        search: what is looked for.
    """

    connection: Connection
    project: Mapping[str, Any]
    only_of: str | None
    search: "Search"

    def of_texts(self) -> list[Condition]:
        """All conditions on texts; `TextScoreRow` is joined where the search asks for scores."""
        search = self.search
        found = [*self._in_project(), *self._of_state()]
        if search.nearest is not None:
            found.append(TextRow.id.in_(search.nearest))
        if search.flagged:
            found.append(TextRow.id.in_(flagged_texts(self.project["id"], self.only_of)))
        if search.noted:
            found.append(TextRow.id.in_(noted_texts(self.project["id"], self.only_of)))
        if search.assigned_to is not None:
            found.append(TextRow.assigned_to == search.assigned_to)
        found += self._of_votes()
        if search.suggested is not None:
            found.append(TextScoreRow.label == search.suggested)
        if search.score_from > 0 or search.score_to < 1:
            found.append(TextScoreRow.score.between(search.score_from, search.score_to))
        if search.source:
            of_file = self._has_word(TextSourceRow.source, search.source)
            rows = select(TextSourceRow.id).where(TextSourceRow.text_id == TextRow.id, of_file)
            found.append(rows.exists())
        # Last, as nothing else takes as long.
        return found + [self._as_typed(word) for word in search.words.split()]

    def newest_labels(self) -> list[Condition]:
        """Let `AnnotationRow` be the newest label of a text among those that hold."""
        held, later = aliased(PlaceRow), aliased(PlaceRow)
        newer = select(later.id).where(
            later.text_id == AnnotationRow.text_id,
            later.state == "labelled",
            later.annotation_id > AnnotationRow.id,
        )
        holds = select(held.id).where(
            held.text_id == AnnotationRow.text_id,
            held.annotator == AnnotationRow.annotator,
            held.state == "labelled",
            held.annotation_id == AnnotationRow.id,
        )
        found = [
            AnnotationRow.project_id == self.project["id"],
            AnnotationRow.kind == "label",
            TextRow.id == AnnotationRow.text_id,
            holds.exists(),
        ]
        if self.only_of is not None:
            return [*found, AnnotationRow.annotator == self.only_of]
        return [*found, ~newer.exists()]

    def labelled(self) -> list[Condition]:
        """That a text has a label; for an annotator, one of their own."""
        if self.only_of is None:
            return [TextRow.votes > 0]
        return [self._a_vote(PlaceRow.annotator == self.only_of, PlaceRow.state == "labelled")]

    def _in_project(self) -> list[Condition]:
        mine = TextRow.project_id == self.project["id"]
        if self.search.state in ("open", "disagreeing") and self.only_of is None:
            return [mine]  # an index has them in order
        if self.connection.dialect.name != "sqlite":
            return [mine]
        # It goes along the ids then, so only those are looked at among which the project's are.
        ends: list[int] = []
        for is_open in (True, False):
            some = (TextRow.project_id == self.project["id"], TextRow.is_open.is_(is_open))
            for end in (func.min(TextRow.id), func.max(TextRow.id)):
                found = self.connection.scalar(select(end).where(*some))
                ends += [] if found is None else [found]
        plain = without_index(self.connection, TextRow.__table__.c.project_id)
        first, last = min(ends, default=0), max(ends, default=0)
        return [plain == self.project["id"], TextRow.id >= first, TextRow.id <= last]

    def _of_state(self) -> list[Condition]:
        state = self.search.state
        if state is None:
            return []
        if state == "skipped":
            return [TextRow.id.in_(skipped_texts(self.project["id"], self.only_of))]
        if state == "labelled":
            return self.labelled()
        if self.only_of is not None:
            return [not_(one) for one in self.labelled()]
        if state == "open":
            return [TextRow.is_open.is_(True)]
        if state == "disagreeing":
            return [TextRow.disagrees.is_(True), TextRow.adjudication_id.is_(None)]
        return decided(self.project["id"])

    def _of_votes(self) -> list[Condition]:
        """Conditions on one and the same vote, and on what was decided."""
        search = self.search
        some: list[Condition] = []
        if search.annotator is not None:
            some.append(PlaceRow.annotator == search.annotator)
        if search.since is not None or search.until is not None:
            some += self._between(search.since, search.until)
        if search.at_random:
            some.append(PlaceRow.drawn == "random")
        if search.label is None:
            if not some:
                return []
            decided = PlaceRow.state.in_(("labelled", "skipped"))
            return [self._a_vote(decided, *some, *self._of_me(PlaceRow.annotator))]
        voted = self._a_vote(
            PlaceRow.state == "labelled",
            self._names_label(PlaceRow.choice),
            *some,
            *self._of_me(PlaceRow.annotator),
        )
        labelled = and_(TextRow.votes > 0, voted)
        if some or self.only_of is not None:
            return [labelled]
        decided_so = (
            select(AdjudicationRow.id)
            .where(
                AdjudicationRow.id == TextRow.adjudication_id,
                self._names_label(AdjudicationRow.choice),
            )
            .exists()
        )
        return [
            or_(
                and_(TextRow.adjudication_id.is_not(None), decided_so),
                and_(TextRow.adjudication_id.is_(None), labelled),
            )
        ]

    def _a_vote(self, *conditions: Condition) -> Condition:
        return select(PlaceRow.id).where(PlaceRow.text_id == TextRow.id, *conditions).exists()

    def _of_me(self, who: Any) -> list[Condition]:
        return [] if self.only_of is None else [who == self.only_of]

    def _names_label(self, choice: Any) -> Condition:
        """Whether a choice, a JSON list of ids, has the label."""
        one = self._label_id
        if self.project["kind"] == "single":
            return choice == json.dumps([one])
        patterns = (f"[{one}]", f"[{one}, %", f"%, {one}, %", f"%, {one}]")
        return or_(*(choice.like(pattern) for pattern in patterns))

    @cached_property
    def _label_id(self) -> int:
        wanted = normal_label(self.search.label or "")
        labels = read_labels(self.connection, self.project["id"])
        for label in labels:
            if label.name == wanted and label.id is not None:
                return label.id
        names = ", ".join(label.name for label in labels)
        raise InputError(
            "expected a label of {names}, found {wanted!r}", names=names, wanted=wanted
        )

    def _between(self, since: datetime | None, until: datetime | None) -> list[Condition]:
        """Rows of the log come in the order of time, so a time is an id of it."""
        found: list[Condition] = [PlaceRow.annotation_id.is_not(None)]
        if since is not None:
            found.append(PlaceRow.annotation_id >= self._first_since(since))
        if until is not None:
            found.append(PlaceRow.annotation_id < self._first_since(until))
        return found

    def _first_since(self, moment: datetime) -> int:
        query = (
            select(AnnotationRow.id)
            .where(
                AnnotationRow.project_id == self.project["id"], AnnotationRow.created_at >= moment
            )
            .order_by(AnnotationRow.created_at, AnnotationRow.id)
            .limit(1)
        )
        found = self.connection.scalar(query)
        return 2**31 - 1 if found is None else found

    def _as_typed(self, word: str) -> Condition:
        """Whether a text has a word, whatever spaces it sets in it, or has its initial letters."""
        if len(word) > 1 and all(letter in _INITIALS for letter in word):
            pattern = "".join(_syllables_of(letter) for letter in word)
            return TextRow.text.regexp_match(pattern)
        found = self._has_word(TextRow.text, word)
        if len(word) < _FEWEST_WITH_SPACES or not all("가" <= sign <= "힣" for sign in word):
            return found
        return or_(found, self._has_word(func.replace(TextRow.text, " ", ""), word))

    def _has_word(self, column: Any, word: str) -> Condition:
        """Whether a column has a word, in either normal form that files have it in.

        Its characters stand for themselves. Where none has a case, they are compared as they are;
        Latin letters by LIKE, which takes both cases of ASCII for equal everywhere.
        """
        forms = {unicodedata.normalize(form, word) for form in ("NFC", "NFD")}
        return or_(*(self._has(column, form) for form in sorted(forms)))

    def _has(self, column: Any, word: str) -> Condition:
        is_sqlite = self.connection.dialect.name == "sqlite"
        if word.lower() == word.upper():
            found = func.instr if is_sqlite else func.strpos
            return found(column, word) > 0
        if all(sign.isascii() or sign.lower() == sign.upper() for sign in word):
            like = column.like if is_sqlite else column.ilike
            return like(f"%{_escaped(word)}%", escape="\\")
        # Letters like É: SQLite knows no case of theirs, PostgreSQL's depends on its locale.
        if is_sqlite:
            driver: Any = self.connection.connection.driver_connection
            driver.create_function("malmoi_folded", 1, str.casefold, deterministic=True)
            return func.instr(func.malmoi_folded(column), word.casefold()) > 0
        return func.strpos(func.lower(collate(column, "und-x-icu")), word.lower()) > 0


def _syllables_of(initial: str) -> str:
    """A pattern of the letter itself and of all syllables that begin with it."""
    first = ord("가") + _SYLLABLES_OF_A_LETTER * _INITIALS.index(initial)
    return f"[{initial}{chr(first)}-{chr(first + _SYLLABLES_OF_A_LETTER - 1)}]"


def _escaped(word: str) -> str:
    for sign in "\\%_":
        word = word.replace(sign, f"\\{sign}")
    return word
