"""A copy of a label database while people work on it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL

from malmoi.errors import InputError
from malmoi.files import file_at_once
from malmoi.labels.connection import BUSY_SECONDS, existing_database
from malmoi.labels.database import without_password

_PAGES = 2_000


def back_up(path: Path, url: str | URL | None = None) -> int:
    """Copy a SQLite database by its online backup, whoever writes to it meanwhile.

    The copy is of one moment, looked through for damage, and appears when it is whole.

    Args:
        path: of the copy; not there yet.
        url: of the database; `database_url()` without one.

    Returns:
        Its bytes.

    Raises:
        InputError: there is no such file, the copy's name is taken, the database is damaged, or it
            is PostgreSQL, which has a program for this.
    """
    parsed = existing_database(url)
    shown = without_password(parsed.render_as_string(hide_password=False))
    if parsed.get_backend_name() != "sqlite":
        plain = URL.create(
            "postgresql", parsed.username, None, parsed.host, parsed.port, parsed.database
        )
        raise InputError(
            "{shown} is no SQLite file: expected one to back up; run pg_dump --format=custom "
            "--file={path} {plain}",
            shown=shown,
            path=path,
            plain=plain,
        )
    if path.exists():
        raise InputError(
            "expected a new file for the backup, found {path}; name another one", path=path
        )
    with file_at_once(path) as scratch:
        _copy(Path(parsed.database or ""), scratch)
    return path.stat().st_size


def _copy(source: Path, target: Path) -> None:
    name = f"{source.resolve().as_uri()}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(name, uri=True, timeout=BUSY_SECONDS)) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy, pages=_PAGES)
            found = copy.execute("PRAGMA quick_check").fetchone()
            # One file that can be moved, without a log beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise InputError(
            "expected a label database to back up, found a file that cannot be read ({error})",
            place=source,
            error=error,
        ) from error
    if found != ("ok",):
        raise InputError(
            "the label database is damaged ({fault}); keep the file", place=source, fault=found[0]
        )
