"""Which databases are opened, and how."""

import sqlite3
import sys
from pathlib import Path

import pytest

from malmoi.errors import InputError
from malmoi.labels.connection import database_url, writing_engine
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.schema import open_engine
from tests.malmoi.labels.conftest import LOCAL

REVIEWS = NewProject(name="리뷰", labels=[ProjectLabel(name=one) for one in ("긍정", "부정")])


def test_sqlite_settings(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/labels.db"
    open_engine(url)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with writing_engine(url, "--data").connect() as own:
        # Full: what was acknowledged survives a power cut.
        assert own.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert own.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_deleted_file_is_made_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new folder/labels.db"
    ProjectStore(url).create(LOCAL, REVIEWS)
    for path in (tmp_path / "new folder").iterdir():
        path.unlink()
    assert ProjectStore(url).list(LOCAL) == []


def test_default_place(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ProjectStore().create(LOCAL, REVIEWS)
    assert (workplace / "runs" / "labels.db").is_file()
    monkeypatch.setenv("MALMOI_DATABASE", f"sqlite:///{workplace}/other.db")
    assert str(database_url()).endswith("other.db")
    assert ProjectStore().list(LOCAL) == []


def test_unusable_database_is_one_line() -> None:
    for bad in (
        *("not a url", "postgresql+psycopg://host:port/name", "postgresql+nodriver://host/name"),
        "sqlite:////proc/nowhere/labels.db",
    ):
        with pytest.raises(InputError, match="MALMOI_DATABASE") as caught:
            open_engine(bad)
        assert "\n" not in str(caught.value), bad


def test_password_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        open_engine("postgresql+nodriver://me:secret@host/name")
    assert "secret" not in str(caught.value)


def test_a_database_in_memory_is_refused() -> None:
    """Every connection would see another, empty one."""
    for memory in (
        *("sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"),
        "sqlite:///file:labels?mode=memory&cache=shared&uri=true",
    ):
        with pytest.raises(InputError, match=r"in memory.*name a file") as caught:
            open_engine(memory)
        assert "\n" not in str(caught.value), memory


def test_other_databases_are_named_with_what_is_supported() -> None:
    for other in ("mysql", "mysql+pymysql", "oracle", "mssql+pyodbc", "postgres"):
        with pytest.raises(InputError, match="SQLite or PostgreSQL") as caught:
            open_engine(f"{other}://me:secret@host/name")
        assert "\n" not in str(caught.value) and "secret" not in str(caught.value), other


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("postgresql+psycopg", "postgresql"):
        for driver in ("psycopg", "psycopg2"):
            monkeypatch.setitem(sys.modules, driver, None)  # as where it is not installed
        with pytest.raises(InputError, match=r"psycopg2? is not installed.*\[postgres\]") as caught:
            open_engine(f"{scheme}://me:secret@host/name")
        assert "\n" not in str(caught.value) and "secret" not in str(caught.value), scheme
