"""A number a text, and labels that are numbers: learnt, scored, predicted."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from malmoi.finetune.evaluation.scores import distances
from tests.malmoi.finetune.conftest import separable
from tests.malmoi.finetune.test_kfold import LEARN
from tests.malmoi.finetune.test_own_test import TEST, Run, run, write

__all__ = ["run"]  # a fixture

POINTS = {"꿈": 20, "일기": 50, "일정": 90}


def test_a_value_is_learnt_and_predicted(run: Run, encoder: Path) -> None:
    """In the unit of the data, however large; a test of its own scores it, and so does evaluate."""
    rows = [(text, f"{POINTS[label]}점") for text, label in separable()]
    test = [(f"{text} 어제", POINTS[label]) for text, label in TEST]
    data, own = write("data.csv", "text,별점", rows), write("t.csv", "text,별점", test)
    flags = (
        "--task",
        "value",
        "--model",
        encoder,
        "--folds",
        2,
        "--output",
        "run",
        *LEARN,
        "--epochs=20",
    )
    done = run("kfold", "--data", data, "--test", own, *flags)
    assert done.code == 0, done
    report = json.loads(Path("run/report.json").read_text(encoding="utf-8"))
    for scores in (report["pooled"], report["test"]["pooled"]):
        # The mean for every text would be off by 25.
        assert scores["mean_absolute_error"] < 10
        assert scores["spearman"] > 0.7
        assert scores["rounded_accuracy"] >= 0
    for page in ("run/report.html", "run/test/report.html"):
        assert "평균 절대 오차" in Path(page).read_text(encoding="utf-8")
    assert run("evaluate", "run/model", own, "--output", "again").code == 0
    again = json.loads(Path("again/report.json").read_text(encoding="utf-8"))["pooled"]
    for name, value in report["test"]["pooled"].items():
        assert again[name] == pytest.approx(value, abs=0.5)
    found = run("predict", own, "--model", "run/model", "--output", "out.csv")
    assert found.code == 0, found
    with Path("out.csv").open(encoding="utf-8-sig", newline="") as file:
        values = [(float(row["value"]), float(row["별점"])) for row in csv.DictReader(file)]
    assert np.mean([abs(one - other) for one, other in values]) < 10
    assert run("kfold", "--data", data, "--task", "value", "--quick", "--output", "q").code == 2


def test_how_far_off_mistakes_are(run: Run) -> None:
    stars = [(text, f"{1 + list(POINTS).index(label)}점") for text, label in separable()]
    done = run("kfold", "--data", write("data.csv", "text,label", stars), "--quick")
    assert done.code == 0
    assert "off by" in done.out
    (page,) = Path("runs/finetune").glob("*/report.html")
    assert "한 칸 차이" in page.read_text(encoding="utf-8")
    report = json.loads((page.parent / "report.json").read_text(encoding="utf-8"))
    assert report["pooled"]["distances"].keys() == {"mean_distance", "off_by_one"}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "2", "3"], {"mean_distance": 0.5, "off_by_one": 2 / 3}),
        (["3점", "1점", "5점"], {"mean_distance": 0.75, "off_by_one": 0}),
        (["0", "1", "2"], {}),
        (["1", "2"], {}),
        (["1", "2", "기타"], {}),
    ],
)
def test_labels_that_look_ordered(labels: list[str], expected: dict[str, float]) -> None:
    confusion = np.zeros((len(labels), len(labels)), dtype=int)
    np.fill_diagonal(confusion, 5)
    if len(labels) > 2:
        confusion[0] = [2, 2, 1]
        confusion[1:, 1:] = [[3, 0], [0, 0]]
    assert distances(labels, confusion) == pytest.approx(expected)
