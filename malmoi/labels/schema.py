"""The layout of a label database: looked at whenever it is opened, made or changed by Alembic.

Alembic is imported only where there is something to change.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from malmoi.errors import InputError
from malmoi.labels.connection import database_url, is_forbidden, reason, writing_engine
from malmoi.labels.database import DATABASE_VARIABLE
from malmoi.labels.tables import ProjectRow
from malmoi.paths import label_database

# The newest of migrations/versions.
HEAD = "0008"
# Not Alembic's usual name: another program in the same database may have its own there.
VERSION_TABLE = "labels_version"
_MIGRATIONS = Path(__file__).with_name("migrations")
# PostgreSQL's name for the lock of whoever changes the layout: "malmoi" in bytes.
_LOCK = int.from_bytes(b"malmoi")
_WAL_TRIES = 20


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


def prepare(engine: Engine) -> None:
    """Make the tables, or bring them to the newest layout, whoever else does it at this moment.

    Whoever may read and write labels need not be allowed to make tables.

    Raises:
        InputError: the database was made by a newer Malmoi.
        SQLAlchemyError: the database cannot be used.
    """
    with engine.connect() as connection:
        version, has_projects = _state(connection)
        has_log = (
            engine.dialect.name != "sqlite"
            or connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        )
    if version == HEAD:
        if not has_log:
            # A backup that became the database. One that may not be written to is read as it is.
            with suppress(DBAPIError):
                _keep_log_beside(engine)
        return
    try:
        if engine.dialect.name == "sqlite":
            _keep_log_beside(engine)
        with _alone(engine) as connection:
            version, has_projects = _state(connection)
            if version != HEAD:
                _migrate(connection, version)
    except DBAPIError as error:
        if not (has_projects and is_forbidden(error)):
            raise


def _state(connection: Connection) -> tuple[str | None, bool]:
    """The version of the layout, None where none is written down; whether it has projects."""
    known = inspect(connection)
    has_projects = known.has_table(ProjectRow.__tablename__)
    if not known.has_table(VERSION_TABLE):
        return None, has_projects
    try:
        return connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")), has_projects
    except DBAPIError as error:
        # Whoever may not look may not change anything either: its owner keeps it up to date.
        if has_projects and is_forbidden(error):
            return HEAD, has_projects
        raise


def _keep_log_beside(engine: Engine) -> None:
    """Switch to a write-ahead log, so that readers and a writer do not wait for each other.

    Kept in the file. The switch does not wait for the busy timeout, hence the tries.
    """
    for attempt in range(_WAL_TRIES):
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except DBAPIError as error:
            if "locked" not in str(error.orig) or attempt == _WAL_TRIES - 1:
                raise
            time.sleep(0.05 * (attempt + 1))


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction in which nobody else changes the layout; it waits for whoever does."""
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        yield connection


def _migrate(connection: Connection, version: str | None) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    if version is not None and version not in known:
        raise InputError(
            "the label database has the layout {version}, and this Malmoi knows {known}; update "
            "Malmoi",
            version=version,
            known=HEAD,
        )
    command.upgrade(config, "head")
