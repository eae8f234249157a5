"""The table of predictions, which people open in a spreadsheet program."""

import csv
from pathlib import Path

import numpy as np

from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.fold_results import CrossValidation, FoldResult
from malmoi.finetune.report.files import write_predictions
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records

TEXTS = ["=1+1", "-_- 별로", "@아무나", "+★ 멋진 방송", "'-' 그냥", "-5"]
LABELS = ["=긍정", "부정"]


def test_predictions_run_nothing_and_are_read_as_they_were(tmp_path: Path) -> None:
    examples = Examples(
        path=tmp_path,
        labels=LABELS,
        ids=[f"=a.csv:{place}" for place in range(len(TEXTS))],
        texts=TEXTS,
        label_ids=[0, 1] * 3,
        repeats=0,
        contradictions=0,
        empty=0,
    )
    fold = FoldResult(
        seed=1,
        fold=1,
        places=np.arange(len(TEXTS)),
        probabilities=np.full((len(TEXTS), 2), 0.5, dtype=np.float32),
        thresholds=None,
        scores={"macro_f1": 0.5},
        epochs=1,
        best_epoch=1,
        seconds=1.0,
    )
    result = CrossValidation(
        task="single", labels=LABELS, targets=examples.targets, folds=1, seeds=(1,), results=[fold]
    )
    path = tmp_path / "predictions.csv"
    write_predictions(path, examples, result)
    with path.open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")] == ["-5"]
    records = list(iter_records(path))
    assert [record.text for record in records] == TEXTS == [clean_text(text) for text in TEXTS]
    assert [record.label for record in records] == ["=긍정", "부정"] * 3
