"""The whole path on real sample texts: file, tokenizer, pre-training, k-fold, prediction."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
from transformers import AutoModelForSequenceClassification

from malmoi.inference.classifier import Classifier
from malmoi.model_folders import find_classifiers, find_encoder

ROOT = Path(__file__).parents[1]


def run(script: str, *flags: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / script), *flags], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_a_text_file_to_a_prediction(tmp_path: Path, comments: list[str]) -> None:
    corpus = tmp_path / "댓글.txt"
    corpus.write_text("\n".join(comments) + "\n", encoding="utf-8")
    flags = ["--corpus", str(corpus), "--max-steps", "20", "--tokens-per-batch", "512"]
    run("pretrain/run.py", *flags, cwd=tmp_path)
    encoder = find_encoder(tmp_path)
    assert encoder.name == "discriminator"

    # Not all of them: five folds of 4,750 memos take minutes.
    memos = tmp_path / "memos.csv"
    table = pd.read_csv(ROOT / "corpora" / "memos" / "memos.csv", keep_default_na=False)
    table.head(150).to_csv(memos, index=False)
    flags = ["--labels", "꿈,일기,일정,메모,오류", "--data", str(memos), "--epochs", "2"]
    printed = run("finetune/kfold.py", *flags, cwd=tmp_path)
    folds = [float(x) for x in re.findall(r"^F1 score for fold \d: (0\.\d+)$", printed, re.M)]
    average = re.search(r"^Average F1 score: (0\.\d+)", printed, re.M)
    assert len(folds) == 5
    assert average is not None
    assert abs(float(average[1]) - sum(folds) / 5) < 1e-3

    (model,) = find_classifiers(tmp_path)
    report = json.loads((model.parent / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["texts"] == 150
    predictions = pd.read_csv(model.parent / "predictions.csv")
    assert sorted(predictions["fold"].unique()) == [1, 2, 3, 4, 5]
    assert len(predictions) == 150
    _, info = AutoModelForSequenceClassification.from_pretrained(model, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]

    (prediction,) = Classifier.load(model).predict(["내일 오후 세 시 치과 예약"])
    assert prediction.label in {"꿈", "일기", "일정", "메모", "오류"}
    assert abs(sum(prediction.probabilities.values()) - 1) < 1e-3
