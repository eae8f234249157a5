"""The table of labels, and the label sets by which tasks are told apart in it.

The table is a log: a correction is a later row, so the label of a text is its row with the highest
id among those of one task.
"""

import json
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC: SQLite forgets time zones, so they are put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """What the migrations have to make; a change here needs one in `migrations/versions`."""


class Label(Base):
    """One decision of one person about one text."""

    __tablename__ = "labels"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    text: Mapped[str] = mapped_column(Text)
    # Hash of the clean text, which training sees; the text itself can be too long for an index.
    text_sha256: Mapped[str] = mapped_column(String(64), index=True)
    predicted_label: Mapped[str | None] = mapped_column(Text)
    confidence: Mapped[float | None]
    label: Mapped[str] = mapped_column(Text)
    # The labels that could be chosen, see `label_set`; None where that is not known.
    label_set: Mapped[str | None] = mapped_column(Text)
    model: Mapped[str | None] = mapped_column(Text)
    annotator: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # Names the decision: the same one arriving twice is one row.
    request_id: Mapped[str] = mapped_column(String(128), unique=True)


def label_set(labels: Collection[str]) -> str:
    """The labels that one could choose from, as they stand in the table: a JSON list, sorted."""
    return json.dumps(sorted(labels), ensure_ascii=False)


def names_in(one_set: str) -> list[str]:
    """The labels of a `label_set`."""
    names: list[str] = json.loads(one_set)
    return names


def sets_within(sets: Collection[str], labels: Collection[str]) -> list[str]:
    """Those of the sets that have no label but these: of the same task, or of its beginnings.

    Whoever adds a label to a task keeps what was saved before.
    """
    return [one for one in sets if set(names_in(one)) <= set(labels)]
