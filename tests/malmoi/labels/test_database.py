"""Which label database a command line means, and which of its labels are read."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from malmoi.errors import InputError
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.data.source import find_data
from malmoi.finetune.run_config import read_config
from malmoi.finetune.settings import KfoldSettings
from malmoi.labels.database import LabelDatabase, label_database, without_password
from malmoi.labels.training_texts import iter_label_records
from tests.malmoi.finetune.conftest import save_labels

REVIEWS = [("배송 빨라요", "긍정"), ("별로예요", "부정"), ("그냥 그래요", "중립")]
MEMOS = [("내일 병원", "일정"), ("하늘을 날았다", "꿈")]


@pytest.fixture
def two_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with labels of two projects, beside an empty folder of tasks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpora" / "memos").mkdir(parents=True)
    save_labels("sqlite:///labels.db", REVIEWS, "reviews")
    save_labels("sqlite:///labels.db", MEMOS, "memos")
    return tmp_path / "labels.db"


def rows(given: str) -> list[tuple[str, str | None]]:
    database = label_database(given)
    assert database is not None
    return [(record.text, record.label) for record in iter_label_records(database)]


def test_a_part_is_a_project(two_projects: Path) -> None:
    for place in ("labels.db", "sqlite:///labels.db"):
        assert rows(f"{place}#memos") == MEMOS
        assert rows(f"{place}#reviews") == REVIEWS
        assert rows(f"sqlite:///{two_projects}#memos") == MEMOS, place
        with pytest.raises(InputError, match=r"behind it, #memos, #reviews, found none"):
            rows(place)
        with pytest.raises(InputError, match=r"one of the projects .*found #memo$"):
            rows(f"{place}#memo")


def test_examples_of_a_part(two_projects: Path) -> None:
    database = label_database(f"{two_projects}#memos")
    assert database is not None
    examples = read_examples(database)
    assert examples.counts == {"꿈": 1, "일정": 1}
    assert str(examples.path) == f"{two_projects}#memos"


def test_reading_makes_and_changes_nothing(two_projects: Path) -> None:
    before = two_projects.read_bytes()
    rows("sqlite:///labels.db#memos")
    assert two_projects.read_bytes() == before
    with pytest.raises(InputError, match=r"found no file new/labels\.db"):
        rows("sqlite:///new/labels.db")
    assert not (two_projects.parent / "new").exists()


def test_what_is_no_database(two_projects: Path) -> None:
    Path("a#b").mkdir()
    Path("a#b/texts.csv").write_text("text,label\n", encoding="utf-8")
    for other in ("a#b", "a#b/texts.csv", "none.db", "none.db#memos", "corpora/memos"):
        assert label_database(other) is None
    shutil.copy(two_projects, "a#b/labels.db")
    assert label_database("a#b/labels.db") == LabelDatabase(path=Path("a#b/labels.db"))


def test_a_password_is_never_shown() -> None:
    for url, shown in (
        (
            "postgresql+psycopg://me:sec@#:/ret@host:5432/db",
            "postgresql+psycopg://me:***@host:5432/db",
        ),
        ("postgresql://me@host/db?password=secret&x=1", "postgresql://me@host/db?password=***&x=1"),
        ("postgresql://me@host/db?sslpassword=secret", "postgresql://me@host/db?sslpassword=***"),
        ("sqlite:///runs/labels.db", "sqlite:///runs/labels.db"),
    ):
        assert without_password(url) == shown
        for given in (url, f"{url}#memos"):
            database = label_database(given)
            assert database is not None and database.part in (None, "memos"), url
            assert str(database) == shown + given.removeprefix(url)
            assert "sec" not in f"{database} {database!r} {database.name}", url


def test_a_database_that_cannot_be_read_is_one_line() -> None:
    for url, message in (
        ("https://me:secret@host/labels.csv", "--data names https; labels are kept in SQLite or"),
        ("postgresql+psycopg://me:secret@host:port/db", "--data is not a database URL"),
        ("postgresql+nodriver://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql+psycopg://me:secret@127.0.0.1:1/db", "127.0.0.1:1/db: expected the label"),
        ("sqlite://", "in memory"),
    ):
        with pytest.raises(InputError) as caught:
            rows(url)
        told = str(caught.value)
        assert message.replace("postgresql:", "postgresql+nodriver:") in told, url
        assert "\n" not in told and "secret" not in told, url


def test_a_folder_with_a_task_says_labels_columns_and_file(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(
        'data = "rows.csv"\nlabels = [{ name = "나쁨" }, { name = "좋음" }]\n'
        'prompt = "{labels}"\n[columns]\ntext = "본문"\nlabel = "느낌"\n',
        encoding="utf-8",
    )
    (tmp_path / "rows.csv").write_text("본문,느낌,label\n좋다,좋음,1\n싫다,나쁨,2\n", "utf-8")
    (tmp_path / "other.csv").write_text("no table", "utf-8")
    for given in (str(tmp_path), str(tmp_path / "task.toml")):
        config = read_config(KfoldSettings(data=given))
        source = config.source
        examples = read_examples(source.place, source.labels, config.row_format)
        assert examples.labels == ["나쁨", "좋음"] and examples.label_ids == [1, 0]
        other = read_config(KfoldSettings(data=given, label_column="label"))
        assert other.row_format.label_column == "label"
        assert source.prompt(None) == tmp_path / "task.toml"
    assert find_data(str(tmp_path), ["좋음", "나쁨"]).labels == ["좋음", "나쁨"]
    assert find_data(str(tmp_path), None, has_labels=False).labels is None


def test_finding_data_loads_no_database_library() -> None:
    code = (
        "import sys, malmoi.finetune.settings; print({'sqlalchemy', 'alembic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
