"""The label database on a real PostgreSQL server, where one is installed."""

import json
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

import malmoi.labels.connection
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.data.source import find_data
from malmoi.finetune.kfold import ABOUT, main
from malmoi.finetune.settings import KfoldSettings
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.projects import ProjectStore
from tests.malmoi.finetune.conftest import save_labels, separable
from tests.malmoi.labels.conftest import LOCAL, Make

ROWS = [("배송 빨라요", "긍정"), ("별로예요", "긍정"), ("별로예요", "부정")]


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def any_url(url: str) -> str:
    """Where `make` makes projects."""
    return url


def test_four_make_the_tables_at_the_same_moment(url: str) -> None:
    barrier = threading.Barrier(4)
    found: list[object] = []

    def look() -> None:
        barrier.wait()
        found.append(ProjectStore(url).list(LOCAL))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[]] * 4


def test_it_is_read_for_training_by_its_url(url: str) -> None:
    server = make_url(url).set(password="se#cr@et")
    given = server.render_as_string(hide_password=False)
    save_labels(given, ROWS, "리뷰")
    save_labels(given, [("내일", "일정"), ("잤다", "꿈")])
    examples = read_examples(find_data(f"{given}#리뷰", None).place)
    assert examples.counts == {"긍정": 1, "부정": 1}
    assert examples.ids == ["postgres:1", "postgres:2"]
    shown = f"postgresql+psycopg://malmoi:***@127.0.0.1:{server.port}/postgres#리뷰"
    assert str(examples.path) == shown
    with pytest.raises(InputError, match=r"behind it, #리뷰, #메모, found none") as caught:
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
    flags = [f"--data={given}#메모", f"--model={encoder}", "--folds=2", "--epochs=1"]
    assert run_command(KfoldSettings, main, ABOUT, arguments=flags) == 0
    (run,) = Path("runs/finetune").iterdir()
    assert run.name.startswith("postgres-")
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["path"].endswith("/postgres#메모")
    assert report["data"]["texts"] == len(separable())
    told = "".join(capsys.readouterr())
    written = [path.read_bytes() for path in run.rglob("*") if path.is_file()]
    assert "secret" not in told and not any(b"secret" in content for content in written)


def test_whoever_may_only_use_the_tables_can_label(url: str, make: Make) -> None:
    make("글")
    with create_engine(url).begin() as connection:
        connection.execute(text("CREATE ROLE annotator LOGIN"))
        for which in ("TABLES", "SEQUENCES"):
            rights = "SELECT, INSERT, UPDATE" if which == "TABLES" else "USAGE"
            connection.execute(text(f"GRANT {rights} ON ALL {which} IN SCHEMA public TO annotator"))
        connection.execute(text("REVOKE ALL ON labels_version FROM annotator"))
    access = ProjectStore(url.replace("malmoi@", "annotator@")).access(LOCAL, "리뷰")
    assert save_acts(access, [Act(text_id=1, kind="label", labels=["긍정"], request_id="1")])[0].new


def test_a_table_that_is_locked_is_read_and_does_not_hang(
    url: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open transaction of someone else, as of a backup, must not freeze every page."""
    monkeypatch.setitem(malmoi.labels.connection.POSTGRES, "options", "-c lock_timeout=500")
    access = make("글", "다른 글")

    def label(text_id: int) -> bool:
        act = Act(text_id=text_id, kind="label", labels=["긍정"], request_id=f"r{text_id}")
        return save_acts(access, [act])[0].new

    assert label(1)
    with create_engine(url).begin() as connection:
        connection.execute(text("UPDATE malmoi_annotations SET seconds = 1"))
        # Opening again makes nothing, so it waits for nobody.
        assert [one.name for one in ProjectStore(url).list(LOCAL)] == ["리뷰"]
        connection.execute(text("LOCK TABLE malmoi_annotations IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(InputError, match=r"lock timeout.*try again"):
            label(2)
    assert label(2)
