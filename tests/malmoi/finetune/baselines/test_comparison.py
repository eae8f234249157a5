"""What k-fold puts beside its folds: baselines, learning curve, calibration, the page."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from malmoi.errors import InputError
from malmoi.finetune.kfold import main
from malmoi.finetune.settings import KfoldSettings
from malmoi.inference.calibration import CALIBRATION
from malmoi.inference.classifier import Classifier
from malmoi.model_folders import find_classifiers
from tests.malmoi.finetune.conftest import LABELS, WriteCsv, separable


def settings(encoder: Path, data: Path, **flags: Any) -> KfoldSettings:
    return KfoldSettings(
        **{  # type: ignore[arg-type]
            "labels": ",".join(LABELS),
            "data": data,
            "model": str(encoder),
            "folds": 2,
            "epochs": 6,
            "learning_rate": 3e-3,
            "batch_size": 8,
            **flags,
            "set": ("training.layer_decay=1", "linear.enabled=false", *flags.get("set", ())),
        }
    )


def test_baselines_curve_and_page_of_a_run(
    encoder: Path,
    write_csv: WriteCsv,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = ("measuring.learning_curve=true",)
    main(settings(encoder, write_csv(separable()), baselines=True, set=keys))
    shown = capsys.readouterr().out
    (model,) = find_classifiers()
    run = model.parent
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in report["baselines"]}
    assert list(rows) == [
        "this encoder",
        "majority label",
        "characters, SVM",
        "morphemes, logistic regression",
        "the same encoder, random weights",
    ]
    assert rows["this encoder"]["mean_f1"] == pytest.approx(report["mean_f1"])
    # Three labels, a third each: F1 of the label that is always said, over three.
    assert rows["majority label"]["mean_f1"] == pytest.approx(1 / 6, abs=0.01)
    for row in rows.values():
        assert row["texts"] == 63 and len(row["fold_f1"]) == 2
        assert f"{row['mean_f1']:.4f}" in shown
    assert rows["this encoder"]["latency_ms"] > 0
    curve = report["learning_curve"]
    assert [point["fraction"] for point in curve] == [0.125, 0.25, 0.5, 1.0]
    assert curve[-1]["scores"] == [report["folds"][0]["macro_f1"]]
    assert all(0 <= point["scores"][0] <= 1 for point in curve)
    page = (run / "report.html").read_text(encoding="utf-8")
    for part in (*LABELS, "글자 n-gram", "무작위 가중치", "한 글에"):
        assert part in page
    temperature = json.loads((model / CALIBRATION).read_text())["temperature"]
    assert temperature == pytest.approx(report["calibration"]["temperature"])


def test_baselines_take_a_text_of_100_000_characters(
    encoder: Path, write_csv: WriteCsv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [*separable(), ("친구와 싸워서 속상했다 " * 7_700, "일기")]
    main(settings(encoder, write_csv(rows), epochs=1, baselines=True, output=Path("run")))
    report = json.loads(Path("run/report.json").read_text(encoding="utf-8"))
    assert [row["texts"] for row in report["baselines"]] == [64] * 5


def test_the_classifier_divides_by_the_fitted_temperature(
    classifier_directory: Path, tmp_path: Path
) -> None:
    model = tmp_path / "run" / "model"
    shutil.copytree(classifier_directory, model)
    (model / CALIBRATION).unlink(missing_ok=True)
    (plain,) = Classifier.load(model).predict(["하늘을 날았다"])
    (model / CALIBRATION).write_text('{"temperature": 2.0}')
    (flatter,) = Classifier.load(model).predict(["하늘을 날았다"])
    assert flatter.label == plain.label
    odds = [p.probabilities for p in (plain, flatter)]
    first, second = LABELS[:2]
    assert odds[1][first] / odds[1][second] == pytest.approx(
        (odds[0][first] / odds[0][second]) ** 0.5, rel=1e-3
    )


@pytest.mark.parametrize("text", ["", "[1]", '{"temperature": 0}', '{"temperature": "NaN"}'])
def test_a_damaged_temperature_is_named(
    classifier_directory: Path, tmp_path: Path, text: str
) -> None:
    model = tmp_path / "model"
    shutil.copytree(classifier_directory, model)
    (model / CALIBRATION).write_text(text)
    with pytest.raises(InputError, match=r"expected a temperature .*calibration\.json"):
        Classifier.load(model)
