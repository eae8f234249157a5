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
from malmoi.labels.tables import (
    AccessKeyRow,
    Base,
    MemberRow,
    ProjectRow,
    WebhookDeliveryRow,
    WebhookRow,
)

# Who may come in, and who is told, is as it was before going back: what was taken back stays so.
_STAYS: tuple[type[Base], ...] = (MemberRow, AccessKeyRow, WebhookRow)
# Fewer than any label database has: the first step is not the last.
_PAGES = 16


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
        InputError: the copy is no label database, or the database is no SQLite file.
    """
    if engine.url.get_backend_name() != "sqlite":
        raise InputError(
            "expected a SQLite database to go back, found {backend}; its own program is pg_restore",
            backend=engine.url.get_backend_name(),
        )
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

    Of projects that are there now, members, invitations, tokens and webhooks stay as they are, so
    that none that was taken back holds again. What webhooks have not been told yet they are not.

    Args:
        engine: of the database.
        copy: to go back to.
        kept: where a copy of what is there now is put before.

    Raises:
        InputError: the copy is no label database, or the database is in use for longer than we
            wait; then all is as it was.
    """
    with (
        _scratch(copy) as scratch,
        closing(sqlite3.connect(scratch, isolation_level=None)) as source,
        closing(_connect(engine)) as target,
    ):
        is_first = iter([True])

        def keep(status: int, *_pages: int) -> None:
            if status == sqlite3.SQLITE_BUSY:
                raise sqlite3.OperationalError("locked")
            # From the first pages on nobody else writes, so that nothing is lacking in it.
            if next(is_first, False):
                back_up(kept, engine.url)
                _let_stay(source, kept)

        try:
            source.backup(target, pages=_PAGES, progress=keep)
        except sqlite3.Error as error:
            raise InputError(
                "the label database is in use ({error}); nothing was changed, try again",
                error=error,
            ) from error


def _let_stay(copy: sqlite3.Connection, now: Path) -> None:
    """Let in a copy be as it is now what stays, of the projects that are the same."""
    copy.execute("ATTACH DATABASE ? AS now", (str(now),))
    copy.execute(f"DELETE FROM main.{WebhookDeliveryRow.__tablename__}")
    # Another project may have got the id of one that comes back.
    same = (
        "project_id IS NULL OR project_id IN (SELECT id FROM main.malmoi_projects JOIN "
        "now.malmoi_projects USING (id, created_at))"
    )
    for row in _STAYS:
        name = row.__tablename__
        columns = ", ".join(set(row.metadata.tables[name].c.keys()) - {"id"})
        copy.execute(f"DELETE FROM main.{name} WHERE {same}")
        rows = f"SELECT {columns} FROM now.{name} WHERE {same}"
        copy.execute(f"INSERT INTO main.{name} ({columns}) {rows}")
    copy.execute("DETACH DATABASE now")


@contextmanager
def _scratch(copy: Path) -> Iterator[Path]:
    """A copy of a copy, of the newest layout, that may be written to."""
    with TemporaryDirectory(prefix="malmoi-going-back-", dir=copy.parent) as folder:
        path = Path(folder) / "labels"
        back_up(path, URL.create("sqlite", database=str(copy)))
        with closing(sqlite3.connect(path)) as connection:
            known = "SELECT 1 FROM sqlite_master WHERE name = ?"
            if connection.execute(known, (ProjectRow.__tablename__,)).fetchone() is None:
                raise InputError(
                    "expected a copy of a label database, found another file; choose another one",
                    place=copy,
                )
        open_engine(URL.create("sqlite", database=str(path)), str(copy)).dispose()
        yield path


def _connect(engine: Engine) -> sqlite3.Connection:
    name = str(engine.url.database)
    return sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
