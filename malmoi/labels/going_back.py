"""Back to a copy of a SQLite label database while people have it open, and what that takes away."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine
from sqlalchemy.engine import URL

from malmoi.errors import InputError
from malmoi.labels.backup import back_up
from malmoi.labels.connection import BUSY_SECONDS
from malmoi.labels.schema import open_engine
from malmoi.labels.tables import AccessKeyRow, Base, WebhookDeliveryRow, WebhookRow
from malmoi.labels.vector_index import drop_vectors

# Who may come in, and who is told, is as it was before going back: what was taken back stays so.
_KEPT: tuple[type[Base], ...] = (AccessKeyRow, WebhookRow)


@dataclass(frozen=True, kw_only=True)
class LostRows:
    """What a database has that a copy of it has not.

    Attributes:
        projects: names of those that go.
        people: who have labelled, and not in the copy.
        texts: that go.
        acts: labels, skips, flags, notes and their undoing that go.
        decisions: of reviewers that go.
    """

    projects: tuple[str, ...]
    people: tuple[str, ...]
    texts: int
    acts: int
    decisions: int


def what_would_be_lost(engine: Engine, copy: Path) -> LostRows:
    """What is newer than a copy, or is not in it.

    Raises:
        InputError: the copy is no label database.
    """
    with _scratch(copy) as scratch, closing(_connect(engine)) as connection:
        connection.execute("ATTACH DATABASE ? AS copy", (str(scratch),))

        def names(query: str) -> tuple[str, ...]:
            return tuple(str(row[0]) for row in connection.execute(query))

        def count(table: str, same: str) -> int:
            there = f"SELECT 1 FROM copy.{table} AS theirs WHERE {same}"
            query = f"SELECT count(*) FROM main.{table} AS mine WHERE NOT EXISTS ({there})"
            return int(connection.execute(query).fetchone()[0])

        people = "SELECT annotator FROM {}.malmoi_places WHERE annotation_id IS NOT NULL"
        same_act = "theirs.request_id = mine.request_id"
        same_text = "theirs.text_sha256 = mine.text_sha256 AND theirs.project_id = mine.project_id"
        projects = "SELECT name FROM {}.malmoi_projects WHERE kind != 'erased'"
        return LostRows(
            projects=names(f"{projects.format('main')} EXCEPT {projects.format('copy')}"),
            people=names(f"{people.format('main')} EXCEPT {people.format('copy')}"),
            texts=count("malmoi_texts", same_text),
            acts=count("malmoi_annotations", same_act),
            decisions=count("malmoi_adjudications", same_act),
        )


def go_back(engine: Engine, copy: Path, kept: Path) -> None:
    """Let a database be what a copy is, in one transaction; nobody has to leave.

    Invitations, tokens and webhooks stay as they are now, so that none that was taken back holds
    again.

    Args:
        engine: of the database.
        copy: to go back to.
        kept: where a copy of what is there now is put before.

    Raises:
        InputError: the copy is no label database, or the database is in use for longer than we
            wait; then all is as it was.
    """
    back_up(kept, engine.url.render_as_string(hide_password=False))
    with _scratch(copy) as scratch:
        with closing(sqlite3.connect(scratch, isolation_level=None)) as connection:
            connection.execute("ATTACH DATABASE ? AS now", (str(kept),))
            connection.execute(f"DELETE FROM main.{WebhookDeliveryRow.__tablename__}")
            for row in _KEPT:
                name = row.__tablename__
                columns = ", ".join(row.metadata.tables[name].c.keys())
                connection.execute(f"DELETE FROM main.{name}")
                connection.execute(
                    f"INSERT INTO main.{name} ({columns}) SELECT {columns} FROM now.{name} WHERE "
                    "project_id IS NULL OR project_id IN (SELECT id FROM main.malmoi_projects)"
                )
            ids = [row[0] for row in connection.execute("SELECT id FROM main.malmoi_projects")]
        engine.dispose()
        try:
            with (
                closing(sqlite3.connect(scratch)) as source,
                closing(_connect(engine)) as target,
            ):
                source.backup(target)
        except sqlite3.Error as error:
            raise InputError(
                "the label database is in use ({error}); nothing was changed, try again",
                error=error,
            ) from error
    # An id may be another text's now.
    for project_id in ids:
        drop_vectors(engine, project_id)


@contextmanager
def _scratch(copy: Path) -> Iterator[Path]:
    """A copy of a copy, of the newest layout, that may be written to."""
    with TemporaryDirectory(prefix="malmoi-going-back-", dir=copy.parent) as folder:
        path = Path(folder) / "labels"
        back_up(path, URL.create("sqlite", database=str(copy)))
        open_engine(URL.create("sqlite", database=str(path)), str(copy)).dispose()
        yield path


def _connect(engine: Engine) -> sqlite3.Connection:
    return sqlite3.connect(str(engine.url.database), timeout=BUSY_SECONDS)
