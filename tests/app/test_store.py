"""The label store loses nothing and doubles nothing."""

import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.batch import to_csv
from app.store import EXPORT_COLUMNS, LabelStore, database_url
from corpora.errors import InputError
from corpora.reading import iter_records

WRITER = """
import sys
from app.store import LabelStore
url, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = LabelStore(url)
for number in range(count):
    store.save(text=f"{who} 글 {number}", label="긍정", annotator=who, request_id=f"{who}-{number}")
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/new folder/labels.db"


def save(store: LabelStore, text: str, label: str, request_id: str) -> bool:
    return store.save(text=text, label=label, annotator="가나", request_id=request_id).new


def test_round_trip(url: str) -> None:
    before = datetime.now(UTC)
    LabelStore(url).save(
        text="배송 빨라요 👍🏽👨‍👩‍👧\n둘째 줄 ㅋㅋ",
        label="긍정",
        annotator="지은",
        request_id="1",
        predicted_label="부정",
        confidence=0.625,
        model="reviews-1",
    )
    # A new store is what a restart sees.
    (row,) = LabelStore(url).recent()
    assert row.text == "배송 빨라요 👍🏽👨‍👩‍👧\n둘째 줄 ㅋㅋ"
    assert (row.label, row.predicted_label, row.confidence) == ("긍정", "부정", 0.625)
    assert (row.annotator, row.model) == ("지은", "reviews-1")
    assert before <= row.created_at <= datetime.now(UTC)


def test_double_click_saves_once(url: str) -> None:
    store = LabelStore(url)
    assert save(store, "글", "긍정", "same")
    assert not save(store, "글", "긍정", "same")
    assert store.history_length() == 1


def test_simultaneous_double_click_saves_once(url: str) -> None:
    store = LabelStore(url)
    barrier = threading.Barrier(8)
    written: list[bool] = []

    def click() -> None:
        barrier.wait()
        written.append(save(store, "글", "긍정", "same"))

    threads = [threading.Thread(target=click) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == [False] * 7 + [True]
    assert store.history_length() == 1


def test_correction_keeps_history(url: str) -> None:
    store = LabelStore(url)
    save(store, "첫 글", "긍정", "1")
    save(store, "둘째 글", "긍정", "2")
    save(store, "첫 글", "중립", "3")
    assert [row.label for row in store.recent()] == ["중립", "긍정", "긍정"]
    assert [(row.text, row.label) for row in store.current()] == [
        ("둘째 글", "긍정"),
        ("첫 글", "중립"),
    ]
    assert store.counts() == {"긍정": 1, "중립": 1}
    assert store.label_of("첫 글") == "중립"
    assert store.label_of("없는 글") is None
    assert [row.label for row in store.recent(1)] == ["중립"]


def test_export_is_a_training_table(url: str, tmp_path: Path) -> None:
    store = LabelStore(url)
    assert list(store.export().columns) == EXPORT_COLUMNS
    save(store, "글", "긍정", "1")
    save(store, "글", "부정", "2")
    table = store.export()
    assert list(table.columns)[:2] == ["text", "label"]
    assert table[["text", "label"]].to_numpy().tolist() == [["글", "부정"]]
    assert datetime.fromisoformat(table.created_at[0]).tzinfo is not None
    path = tmp_path / "labels.csv"
    path.write_bytes(to_csv(table))
    (record,) = iter_records(path, need_label=True)
    assert (record.text, record.label) == ("글", "부정")


def test_two_threads_lose_nothing(url: str) -> None:
    def write(who: str) -> None:
        store = LabelStore(url)
        for number in range(200):
            save(store, f"{who} {number}", "긍정", f"{who}-{number}")

    threads = [threading.Thread(target=write, args=(who,)) for who in ("가", "나")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert LabelStore(url).history_length() == 400


def test_two_processes_lose_nothing(url: str) -> None:
    # Both also make the database, at the same moment.
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url, who, "200"]) for who in ("가", "나")
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    store = LabelStore(url)
    assert store.history_length() == 400
    assert {row.text for row in store.current()} == {
        f"{who} 글 {number}" for who in ("가", "나") for number in range(200)
    }


def test_sqlite_settings(url: str) -> None:
    LabelStore(url)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_deleted_file_is_made_again(url: str) -> None:
    save(LabelStore(url), "글", "긍정", "1")
    for path in Path(url.removeprefix("sqlite:///")).parent.iterdir():
        path.unlink()
    assert save(LabelStore(url), "글", "긍정", "1")


def test_default_place(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(LabelStore(), "글", "긍정", "1")
    assert (workplace / "runs" / "labels.db").is_file()
    monkeypatch.setenv("MALMOI_DATABASE", f"sqlite:///{workplace}/other.db")
    assert database_url().endswith("other.db")
    assert LabelStore().history_length() == 0


@pytest.mark.parametrize(
    "bad", ["not a url", "sqlite:////proc/nowhere/labels.db", "postgresql+nodriver://host/name"]
)
def test_unusable_database_is_one_line(bad: str) -> None:
    with pytest.raises(InputError, match="MALMOI_DATABASE") as caught:
        LabelStore(bad)
    assert "\n" not in str(caught.value)


def test_password_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        LabelStore("postgresql+nodriver://me:secret@host/name")
    assert "secret" not in str(caught.value)


def test_half_a_character_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="half a character"):
        save(LabelStore(url), "\ud83d", "긍정", "1")
