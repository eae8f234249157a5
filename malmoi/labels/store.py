"""The label store: an append-only log of what people decided about a text.

A correction is a new row, never an update, so nothing that somebody decided is lost; the current
label of a text is its latest row of the same task. Texts that are equal once they are clean are one
text, as they are in training. SQLite by default, PostgreSQL by URL.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, Select, func, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from malmoi.errors import InputError
from malmoi.labels.connection import database_url_of, reason, writing_engine
from malmoi.labels.database import DATABASE_VARIABLE
from malmoi.labels.models import Label, label_set
from malmoi.labels.queries import latest_ids, of_task
from malmoi.labels.schema import prepare
from malmoi.paths import label_database
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.columns import whole_characters

if TYPE_CHECKING:
    import pandas as pd

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


@dataclass(frozen=True)
class Saved:
    """What `LabelStore.save` did: the row, and whether this call wrote it."""

    id: int
    new: bool


def database_url() -> str | URL:
    """The URL of the label database: `MALMOI_DATABASE`, or the SQLite file of this project."""
    return os.environ.get(DATABASE_VARIABLE) or URL.create("sqlite", database=str(label_database()))


def existing_database(url: str | URL | None = None, place: str = "--database") -> URL:
    """The URL of a database that is there already, for what only reads it.

    Args:
        url: SQLAlchemy URL, or the path of a SQLite file; `database_url()` without one.
        place: where a person gave `url`, for messages.

    Raises:
        InputError: it is no URL of a label database, or there is no such file.
    """
    parsed = database_url_of(url or database_url(), place if url else DATABASE_VARIABLE)
    file = parsed.database or ""
    is_path = parsed.get_backend_name() == "sqlite" and not file.startswith("file:")
    if is_path and not Path(file).is_file():
        raise InputError(
            "expected a label database, found no file {file}; name another by --database or "
            "{variable}",
            file=file,
            variable=DATABASE_VARIABLE,
        )
    return parsed


def storable(text: str) -> str:
    """The text as every database can hold it: without NUL and without half a character.

    PostgreSQL has no NUL, UTF-8 has no lone surrogate, and nobody means either of them.
    """
    return whole_characters(text.replace("\x00", ""))


def text_hash(text: str) -> str:
    """SHA-256 of the text once it is clean; as it is where nothing is left of it then."""
    text = storable(text)
    return hash_of_clean(clean_text(text) or text)


def hash_of_clean(text: str) -> str:
    """`text_hash` of a text that is clean already."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def open_engine(url: str | URL | None = None, place: str = DATABASE_VARIABLE) -> Engine:
    """An engine for a label database of the newest layout, made where it is missing.

    Args:
        url: SQLAlchemy URL; `database_url()` without one.
        place: where a person gave it, for messages.

    Raises:
        InputError: the URL or the database cannot be used.
    """
    try:
        engine = writing_engine(url or database_url(), place)
        prepare(engine)
    except (SQLAlchemyError, ImportError, OSError) as error:
        raise InputError(
            "the label database cannot be opened ({error}); check {where} (default {default})",
            error=reason(error),
            where=place,
            default=label_database(),
        ) from error
    return engine


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
        self._engine = open_engine(url)

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
        """Append one label, every text as `storable` has it.

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
                raise InputError(
                    "expected a {name} with at least one whole character, found none", name=name
                )
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
            latest = _latest(session, labels)
            return list(
                session.scalars(select(Label).where(Label.id.in_(latest)).order_by(Label.id))
            )

    def label_of(self, text: str, labels: Sequence[str]) -> str | None:
        """The current label of one text in a task, or None where nobody has labelled it."""
        with Session(self._engine) as session:
            query = (
                select(Label.label)
                .where(Label.text_sha256 == text_hash(text), of_task(session, _storable(labels)))
                .order_by(Label.id.desc())
                .limit(1)
            )
            return session.scalar(query)

    def counts(self, labels: Sequence[str] | None = None) -> dict[str, int]:
        """How many texts have each label now, most frequent first; `labels` as in `current`."""
        with Session(self._engine) as session:
            query = (
                select(Label.label, func.count())
                .where(Label.id.in_(_latest(session, labels)))
                .group_by(Label.label)
                .order_by(func.count().desc(), Label.label)
            )
            return {label: count for label, count in session.execute(query)}

    def history_length(self) -> int:
        """How many decisions were ever saved, corrections included."""
        with Session(self._engine) as session:
            return session.scalar(select(func.count()).select_from(Label)) or 0

    def export(self, labels: Sequence[str] | None = None) -> "pd.DataFrame":
        """Current labels as a table that `finetune/kfold.py --data` reads once saved as CSV.

        Args:
            labels: as in `current`.
        """
        import pandas as pd  # takes half a second, and labelling needs none

        rows = [[getattr(row, name) for name in EXPORT_COLUMNS] for row in self.current(labels)]
        frame = pd.DataFrame(rows, columns=EXPORT_COLUMNS)
        frame["created_at"] = [moment.isoformat(timespec="seconds") for moment in frame.created_at]
        return frame


def _latest(session: Session, labels: Sequence[str] | None) -> Select[int]:
    """The id of the current row of each text of a task; of every task, for None, one in each."""
    return latest_ids(
        of_task(session, None if labels is None else _storable(labels)), by_set=labels is None
    )


def _storable(labels: Sequence[str]) -> list[str]:
    return [storable(label) for label in labels]
