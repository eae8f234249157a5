"""Answering what is sure alone: what is promised is what new texts get."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from malmoi import Classifier
from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.finetune.evaluation.selective import accepted_shares
from tests.malmoi.finetune.conftest import LABELS, WriteCsv, separable
from tests.malmoi.finetune.test_kfold import Run, kfold

__all__ = ["kfold"]


def drawn(texts: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Calibrated probabilities of two labels, labels drawn by them, and folds."""
    random = np.random.default_rng(seed)
    first = random.beta(0.7, 0.7, texts)
    labels = (random.random(texts) > first).astype(int)
    return np.stack([first, 1 - first], axis=1), labels, random.integers(1, 6, texts)


def test_wished_accuracies_are_met_by_texts_that_were_not_looked_at() -> None:
    gaps, shares = [], []
    for seed in range(20):
        found = {round(one.accuracy, 2): one for one in accepted_shares(*drawn(1_000, seed))}
        gaps.append(found[0.95].measured - 0.95)
        shares.append(found[0.95].share)
        probabilities, labels, _ = drawn(20_000, 100 + seed)
        answered = probabilities.max(axis=1) >= found[0.95].threshold
        right = (probabilities.argmax(axis=1) == labels)[answered]
        assert right.mean() == pytest.approx(0.95, abs=0.03)
        assert answered.mean() == pytest.approx(found[0.95].share, abs=0.1)
    assert abs(np.mean(gaps)) < 0.01 and 0.3 < np.mean(shares) < 0.9


def test_an_accuracy_that_everything_has_answers_everything() -> None:
    found = accepted_shares(*drawn(500, 0))
    assert (found[0].threshold, found[0].share) == (0.0, 1.0)
    assert [one.share for one in found] == sorted((one.share for one in found), reverse=True)


def test_from_kfold_to_rows_that_a_person_checks(
    kfold: Run, write_csv: WriteCsv, tmp_path: Path
) -> None:
    rows = separable() + [(text + " 꿈", LABELS[1]) for text, _ in separable()[:9]]
    code, _, errors = kfold(
        *(f"--data={write_csv(rows)}", "--quick", "--set=linear.morphemes=false", "--output=run"),
        linear=True,
    )
    assert (code, errors) == (0, "")
    report = json.loads(Path("run/report.json").read_text(encoding="utf-8"))
    assert report["accept"] and "모르는 것은 모른다고" in Path("run/report.html").read_text("utf-8")
    with Path("in.csv").open("w", encoding="utf-8", newline="") as file:
        texts = [rows[0][0], "꿈 일정 일기", "\u0e81\u0e82\u0e84"]
        csv.writer(file).writerows([("text",), *((text,) for text in texts)])
    flags = ["--model=run/model", "--accept=0.9", "--top-k=2", "--output=out.csv"]
    assert main(["predict", "in.csv", *flags]) == 0
    with Path("out.csv").open(encoding="utf-8-sig", newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["text", "label", "score", "label_2", "score_2", "check"]
    assert found[2]["check"] == "모르는 글"
    classifier = Classifier.load("run/model")
    assert [one.known for one in classifier.predict(texts)] == [True, True, False]
    least = classifier.threshold(0.9)
    for row in found[:2]:
        assert row["check"] == ("확인 필요" if float(row["score"]) < least else "")
    with pytest.raises(InputError, match="expected an accuracy up to"):
        classifier.threshold(0.999)
