"""The label store: an append-only log of what people decided about a text.

A correction is a new row, never an update, so nothing that somebody decided is lost; the current
label of a text is its latest row of the same task. Texts that are equal once they are clean are one
text, as they are in training. SQLite by default, PostgreSQL by URL.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import (
    ColumnElement,
    DateTime,
    Engine,
    String,
    Text,
    and_,
    create_engine,
    event,
    func,
    inspect,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import (
    text as sql,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.types import TypeDecorator

from malmoi.errors import InputError
from malmoi.labels.database import label_set, sets_within
from malmoi.paths import label_database
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.columns import whole_characters

_EXAMPLES = "sqlite:///runs/labels.db or postgresql+psycopg://user@host/name"
_SUPPORTED = ("sqlite", "postgresql")
EXPORT_COLUMNS = [
    "text",
    "label",
    "predicted_label",
    "confidence",
    "model",
    "annotator",
    "created_at",
    "text_sha256",
]
_BUSY_SECONDS = 30
# Rather an error that can be tried again than a page that hangs.
_POSTGRES = {"connect_timeout": 10, "options": "-c lock_timeout=10s"}
_SETUP_TRIES = 20


class _UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC: SQLite forgets time zones, so they are put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class _Base(DeclarativeBase):
    pass


class Label(_Base):
    """One decision of one person about one text."""

    __tablename__ = "labels"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    text: Mapped[str] = mapped_column(Text)
    # Of the clean text, which is what training sees; the text itself can be too long for an index.
    text_sha256: Mapped[str] = mapped_column(String(64), index=True)
    predicted_label: Mapped[str | None] = mapped_column(Text)
    confidence: Mapped[float | None]
    label: Mapped[str] = mapped_column(Text)
    # The labels that could be chosen, by which tasks are told apart; rows of before have none.
    label_set: Mapped[str | None] = mapped_column(Text)
    model: Mapped[str | None] = mapped_column(Text)
    annotator: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(_UtcDateTime)
    request_id: Mapped[str] = mapped_column(String(128), unique=True)


@dataclass(frozen=True)
class Saved:
    """What `LabelStore.save` did: the row, and whether this call wrote it."""

    id: int
    new: bool


def database_url() -> str | URL:
    """The URL of the label database: `MALMOI_DATABASE`, or the SQLite file of this project."""
    return os.environ.get("MALMOI_DATABASE") or URL.create("sqlite", database=str(label_database()))


def storable(text: str) -> str:
    """The text as every database can hold it: without NUL and without half a character.

    PostgreSQL has no NUL, UTF-8 has no lone surrogate, and nobody means either of them.
    """
    return whole_characters(text.replace("\x00", ""))


def text_hash(text: str) -> str:
    """SHA-256 of the text once it is clean; as it is where nothing is left of it then."""
    text = storable(text)
    return hashlib.sha256((clean_text(text) or text).encode("utf-8")).hexdigest()


class LabelStore:
    """Saves labels and reads them back.

    Safe to use from several threads and processes at once: every call opens its own connection
    and closes it, and a transaction is one statement.
    """

    def __init__(self, url: str | URL | None = None) -> None:
        """Open the store, making the file, its folder and the table where they are missing.

        Args:
            url: SQLAlchemy URL; `database_url()` without one.

        Raises:
            InputError: the URL or the database cannot be used.
        """
        try:
            self._engine = _make_engine(url or database_url())
            _set_up(self._engine)
        except (SQLAlchemyError, ImportError, OSError) as error:
            # The URL may hold a password, so only the driver's own words are repeated.
            detail = " ".join(str(getattr(error, "orig", None) or error).split())
            raise InputError(
                f"the label database cannot be opened ({detail}); check MALMOI_DATABASE "
                f"(default {label_database()})"
            ) from error

    def save(
        self,
        *,
        text: str,
        label: str,
        labels: Sequence[str],
        annotator: str,
        request_id: str,
        predicted_label: str | None = None,
        confidence: float | None = None,
        model: str | None = None,
    ) -> Saved:
        """Append one label.

        Args:
            text: what was labelled.
            label: what the person decided.
            labels: what there was to choose from: the labels of the task.
            annotator: who decided.
            request_id: names this decision; a second call with the same one (a double click, a
                retry after a lost answer) writes nothing.
            predicted_label: what the model said.
            confidence: the model's probability for it.
            model: which model said so.

        Returns:
            The row's id and whether this call wrote it.

        All of it is stored as `storable` has it.

        Raises:
            InputError: nothing that can be stored is left of the label or the request's id.
        """
        request_id = storable(request_id)
        row = Label(
            text=storable(text),
            text_sha256=text_hash(text),
            predicted_label=None if predicted_label is None else storable(predicted_label),
            confidence=confidence,
            label=storable(label),
            label_set=label_set([storable(one) for one in labels]),
            model=None if model is None else storable(model),
            annotator=storable(annotator),
            created_at=datetime.now(UTC),
            request_id=request_id,
        )
        for name in ("label", "request_id"):
            if not getattr(row, name):
                raise InputError(f"expected a {name} with at least one whole character, found none")
        try:
            with Session(self._engine) as session, session.begin():
                session.add(row)
                session.flush()
                return Saved(row.id, new=True)
        except IntegrityError:
            with Session(self._engine) as session:
                known = session.scalar(select(Label.id).where(Label.request_id == request_id))
            if known is None:
                raise
            return Saved(known, new=False)

    def recent(self, limit: int = 100) -> list[Label]:
        """The latest decisions, newest first."""
        with Session(self._engine, expire_on_commit=False) as session:
            return list(session.scalars(select(Label).order_by(Label.id.desc()).limit(limit)))

    def current(self, labels: Sequence[str] | None = None) -> list[Label]:
        """The latest decision on each text, oldest first.

        Args:
            labels: of the task; None: of every task.
        """
        with Session(self._engine, expire_on_commit=False) as session:
            latest = self._latest(session, labels)
            return list(
                session.scalars(select(Label).where(Label.id.in_(latest)).order_by(Label.id))
            )

    def label_of(self, text: str, labels: Sequence[str]) -> str | None:
        """The current label of one text in a task, or None where nobody has labelled it."""
        with Session(self._engine) as session:
            query = (
                select(Label.label)
                .where(Label.text_sha256 == text_hash(text), self._of_task(session, labels))
                .order_by(Label.id.desc())
                .limit(1)
            )
            return session.scalar(query)

    def counts(self, labels: Sequence[str] | None = None) -> dict[str, int]:
        """How many texts have each label now, most frequent first; `labels` as in `current`."""
        with Session(self._engine) as session:
            query = (
                select(Label.label, func.count())
                .where(Label.id.in_(self._latest(session, labels)))
                .group_by(Label.label)
                .order_by(func.count().desc(), Label.label)
            )
            return {label: count for label, count in session.execute(query)}

    def count_of_others(self, labels: Sequence[str]) -> int:
        """How many texts have a label of other tasks; one with labels of two counts twice."""
        texts = select(Label.label_set, Label.text_sha256).distinct()
        with Session(self._engine) as session:
            mine = texts.where(self._of_task(session, labels))
            both = [select(func.count()).select_from(one.subquery()) for one in (texts, mine)]
            every, own = (session.scalar(query) or 0 for query in both)
            return every - own

    def _latest(self, session: Session, labels: Sequence[str] | None) -> Any:
        latest = select(func.max(Label.id)).where(self._of_task(session, labels))
        if labels is None:
            return latest.group_by(Label.label_set, Label.text_sha256)
        return latest.group_by(Label.text_sha256)

    def _of_task(self, session: Session, labels: Sequence[str] | None) -> ColumnElement[bool]:
        if labels is None:
            return true()
        labels = [storable(one) for one in labels]
        sets = [one for one in session.scalars(select(Label.label_set).distinct()) if one]
        before = and_(Label.label_set.is_(None), Label.label.in_(labels))
        return or_(Label.label_set.in_(sets_within(sets, labels)), before)

    def history_length(self) -> int:
        """How many decisions were ever saved, corrections included."""
        with Session(self._engine) as session:
            return session.scalar(select(func.count()).select_from(Label)) or 0

    def export(self, labels: Sequence[str] | None = None) -> pd.DataFrame:
        """Current labels as a table that `finetune/kfold.py --data` reads once saved as CSV.

        Args:
            labels: as in `current`.
        """
        rows = [[getattr(row, name) for name in EXPORT_COLUMNS] for row in self.current(labels)]
        frame = pd.DataFrame(rows, columns=EXPORT_COLUMNS)
        frame["created_at"] = [moment.isoformat(timespec="seconds") for moment in frame.created_at]
        return frame


def _make_engine(url: str | URL) -> Engine:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is no number
        raise InputError(
            f"MALMOI_DATABASE is not a database URL; use one like {_EXAMPLES}"
        ) from error
    if parsed.get_backend_name() not in _SUPPORTED:
        raise InputError(
            f"MALMOI_DATABASE names {parsed.get_backend_name()}; labels are kept in SQLite or "
            f"PostgreSQL: use a URL like {_EXAMPLES}"
        )
    if parsed.get_backend_name() == "postgresql":
        return _postgres_engine(parsed)
    if _in_memory(parsed):
        raise InputError(
            f"MALMOI_DATABASE names a SQLite database in memory ({parsed}), which would be empty "
            "for every new connection; name a file, as in sqlite:///runs/labels.db"
        )
    if parsed.database and not parsed.database.startswith("file:"):
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    # A connection for each call: a pooled one would outlive a deleted or replaced file.
    engine = create_engine(parsed, poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA busy_timeout={_BUSY_SECONDS * 1000}")

    return engine


def _in_memory(url: URL) -> bool:
    name = url.database or ""
    return name in ("", "file:") or ":memory:" in name or url.query.get("mode") == "memory"


def _postgres_engine(url: URL) -> Engine:
    known = url.drivername in ("postgresql", "postgresql+psycopg", "postgresql+psycopg2")
    try:
        return create_engine(url, poolclass=NullPool, connect_args=_POSTGRES if known else {})
    except ModuleNotFoundError as error:
        raise InputError(
            f"MALMOI_DATABASE names PostgreSQL, whose driver {error.name} is not installed; run "
            "pip install -c constraints.txt -e '.[postgres]' and let the URL begin with "
            "postgresql+psycopg://"
        ) from error


def _set_up(engine: Engine) -> None:
    """Make the table, whoever else is making it at this moment; where it is, nothing is done.

    Whoever may read and write labels need not be allowed to make tables.
    """
    for attempt in range(_SETUP_TRIES):
        try:
            known = inspect(engine)
            if known.has_table(Label.__tablename__):
                names = {column["name"] for column in known.get_columns(Label.__tablename__)}
                if Label.label_set.key not in names:
                    _add_label_sets(engine)
                return
            if engine.dialect.name == "sqlite":
                # Kept in the file. The switch does not wait for the busy timeout, hence the tries.
                with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            with engine.begin() as connection:
                table = _Base.metadata.tables[Label.__tablename__]
                connection.execute(CreateTable(table, if_not_exists=True))
                for index in table.indexes:
                    connection.execute(CreateIndex(index, if_not_exists=True))
            return
        except DBAPIError as error:
            # "locked" on SQLite; PostgreSQL's IF NOT EXISTS can still collide on its catalogue.
            words = str(error.orig)
            collided = isinstance(error, IntegrityError) or "locked" in words
            # Someone else has added the column: SQLite's words, and PostgreSQL's.
            added = "duplicate column" in words or "already exists" in words
            if not (collided or added) or attempt == _SETUP_TRIES - 1:
                raise
            time.sleep(0.05 * (attempt + 1))


def _add_label_sets(engine: Engine) -> None:
    """Bring a table of before up to date: a column more, and hashes of the clean texts."""
    with engine.begin() as connection:
        # The hashes first: in SQLite a transaction begins with the first row that changes.
        rows = connection.execute(select(Label.id, Label.text, Label.text_sha256)).all()
        for identifier, text, sha256 in rows:
            if (wanted := text_hash(text)) != sha256:
                connection.execute(
                    update(Label).where(Label.id == identifier).values(text_sha256=wanted)
                )
        connection.execute(sql(f"ALTER TABLE {Label.__tablename__} ADD COLUMN label_set TEXT"))
