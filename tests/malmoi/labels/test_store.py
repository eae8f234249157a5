"""The label store loses nothing and doubles nothing."""

import sqlite3
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from malmoi.app.downloads import table_file
from malmoi.errors import InputError
from malmoi.labels.connection import writing_engine
from malmoi.labels.database import LabelDatabase
from malmoi.labels.records import iter_label_records
from malmoi.labels.store import EXPORT_COLUMNS, LabelStore, database_url
from malmoi.text.reading.records import iter_records

WRITER = """
import sys
from malmoi.labels.store import LabelStore
url, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = LabelStore(url)
for number in range(count):
    store.save(
        text=f"{who} 글 {number}",
        label="긍정",
        labels=["긍정", "부정"],
        annotator=who,
        request_id=f"{who}-{number}",
    )
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/new folder/labels.db"


REVIEWS = ["긍정", "부정", "중립"]
MEMOS = ["꿈", "일기", "일정"]


def save(
    store: LabelStore, text: str, label: str, request_id: str, labels: Sequence[str] = REVIEWS
) -> bool:
    saved = store.save(
        text=text, label=label, labels=labels, annotator="가나", request_id=request_id
    )
    return saved.new


def test_round_trip(url: str) -> None:
    before = datetime.now(UTC)
    LabelStore(url).save(
        text="배송 빨라요 👍🏽👨‍👩‍👧\n둘째 줄 ㅋㅋ",
        label="긍정",
        labels=REVIEWS,
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
    assert store.label_of("첫 글", REVIEWS) == "중립"
    assert store.label_of("없는 글", REVIEWS) is None
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
    path.write_bytes(table_file(table, ".csv"))
    (record,) = iter_records(path, need_label=True)
    assert (record.text, record.label) == ("글", "부정")


def test_labels_of_two_tasks_stand_side_by_side(url: str) -> None:
    store = LabelStore(url)
    save(store, "내일 병원 가기 싫다", "부정", "1")
    save(store, "내일 병원 가기 싫다", "일정", "2", MEMOS)
    save(store, "배송 빨라요", "긍정", "3")
    assert store.label_of("내일 병원 가기 싫다", REVIEWS) == "부정"
    assert store.label_of("내일 병원 가기 싫다", MEMOS) == "일정"
    assert store.counts(REVIEWS) == {"긍정": 1, "부정": 1}
    assert store.counts(MEMOS) == {"일정": 1}
    assert sum(store.counts().values()) == 3
    assert store.export(MEMOS)[["text", "label"]].to_numpy().tolist() == [
        ["내일 병원 가기 싫다", "일정"]
    ]
    path = Path(url.removeprefix("sqlite:///"))
    assert read_rows(path, REVIEWS) == [("내일 병원 가기 싫다", "부정"), ("배송 빨라요", "긍정")]
    assert read_rows(path, MEMOS) == [("내일 병원 가기 싫다", "일정")]
    with pytest.raises(InputError, match="found those of 긍정,부정,중립 and 꿈"):
        read_rows(path, None)


def read_rows(path: Path, labels: Sequence[str] | None) -> list[tuple[str, str | None]]:
    records = iter_label_records(LabelDatabase(path=path), labels)
    return [(record.text, record.label) for record in records]


def test_a_task_that_gets_a_label_more_keeps_what_was_saved(url: str) -> None:
    store = LabelStore(url)
    save(store, "배송 빨라요", "긍정", "1", ["긍정", "부정"])
    save(store, "그냥 그래요", "중립", "2")
    assert store.counts(REVIEWS) == {"긍정": 1, "중립": 1}
    assert store.counts(["긍정", "부정"]) == {"긍정": 1}
    # Decided anew with the longer list, it is still of one task.
    save(store, "배송 빨라요", "중립", "3")
    assert store.counts(REVIEWS) == {"중립": 2}
    save(store, "배송 빨라요", "긍정", "4")
    path = Path(url.removeprefix("sqlite:///"))
    assert read_rows(path, None) == [("그냥 그래요", "중립"), ("배송 빨라요", "긍정")]


def test_texts_that_are_equal_once_clean_are_one(url: str) -> None:
    """Training sees them so: a correction must not come second to what it corrects."""
    store = LabelStore(url)
    text = "배송 빨라요 그냥 추천"
    save(store, text, "긍정", "1")
    save(store, f"{text}\n", "부정", "2")
    save(store, unicodedata.normalize("NFD", text), "중립", "3")
    assert store.counts(REVIEWS) == {"중립": 1}
    assert store.label_of(f" {text} ", REVIEWS) == "중립"
    # Nothing is left of these, but they are different.
    save(store, "<br>", "긍정", "4")
    save(store, "&nbsp;", "부정", "5")
    assert store.counts(REVIEWS) == {"긍정": 1, "부정": 1, "중립": 1}


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
    assert [writer.wait() for writer in writers] == [0, 0]
    store = LabelStore(url)
    assert store.history_length() == 400
    assert {row.text for row in store.current()} == {
        f"{who} 글 {number}" for who in ("가", "나") for number in range(200)
    }


def test_sqlite_settings(url: str) -> None:
    LabelStore(url)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with writing_engine(url, "--data").connect() as own:
        # Full: what was acknowledged survives a power cut.
        assert own.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert own.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_deleted_file_is_made_again(url: str) -> None:
    save(LabelStore(url), "글", "긍정", "1")
    for path in Path(url.removeprefix("sqlite:///")).parent.iterdir():
        path.unlink()
    assert save(LabelStore(url), "글", "긍정", "1")


def test_default_place(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(LabelStore(), "글", "긍정", "1")
    assert (workplace / "runs" / "labels.db").is_file()
    monkeypatch.setenv("MALMOI_DATABASE", f"sqlite:///{workplace}/other.db")
    assert str(database_url()).endswith("other.db")
    assert LabelStore().history_length() == 0


def test_unusable_database_is_one_line() -> None:
    for bad in (
        *("not a url", "postgresql+psycopg://host:port/name", "postgresql+nodriver://host/name"),
        "sqlite:////proc/nowhere/labels.db",
    ):
        with pytest.raises(InputError, match="MALMOI_DATABASE") as caught:
            LabelStore(bad)
        assert "\n" not in str(caught.value), bad


def test_password_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        LabelStore("postgresql+nodriver://me:secret@host/name")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("broken", ["\ud83d", "\x00"])
def test_what_no_database_can_hold_is_left_out_of_every_field(url: str, broken: str) -> None:
    store = LabelStore(url)
    label, labels = f"긍{broken}정", [f"긍{broken}정", "부정"]
    saved = store.save(
        text=f"배송{broken} 빨라요",
        label=label,
        labels=labels,
        annotator=f"가{broken}나",
        request_id=f"1{broken}",
        predicted_label=f"부{broken}정",
        confidence=0.5,
        model=f"모{broken}델",
    )
    (row,) = store.current(labels)
    assert (row.text, row.label, row.annotator, row.request_id, row.predicted_label, row.model) == (
        *("배송 빨라요", "긍정", "가나", "1", "부정", "모델"),
    )
    assert store.label_of(f"배송 빨{broken}라요", labels) == "긍정"
    assert store.counts(labels) == {"긍정": 1}
    assert saved.new and not save(store, "배송 빨라요", "긍정", "1", ["긍정", "부정"])
    table_file(store.export(labels), ".csv")


@pytest.mark.parametrize("broken", ["\ud83d", "\x00", ""])
@pytest.mark.parametrize("field", ["label", "request_id"])
def test_a_label_or_request_of_nothing_is_refused(url: str, field: str, broken: str) -> None:
    store = LabelStore(url)
    given = {"text": "글", "label": "긍정", "labels": REVIEWS, "annotator": "가", "request_id": "1"}
    with pytest.raises(InputError, match=f"expected a {field}"):
        store.save(**{**given, field: broken})  # type: ignore[arg-type]
    assert store.history_length() == 0


def test_a_database_in_memory_is_refused() -> None:
    """Every connection would see another, empty one."""
    for memory in (
        *("sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"),
        "sqlite:///file:labels?mode=memory&cache=shared&uri=true",
    ):
        with pytest.raises(InputError, match=r"in memory.*name a file") as caught:
            LabelStore(memory)
        assert "\n" not in str(caught.value), memory


def test_other_databases_are_named_with_what_is_supported() -> None:
    for other in ("mysql", "mysql+pymysql", "oracle", "mssql+pyodbc", "postgres"):
        with pytest.raises(InputError, match="SQLite or PostgreSQL") as caught:
            LabelStore(f"{other}://me:secret@host/name")
        assert "\n" not in str(caught.value) and "secret" not in str(caught.value), other


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("postgresql+psycopg", "postgresql"):
        for driver in ("psycopg", "psycopg2"):
            monkeypatch.setitem(sys.modules, driver, None)  # as where it is not installed
        with pytest.raises(InputError, match=r"psycopg2? is not installed.*\[postgres\]") as caught:
            LabelStore(f"{scheme}://me:secret@host/name")
        assert "\n" not in str(caught.value) and "secret" not in str(caught.value), scheme
