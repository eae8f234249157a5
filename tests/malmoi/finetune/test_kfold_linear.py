"""The linear model beside the encoder, and alone: what k-fold fits, reports and keeps."""

import csv
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForSequenceClassification

from malmoi.errors import InputError
from malmoi.finetune.data.folds import assign_folds
from malmoi.finetune.evaluation.fold_results import CrossValidation, FoldResult
from malmoi.finetune.evaluation.scores import macro_f1
from malmoi.finetune.plan import LinearPlan
from malmoi.finetune.training.linear_folds import add_linear
from malmoi.inference.classifier import Classifier
from malmoi.inference.paired_runs import compare_runs
from malmoi.model_folders import find_classifiers
from tests.malmoi.finetune.conftest import LABELS, WriteCsv, separable
from tests.malmoi.finetune.test_kfold import Run, average, kfold

__all__ = ["kfold"]

# A network of 32 dimensions, hardly trained: what is right here the linear model knows.
HARDLY = ["--epochs=1", "--folds=3"]
NO_MORPHEMES = "--set=linear.morphemes=false"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_both_are_added_measured_and_kept(kfold: Run, write_csv: WriteCsv) -> None:
    data = write_csv(separable())
    code, output, errors = kfold(f"--data={data}", *HARDLY, NO_MORPHEMES, linear=True)
    assert (code, errors) == (0, "")
    (model,) = find_classifiers()
    assert "--quick" in output  # so few texts are told that it may be better
    report = json.loads((model.parent / "report.json").read_text(encoding="utf-8"))
    parts = report["parts"]
    assert report["mean_f1"] == parts["both"]["mean_f1"] == pytest.approx(average(output), abs=1e-4)
    assert parts["both"]["mean_f1"] >= parts["encoder"]["mean_f1"] + 0.1
    assert parts["both"]["mean_f1"] >= parts["linear"]["mean_f1"] - 0.05
    for number, fold in enumerate(report["folds"], 1):
        assert f"\nF1 score for fold {number}: {fold['macro_f1']:.4f}" in output
        alone = f"{parts['encoder']['fold_f1'][number - 1]:.4f}"
        assert f"encoder, F1 score for fold {number}: {alone}" in output

    rows = rows_of(model.parent / "predictions.csv")
    for name in ("encoder", "linear"):
        scores = []
        for fold in ("1", "2", "3"):
            inside = [row for row in rows if row["fold"] == fold]
            scores.append(
                macro_f1(
                    [LABELS.index(row["label"]) for row in inside],
                    [LABELS.index(row[f"predicted {name}"]) for row in inside],
                    len(LABELS),
                )
            )
        assert np.mean(scores) == pytest.approx(parts[name]["mean_f1"])

    classifier = Classifier.load(model)
    assert {"encoder", "characters"} <= set(classifier.parts)
    assert Classifier.load(model.parent).parts == classifier.parts  # the folder of the run
    texts, labels = zip(*separable(), strict=True)
    found = [one.label for one in classifier.predict(list(texts))]
    assert np.mean([one == label for one, label in zip(found, labels, strict=True)]) > 0.9


