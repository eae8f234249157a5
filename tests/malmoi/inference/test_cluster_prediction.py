"""`malmoi predict --cluster ray`: the rows of one process, whatever dies on the way."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from malmoi import cache
from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.inference import parquet_parts, table_prediction
from malmoi.inference.classifier import Classifier
from malmoi.inference.cluster_prediction import PARTS, write_part
from malmoi.inference.onnx_exports import entry_path
from malmoi.inference.parquet_parts import cut_parts, rows_of_part
from malmoi.inference.shipped_model import load_shipped, ship_model
from malmoi.inference.table_prediction import units_of
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_all_sources
from tests.malmoi.workers.conftest import cluster

__all__ = ["cluster"]

REVIEWS = Path(__file__).parents[3] / "checkpoints" / "malmoi-medium-reviews"
ROWS_IN_UNIT = 200
Predict = Callable[..., tuple[int, str, str]]


@pytest.fixture
def predict(capfd: pytest.CaptureFixture[str]) -> Predict:
    """Run the command with these flags; returns exit code and what was printed."""

    def run(*flags: object) -> tuple[int, str, str]:
        code = main(["predict", *map(str, flags)])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts, and units of one process, of a few rows."""
    monkeypatch.setattr(table_prediction, "ROWS_IN_UNIT", ROWS_IN_UNIT)
    monkeypatch.setattr(parquet_parts, "ROWS_IN_UNIT", ROWS_IN_UNIT)


def write_files(folder: Path, texts: list[str | None], *ends: int) -> Path:
    """Parquet files that end at these rows; the second has a column less."""
    folder.mkdir()
    begin = 0
    for number, end in enumerate([*ends, len(texts)]):
        columns: dict[str, Any] = {"n": range(begin, end), "text": texts[begin:end]}
        if number != 1:
            columns["길이"] = [len(text or "") / 2 for text in texts[begin:end]]
        # Not in step with units or parts.
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=170)
        begin = end
    return folder


def some_texts(comments: list[str], count: int) -> list[str | None]:
    texts = [f"{comments[n % len(comments)]} {n // len(comments)}" for n in range(count)]
    return [None if n % 97 == 5 else text for n, text in enumerate(texts)]


