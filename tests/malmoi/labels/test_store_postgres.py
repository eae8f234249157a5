"""The label store on a real PostgreSQL server, where one is installed."""

import json
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

import malmoi.labels.connection
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.finetune.data.examples import read_examples
from malmoi.finetune.data.source import find_data
from malmoi.finetune.kfold import ABOUT, main
from malmoi.finetune.settings import KfoldSettings
from malmoi.labels.project_models import Base
from malmoi.labels.store import LabelStore
from tests.malmoi.finetune.conftest import save_labels, separable

LABELS = ["긍정", "부정"]


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


def save(store: LabelStore, words: str, label: str, request_id: str) -> bool:
    return store.save(
        text=words, label=label, labels=LABELS, annotator="가", request_id=request_id
    ).new


def test_it_keeps_what_is_saved_and_saves_once(url: str) -> None:
    store = LabelStore(url)
    assert save(store, "배송 빨라요 👍🏽 ㅋㅋ\x00", "긍정", "1")
    assert not save(store, "배송 빨라요 👍🏽 ㅋㅋ", "긍정", "1")
    assert save(store, "배송 빨라요 👍🏽 ㅋㅋ", "부정", "2")
    again = LabelStore(url)
    assert again.counts(LABELS) == {"부정": 1} and again.history_length() == 2
    (row,) = again.current(LABELS)
    assert row.text == "배송 빨라요 👍🏽 ㅋㅋ" and row.created_at.tzinfo is not None


def test_two_make_the_table_at_the_same_moment(url: str) -> None:
    barrier = threading.Barrier(4)
    failed: list[BaseException] = []

    def write(number: int) -> None:
        barrier.wait()
        try:
            save(LabelStore(url), f"글 {number}", "긍정", str(number))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and LabelStore(url).history_length() == 4


def test_two_take_over_a_table_without_a_version_at_once(url: str) -> None:
    save(LabelStore(url), "글", "긍정", "1")
    newer = ", ".join(table.name for table in Base.metadata.sorted_tables if table.name != "labels")
    with create_engine(url).begin() as connection:
        connection.execute(text(f"DROP TABLE labels_version, {newer}"))
    barrier = threading.Barrier(4)
    found: list[dict[str, int]] = []

    def look() -> None:
        barrier.wait()
        found.append(LabelStore(url).counts(LABELS))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"긍정": 1}] * 4


def test_it_is_read_for_training_by_its_url(url: str) -> None:
    server = make_url(url).set(password="se#cr@et")
    given = server.render_as_string(hide_password=False)
    save(LabelStore(given), "배송 빨라요", "긍정", "1")
    save(LabelStore(given), "별로예요", "긍정", "2")
    save(LabelStore(given), "별로예요", "부정", "3")
    LabelStore(given).save(
        text="내일", label="일정", labels=["꿈", "일정"], annotator="나", request_id="4"
    )
    source = find_data(f"{given}#긍정,부정", None)
    examples = read_examples(source.place)
    assert examples.texts == ["배송 빨라요", "별로예요"] and examples.counts == {
        "긍정": 1,
        "부정": 1,
    }
    assert examples.ids == ["postgres:1", "postgres:3"]
    port = server.port
    shown = f"postgresql+psycopg://malmoi:***@127.0.0.1:{port}/postgres#긍정,부정"
    assert str(examples.path) == shown
    assert read_examples(find_data(given, LABELS).place, LABELS).counts == examples.counts
    with pytest.raises(InputError, match=r"those of 긍정,부정 and 꿈,일정") as caught:
        read_examples(find_data(given, None).place)
    assert "cr@et" not in str(caught.value)


def test_k_fold_of_a_url_names_no_password(
    url: str,
    encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    save_labels(url, separable())
    given = url.replace("malmoi@", "malmoi:secret@")
    flags = [f"--data={given}#꿈,일기,일정", f"--model={encoder}", "--folds=2", "--epochs=1"]
    assert run_command(KfoldSettings, main, ABOUT, arguments=flags) == 0
    (run,) = Path("runs/finetune").iterdir()
    assert run.name.startswith("postgres-")
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["path"].endswith("/postgres#꿈,일기,일정")
    assert report["data"]["texts"] == len(separable())
    told = "".join(capsys.readouterr())
    written = [path.read_bytes() for path in run.rglob("*") if path.is_file()]
    assert "secret" not in told and not any(b"secret" in content for content in written)


def test_whoever_may_only_use_the_table_can_label(url: str) -> None:
    LabelStore(url)
    with create_engine(url).begin() as connection:
        connection.execute(text("CREATE ROLE annotator LOGIN"))
        connection.execute(text("GRANT SELECT, INSERT ON labels TO annotator"))
        connection.execute(text("GRANT USAGE ON SEQUENCE labels_id_seq TO annotator"))
    assert save(LabelStore(url.replace("malmoi@", "annotator@")), "글", "긍정", "1")


def test_a_table_that_is_locked_is_read_and_does_not_hang(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open transaction of someone else, as of a backup, must not freeze every page."""
    monkeypatch.setitem(malmoi.labels.connection.POSTGRES, "options", "-c lock_timeout=500")
    store = LabelStore(url)
    save(store, "글", "긍정", "1")
    with create_engine(url).begin() as connection:
        connection.execute(text("UPDATE labels SET annotator = '나'"))
        # Opening again makes nothing, so it waits for nobody.
        assert LabelStore(url).counts(LABELS) == {"긍정": 1}
        assert save(store, "다른 글", "부정", "2")
        connection.execute(text("LOCK TABLE labels IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(OperationalError, match="lock timeout"):
            save(store, "또 다른 글", "부정", "3")
    assert save(store, "또 다른 글", "부정", "3")
