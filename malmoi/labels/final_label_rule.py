"""The label of a text that leaves the project: a reviewer's, else what annotators agree on."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, Select, select

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

    def written(self, kind: TaskKind) -> str:
        """As `as_cell`."""
        return as_cell(self.labels, kind)


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


def texts_of(access: ProjectAccess, *, labelled_only: bool) -> Select[int]:
    """The ids of all texts of the project, or of those with a vote or a decision."""
    mine = select(TextRow.id).where(TextRow.project_id == access.project_id)
    return _of_them(mine, labelled_only)


def _of_them(query: Select[int], labelled_only: bool) -> Select[int]:
    if not labelled_only:
        return query
    return query.where((TextRow.votes > 0) | TextRow.adjudication_id.is_not(None))


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
    while True:
        query = _of_them(mine, labelled_only).where(TextRow.id > last)
        ids = connection.scalars(query.order_by(TextRow.id).limit(_TEXTS)).all()
        if not ids:
            return
        yield reviewed_texts(access, connection, ids)
        last = ids[-1]
