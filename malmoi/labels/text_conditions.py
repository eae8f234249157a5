"""The few texts of a project with a flag, a note, a skip or a decision, found by an index."""

from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, literal_column, select
from sqlalchemy.orm import aliased
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from malmoi.labels.tables import AdjudicationRow, AnnotationRow, PlaceRow, TextRow


def undone(act: Any = AnnotationRow) -> ColumnElement[bool]:
    """The condition that an undo withdraws an act."""
    # Of the table: an alias of the class took an eighth of the time of saving a label (measured).
    undo = AnnotationRow.__table__.alias().c
    return select(undo.id).where(undo.withdraws == act.id).exists()


def flagged_texts(project_id: int, annotator: str | None = None) -> Select[int]:
    """The ids of texts with a flag up, of one annotator or of anybody, as a query."""
    query, flag = _remarked(project_id, "flag", annotator)
    return query.where(flag.flagged.is_(True))


def noted_texts(project_id: int, annotator: str | None = None) -> Select[int]:
    """The ids of texts with a note that was not emptied again, likewise."""
    query, note = _remarked(project_id, "note", annotator)
    return query.where(note.note != "")


def _remarked(
    project_id: int, kind: Literal["flag", "note"], annotator: str | None
) -> tuple[Select[int], Any]:
    """Texts with an act of this kind, and the act that holds.

    That is the latest of its annotator on the text among those no undo withdraws.
    """
    # Written out: SQLite takes an index of some rows only where it sees that these are wanted.
    is_kind: ColumnElement[str] = literal_column(f"'{kind}'")
    act, later = aliased(AnnotationRow), aliased(AnnotationRow)
    newer = select(later.id).where(
        later.text_id == act.text_id,
        later.annotator == act.annotator,
        later.kind == is_kind,
        later.id > act.id,
        ~undone(later),
    )
    query = select(act.text_id).where(
        act.project_id == project_id,
        act.kind == is_kind,
        ~undone(act),
        ~newer.exists(),
    )
    return query if annotator is None else query.where(act.annotator == annotator), act


def skipped_texts(project_id: int, annotator: str | None = None) -> Select[int]:
    """The ids of texts that one annotator, or anybody, skipped and has not labelled since."""
    query = select(PlaceRow.text_id).where(
        PlaceRow.project_id == project_id,
        PlaceRow.state == "skipped",
        # As it always is: it leads to the index of states and choices.
        PlaceRow.choice.is_(None),
    )
    return query if annotator is None else query.where(PlaceRow.annotator == annotator)


def decided_by(annotator: Any) -> ColumnElement[bool]:
    """That an annotator has labelled or skipped the text; by name, or by a column of texts."""
    theirs = aliased(PlaceRow)
    query = select(theirs.id).where(
        theirs.text_id == TextRow.id,
        theirs.annotator == annotator,
        theirs.state.in_(("labelled", "skipped")),
    )
    return query.exists()


def decided(project_id: int) -> list[ColumnElement[bool]]:
    """That a reviewer's decision of a text holds."""
    some = select(AdjudicationRow.text_id).where(AdjudicationRow.project_id == project_id)
    return [TextRow.id.in_(some), TextRow.adjudication_id.is_not(None)]


def without_index(connection: Connection, column: Any) -> ColumnElement[Any]:
    """The column, so that SQLite looks for no index of it (https://sqlite.org/optoverview.html).

    It knows nothing of how often a value occurs, so it would find the texts of a project by an
    index of another order than is wanted and sort them all. PostgreSQL counts, and is left alone.
    """
    if connection.dialect.name != "sqlite":
        found: ColumnElement[Any] = column
        return found
    return UnaryExpression(column, operator=custom_op("+"))
