"""The label of a text that leaves the project: a reviewer's, else what annotators agree on."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, or_, select

from malmoi.labels.access import ProjectAccess
from malmoi.labels.project import TaskKind
from malmoi.labels.review import ReviewedText, reviewed_texts
from malmoi.labels.tables import TextRow

DecidedBy = Literal["review", "all", "majority"]
_TEXTS = 1_000


@dataclass(frozen=True, kw_only=True)
class FinalLabel:
    """What a text is, and who says so.

    Attributes:
        labels: one, or any number of a `multi` project.
        decided_by: a reviewer, all its annotators, or more than half of them.
    """

    labels: tuple[str, ...]
    decided_by: DecidedBy


def as_cell(labels: tuple[str, ...], kind: TaskKind) -> str:
    """The labels of a text as a cell that `finetune/kfold.py` reads: a name, or a JSON list."""
    return labels[0] if kind == "single" else json.dumps(labels, ensure_ascii=False)


def final_label(text: ReviewedText) -> FinalLabel | None:
    """The label of a text; None without votes, or where no more than half of them are the same."""
    return decided(text.adjudicated, [vote.labels for vote in text.votes if not vote.skipped])


def decided(
    adjudicated: tuple[str, ...] | None, voted: Sequence[tuple[str, ...]]
) -> FinalLabel | None:
    """As `final_label`, by a reviewer's labels and those of each vote."""
    if adjudicated is not None:
        return FinalLabel(labels=adjudicated, decided_by="review")
    votes = Counter(voted)
    if not votes:
        return None
    labels, count = votes.most_common(1)[0]
    if count == votes.total():
        return FinalLabel(labels=labels, decided_by="all")
    if 2 * count > votes.total():
        return FinalLabel(labels=labels, decided_by="majority")
    return None


def has_label() -> ColumnElement[bool]:
    """The condition that a text has a vote or a decision."""
    return or_(TextRow.votes > 0, TextRow.adjudication_id.is_not(None))


def iter_reviewed(
    access: ProjectAccess, connection: Connection, *, labelled_only: bool
) -> Iterator[list[ReviewedText]]:
    """All texts with their votes, some at a time, in the order of import.

    Args:
        access: of a reviewer.
        connection: of a transaction that has asked for the role.
        labelled_only: leave out texts without a vote or a decision.
    """
    last = 0
    # Not by an index of projects: that would find and sort all texts of one for every thousand of
    # them. A sum has no index, so the table is walked once, in the order of its key.
    mine = select(TextRow.id).where(TextRow.project_id + 0 == access.project_id)
    if labelled_only:
        mine = mine.where(has_label())
    while True:
        query = mine.where(TextRow.id > last)
        ids = connection.scalars(query.order_by(TextRow.id).limit(_TEXTS)).all()
        if not ids:
            return
        yield reviewed_texts(access, connection, ids)
        last = ids[-1]