def kill_at(parts: Path, count: int, cluster: Any, node: Any, killed: list[int]) -> Any:
    """A thread that kills the node when so many parts are there, and says how many there were."""

    def watch() -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            done = len(list(parts.glob("*.parquet")))
            if done >= count:
                killed.append(done)
                cluster.remove_node(node, allow_graceful=False)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_two_nodes_one_dies_and_the_rows_are_those_of_one_process(
    cluster: Any,
    predict: Predict,
    comments: list[str],
    tmp_path: Path,
    small_units: None,
) -> None:
    import ray

    data = write_files(tmp_path / "in", some_texts(comments, 4_000), 650, 650, 2_300)
    flags = [data, f"--model={REVIEWS}", "--engine=onnx-int8"]
    assert predict(*flags, f"--output={tmp_path / 'one.parquet'}")[0] == 0
    one = pq.read_table(tmp_path / "one.parquet")
    node = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    cluster.wait_for_nodes()
    assert ray.cluster_resources()["CPU"] == 2

    code, printed, errors = predict(*flags, f"--output={tmp_path / 'two'}", "--cluster=ray")
    assert (code, "on 2 cores" in printed, "4,000 rows -> " in printed) == (0, True, True), errors
    names = sorted(path.name for path in (tmp_path / "two").iterdir())
    assert names == [f"part-{number:05d}.parquet" for number in range(20)]
    assert pq.read_table(tmp_path / "two").equals(one)

    killed: list[int] = []
    parts = tmp_path / ".three.work" / PARTS
    thread = kill_at(parts, 8, cluster, node, killed)
    code, _, errors = predict(*flags, f"--output={tmp_path / 'three'}", "--cluster=ray")
    thread.join()
    assert code == 0, errors
    assert 8 <= killed[0] < 20
    assert pq.read_table(tmp_path / "three").equals(one)
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_finished_parts_are_not_predicted_again(
    cluster: Any,
    predict: Predict,
    comments: list[str],
    classifier_directory: Path,
    tmp_path: Path,
    small_units: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = write_files(tmp_path / "in", some_texts(comments, 2_000), 300)
    broken = data / "1.parquet"
    whole = broken.read_bytes()
    flags = [data, f"--model={classifier_directory}", f"--output={tmp_path / 'out'}"]
    flags.append("--cluster=ray")
    with monkeypatch.context() as patched:
        stopped = stop_after(patched, rows=3 * ROWS_IN_UNIT)
        assert predict(*flags)[0] == 130
    parts = tmp_path / ".out.work" / PARTS
    kept = {path.name: path.stat().st_mtime_ns for path in parts.iterdir()}
    assert stopped == [True] and len(kept) >= 3
    # A part that is not there, and one that a power failure has cut off.
    first, second = sorted(kept)[:2]
    (parts / first).unlink()
    (parts / second).write_bytes((parts / second).read_bytes()[:500])
    del kept[first], kept[second]

    code, _, errors = predict(*flags)
    assert code == 0, errors
    found = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert len(found) == 10 and kept.items() <= found.items()
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == list(range(2_000))

    # What only the node meets is one line, too, and what is finished stays.
    damage(broken)
    code, _, errors = predict(*flags[:-2], f"--output={tmp_path / 'bad'}", "--cluster=ray")
    line = next(line for line in errors.splitlines() if line.startswith("error: "))
    assert code == 2 and f"{broken}: expected a Parquet file, found a damaged file" in line
    assert "what is finished is kept" in line and "Traceback" not in errors
    assert broken.read_bytes() != whole


def stop_after(monkeypatch: pytest.MonkeyPatch, rows: int) -> list[bool]:
    """Ctrl-C once so many rows are reported."""
    stopped: list[bool] = []

    @contextmanager
    def stopping(unit: str) -> Iterator[Any]:
        def show(part: str, done: int, total: int | None = None, *, skipped: int = 0) -> None:
            if done >= rows and not stopped:
                stopped.append(True)
                raise KeyboardInterrupt

        yield show

    monkeypatch.setattr("malmoi.progress.shown_progress", stopping)
    return stopped


def damage(path: Path) -> None:
    """Turn bytes of the first page; the end of the file, which says what is in it, stays."""
    content = bytearray(path.read_bytes())
    place = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    content[place : place + 400] = bytes(byte ^ 0x5A for byte in content[place : place + 400])
    path.write_bytes(content)


def cut_of(folder: Path, **options: Any) -> parquet_parts.Cut:
    return cut_parts(find_all_sources([folder]), ReadOptions(**options))


@pytest.mark.parametrize("ends", [(), (1,), (650, 650, 900), (200, 400)])
def test_parts_hold_every_row_once_and_in_order(
    ends: tuple[int, ...], comments: list[str], tmp_path: Path, small_units: None
) -> None:
    texts = some_texts(comments, 1_050)
    cut = cut_of(write_files(tmp_path / "in", texts, *ends))
    assert [part.rows for part in cut.parts] == [200] * 5 + [50]
    rows = [
        row for part in cut.parts for row in rows_of_part(part, cut.schema, skip_bad_rows=False)
    ]
    found = pa.Table.from_batches([row.cells for row in rows])
    assert found["n"].to_pylist() == list(range(1_050))
    assert found["text"].to_pylist() == texts
    assert [row.text for row in rows] == [text or "" for text in texts]
    assert {"n", "text", "길이"} == {field.name for field in cut.schema} - {"source_file"}
    bounds = [0, *ends, 1_050]
    counts = [end - begin for begin, end in pairwise(bounds)]
    files = [f"{number}.parquet" for number, count in enumerate(counts) for _ in range(count)]
    assert ("source_file" in found.column_names) == bool(ends)
    assert not ends or found["source_file"].to_pylist() == files


def test_long_texts_make_small_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_prediction, "CHARACTERS_IN_UNIT", 1_000)
    cut = cut_of(write_files(tmp_path / "in", ["가나다라마" * 60] * 10))
    units = list(units_of(rows_of_part(cut.parts[0], cut.schema, skip_bad_rows=False)))
    assert [len(unit) for unit in units] == [4, 4, 2]