def test_transformers_overlooks_the_linear_part(kfold: Run, write_csv: WriteCsv) -> None:
    kfold(f"--data={write_csv(separable())}", *HARDLY, NO_MORPHEMES, linear=True)
    (model,) = find_classifiers()
    assert (model / "linear.json").is_file()
    _, loading = AutoModelForSequenceClassification.from_pretrained(model, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    with_it = Classifier.load(model).predict(["꿈에서 하늘을 날았다"])[0]
    for engine in ("torch-fp32", "onnx-fp32", "onnx-int8"):
        found = Classifier.load(model, engine).predict(["꿈에서 하늘을 날았다"])[0]
        assert found.probabilities == pytest.approx(with_it.probabilities, abs=0.05)
    described = json.loads((model / "linear.json").read_text("utf-8"))
    described["labels"].reverse()
    (model / "linear.json").write_text(json.dumps(described), "utf-8")
    with pytest.raises(InputError, match="expected the labels"):
        Classifier.load(model)
    for name in ("linear.json", "linear.safetensors"):
        (model / name).unlink()
    without = Classifier.load(model).predict(["꿈에서 하늘을 날았다"])[0]
    assert without.probabilities != pytest.approx(with_it.probabilities, abs=0.05)


def test_each_seed_has_the_linear_model_of_its_own_folds() -> None:
    texts, labels = map(list, zip(*separable(), strict=True))
    targets = np.array([LABELS.index(label) for label in labels])
    even = np.full((len(texts), len(LABELS)), 1 / 3, dtype=np.float32)

    def measured(*seeds: int) -> CrossValidation:
        results = []
        for seed in seeds:
            fold_of = np.array(assign_folds(targets, 3, seed))
            for fold in (1, 2, 3):
                facts = {"seed": seed, "fold": fold, "epochs": 1, "best_epoch": 1, "seconds": 0.0}
                places = np.flatnonzero(fold_of == fold)
                said = {"probabilities": even[places], "thresholds": None, "scores": {}}
                results.append(FoldResult(places=places, **said, **facts))  # type: ignore[arg-type]
        return CrossValidation(
            task="single", labels=LABELS, targets=targets, folds=3, seeds=seeds, results=results
        )

    plan = LinearPlan(enabled=True, morphemes=False, balanced=False)
    both, alone = (add_linear(texts, measured(*seeds), plan).linear for seeds in ((1, 2), (2,)))
    assert (both.probabilities(2) == alone.probabilities(2)).all()
    assert (both.probabilities(1) != both.probabilities(2)).any()


def test_quick_fits_it_alone(kfold: Run, write_csv: WriteCsv) -> None:
    data = write_csv(separable())
    code, output, errors = kfold(f"--data={data}", "--quick", NO_MORPHEMES, linear=True)
    assert (code, errors) == (0, "")
    assert average(output) > 0.9
    (model,) = find_classifiers()
    assert not (model / "config.json").exists()
    assert sorted(path.name for path in model.parent.iterdir()) == [
        *("model", "predictions.csv", "report.html", "report.json")
    ]
    report = json.loads((model.parent / "report.json").read_text(encoding="utf-8"))
    assert report["plan"]["folds"]["folds"] == 5 and len(report["folds"]) == 5
    texts, labels = zip(*separable(), strict=True)
    found = [one.label for one in Classifier.load(model).predict(list(texts))]
    assert np.mean([one == label for one, label in zip(found, labels, strict=True)]) > 0.9


def test_quick_needs_no_torch(write_csv: WriteCsv, tmp_path: Path) -> None:
    code = (
        "import sys; from malmoi.finetune.kfold import command\n"
        f"command(['--quick', '--data', {str(write_csv(separable()))!r}, {NO_MORPHEMES!r}, "
        f"'--output', {str(tmp_path / 'run')!r}])\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_quick_warns_of_words_that_its_encoders_cannot_read(
    write_csv: WriteCsv, tmp_path: Path
) -> None:
    rows = [(f"แย่มาก {n} ชิ้น {text}", label) for n, (text, label) in enumerate(separable())]
    flags = ["--data", str(write_csv(rows)), NO_MORPHEMES, "--output", str(tmp_path / "run")]
    flags += ["--model", "malmoi-small"]
    code = f"from malmoi.finetune.kfold import command; command(['--quick', *{flags!r}])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("malmoi-small", "malmoi-vectors"):
        assert f"{name} knows no letter of" in run.stderr
    assert "แย่มาก" in run.stderr


def test_quick_works_without_an_encoder_and_with_two_labels(
    kfold: Run, write_csv: WriteCsv
) -> None:
    rows = [row for row in separable() if row[1] != "일정"]
    code, output, errors = kfold(
        *(f"--data={write_csv(rows)}", "--quick", NO_MORPHEMES),
        labels="꿈,일기",
        model=None,
        linear=True,
    )
    assert (code, errors) == (0, "")
    assert average(output) > 0.9


def test_texts_that_differ_in_signs_alone_stay_together(kfold: Run, write_csv: WriteCsv) -> None:
    """Labels are by a coin: what scores well has learnt the text that it is asked."""
    texts = sorted({text for text, _ in separable()})
    coins = random.Random(0).choices(LABELS[:2], k=len(texts))
    rows = [
        (f"{text}{signs}", label)
        for text, label in zip(texts, coins, strict=True)
        for signs in ("", "!", " ㅎㅎ", "^^")
    ]
    code, output, errors = kfold(
        *(f"--data={write_csv(rows)}", "--quick", NO_MORPHEMES, "--output=run"),
        labels=",".join(LABELS[:2]),
        linear=True,
    )
    assert (code, errors) == (0, "")
    assert average(output) < 0.65
    report = json.loads(Path("run/report.json").read_text(encoding="utf-8"))
    assert report["data"]["same_letters"] == len(rows)
    assert f"{len(rows)} texts have the letters" in output
    assert f"{len(rows)}개는 부호나" in Path("run/report.html").read_text(encoding="utf-8")
    folds = {row["text"]: row["fold"] for row in rows_of(Path("run/predictions.csv"))}
    assert all(folds[text] == folds[f"{text}!"] == folds[f"{text}^^"] for text in texts)
    # Of a run that kept nothing together nobody knows how good it is.
    old = Path("run/report.json").read_text(encoding="utf-8").replace("in_one_fold", "other")
    shutil.copytree("run", "old")
    Path("old/report.json").write_text(old, encoding="utf-8")
    assert not compare_runs(Path("run"), Path("old")).same_folds
    assert compare_runs(Path("run"), Path("run")).same_folds
