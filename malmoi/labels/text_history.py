"""All that happened to one text: where it came from, who said what of it, and when."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, select
from sqlalchemy.orm import aliased

from malmoi.labels.access import ProjectAccess
from malmoi.labels.comments import seen_by
from malmoi.labels.label_book import LabelBook
from malmoi.labels.label_studio import columns_of_task
from malmoi.labels.roles import allows
from malmoi.labels.searching import FoundText, found_text
from malmoi.labels.tables import AdjudicationRow, AnnotationRow, TextSourceRow
from malmoi.labels.text_conditions import undone

TextAction = Literal["label", "skip", "flag", "note", "undo", "decide", "withdraw"]
# Duplicates of a text may be any number; acts on it may be, too.
_MOST_SOURCES, _MOST_ACTS = 100, 500


@dataclass(frozen=True, kw_only=True)
class TextAct:
    """One row of a log.

    Attributes:
        action: of an annotator, or decide or withdraw of a reviewer.
        labels: of a label or a decision.
        flagged: of a flag: up or down.
        note: of a note or a decision.
        undoes: of an undo: what kind of act it withdrew.
        undone: whether an undo withdraws it, or a later decision stands in its place.
        suggested_label: that was on screen.
        suggested_score: its probability.
        suggested_model: by which model.
        seconds: from the text's appearance.
    """

    person: str
    action: TextAction
    created_at: datetime
    labels: tuple[str, ...] = ()
    flagged: bool | None = None
    note: str = ""
    undoes: str | None = None
    undone: bool = False
    suggested_label: str | None = None
    suggested_score: float | None = None
    suggested_model: str | None = None
    seconds: float | None = None
    guideline_version: int | None = None


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """A row of a file that a text came from.

    Attributes:
        source: the file.
        place: the row in it.
        text: as it stood there, where it differs.
        cells: the other columns.
    """

    source: str
    place: str
    text: str | None
    cells: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TextHistory:
    """One text.

    Attributes:
        found: as a search shows it.
        acts: oldest first; for an annotator one's own, and what reviewers have written.
        sources: in the order of import, at most 100.
    """

    found: FoundText
    acts: tuple[TextAct, ...]
    sources: tuple[TextSource, ...]


def read_history(access: ProjectAccess, text_id: int) -> TextHistory:
    """One text with all that the person may know of it.

    Raises:
        AccessError: the person is no member.
        InputError: the project has no such text.
    """
    with access.reading() as connection:
        found = found_text(access, connection, text_id)
        sees_all = allows(access.role(connection), "reviewer")
        book = LabelBook(access, connection)
        shown = sees_all or bool(access.row(connection)["show_suggestion"])
        notes_of = seen_by(access, connection)
        acts = _acts(connection, text_id, book, None if sees_all else access.person.name, shown)
        if notes_of is not None:
            others = _acts(connection, text_id, book, None, shown)
            others = [act for act in others if act.action == "note" and act.person in notes_of]
            acts += [act for act in others if act.person != access.person.name]
        if sees_all:
            acts += _decisions(connection, text_id, book)
        return TextHistory(
            found=found,
            acts=tuple(sorted(acts, key=lambda act: act.created_at)),
            sources=_sources(connection, text_id),
        )


def _acts(
    connection: Connection, text_id: int, book: LabelBook, only_of: str | None, shown: bool
) -> list[TextAct]:
    withdrawn = aliased(AnnotationRow)
    kind = select(withdrawn.kind).where(withdrawn.id == AnnotationRow.withdraws)
    query = (
        select(
            AnnotationRow.__table__, kind.scalar_subquery().label("of"), undone().label("undone")
        )
        .where(AnnotationRow.text_id == text_id)
        .order_by(AnnotationRow.id.desc())
        .limit(_MOST_ACTS)
    )
    if only_of is not None:
        query = query.where(AnnotationRow.annotator == only_of)
    return [
        TextAct(
            person=row["annotator"],
            action=row["kind"],
            created_at=row["created_at"],
            labels=() if row["choice"] is None else book.labels(row["choice"]),
            flagged=row["flagged"],
            note=row["note"] or "",
            undoes=row["of"],
            undone=bool(row["undone"]),
            suggested_label=row["suggested_label"] if shown else None,
            suggested_score=row["suggested_score"] if shown else None,
            suggested_model=row["suggested_model"] if shown else None,
            seconds=row["seconds"],
            guideline_version=row["guideline_version"],
        )
        for row in connection.execute(query).mappings()
    ][::-1]


def _decisions(connection: Connection, text_id: int, book: LabelBook) -> list[TextAct]:
    query = (
        select(AdjudicationRow.__table__)
        .where(AdjudicationRow.text_id == text_id)
        .order_by(AdjudicationRow.id.desc())
        .limit(_MOST_ACTS)
    )
    rows = connection.execute(query).mappings().all()
    return [
        TextAct(
            person=row["reviewer"],
            action="withdraw" if row["choice"] is None else "decide",
            created_at=row["created_at"],
            labels=() if row["choice"] is None else book.labels(row["choice"]),
            note=row["note"] or "",
            undone=place > 0,
            guideline_version=row["guideline_version"],
        )
        for place, row in enumerate(rows)
    ][::-1]


def _sources(connection: Connection, text_id: int) -> tuple[TextSource, ...]:
    query = (
        select(TextSourceRow.source, TextSourceRow.place, TextSourceRow.text, TextSourceRow.cells)
        .where(TextSourceRow.text_id == text_id)
        .order_by(TextSourceRow.id)
        .limit(_MOST_SOURCES)
    )
    return tuple(
        TextSource(
            source=source,
            place=place,
            text=text,
            cells=columns_of_task(json.loads(cells)),
        )
        for source, place, text, cells in connection.execute(query)
    )
