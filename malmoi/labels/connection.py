"""Connections to a label database: SQLite or PostgreSQL, to write or only to read."""

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from malmoi.errors import InputError
from malmoi.labels.database import DATABASE_VARIABLE, LabelDatabase
from malmoi.paths import label_database

Row = TypeVar("Row")
_EXAMPLES = "sqlite:///runs/labels.db or postgresql+psycopg://user@host/name"
# A scheme, with or without slashes; one letter alone is a drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_ENDINGS = (".db", ".sqlite", ".sqlite3")
_SUPPORTED = ("sqlite", "postgresql")
BUSY_SECONDS = 30
# Rather an error that can be tried again than a page that hangs.
POSTGRES = {"connect_timeout": 10, "options": "-c lock_timeout=10s"}
_READ_ONLY = " -c default_transaction_read_only=on"
_FORBIDDEN = "42501"  # PostgreSQL's insufficient_privilege
# Well below the variables that a statement may have, and quick enough for whoever waits.
_ROWS = 500


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


def writing_engine(url: str | URL, place: str) -> Engine:
    """An engine for a database that may be missing yet; the folder of a file is made.

    Args:
        url: SQLAlchemy's, or the path of a SQLite file.
        place: where a person gave it, for messages.

    Raises:
        InputError: it is no URL of such a database, is in memory, or its driver is missing.
    """
    parsed = database_url_of(url, place)
    if parsed.get_backend_name() == "postgresql":
        return _postgres_engine(parsed, place, POSTGRES)
    if parsed.database and not parsed.database.startswith("file:"):
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    # A connection for each call: a pooled one would outlive a deleted or replaced file.
    engine = create_engine(parsed, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
        # What was acknowledged survives a power cut, too; NORMAL would lose the last commits.
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    return engine


def reading_engine(database: LabelDatabase, place: str = "--data") -> Engine:
    """An engine that changes nothing.

    Raises:
        InputError: as `writing_engine`, or there is no such file.
    """
    path = database.path
    if database.url is not None:
        parsed = database_url_of(database.url, place)
        if parsed.get_backend_name() == "postgresql":
            options = POSTGRES | {"options": f"{POSTGRES['options']}{_READ_ONLY}"}
            return _postgres_engine(parsed, place, options)
        if (parsed.database or "").startswith("file:"):
            raise InputError("expected sqlite:///PATH, found a file: URI; write so", place=database)
        path = Path(parsed.database or "")
    assert path is not None
    if not path.is_file():
        raise InputError(
            "expected a label database, found no file {path}", place=database, path=path
        )
    name = f"{path.resolve().as_uri()}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(name, uri=True, timeout=BUSY_SECONDS)

    return create_engine("sqlite://", creator=connect, poolclass=NullPool)


def in_parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """As many of some rows or ids at a time as a statement takes."""
    for start in range(0, len(rows), _ROWS):
        yield rows[start : start + _ROWS]


def reason(error: BaseException) -> str:
    """The driver's own words in one line: SQLAlchemy's may repeat a URL, with its password."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def is_forbidden(error: DBAPIError) -> bool:
    """Whether the database lets this user not do it."""
    codes = [getattr(error.orig, name, None) for name in ("sqlstate", "pgcode")]
    return _FORBIDDEN in codes


def database_url_of(url: str | URL, place: str) -> URL:
    """The URL of a SQLite file or of PostgreSQL.

    Args:
        url: SQLAlchemy's, or the path of a SQLite file.
        place: where a person gave it, for messages.

    Raises:
        InputError: it names no such database, or one in memory.
    """
    if isinstance(url, str) and _is_path(url):
        return URL.create("sqlite", database=url)
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is no number
        raise InputError(
            "{where} is not a database URL; use one like {examples}, or the path of a SQLite file "
            "that ends with {ending}",
            where=place,
            examples=_EXAMPLES,
            ending=_ENDINGS[0],
        ) from error
    if backend not in _SUPPORTED:
        raise InputError(
            "{where} names {backend}; labels are kept in SQLite or PostgreSQL: use a URL like "
            "{examples}",
            where=place,
            backend=backend,
            examples=_EXAMPLES,
        )
    if backend == "sqlite" and _in_memory(parsed):
        raise InputError(
            "{where} names a SQLite database in memory ({parsed}), which would be empty for every "
            "new connection; name a file, as in sqlite:///runs/labels.db",
            where=place,
            parsed=parsed,
        )
    return parsed


def from_any_folder(url: URL) -> URL:
    """The same database, for a process that may stand in another folder."""
    if url.get_backend_name() != "sqlite":
        return url
    return url.set(database=str(Path(url.database or "").absolute()))


def _is_path(text: str) -> bool:
    """Whether it names a file: one that is there, or one that a typing error would not make."""
    if not text or _SCHEME.match(text):
        return False
    return text.lower().endswith(_ENDINGS) or Path(text).is_file()


def _in_memory(url: URL) -> bool:
    name = url.database or ""
    return name in ("", "file:") or ":memory:" in name or url.query.get("mode") == "memory"


def _postgres_engine(url: URL, place: str, options: dict[str, Any]) -> Engine:
    known = url.drivername in ("postgresql", "postgresql+psycopg", "postgresql+psycopg2")
    try:
        return create_engine(url, poolclass=NullPool, connect_args=options if known else {})
    except ModuleNotFoundError as error:
        raise InputError(
            "{where} names PostgreSQL, whose driver {driver} is not installed; run pip install -c "
            "constraints.txt -e '.[postgres]' and let the URL begin with postgresql+psycopg://",
            where=place,
            driver=error.name,
        ) from error
