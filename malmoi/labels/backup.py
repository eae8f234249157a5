"""A copy of a label database while people work on it."""

import sqlite3
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from sqlalchemy.engine import URL

from malmoi.errors import InputError
from malmoi.files import file_at_once, write_at_once
from malmoi.labels.connection import BUSY_SECONDS, existing_database
from malmoi.labels.database import without_password

_PAGES = 2_000
# The copies of days, and the file beside them that says for how many days they are kept.
_DAILY, _SETTING = "daily-", "daily-copies-days.txt"


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


def back_up_daily(folder: Path, url: str | URL, keep_days: int, today: date) -> Path | None:
    """Make the copy of a day unless it is there, and remove those of days too long ago.

    Args:
        folder: of the copies; of others in it none is touched.
        url: of the database.
        keep_days: how many days a copy is kept; 0 makes none, and removes none.
        today: which day it is.

    Returns:
        The new copy; None where there is nothing to do.

    Raises:
        InputError: as `back_up`.
    """
    path = folder / f"{_DAILY}{today:%Y-%m-%d}.db"
    if keep_days < 1 or path.exists():
        return None
    back_up(path, url)
    first = f"{_DAILY}{today - timedelta(days=keep_days - 1):%Y-%m-%d}.db"
    for old in folder.glob(f"{_DAILY}????-??-??.db"):
        if old.name < first:
            old.unlink()
    return path


def days_kept(folder: Path) -> int:
    """For how many days the daily copies of a folder are kept; 0: there are none."""
    try:
        return max(0, int((folder / _SETTING).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return 0


def keep_days(folder: Path, days: int) -> None:
    """Set for how many days daily copies are kept; 0: none is made."""
    folder.mkdir(parents=True, exist_ok=True)
    write_at_once(folder / _SETTING, f"{days}\n")


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
