"""A test of its own: by a file, a column, a day or a folder; and any model on labelled rows."""

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from malmoi.__main__ import main
from tests.malmoi.finetune.conftest import save_labels, separable

CHARACTERS = ("--set=linear.morphemes=false", "--set=linear.frozen_encoder=false")
FAST = ("--quick", "--folds", 2, *CHARACTERS)
ROWS = separable()
LEARNT, TEST = ROWS[::2], ROWS[1::2]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def refused(self) -> bool:
        """In one line, with nothing written."""
        return self.code == 2 and self.err.count("\n") == 1 and not Path("runs/finetune").exists()


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`malmoi ARGUMENTS` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))

    def of(*arguments: object) -> Done:
        code = main(list(map(str, arguments)))
        return Done(code, *capsys.readouterr())

    return of


def write(path: str, header: str, rows: Iterable[Sequence[object]]) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])
    return Path(path)


def kfold(run: Run, data: str | Path, *flags: object) -> Done:
    return run("kfold", "--data", data, "--output", "run", *FAST, *flags)


def report(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))
    return found


def texts_of(folder: str) -> list[str]:
    with Path(folder, "predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def test_a_file_scores_what_was_learnt_from_others(run: Run) -> None:
    """What stands in the test, with other signs, is not learnt; the same rows score alike again."""
    learnt = [*LEARNT, *((f"{text} ㅎㅎ!", label) for text, label in TEST[:5])]
    data, test = write("data.csv", "text,label", learnt), write("t.csv", "text,label", TEST)
    done = kfold(run, data, "--test", test)
    assert done.code == 0, done
    assert f"test: {len(TEST)} texts" in done.out
    assert texts_of("run") == [text for text, _ in LEARNT]
    assert texts_of("run/test") == [text for text, _ in TEST]
    whole, tested = report("run"), report("run/test")
    assert whole["data"]["left_out"]["in_test"] == 5
    assert whole["test"]["pooled"] == tested["pooled"]
    low, high = tested["intervals_95"]["macro_f1"]
    assert low <= tested["pooled"]["macro_f1"] <= high
    assert "확신" in Path("run/test/report.html").read_text(encoding="utf-8")
    assert f"시험 글 {len(TEST)}개" in Path("run/report.html").read_text(encoding="utf-8")

    assert run("evaluate", "run/model", test, "--output", "again").code == 0
    assert report("again")["pooled"] == tested["pooled"]
    compared = run("compare", "run/test", "again")
    assert "difference +0.0000" in compared.out and "no verdict" not in compared.out
    assert "no verdict" in run("compare", "run", write_run(TEST)).out
    refused = run("evaluate", "run/model", data)
    assert refused.code == 0 and report_of_latest()["data"]["texts"] == 5
    assert run("evaluate", "run/model", write("l.csv", "text,label", LEARNT)).refused


def write_run(rows: list[tuple[str, str]]) -> str:
    """Predictions on the learnt texts, as another evaluation would have them."""
    header = "text,label,predicted,seed,id,probability 꿈"
    write("other/predictions.csv", header, [(*row, row[1], 0, 1, 1) for row in LEARNT + rows])
    Path("other/report.json").write_text('{"data": {"in_one_fold": "no folds"}}')
    return "other"


def report_of_latest() -> dict[str, Any]:
    (folder,) = Path("runs/evaluate").iterdir()
    return report(str(folder))


@pytest.mark.parametrize("kind", ["column", "files", "folders", "day"])
def test_the_data_say_what_is_the_test(run: Run, kind: str) -> None:
    """Parts are no single pool; what is for development is learnt."""
    flags: tuple[object, ...] = ()
    data = Path("data.csv")
    if kind == "column":
        part = ["train", "Test", "validation", "test"]
        rows = [(*row, part[place % 4]) for place, row in enumerate(ROWS)]
        write("data.csv", "text,label,split", rows)
    elif kind == "day":
        rows = [
            (*row, f"2024.{3 + place % 2}.{1 + place % 9} 12:30") for place, row in enumerate(ROWS)
        ]
        write("data.csv", "text,label,작성일", rows)
        flags = ("--set", "data.test_after=2024-03-31")
    else:
        data = Path("data")
        names = ("ratings_train.csv", "ratings_test.csv")
        names = names if kind == "files" else ("train/0.csv", "test/0.csv")
        write(f"data/{names[0]}", "text,label", LEARNT)
        write(f"data/{names[1]}", "text,label", TEST)
    done = kfold(run, data, *flags)
    assert done.code == 0, done
    assert sorted(texts_of("run")) == sorted(text for text, _ in LEARNT)
    assert sorted(texts_of("run/test")) == sorted(text for text, _ in TEST)
    one_pool = run("kfold", "--data", data, "--output", "pool", *FAST, "--set=data.own_test=false")
    assert one_pool.code == 0, one_pool
    assert len(texts_of("pool")) == len(ROWS)
    assert not Path("pool/test").exists()


def test_labels_that_are_not_known_count_as_wrong(run: Run) -> None:
    strange = [("전혀 다른 글", "광고"), ("또 다른 글", "광고")]
    test = write("t.csv", "text,label", [*TEST, *strange])
    done = kfold(run, write("data.csv", "text,label", LEARNT), "--test", test)
    assert done.code == 0
    assert "광고 (2)" in done.out
    tested = report("run/test")
    assert tested["data"]["labels_not_known"] == {"광고": 2}
    right = round(tested["pooled"]["accuracy"] * (len(TEST) + 2))
    assert right <= len(TEST)
    other = write("other.csv", "text,label", [(text, f"{label}님") for text, label in TEST])
    assert run("kfold", "--data", "data.csv", *FAST, "--test", other).refused


@pytest.mark.parametrize(
    ("header", "row", "flags"),
    [
        ("text,label,split", ("글 하나", "꿈", "연습"), ()),
        ("text,label,date", ("글 하나", "꿈", "어제"), ("--set", "data.test_after=2024-03-01")),
        ("text,label,split", ("글 하나", "꿈", "test"), ("--set", "data.test_after=2024-03-01")),
        ("text,label,date", ("글", "꿈", "2024-01-01"), ("--set", "data.test_after=2024-03-01")),
        (
            "text,label,split",
            ("글", "꿈", "test"),
            ("--test=t.csv", "--set=data.test_after=2024-3-1"),
        ),
        ("text,label", ("글", "꿈"), ("--test=nothing.csv",)),
    ],
)
def test_refused(run: Run, header: str, row: Sequence[str], flags: Sequence[str]) -> None:
    value = "2024-02-02" if "date" in header else "test"
    rows = [(*one, value)[: len(row)] for one in ROWS]
    assert run("kfold", "--data", write("data.csv", header, [*rows, row]), *FAST, *flags).refused


def test_a_stock_model_is_scored(run: Run, classifier_directory: Path) -> None:
    """One that nobody here has trained, and whose training texts nobody knows."""
    test = write("t.csv", "text,label", TEST)
    flags = ("--engine", "torch-fp32", "--output", "found")
    done = run("evaluate", classifier_directory, test, *flags)
    assert done.code == 0, done
    found = report("found")
    assert found["data"]["left_out"]["learnt"] is None
    assert sum(map(sum, found["pooled"]["confusion"])) == len(TEST)


def test_the_labels_of_the_app_are_a_test(run: Run) -> None:
    save_labels("sqlite:///labels.db", TEST)
    done = kfold(run, write("data.csv", "text,label", LEARNT), "--test", "labels.db")
    assert done.code == 0, done
    assert sorted(texts_of("run/test")) == sorted(text for text, _ in TEST)
