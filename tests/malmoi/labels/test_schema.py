"""The layout of a label database: made, taken over, refused; Alembic only where it has work."""

import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, MetaData, create_engine, insert, text

from malmoi.errors import InputError
from malmoi.labels import schema
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.database import LabelDatabase
from malmoi.labels.leasing import lease_texts
from malmoi.labels.people import Person
from malmoi.labels.project import ProjectSettings
from malmoi.labels.projects import ProjectStore, change_settings, read_project
from malmoi.labels.review import progress
from malmoi.labels.schema import HEAD, VERSION_TABLE, open_engine
from malmoi.labels.scores import score_versions
from malmoi.labels.stored_text import text_hash
from malmoi.labels.tables import Base
from malmoi.labels.training_texts import iter_label_records, labelled_texts
from tests.malmoi.finetune.conftest import save_labels
from tests.malmoi.labels.conftest import LOCAL

# As the app made it before there were projects; the first did not write down a version.
OLD_LABELS = """
CREATE TABLE labels (
    id INTEGER NOT NULL, text TEXT NOT NULL, text_sha256 VARCHAR(64) NOT NULL,
    predicted_label TEXT, confidence DOUBLE PRECISION, label TEXT NOT NULL, label_set TEXT,
    model TEXT, annotator TEXT NOT NULL, created_at TIMESTAMP NOT NULL,
    request_id VARCHAR(128) NOT NULL, PRIMARY KEY (id), UNIQUE (request_id)
)
"""
OLD_ROW = (
    "INSERT INTO labels VALUES (1, '좋아요 👍🏽', 'hash', '긍정', 0.5, '긍정', NULL, 'm', '가', "
    "'2026-01-02 03:04:05', 'r1')"
)
OPEN = """
import sys
from malmoi.labels.schema import open_engine
open_engine(sys.argv[1])
print(sorted({"alembic", "pandas"} & set(sys.modules)))
"""


def migrate_to(engine: Engine, version: str) -> None:
    """Make the tables as an earlier Malmoi did."""
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).with_name("migrations")))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)


def version_in(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        (version,) = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
    connection.close()
    return str(version)


@pytest.mark.parametrize("version", [None, "0001", "0004"])
def test_labels_from_before_projects_stay_as_they_are(any_url: str, version: str | None) -> None:
    engine = create_engine(any_url)
    if version is not None:
        migrate_to(engine, version)
    with engine.begin() as connection:
        connection.execute(text(OLD_LABELS))
        connection.execute(text(OLD_ROW))
        before = connection.execute(text("SELECT * FROM labels")).all()
    with pytest.raises(InputError, match="a label database with a project, found none"):
        list(iter_label_records(LabelDatabase(url=any_url)))
    store = ProjectStore(any_url)
    assert store.list(LOCAL) == []
    with engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM labels")).all() == before
        assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == HEAD
    save_labels(any_url, [("좋아요", "긍정"), ("별로", "부정")], "리뷰")
    for part in (None, "리뷰"):
        records = iter_label_records(LabelDatabase(url=any_url, part=part))
        assert [(one.text, one.label) for one in records] == [("좋아요", "긍정"), ("별로", "부정")]


def test_migrations_make_what_the_models_say(tmp_path: Path) -> None:
    open_engine(f"sqlite:///{tmp_path}/labels.db")
    with create_engine(f"sqlite:///{tmp_path}/labels.db").connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, Base.metadata) == []
        assert context.get_current_heads() == (HEAD,)


