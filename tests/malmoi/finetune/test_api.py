"""`malmoi.cross_validate` and `malmoi.evaluate`: what the commands do, on tables in memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from malmoi import Classifier, InputError, cross_validate, evaluate
from malmoi.finetune import evaluate as evaluate_command
from malmoi.finetune import kfold as kfold_command
from malmoi.inference.linear import quick
from tests.malmoi.finetune.conftest import LABELS, separable

# Of the linear model the parts that are fitted in a moment.
FEW_PARTS = {"linear.morphemes": False, "linear.frozen_encoder": False}
ONE_EPOCH = {"training.epochs": 1, "linear.enabled": False, "jobs": 1}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def frame() -> pd.DataFrame:
    texts, labels = zip(*separable(), strict=True)
    return pd.DataFrame({"글": texts, "유형": labels}, index=range(500, 500 + len(texts)))


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_table_gives_the_classifier_that_the_command_makes_of_its_file(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    frame.to_csv("texts.csv", index=False)
    flags = ["--data=texts.csv", "--text-column=글", "--label-column=유형", "--quick", "--folds=3"]
    keys = [f"--set={key}={str(value).lower()}" for key, value in FEW_PARTS.items()]
    assert kfold_command.command([*flags, *keys, "--output=by-command"]) == 0
    capsys.readouterr()

    given: dict[str, Any] = {"quick": True, "folds": 3, "settings": FEW_PARTS, "progress": False}
    found = cross_validate(frame, "글", "유형", **given, output="by-python")
    assert capsys.readouterr().out == ""
    assert files_of(found.folder / "model") == files_of(Path("by-command/model"))
    report = json.loads(Path("by-command/report.json").read_text("utf-8"))
    assert found.scores.loc["macro_f1", "score"] == pytest.approx(report["mean_f1"])
    assert found.report["data"]["sha256"] == report["data"]["sha256"]
    rows = pd.read_csv("by-command/predictions.csv")
    assert found.predictions["predicted"].tolist() == rows["predicted"].tolist()
    # Rows have the index of the table, so that they can be joined to it.
    assert frame.loc[found.predictions.index, "유형"].equals(
        found.predictions["label"].rename("유형")
    )
    assert found.confusion.index.tolist() == found.confusion.columns.tolist() == sorted(LABELS)
    assert found.confusion.to_numpy().sum() == len(frame)
    assert found.per_label["texts"].tolist() == [21, 21, 21]
    wrong = found.predictions["label"] != found.predictions["predicted"]
    assert len(found.mistakes(5)) == min(5, wrong.sum())
    assert "macro_f1" in repr(found) and "3 folds of 63 texts of table" in repr(found)
    html = found._repr_html_()
    assert html.startswith("<p>3 folds of 63 texts") and "&lt;svg" in html and "혼동 행렬" in html

    columns = {name: frame[name].tolist() for name in frame}
    fitted = Classifier.fit(columns, "글", "유형", **given)
    fitted.save("my-model")
    assert files_of(Path("my-model")) == files_of(Path("by-command/model"))
    with pytest.raises(InputError, match="overwrite=True"):
        fitted.save("my-model")
    with pytest.raises(InputError, match="exists already"):
        Path("mine").mkdir()
        fitted.save("mine", overwrite=True)
    found.classifier.save("my-model", overwrite=True)
    loaded = Classifier.load("my-model")
    column = frame["글"].head(12)
    predicted = loaded.predict(column)
    assert predicted == loaded.predict(pa.array(column)) == loaded.predict(iter(column))
    assert predicted.to_frame().index.tolist() == column.index.tolist()
    assert predicted.to_frame()["label"].tolist() == predicted.label
    assert predicted.confidence == [one.confidence for one in predicted]
    assert "12 predictions" in predicted._repr_html_()
    explained = loaded.explain("내일 <회의>")
    assert "&lt;회의&gt;" in explained._repr_html_() and "내일" in repr(explained)


def test_scoring_a_table_is_the_command_on_its_file(
    frame: pd.DataFrame, classifier_directory: Path
) -> None:
    frame.to_csv("texts.csv", index=False)
    model = str(classifier_directory)
    evaluate_command.main(
        evaluate_command.EvaluationSettings(
            model=model,
            data=Path("texts.csv"),
            reading=evaluate_command.ReadOptions(text_column="글"),
            label_column="유형",
            output=Path("by-command"),
        )
    )
    report = json.loads(Path("by-command/report.json").read_text("utf-8"))
    found = evaluate(model, frame, "글", "유형", output="by-python", progress=False)
    for name in ("accuracy", "macro_f1"):
        assert found.scores.loc[name, "score"] == report["pooled"][name]
        assert found.scores.loc[name, ["low", "high"]].tolist() == report["intervals_95"][name]
    assert Path("by-python/report.html").exists()
    again = evaluate(found.classifier, "texts.csv", "글", "유형", progress=False)
    assert again.predictions["predicted"].tolist() == found.predictions["predicted"].tolist()
    assert "혼동 행렬" in again._repr_html_()


def test_pairs_several_labels_values_and_a_test(frame: pd.DataFrame, encoder: Path) -> None:
    given: dict[str, Any] = {
        "model": encoder,
        "folds": 2,
        "settings": ONE_EPOCH,
        "progress": False,
    }
    frame["둘째"] = frame["글"].to_list()[::-1]
    frame["별"] = np.arange(len(frame)) % 5 + 1.0
    pairs = cross_validate(frame, "글", "유형", pair="둘째", **given)
    assert {"pair", "confidence"} < set(pairs.predictions)
    assert pairs.classifier.predict(["하나"], pairs=["둘"])[0].label in LABELS

    several = frame.assign(**{name: (frame["유형"] == name).astype(int) for name in LABELS})
    topics = cross_validate(several, "글", LABELS, **given)
    assert topics.predictions["label"].iloc[0] == '["꿈"]'
    with pytest.raises(InputError, match="one label a text"):
        _ = topics.confusion
    assert "<iframe" not in topics._repr_html_()

    held_out = frame.iloc[::7]
    stars = cross_validate(frame, "글", "별", task="value", test=held_out, **given)
    assert stars.mistakes(3)["error"].is_monotonic_decreasing
    assert stars.test is not None
    assert stars.test.predictions.index.tolist() == held_out.index.tolist()
    assert len(stars.predictions) == len(frame) - len(held_out)
    assert stars.classifier.predict(["하나"]).value == [pytest.approx(3, abs=3)]


def test_bad_input_is_one_line_with_a_code_and_facts_and_leaves_nothing(
    frame: pd.DataFrame,
) -> None:
    given: dict[str, Any] = {"text": "글", "label": "유형", "quick": True, "progress": False}
    wrongs: tuple[tuple[Any, dict[str, Any], str], ...] = (
        (frame, {"label": "없다"}, "expected a column '없다' in the table, found 글, 유형"),
        (frame, {"folds": "5"}, "folds: expected a whole number, found '5'"),
        (frame, {"settings": {"foldz": 3}}, "unknown key foldz; did you mean folds"),
        (frame, {"settings": {"training.epoch": 3}}, "did you mean training.epochs"),
        (frame.head(0), {}, "found an empty table"),
        (["글"], {}, "found list; make one with pandas.DataFrame"),
        ({"글": ["하나"], "유형": []}, {}, "expected columns of one length"),
        (frame.assign(유형="꿈"), {}, "at least two labels in table"),
        ("none.csv", {}, "no such file"),
    )
    for data, changed, expected in wrongs:
        with pytest.raises(InputError, match=expected) as caught:
            cross_validate(data, **(given | changed))
        assert "\n" not in str(caught.value)
        assert caught.value._render_traceback_() == [f"InputError: {caught.value}"]
        assert len(caught.value.code) == 8
    assert caught.value.facts["path"] == Path("none.csv")
    assert not list(Path().rglob("*"))


def test_an_interrupted_cell_leaves_nothing_half_written_and_the_next_call_works(
    frame: pd.DataFrame, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    given: dict[str, Any] = {"folds": 2, "progress": False}
    with monkeypatch.context() as patched:
        patched.setattr(quick.QuickTrainer, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cross_validate(frame, "글", "유형", quick=True, settings=FEW_PARTS, **given)
    assert not [path for path in Path().rglob("*") if path.is_file()]
    with monkeypatch.context() as patched:
        patched.setattr("malmoi.finetune.encoder_run.print_scores", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cross_validate(frame, "글", "유형", model=encoder, settings=ONE_EPOCH, **given)
    assert not list(Path("runs/finetune").glob("[!.]*"))
    # Its folds are done already.
    monkeypatch.setattr("malmoi.finetune.training.fold_processes.run_job", interrupted)
    found = cross_validate(frame, "글", "유형", model=encoder, settings=ONE_EPOCH, **given)
    assert len(found.predictions) == len(frame)
    assert not list(Path("runs/finetune").glob(".*"))


def test_a_plain_script_may_train_side_by_side(frame: pd.DataFrame, encoder: Path) -> None:
    """Processes that start must not run the script again, which has no `__main__` guard."""
    frame.to_csv("texts.csv", index=False)
    Path("script.py").write_text(
        "from malmoi import cross_validate\n"
        "print('begins')\n"
        f"cross_validate('texts.csv', '글', '유형', model={str(encoder)!r}, folds=2,\n"
        "    settings={'epochs': 1, 'linear.enabled': False, 'jobs': 2}, output='run')\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begins") == 1
    assert Path("run/model").is_dir()