def test_pairs_are_found_by_their_columns_as_in_one_process(tmp_path: Path) -> None:
    rows = {"sentence1": ["가나"], "sentence2": ["다라"], "text": ["더 긴 다른 글"]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    cut = cut_parts(find_all_sources([tmp_path]), ReadOptions(), "sentence2")
    (row,) = rows_of_part(cut.parts[0], cut.schema, skip_bad_rows=False)
    assert (row.text, row.pair) == ("가나", "다라")


def test_rows_that_hold_no_text_are_left_out_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    rows = {"n": [1, 2], "text": [["목록"], []]}
    pq.write_table(pa.table(rows), tmp_path / "in" / "a.parquet")
    cut = cut_of(tmp_path / "in", text_column="text")
    with pytest.raises(InputError, match=r"a\.parquet:1: expected text or a number in the cell"):
        list(rows_of_part(cut.parts[0], cut.schema, skip_bad_rows=False))
    assert list(rows_of_part(cut.parts[0], cut.schema, skip_bad_rows=True)) == []


def test_a_file_that_lost_rows_is_named(tmp_path: Path, comments: list[str]) -> None:
    folder = write_files(tmp_path / "in", comments[:30])
    cut = cut_of(folder)
    pq.write_table(pq.read_table(folder / "0.parquet").slice(0, 20), folder / "0.parquet")
    with pytest.raises(InputError, match=r"0\.parquet: expected 30 rows or more, .* found 20"):
        list(rows_of_part(cut.parts[0], cut.schema, skip_bad_rows=False))


def test_a_shipped_model_predicts_the_same_without_its_folder(
    classifier_directory: Path, comments: list[str]
) -> None:
    classifier = Classifier.load(classifier_directory, "onnx-int8")
    shipped = ship_model(classifier_directory, classifier)
    assert {"config.json", "model.safetensors"} <= shipped.files.keys()
    assert {"int8.onnx", "description.json"} <= shipped.export.keys()
    elsewhere = load_shipped(shipped, threads=1)
    assert elsewhere.engine == "onnx-int8"
    expected = classifier.predict_rows(comments[:200])
    assert elsewhere.predict_rows(comments[:200]) == expected
    # What a machine has exported itself, by other versions, is not taken: here, nothing of use.
    (entry_path(classifier_directory) / "int8.onnx").write_bytes(shipped.export["fp32.onnx"])
    assert load_shipped(shipped, threads=1).predict_rows(comments[:200]) == expected
    cache.remove(entry_path(classifier_directory))


def test_a_part_that_cannot_be_written_leaves_nothing(
    classifier_directory: Path, comments: list[str], tmp_path: Path
) -> None:
    cut = cut_of(write_files(tmp_path / "in", list(comments[:50])))
    for name in (PARTS, "unfinished"):
        (tmp_path / name).mkdir()
    classifier = Classifier.load(classifier_directory)
    (tmp_path / "in" / "0.parquet").unlink()
    with pytest.raises(InputError, match="not on every node; put it into a folder that all"):
        write_part(cut.parts[0], cut.schema, classifier, tmp_path, skip_bad_rows=False)
    assert not [path for name in (PARTS, "unfinished") for path in (tmp_path / name).iterdir()]


def test_a_mistake_is_one_line_and_leaves_nothing(
    predict: Predict, classifier_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(Path("in"), ["가나다", "라마바"])
    Path("a.csv").write_text("text\n가나다\n", encoding="utf-8")
    Path("bad").mkdir()
    Path("bad/bad.parquet").write_bytes(b"PAR1 nothing")
    write_files(Path("twice"), ["가나다", "라마바"])
    pq.write_table(pa.table({"n": ["x"], "text": ["가"]}), Path("twice/9.parquet"))
    before = sorted(Path().rglob("*"))
    for flags, line in (
        (
            ["in", "--output=out.csv"],
            "expected a folder for --output with --cluster, found out.csv",
        ),
        (["in", "--output=in"], "expected a new folder for --output, found in; delete it"),
        (["a.csv", "--output=out"], "a.csv: expected a Parquet file with --cluster"),
        (["bad", "--output=out"], "bad.parquet: expected a Parquet file, found a damaged file"),
        (["twice", "--output=out"], "expected the columns that the files before it have"),
        (["in", "--output=-"], "expected files and a folder with --cluster, found -"),
        (["in", "--output=out", "--address=ray://a:1"], "expected host:port of the cluster's head"),
    ):
        code, _, errors = predict(*flags, f"--model={classifier_directory}", "--cluster=ray")
        assert code == 2 and errors.count("\n") == 1 and line in errors, flags
        assert sorted(Path().rglob("*")) == before, flags


def test_an_address_without_a_cluster_flag(predict: Predict, tmp_path: Path) -> None:
    flags = [tmp_path, f"--output={tmp_path / 'x.csv'}", "--model=x", "--address=a:1"]
    code, _, errors = predict(*flags)
    assert code == 2 and "--address a:1 is for --cluster ray; give both or neither" in errors