def test_opening_imports_alembic_only_for_work(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPEN, f"sqlite:///{tmp_path}/labels.db"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert (first, second) == ("['alembic']\n", "[]\n")


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    open_engine(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.close()
    with pytest.raises(InputError, match=f"layout 9999, and this Malmoi knows {HEAD}; update"):
        open_engine(f"sqlite:///{path}")


def test_a_damaged_file_is_one_line_and_stays(tmp_path: Path) -> None:
    for size in (100, 5_000):
        path = tmp_path / "labels.db"
        path.write_bytes(b"SQLite format 3\x00" + b"\xff" * size)
        before = path.read_bytes()
        with pytest.raises(InputError, match="cannot be opened") as caught:
            open_engine(f"sqlite:///{path}")
        assert "\n" not in str(caught.value), size
        with pytest.raises(InputError, match="expected the label database of the app"):
            list(iter_label_records(LabelDatabase(path=path)))
        assert path.read_bytes() == before, size


def test_four_who_open_an_old_database_at_once_migrate_it_once(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    migrate_to(create_engine(f"sqlite:///{path}"), "0002")
    barrier = threading.Barrier(4)
    found: list[object] = []

    def look() -> None:
        barrier.wait()
        found.append(ProjectStore(f"sqlite:///{path}").list(LOCAL))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[]] * 4 and version_in(path) == HEAD


WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
# A project of an earlier layout: three texts, of which two have a label and one a decision, too.
EARLIER: dict[str, list[dict[str, object]]] = {
    "projects": [
        {"name": "리뷰", "kind": "single", "annotators_per_text": 1, "show_suggestion": True}
        | {"text_order": "scores", "random_share": 0.0, "lease_seconds": 600, "created_by": "가"}
        | {"created_at": WHEN, "scores_version": 1}
    ],
    "guidelines": [
        {"project_id": 1, "version": 1, "markdown": "# 기준", "author": "가", "created_at": WHEN}
    ],
    "project_labels": [
        {"project_id": 1, "name": name, "title": name, "meaning": "", "position": place}
        | {"retired": False}
        for place, name in enumerate(("긍정", "부정"))
    ],
    "adjudications": [
        {"project_id": 1, "text_id": 2, "reviewer": "나", "choice": "[1]", "request_id": "d"}
        | {"guideline_version": 1, "created_at": WHEN}
    ],
    "annotations": [
        {"project_id": 1, "text_id": place, "annotator": "가", "kind": "label", "choice": "[2]"}
        | {"guideline_version": 1, "request_id": f"r{place}", "created_at": WHEN}
        for place in (1, 2)
    ],
    "places": [
        {"project_id": 1, "text_id": place, "annotator": "가", "state": "labelled"}
        | {"annotation_id": place, "choice": "[2]"}
        for place in (1, 2)
    ],
    "score_versions": [{"project_id": 1, "model": "quick-20", "created_at": WHEN}],
    "text_scores": [{"version": 1, "text_id": 3, "priority": 1.0, "label": "긍정", "score": 0.75}],
}
TEXTS = ("별로예요 👎🏽", "그냥 그래요", "배송이 빨라요")


def write_earlier(connection: Connection) -> None:
    """Write `EARLIER` into the tables as they are."""
    tables = MetaData()
    tables.reflect(connection, only=lambda name, _: name.startswith("malmoi_"))
    rows = dict(EARLIER)
    rows["texts"] = [
        {"project_id": 1, "text": one, "text_sha256": text_hash(one), "lottery": place / 10}
        | {"votes": int(place < 3), "is_open": place == 3, "disagrees": False}
        | {"adjudication_id": 1 if place == 2 else None}
        for place, one in enumerate(TEXTS, 1)
    ]
    # Texts come before what is about them.
    for name in ("projects", "texts", *list(EARLIER)[1:]):
        connection.execute(insert(tables.tables[f"malmoi_{name}"]), rows[name])


@pytest.mark.parametrize("layout", ["0002", "0003", "0007"])
def test_projects_of_an_earlier_layout_keep_their_rows(any_url: str, layout: str) -> None:
    """With texts, labels, a decision and scores, brought to the newest layout and used."""
    engine = create_engine(any_url)
    migrate_to(engine, layout)
    with engine.begin() as connection:
        write_earlier(connection)
        if layout == "0003":
            connection.execute(
                text("UPDATE malmoi_score_versions SET labels = 20, cross_validated_f1 = 0.5")
            )
    # Training reads a database that nobody has brought to the newest layout.
    database = LabelDatabase(url=any_url, part="리뷰")
    records = [(one.text, one.label) for one in iter_label_records(database)]
    assert records == [(TEXTS[0], "부정"), (TEXTS[1], "긍정")]
    store = ProjectStore(any_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, Base.metadata) == []
        assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == HEAD
    assert [(one.text, one.label) for one in iter_label_records(database)] == records
    access = store.access(Person(name="가", is_local=True), "리뷰")
    assert read_project(access).settings == ProjectSettings(text_order="scores", random_share=0.0)
    assert [(one.text, one.labels) for one in labelled_texts(access)] == [
        (TEXTS[0], ("부정",)),
        (TEXTS[1], ("긍정",)),
    ]
    # A point of the curve that was never measured is none.
    points = [(one.model, one.quality.labels) for one in score_versions(access)]
    assert points == ([("quick-20", 20)] if layout == "0003" else [])
    (leased,) = lease_texts(access, 5)
    assert (leased.text, leased.suggested_label, leased.drawn) == (TEXTS[2], "긍정", "scores")
    act = Act(text_id=leased.text_id, kind="label", labels=["긍정"], request_id="new")
    assert save_acts(access, [act])[0].new and progress(access).finished == 3
    change_settings(access, model="내 모델")
    assert read_project(access).settings.model == "내 모델"
