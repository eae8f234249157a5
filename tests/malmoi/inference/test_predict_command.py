"""`malmoi predict`: every format in and out, kills that lose no row, one line for every mistake."""

import csv
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from malmoi.__main__ import main
from malmoi.inference import table_prediction
from malmoi.inference.classifier import Classifier
from malmoi.text.table_writing import json_line
from malmoi.text.written_cells import EXCEL_ROWS
from tests.malmoi.finetune.conftest import LABELS, separable

ROOT = Path(__file__).parents[3]
NEW = ["label", "score", *(f"prob_{label}" for label in LABELS)]
Predict = Callable[..., tuple[int, str, str]]


@pytest.fixture
def predict(
    classifier_directory: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Predict:
    """Run the command with these flags; returns exit code and what was printed."""

    def run(*flags: object, model: Path | None = classifier_directory) -> tuple[int, str, str]:
        given = [] if model is None else [f"--model={model}"]
        code = main(["predict", *map(str, flags), *given])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five rows a unit."""
    monkeypatch.setattr(table_prediction, "ROWS_IN_UNIT", 5)


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def some_rows(count: int = 23) -> list[dict[str, Any]]:
    texts = [text for text, _ in separable()]
    return [
        {"번호": place, "text": texts[place % len(texts)], "메모": f"=1+{place}"}
        for place in range(count)
    ]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_columns_and_order_stay_and_new_ones_are_those_of_the_classifier(
    predict: Predict,
    classifier_directory: Path,
    tmp_path: Path,
    small_units: None,
    named_too_early: list[str],
) -> None:
    rows = some_rows()
    data, output = write_table(tmp_path / "in.csv", rows), tmp_path / "new" / "out.csv"
    code, printed, errors = predict(data, f"--output={output}")
    assert (code, errors) == (0, "")
    assert named_too_early == []
    assert f"23 rows -> {output}" in printed and "texts from column 'text'" in printed
    found = read_csv(output)
    assert list(found[0]) == ["번호", "text", "메모", *NEW]
    assert [row["번호"] for row in found] == [str(row["번호"]) for row in rows]
    # A formula is guarded by what nobody sees.
    assert found[3]["메모"] == "\u200b=1+3"
    expected = Classifier.load(classifier_directory).predict([row["text"] for row in rows])
    assert [row["label"] for row in found] == [prediction.label for prediction in expected]
    scores = [float(row["score"]) for row in found]
    assert scores == pytest.approx([one.confidence for one in expected], abs=0.02)
    assert [path.name for path in output.parent.iterdir()] == ["out.csv"]


def test_all_rows_are_in_what_is_said_of_their_labels(
    predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malmoi.commands.predict._SHOWN_LABELS", 0)
    data = write_table(tmp_path / "in.csv", [*some_rows(), {"번호": 99, "text": "", "메모": ""}])
    _, printed, _ = predict(data, f"--output={tmp_path / 'out.csv'}")
    assert "  (others): 23 (95.8%)\n" in printed


def test_every_format_out(predict: Predict, tmp_path: Path) -> None:
    data = tmp_path / "in.jsonl"
    rows = [
        {"text": "꿈에서 하늘을 날았다", "n": 1, "x": 0.5, "ok": True, "tags": ["a", "나"]},
        {"text": "=SUM(1)\x07", "n": 2, "x": 2, "ok": None, "late": {"a": 1}},
        {"text": "", "n": None, "x": None, "ok": False, "tags": "없음"},
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    names = ["text", "n", "x", "ok", "tags", "late", *NEW]
    for kind in ("csv", "xlsx", "jsonl", "parquet"):
        code, printed, errors = predict(data, f"--output={tmp_path / f'out.{kind}'}")
        assert (code, errors) == (0, "") and "1 rows without a text" in printed
    assert list(read_csv(tmp_path / "out.csv")[0]) == names
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    objects = [json.loads(line) for line in lines]
    assert [row["text"] for row in objects] == [row["text"] for row in rows]
    assert objects[2]["label"] is None and objects[2]["score"] is None
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == names
    kinds = [str(kind) for kind in table.schema.types]
    assert kinds == ["string", "int64", "double", "bool", "string", "string", "string"] + (
        ["double"] * (1 + len(LABELS))
    )
    assert table["tags"].to_pylist() == ['["a", "나"]', None, "없음"]
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert sheet is not None
    cells = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert cells[0] == names and cells[2][0] == "=SUM(1)" and sheet["A3"].data_type == "s"
    assert cells[1][1:4] == [1, 0.5, True]


def test_cells_of_a_workbook_are_shown_as_before(predict: Predict, tmp_path: Path) -> None:
    """Numbers among dates stay numbers, dates among numbers dates, below whatever header."""
    day, hours, first = datetime(2026, 3, 1, 9, 30), timedelta(hours=30), "꿈에서 하늘을 날았다"
    rows = [
        ["text", 2026, "섞임", "시간", "비율"],
        [first, day, 5, hours, 0.25],
        ["내일 회의가 있다", None, day, None, 3],
    ]
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.active["B2"].number_format = "yyyy년 m월"
    book.active["E2"].number_format = "0%"
    book.save(tmp_path / "in.xlsx")
    assert predict(tmp_path / "in.xlsx", f"--output={tmp_path / 'out.xlsx'}")[0] == 0
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert sheet is not None
    cells = [[cell.value for cell in row[:5]] for row in sheet.iter_rows(min_row=2)]
    assert cells == rows[1:]
    assert [sheet[place].number_format for place in ("B2", "E2")] == ["yyyy년 m월", "0%"]


def test_named_classes_of_parquet_are_their_names(predict: Predict, tmp_path: Path) -> None:
    named = {"names": ["가", "나"], "_type": "ClassLabel"}
    features = {"class": named, "classes": {"feature": named, "_type": "List"}}
    table = pa.table(
        {
            "text": ["꿈에서 하늘을 날았다", "내일 회의가 있다", "메모"],
            "class": [1, 7, -1],
            "classes": [[0, 1], [], [7]],
        }
    ).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, tmp_path / "in.parquet")
    assert predict(tmp_path / "in.parquet", f"--output={tmp_path / 'out.parquet'}")[0] == 0
    found = pq.read_table(tmp_path / "out.parquet")
    assert found["class"].to_pylist() == ["나", "7", None]
    assert found["classes"].to_pylist() == [["가", "나"], [], ["7"]]


def test_of_a_fetched_source_of_pairs_the_first_texts_are_read(
    predict: Predict, tmp_path: Path
) -> None:
    rows = [{"Q": row["text"], "A": "꿈에서"} for row in some_rows(9)]
    write_table(tmp_path / "in.csv", rows)
    file = {"url": "", "sha256": "", "size": 0, "layout": {"texts": ["Q", "A"]}}
    (tmp_path / "SOURCE.json").write_text(json.dumps({"files": {"in.csv": file}}))
    assert predict(tmp_path / "in.csv", f"--output={tmp_path / 'out.csv'}")[0] == 0
    found = read_csv(tmp_path / "out.csv")
    assert [row["Q"] for row in found] == [row["Q"] for row in rows]
    assert all(row["label"] in LABELS for row in found)


def test_keys_that_an_object_lacks_stay_away(predict: Predict, tmp_path: Path) -> None:
    lines = [
        '{"text": "꿈에서 하늘을 날았다", "표": ["하나"]}',
        '{"text": "내일 회의", "값": null}',
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for kind in ("jsonl", "json"):
        assert predict(tmp_path / "in.jsonl", f"--output={tmp_path / f'out.{kind}'}")[0] == 0
    found = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    rows = list(map(json.loads, found))
    assert rows == json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert rows[0]["표"] == ["하나"] and "값" not in rows[0]
    assert rows[1]["값"] is None and "표" not in rows[1]


@pytest.mark.parametrize("kind", ["csv.gz", "json.zst", "JSONL.ZST"])
def test_what_is_written_is_read_again(kind: str, predict: Predict, tmp_path: Path) -> None:
    """Texts of several lines, with quotes, tabs and formulas, through both and back."""
    data, output, again = tmp_path / "in.jsonl", tmp_path / f"out.{kind}", tmp_path / "again.jsonl"
    texts = ["꿈에서 하늘을 날았다", '첫 줄\n둘째 "줄"', "=1+1\t뒤", "a,b;c", "ㅋㅋ 😀"]
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert predict(data, f"--output={output}")[:3:2] == (0, "")
    assert predict(output, f"--output={again}")[:3:2] == (0, "")
    found = [json.loads(line) for line in again.read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in found] == texts
    assert [row["label"] for row in found] == [row["label (2)"] for row in found]
    packed = output.read_bytes()
    output.unlink()
    assert predict(data, f"--output={output}")[0] == 0 and output.read_bytes() == packed


def test_what_cannot_be_compressed_is_refused(predict: Predict, tmp_path: Path) -> None:
    data = write_table(tmp_path / "in.csv", some_rows(3))
    for name in ("out.gz", "out.xlsx.gz", "out.parquet.zst", "out.tsv"):
        code, _, errors = predict(data, f"--output={tmp_path / name}")
        assert code == 2 and "expected --output with the ending .csv, .xlsx" in errors, name


def test_any_number_of_workers_gives_the_same_rows(
    predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_prediction, "ROWS_IN_UNIT", 10)
    data = write_table(tmp_path / "in.csv", some_rows(45))
    outputs = []
    for workers in (1, 2):
        output = tmp_path / f"{workers}.csv"
        assert predict(data, f"--output={output}", f"--workers={workers}")[0] == 0
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]


def test_what_is_finished_is_not_done_again(
    predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_units: None
) -> None:
    data, output = write_table(tmp_path / "in.csv", some_rows()), tmp_path / "out.csv"
    whole = Classifier.predict_rows
    seen: list[int] = []

    def stopping(self: Classifier, texts: list[str], pairs: Any = None) -> Any:
        seen.append(len(texts))
        if len(seen) == 4:
            raise KeyboardInterrupt
        return whole(self, texts, pairs)

    monkeypatch.setattr(Classifier, "predict_rows", stopping)
    assert predict(data, f"--output={output}")[0] == 130
    kept = len(list((tmp_path / ".out.csv.work" / "units").glob("*.jsonl")))
    assert not output.exists() and 1 <= kept <= 3
    seen.clear()
    monkeypatch.setattr(
        Classifier,
        "predict_rows",
        lambda self, texts, pairs=None: seen.append(len(texts)) or whole(self, texts, pairs),
    )
    assert predict(data, f"--output={output}")[0] == 0
    assert sum(seen) == 23 - 5 * kept
    assert [row["번호"] for row in read_csv(output)] == [str(n) for n in range(23)]
    assert not (tmp_path / ".out.csv.work").exists()


def test_an_input_that_changes_meanwhile_is_one_line_and_labelled_anew(
    predict: Predict, tmp_path: Path, small_units: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, output = write_table(tmp_path / "in.csv", some_rows()), tmp_path / "out.csv"
    survey = table_prediction.survey_rows

    def then_a_row_comes(*given: Any) -> Any:
        found = survey(*given)
        with data.open("a", encoding="utf-8") as file:
            file.write("23,꿈에서,\n")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(table_prediction, "survey_rows", then_a_row_comes)
        code, _, errors = predict(data, f"--output={output}")
    assert code == 2 and errors.count("\n") == 1
    assert "expected the 23 rows of the first reading, found others; the input" in errors
    assert not output.exists()
    # Even if it is as before: no unit of the other rows is taken.
    write_table(data, some_rows())
    code, printed, _ = predict(data, f"--output={output}")
    assert code == 0 and f"23 rows -> {output}" in printed
    assert [row["번호"] for row in read_csv(output)] == [str(number) for number in range(23)]


# What `predict` has needed at most (KiB) after each of the tables, from the shortest on.
PEAKS = """
import resource, sys
from malmoi.__main__ import main
from malmoi.inference import table_prediction
table_prediction.ROWS_IN_UNIT = 1_000
for table in sys.argv[2:]:
    assert main(["predict", table, sys.argv[1], f"--output={table}.jsonl"]) == 0
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def start(*arguments: object, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, encoding="utf-8", **more)


def test_killed_three_times_and_complete(
    classifier_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_prediction, "ROWS_IN_UNIT", 1_000)
    rows = [{"n": n, "text": f"{text} {n}"} for n, (text, _) in enumerate(separable() * 500)]
    data, output = write_table(tmp_path / "in.csv", rows), tmp_path / "out.csv"
    flags = ["predict", f"{data}", f"--model={classifier_directory}", f"--output={output}"]
    units = tmp_path / ".out.csv.work" / "units"
    kept = 0
    for _ in range(3):
        # Forked: a process of its own that need not import torch again.
        process = multiprocessing.get_context("fork").Process(target=main, args=(flags,))
        process.start()
        deadline = time.monotonic() + 120
        while process.is_alive() and time.monotonic() < deadline:
            if units.is_dir() and len(list(units.glob("*.jsonl"))) > kept:
                break
            time.sleep(0.02)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        kept = len(list(units.glob("*.jsonl")))
    assert kept and not output.exists()
    assert main(flags) == 0
    assert [row["n"] for row in read_csv(output)] == [str(row["n"]) for row in rows]


def test_memory_does_not_grow_with_the_rows(classifier_directory: Path, tmp_path: Path) -> None:
    texts = [text for text, _ in separable()]
    tables = {2_000: tmp_path / "small.csv", 12_000: tmp_path / "large.csv"}
    for rows, data in tables.items():
        with data.open("w", encoding="utf-8") as file:
            file.write("text,more\n")
            file.writelines(
                f"{texts[n % 63]} {n % 2000},{n}{'메모' * 1_000}\n" for n in range(rows)
            )
    process = start(
        "-c", PEAKS, f"--model={classifier_directory}", *tables.values(), stdout=subprocess.PIPE
    )
    printed, _ = process.communicate()
    assert process.returncode == 0
    for rows, data in tables.items():
        with Path(f"{data}.jsonl").open(encoding="utf-8") as file:
            assert sum(1 for _ in file) == rows
    small, large = (
        int(line.split()[1]) / 1024 for line in printed.splitlines() if line.startswith("peak ")
    )
    # The rows of the larger table take 50 MiB more.
    assert large < small + 20


def test_json_lines_are_answered_as_they_come(classifier_directory: Path) -> None:
    process = start(
        "-m",
        "malmoi",
        "predict",
        "-",
        f"--model={classifier_directory}",
        "--output=-",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    for n in range(3):
        process.stdin.write(json.dumps({"text": f"꿈에서 {n}", "n": n, "in": {"a": 1}}) + "\n")
        process.stdin.flush()
        found = json.loads(process.stdout.readline())
        assert (found["n"], found["text"], found["in"]) == (n, f"꿈에서 {n}", {"a": 1})
        assert list(found) == ["text", "n", "in", *NEW]
    process.stdin.write('{"text": "끝"}\n[1]\n')
    process.stdin.close()
    assert json.loads(process.stdout.readline())["text"] == "끝"
    assert process.wait() == 2
    error = process.stderr.read()
    assert "standard input:5: expected a JSON object, found list" in error
    assert "Traceback" not in error


def test_bad_lines_of_a_pipe_are_left_out_and_counted(
    predict: Predict, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ['{"text": "꿈에서"}', "[1]", "", '{"text":', '{"x": "회의"}', '{"text": "내일"}']
    reading, writing = os.pipe()
    os.write(writing, "\n".join(lines).encode())
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        code, printed, errors = predict("-", "--output=-", "--skip-bad-rows")
    assert code == 0
    assert [json.loads(line)["text"] for line in printed.splitlines()] == ["꿈에서", "내일"]
    assert errors.splitlines()[-1] == "3 rows that could not be read, left out"


def test_several_labels_pairs_and_values(
    predict: Predict,
    tmp_path: Path,
    several_labels_model: Path,
    pairs_model: Path,
    values_model: Path,
) -> None:
    rows = [{"text": row["text"], "둘째": "꿈에서", "label": "x"} for row in some_rows(9)]
    data = write_table(tmp_path / "in.csv", rows)
    assert predict(data, f"--output={tmp_path / 'a.csv'}", model=several_labels_model)[0] == 0
    found = read_csv(tmp_path / "a.csv")
    assert list(found[0])[2:] == ["label", "label (2)", *NEW[1:]]
    assert {part for row in found for part in json.loads(row["label (2)"])} <= {*LABELS}
    flags = [data, f"--output={tmp_path / 'b.csv'}"]
    code, _, errors = predict(*flags, model=pairs_model)
    assert code == 2 and "reads two texts at a time; name the column" in errors
    assert predict(*flags, "--pair-column=둘째", model=pairs_model)[0] == 0
    assert read_csv(tmp_path / "b.csv")[0]["label (2)"] in LABELS
    flags = [data, f"--output={tmp_path / 'c.csv'}", "--pair-column=둘째"]
    assert predict(*flags, model=values_model)[0] == 0
    assert list(read_csv(tmp_path / "c.csv")[0]) == ["text", "둘째", "label", "value"]


def test_pairs_are_found_by_the_names_of_their_columns(
    predict: Predict, tmp_path: Path, pairs_model: Path
) -> None:
    rows = [{"n": "1", "question1": row["text"], "question2": "꿈에서"} for row in some_rows(9)]
    data = write_table(tmp_path / "in.csv", rows)
    code, printed, _ = predict(data, f"--output={tmp_path / 'a.csv'}", model=pairs_model)
    assert code == 0 and "'question1', second texts from 'question2'" in printed
    flags = ["--text-column=question1", "--pair-column=question2"]
    assert predict(data, f"--output={tmp_path / 'b.csv'}", *flags, model=pairs_model)[0] == 0
    assert read_csv(tmp_path / "a.csv") == read_csv(tmp_path / "b.csv")
    # Another first column than that of the known pair: nobody guesses the second.
    flags = [data, "--text-column=n", f"--output={tmp_path / 'c.csv'}"]
    code, _, errors = predict(*flags, model=pairs_model)
    assert code == 2 and "name the column of the second ones" in errors


def test_of_several_files_every_row_says_its_own(predict: Predict, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_table(folder / "1월.csv", some_rows(3))
    write_table(folder / "2월.csv", [{"text": "꿈에서", "지점": "서울"}])
    write_table(folder / "3월.csv", [{"text": "회의", "source_file": "원본.csv"}])
    assert predict(folder, f"--output={tmp_path / 'out.csv'}")[0] == 0
    found = read_csv(tmp_path / "out.csv")
    assert list(found[0])[:2] == ["source_file", "번호"]
    assert [row["source_file"] for row in found] == [*["1월.csv"] * 3, "2월.csv", "원본.csv"]
    assert [row["지점"] for row in found] == ["", "", "", "서울", ""]
    assert predict(folder / "1월.csv", f"--output={tmp_path / 'one.csv'}")[0] == 0
    assert "source_file" not in read_csv(tmp_path / "one.csv")[0]


def test_a_json_row_without_its_second_text_is_a_bad_row(
    predict: Predict, tmp_path: Path, pairs_model: Path
) -> None:
    data = tmp_path / "in.jsonl"
    rows = [{"text": "꿈에서", "둘째": "날았다"}, {"text": "회의"}]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    flags = [data, f"--output={tmp_path / 'a.csv'}", "--pair-column=둘째"]
    code, _, errors = predict(*flags, model=pairs_model)
    assert code == 2 and "in.jsonl:2" in errors and "둘째" in errors


def test_json_of_any_kind_stays(predict: Predict, tmp_path: Path) -> None:
    """A key with a dot beside an object, numbers beyond 64 bits, mixed ones, NaN inside."""
    data = tmp_path / "in.jsonl"
    data.write_text(
        '{"text": "꿈에서", "a": {"y": 1}, "a.y": "own", "n": 1, "id": 99999999999999999999}\n'
        '{"text": "회의", "a": {"y": [NaN]}, "a.y": "too", "n": 9007199254740993, "id": 2}\n'
        '{"text": "메모", "a": null, "a.y": "", "n": 0.5, "id": 3}\n',
        encoding="utf-8",
    )
    for kind in ("parquet", "jsonl"):
        assert predict(data, f"--output={tmp_path / f'out.{kind}'}")[0] == 0
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["a.y"] == ["own", "too", ""]
    assert table["id"] == ["99999999999999999999", "2", "3"] and table["n"][2] == 0.5
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["a.y"] for line in lines] == ["own", "too", ""]
    assert json_line({"x": [float("nan"), {"y": float("inf")}]}) == '{"x": [null, {"y": null}]}'


def test_a_mistake_is_one_line_and_leaves_nothing(
    predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("in.csv"), some_rows(3))
    Path("bad.csv").write_text('text,n\n가나다,1\n"라마바\n', encoding="utf-8")
    for flags, line in (
        (["nowhere.csv", "--output=x.csv"], "no such file or folder: nowhere.csv"),
        ([], "expected files or folders to label"),
        (["in.csv", "--output=x.doc"], "expected --output with the ending .csv, .xlsx"),
        (["in.csv", "--output=in.csv"], "expected a new file for --output, found in.csv"),
        (["in.csv", "--output=x.csv", "--workers=0"], "expected --workers of at least 1"),
        (["in.csv", "--output=x.csv", "--text-column=nix"], "a column named 'nix'"),
        (["in.csv", "--output=x.csv", "--pair-column=nix"], "a column named 'nix'"),
        (["-", "--output=x.csv"], "expected --output - for standard input"),
        (["-", "in.csv", "--output=-"], "expected - alone, or files, found both"),
        (["bad.csv", "--output=x.csv"], "bad.csv:3:"),
    ):
        code, _, errors = predict(*(flags or ["--output=x.csv"]))
        assert code == 2 and errors.count("\n") == 1 and line in errors, flags
        assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "in.csv"], flags


def test_more_rows_than_a_sheet_holds(
    predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malmoi.text.table_writing.EXCEL_ROWS", 4)
    assert EXCEL_ROWS == 1_048_576
    data = write_table(tmp_path / "in.csv", some_rows(4))
    code, _, errors = predict(data, f"--output={tmp_path / 'out.xlsx'}")
    assert code == 2 and "an Excel sheet holds 4 rows" in errors


def test_texts_longer_than_a_cell_of_excel_are_told(predict: Predict, tmp_path: Path) -> None:
    data = write_table(tmp_path / "in.csv", [{"text": "좋아요 " * 10_000}, {"text": "좋아요"}])
    code, printed, _ = predict(data, f"--output={tmp_path / 'out.xlsx'}")
    assert code == 0 and "1 cell cut at 32,767 characters" in printed
    code, printed, _ = predict(data, f"--output={tmp_path / 'out.csv'}")
    assert code == 0 and "cut at" not in printed
