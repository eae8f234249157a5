"""A database goes back to a copy while others have it open; what is lost is told before."""

import sqlite3
import threading
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import func, select

from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.labels.access_keys import list_keys, make_key, person_of, withdraw
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.backup import back_up, back_up_daily
from malmoi.labels.going_back import LostRows, go_back, what_would_be_lost
from malmoi.labels.people import AccessError, Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore, set_member
from malmoi.labels.review import adjudicate, progress
from malmoi.labels.tables import AnnotationRow
from malmoi.labels.text_import import import_texts
from malmoi.labels.webhooks import list_webhooks, make_webhook
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.labels.conftest import LOCAL, for_person

LABELS = [ProjectLabel(name="가"), ProjectLabel(name="나")]


def test_going_back_takes_what_was_told_and_lets_nobody_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, copy = f"sqlite:///{tmp_path}/labels.db", tmp_path / "backups" / "copy.db"
    store, other = ProjectStore(url), ProjectStore(url)
    access = store.create(LOCAL, NewProject(name="리뷰", labels=LABELS))
    import_texts(access, [source_of_upload("글.txt", b"one\ntwo\nthree")])
    secret = make_key(access, "지은", "annotator", "invitation")
    mine = for_person(access, "지은")
    save_acts(mine, [Act(text_id=1, kind="label", labels=["가"], request_id="a")])
    back_up(copy, url)
    assert what_would_be_lost(store.engine, copy) == LostRows(
        projects=(), people=(), texts=0, acts=0, decisions=0
    )

    withdraw(access, list_keys(access, "invitation")[0].id)
    new = make_key(access, "민수", "annotator", "invitation")
    import_texts(access, [source_of_upload("글.txt", "넷\n다섯".encode())])
    theirs = for_person(access, "민수")
    acts = [Act(text_id=n, kind="label", labels=["나"], request_id=f"{n}") for n in (2, 4)]
    save_acts(theirs, acts)
    adjudicate(access, 2, ["가"], request_id="d")
    store.create(Person(name="수아", is_local=True), NewProject(name="다른 것", labels=LABELS))
    assert what_would_be_lost(store.engine, copy) == LostRows(
        projects=("다른 것",), people=("민수",), texts=2, acts=2, decisions=1
    )

    # Whoever has it open, and reads at that moment, goes on in what is there then.
    with other.engine.connect() as connection:
        kept = tmp_path / "backups" / "before.db"
        go_back(store.engine, copy, kept)
        assert connection.scalar(select(func.count()).select_from(AnnotationRow)) == 1
    assert [one.name for one in other.list(LOCAL)] == ["리뷰"]
    assert progress(access).texts == 3 and store.engine.url == other.engine.url
    # A link that was taken back stays so, and a new one opens.
    assert person_of(store, secret, "invitation") is None
    assert person_of(store, new, "invitation") is not None
    save_acts(mine, [Act(text_id=3, kind="label", labels=["가"], request_id="b")])
    # And forth again, by the command, which says before what goes.
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    restore = ["labels", "restore", str(kept), f"--database={tmp_path}/labels.db"]
    assert main(restore) == 0 and progress(access).texts == 3
    told = capsys.readouterr().err
    assert "lost: 0 texts, 1 labels" in told and "--yes" in told
    assert main([*restore, "--yes"]) == 0
    assert progress(access).texts == 5 and len(other.list(LOCAL)) == 2
    assert len(list((tmp_path / "backups").glob("before-going-back-*.db"))) == 1
    assert main([*restore[:2], str(tmp_path / "none.db"), *restore[3:]]) == 2

    (tmp_path / "backups" / "broken.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 500)
    with pytest.raises(InputError):
        what_would_be_lost(store.engine, tmp_path / "backups" / "broken.db")
    assert progress(access).texts == 5
    assert not list((tmp_path / "backups").glob("malmoi-*"))


def test_who_may_come_in_and_is_told_stays_so_in_the_same_project_alone(tmp_path: Path) -> None:
    url, first, second = f"sqlite:///{tmp_path}/labels.db", tmp_path / "1.db", tmp_path / "2.db"
    store = ProjectStore(url)
    access = store.create(LOCAL, NewProject(name="리뷰", labels=LABELS))
    gone = for_person(access, "지은")
    back_up(first, url)
    kept = store.create(LOCAL, NewProject(name="옛것", labels=LABELS))
    set_member(kept, "수아", "reviewer")
    back_up(second, url)
    set_member(access, "지은", None)
    set_member(access, "민수", "annotator")
    go_back(store.engine, first, tmp_path / "3.db")
    with pytest.raises(AccessError):
        store.access(gone.person, access.project_id)
    assert store.access(Person(name="민수"), access.project_id)

    # Another project has the id of one that comes back.
    other = store.create(LOCAL, NewProject(name="새것", labels=LABELS))
    assert other.project_id == kept.project_id
    make_webhook(other, "https://example.com/", may_be_private=True)
    secret = make_key(other, "하나", "admin", "invitation")
    go_back(store.engine, second, tmp_path / "4.db")
    assert list_webhooks(kept) == [] and person_of(store, secret, "invitation") is None
    assert [one.name for one in store.list(Person(name="수아"))] == ["옛것"]
    assert store.list(Person(name="하나")) == []


def test_a_label_of_this_moment_is_in_the_database_or_in_the_copy_before(tmp_path: Path) -> None:
    url, copy, kept = f"sqlite:///{tmp_path}/labels.db", tmp_path / "1.db", tmp_path / "kept.db"
    store = ProjectStore(url)
    access = store.create(LOCAL, NewProject(name="리뷰", labels=LABELS))
    import_texts(access, [source_of_upload("글.txt", b"one\ntwo\nthree")])
    back_up(copy, url)
    saved: list[str] = []
    ended = threading.Event()

    def label() -> None:
        while not ended.is_set():
            request = f"{len(saved)}"
            save_acts(access, [Act(text_id=1, kind="label", labels=["가"], request_id=request)])
            saved.append(request)

    thread = threading.Thread(target=label, daemon=True)
    thread.start()
    try:
        while len(saved) < 5:
            ended.wait(0.01)
        go_back(store.engine, copy, kept)
    finally:
        ended.set()
        thread.join()
    found: set[str] = set()
    for path in (tmp_path / "labels.db", kept):
        with closing(sqlite3.connect(path)) as connection:
            found |= {
                row[0] for row in connection.execute("SELECT request_id FROM malmoi_annotations")
            }
    assert found == set(saved)


@pytest.mark.parametrize("tables", [(), ("songs",)])
def test_what_is_no_label_database_is_not_gone_back_to(
    tmp_path: Path, tables: tuple[str, ...]
) -> None:
    store = ProjectStore(f"sqlite:///{tmp_path}/labels.db")
    other = tmp_path / "other.db"
    other.touch()
    with closing(sqlite3.connect(other)) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (id)")
    for what in (what_would_be_lost, lambda *args: go_back(*args, tmp_path / "kept.db")):
        with pytest.raises(InputError, match="other"):
            what(store.engine, other)


def test_a_copy_of_each_day_is_kept_for_some_days(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path}/labels.db", tmp_path / "backups"
    ProjectStore(url).create(LOCAL, NewProject(name="리뷰", labels=LABELS))
    assert back_up_daily(folder, url, 0, date(2026, 3, 1)) is None and not folder.exists()
    back_up(folder / "labels-2025-01-01.db", url)
    made = [back_up_daily(folder, url, 2, date(2026, 3, day)) for day in (1, 2, 2, 3)]
    assert [one is None for one in made] == [False, False, True, False]
    assert sorted(path.name for path in folder.iterdir()) == [
        "daily-2026-03-02.db",
        "daily-2026-03-03.db",
        "labels-2025-01-01.db",
    ]
