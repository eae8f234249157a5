"""The few texts of a project that are flagged, skipped or decided, found without all others."""

from sqlalchemy import ColumnElement, Select, literal_column, select
from sqlalchemy.orm import aliased

from malmoi.labels.project_models import AdjudicationRow, AnnotationRow, PlaceRow, TextRow


def flagged_texts(project_id: int, annotator: str | None = None) -> Select[int]:
    """The ids of texts with a flag up, of one annotator or of anybody, as a query.

    Up is a flag that is the latest of its annotator on the text among those no undo withdraws.
    """
    # Written out: SQLite takes an index of some rows only where it sees that these are wanted.
    is_flag: ColumnElement[str] = literal_column("'flag'")
    flag, later = aliased(AnnotationRow), aliased(AnnotationRow)
    undo, undo_of_later = aliased(AnnotationRow), aliased(AnnotationRow)
    newer = select(later.id).where(
        later.text_id == flag.text_id,
        later.annotator == flag.annotator,
        later.kind == is_flag,
        later.id > flag.id,
        ~select(undo_of_later.id).where(undo_of_later.withdraws == later.id).exists(),
    )
    query = select(flag.text_id).where(
        flag.project_id == project_id,
        flag.kind == is_flag,
        flag.flagged.is_(True),
        ~select(undo.id).where(undo.withdraws == flag.id).exists(),
        ~newer.exists(),
    )
    return query if annotator is None else query.where(flag.annotator == annotator)


def skipped_texts(project_id: int, annotator: str | None = None) -> Select[int]:
    """The ids of texts that one annotator, or anybody, skipped and has not labelled since."""
    query = select(PlaceRow.text_id).where(
        PlaceRow.project_id == project_id,
        PlaceRow.state == "skipped",
        # As it always is: it leads to the index of states and choices.
        PlaceRow.choice.is_(None),
    )
    return query if annotator is None else query.where(PlaceRow.annotator == annotator)


def decided(project_id: int) -> list[ColumnElement[bool]]:
    """That a reviewer's decision of a text holds."""
    some = select(AdjudicationRow.text_id).where(AdjudicationRow.project_id == project_id)
    return [TextRow.id.in_(some), TextRow.adjudication_id.is_not(None)]
