"""Several labels, pairs and values from the command line; seeds, groups, what is refused."""

import csv
import json
import random
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from malmoi.errors import InputError
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.data.row_format import RowFormat
from malmoi.inference.classifier import Classifier
from malmoi.inference.prediction import ValuePrediction
from malmoi.model_folders import find_classifiers
from tests.malmoi.finetune.conftest import LABELS, OPENINGS, WriteCsv, save_labels, separable
from tests.malmoi.finetune.test_kfold import LEARN, QUICK, Run, kfold, left_behind

__all__ = ["kfold"]  # a fixture

WriteTable = Callable[[Sequence[str], Iterable[Sequence[object]]], Path]


@pytest.fixture
def write_table(tmp_path: Path) -> WriteTable:
    """Write a header and rows to a CSV file and return its path."""

    def write(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
        path = tmp_path / "table.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        return path

    return write


def several_labels() -> list[tuple[str, str]]:
    """Two texts in one, with the labels of both."""
    drawn = random.Random(1)
    rows: dict[str, str] = {}
    while len(rows) < 150:
        one, other = drawn.sample(separable(), 2)
        rows[f"{one[0]} {other[0]}"] = ",".join(sorted({one[1], other[1]}))
    return list(rows.items())


def like_pairs() -> list[tuple[str, str, int, float]]:
    """Pairs of openings: the same kind or not, and a value that says how alike they are."""
    drawn = random.Random(2)
    rows: dict[tuple[str, str], tuple[int, float]] = {}
    while len(rows) < 80:
        one, other = drawn.sample(separable(), 2)
        same = one[1] == other[1]
        rows[one[0], other[0]] = (int(same), 4.0 if same else 1.0 + drawn.random())
    return [(*texts, *values) for texts, values in rows.items()]


def report_of(run: str) -> dict:  # type: ignore[type-arg]
    return json.loads(Path(run, "report.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def test_several_labels(kfold: Run, write_csv: WriteCsv) -> None:
    flags = ["--task=multi", "--folds=2", "--output=run", *LEARN, "--epochs=16"]
    code, _, errors = kfold(f"--data={write_csv(several_labels())}", *flags, labels=None)
    assert (code, errors) == (0, "")
    report = report_of("run")
    assert report["plan"]["data"]["labels"] == LABELS
    assert report["pooled"]["micro_f1"] > 0.8  # All labels for every text: 0.71
    assert report["final_training"]["dev_texts"] == 15  # One in ten chooses the thresholds.
    stock = AutoModelForSequenceClassification.from_pretrained("run/model")
    assert stock.config.problem_type == "multi_label_classification"
    assert stock.config.thresholds == report["final_training"]["thresholds"]
    assert all(0 < threshold < 1 for threshold in stock.config.thresholds)
    with Path("run/predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    written = [(row["text"], ",".join(json.loads(row["label"]))) for row in rows]
    assert written == several_labels()
    assert any(len(json.loads(row["predicted"])) > 1 for row in rows)
    again = read_examples(Path("run/predictions.csv"), form=RowFormat(task="multi"))
    assert [again.labels[index] for index in again.label_sets[0]] == json.loads(rows[0]["label"])
    texts = [text for text, _ in several_labels()]
    labelled = [found.label.split(", ") for found in Classifier.load("run/model").predict(texts)]
    sets = [set(labels) for labels in labelled]
    expected = [set(label.split(",")) for _, label in several_labels()]
    assert sum(one == other for one, other in zip(sets, expected, strict=True)) > len(texts) / 2
    assert find_classifiers() == []  # The app shows one label.


def test_too_few_texts_to_choose_thresholds_by(kfold: Run, write_csv: WriteCsv) -> None:
    """Nobody has asked for early stopping, so it is not what to leave out."""
    data = write_csv(several_labels()[:12])
    code, _, errors = kfold(f"--data={data}", "--task=multi", "--folds=2", *QUICK, labels=None)
    assert (code, errors) == (
        2,
        "error: expected enough texts to keep 0.1 of them out of training, found 6; add texts\n",
    )


def test_values_of_pairs(kfold: Run, write_table: WriteTable) -> None:
    rows = [(one, other, value) for one, other, _, value in like_pairs()]
    data = write_table(("sentence1", "sentence2", "score"), rows)
    flags = ["--task=pair-regression", "--folds=2", "--output=run", *LEARN]
    code, output, errors = kfold(f"--data={data}", *flags, labels=None)
    assert (code, errors) == (0, "")
    assert (
        len([line for line in output.splitlines() if "Spearman correlation for fold" in line]) == 2
    )
    report = report_of("run")
    assert report["mean_spearman"] == pytest.approx(
        np.mean([fold["spearman"] for fold in report["folds"]])
    )
    # The values lie around 2.6: a model that never left 0 would be off by 7.
    assert report["pooled"]["mean_squared_error"] < 4
    stock = AutoModelForSequenceClassification.from_pretrained("run/model")
    assert (stock.config.problem_type, stock.config.num_labels) == ("regression", 1)
    ones, others = [row[0] for row in rows], [row[1] for row in rows]
    found = Classifier.load("run/model").predict(ones, others)
    values = [prediction.value for prediction in found if isinstance(prediction, ValuePrediction)]
    tokenizer = AutoTokenizer.from_pretrained("run/model")
    with torch.inference_mode():
        inputs = tokenizer(
            ones, others, padding=True, return_token_type_ids=True, return_tensors="pt"
        )
        expected = stock.eval()(**inputs).logits[:, 0].numpy()
    assert np.corrcoef(values, expected)[0, 1] > 0.99


def test_labels_of_pairs(kfold: Run, write_table: WriteTable) -> None:
    data = write_table(("question1", "question2", "is_duplicate"), [r[:3] for r in like_pairs()])
    flags = ["--task=pair", "--folds=2", *QUICK]
    code, output, errors = kfold(f"--data={data}", *flags, labels="0,1")
    assert (code, errors) == (0, "")
    assert ", 80 pairs (0 " in output
    (report,) = Path("runs/finetune").glob("*/report.json")
    with (report.parent / "predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["text"], row["pair"]) for row in rows] == [r[:2] for r in like_pairs()]
    assert find_classifiers() == []  # The app has one text at a time.
    classifier = Classifier.load(report.parent / "model")
    with pytest.raises(InputError, match="reads two texts at a time"):
        classifier.predict(["하나"])
    assert classifier.predict(["하나"], ["둘"])[0].label in ("0", "1")


def test_a_pair_and_its_other_way_round_share_a_fold(kfold: Run, write_table: WriteTable) -> None:
    rows = [r[:3] for r in like_pairs()]
    rows += [(other, one, same) for one, other, same in rows[:20]]
    data = write_table(("question1", "question2", "is_duplicate"), rows)
    flags = ["--task=pair", "--folds=2", "--output=run", *QUICK]
    code, output, errors = kfold(f"--data={data}", *flags, labels="0,1")
    assert (code, errors) == (0, "")
    assert "40 pairs in 20 groups of several" in output
    with Path("run/predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        folds = {(row["text"], row["pair"]): row["fold"] for row in csv.DictReader(file)}
    assert all(folds[one, other] == folds[other, one] for one, other, _ in rows[:20])


def test_seeds_early_stopping_and_losses(kfold: Run, write_csv: WriteCsv) -> None:
    flags = ["--folds=2", "--seeds=2", "--output=run", *LEARN]
    keys = ["early_stopping_fraction=0.2", "patience=1", "class_weights=balanced"]
    keys += ["focal_gamma=2", "gradient_checkpointing=true"]
    flags += [f"--set=training.{key}" for key in keys]
    code, output, errors = kfold(f"--data={write_csv(separable())}", *flags)
    assert (code, errors) == (0, "")
    assert [line for line in output.splitlines() if line.startswith("seed 4")] == [
        "seed 42:",
        "seed 43:",
    ]
    report = report_of("run")
    assert [(fold["seed"], fold["fold"]) for fold in report["folds"]] == [
        (42, 1),
        (42, 2),
        (43, 1),
        (43, 2),
    ]
    assert len({fold["macro_f1"] for fold in report["folds"]}) > 1
    for fold in report["folds"]:
        assert 1 <= fold["best_epoch"] <= fold["epochs"] <= 6
        assert fold["epochs"] in (6, fold["best_epoch"] + 1)
    low, high = report["interval_95"]
    assert low < report["mean_f1"] < high
    assert sum(map(sum, report["pooled"]["confusion"])) == 2 * 63
    assert "±" in output


def test_near_duplicates_share_a_fold(kfold: Run, write_csv: WriteCsv) -> None:
    long = {label: " ".join(openings) * 2 for label, openings in OPENINGS.items()}
    copies = [(f"{text} {n}", label) for label, text in long.items() for n in range(4)]
    data = f"--data={write_csv(separable() + copies)}"
    flags = ["--group-near-duplicates", "--set=measuring.near_duplicate_threshold=0.7"]
    flags += ["--output=run", *QUICK]
    code, output, errors = kfold(data, *flags, "--folds=3")
    assert (code, errors) == (0, "")
    assert "nearly equal another; they stay in one fold" in output
    with Path("run/predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        folds = {row["text"]: row["fold"] for row in csv.DictReader(file)}
    for text in long.values():
        assert len({folds[f"{text} {n}"] for n in range(4)}) == 1


def test_a_column_of_groups(kfold: Run, write_table: WriteTable) -> None:
    rows = [
        (text, label, "one writer" if label == LABELS[0] and place % 2 else f"writer {place % 6}")
        for place, (text, label) in enumerate(separable())
    ]
    rows = [row for row in rows if row[1] != LABELS[0] or row[2] == "one writer"]
    rows.append(("꿈에서 꿈을 꾸는 꿈", LABELS[0], "another"))
    rows.append(("꿈에서 깨는 꿈", LABELS[0], "another"))
    rows.append(("꿈은 꿈이다", LABELS[0], "another"))
    data = write_table(("text", "label", "writer"), rows)
    flags = [f"--data={data}", "--set=data.group_column=writer", "--folds=3"]
    flags += ["--group-near-duplicates", "--output=run", *QUICK]  # beside each other
    code, output, errors = kfold(*flags, "--seeds=2")
    assert (code, errors) == (0, "")
    assert "groups: 55 texts in 8 groups of several, each in one fold" in output
    assert f"the texts of {LABELS[0]} are in 2 groups: 2 of 6 folds are without it" in output
    with Path("run/predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        folds: dict[tuple[str, str], set[str]] = {}
        writers = {text: writer for text, _, writer in rows}
        for row in csv.DictReader(file):
            folds.setdefault((row["seed"], writers[row["text"]]), set()).add(row["fold"])
    assert all(len(found) == 1 for found in folds.values())


def test_the_label_database_of_the_app(kfold: Run, tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    rows = separable()
    save_labels(f"sqlite:///{path}", [*rows, (rows[0][0], "일정")])
    code, output, errors = kfold(f"--data={path}", "--folds=2", *QUICK)
    assert (code, errors) == (0, "")
    assert "63 texts (꿈 20, 일기 21, 일정 22)" in output
    code, _, errors = kfold(f"--data={path}", "--label-column=label", *QUICK)
    assert code == 2 and "so --label-column has no effect; leave it out" in errors
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE malmoi_projects")
    connection.close()
    code, _, errors = kfold(f"--data={path}", *QUICK)
    assert code == 2
    assert f"{path}: expected a label database with a project" in errors


ROWS = [(f"r{number}", *row) for number, row in enumerate(separable())]
PAIR = ["--task=pair-regression"]
# Rows, flags, --labels, and what the one line names.
BAD: list[tuple[list[tuple[str, str, str]], list[str], str | None, str]] = [
    ([*ROWS, ("x", "또 하나", "일긔")], [], "꿈,일기,일정", "일긔 (1, first table.csv:65, id x"),
    ([*ROWS, ("r7", "또 하나", "일기")], [], "꿈,일기,일정", "table.csv:65, id r7"),
    ([*ROWS, ("x", "또 하나", "NaN")], [], None, "table.csv:65, id x"),
    ([(i, text, "꿈") for i, text, _ in ROWS], [], None, "only 꿈"),
    (ROWS, PAIR, "꿈,일기", "--task pair-regression"),
    (ROWS, [*PAIR, "--set=training.focal_gamma=2"], None, "training.focal_gamma"),
    (ROWS, ["--set=training.patience=3"], None, "training.patience"),
    (ROWS, ["--seeds=0"], None, "--seeds"),
    (ROWS, ["--jobs=0"], None, "--jobs"),
    (ROWS, ["--pair-column=label"], None, "--pair-column"),
    (ROWS, ["--set=data.label_separator=;"], None, "data.label_separator"),
    (ROWS, ["--set=measuring.near_duplicate_threshold=0.9"], None, "near_duplicate_threshold"),
    (
        ROWS,
        ["--group-near-duplicates", "--set=measuring.near_duplicate_threshold=0.5"],
        None,
        "found 0.5",
    ),
    (
        ROWS,
        ["--set=training.focal_gamma=2", "--set=training.label_smoothing=0.1"],
        None,
        "training.focal_gamma or training.label_smoothing",
    ),
    (ROWS, ["--set=training.early_stopping_fraction=0.2"], None, "early_stopping_fraction"),
    (ROWS, ["--device=tpu"], None, "'tpu'"),
    (ROWS, PAIR, None, "'pair'"),
    (ROWS, ["--quick", "--epochs=3"], None, "--epochs"),
    (ROWS, ["--quick", "--baselines"], None, "--baselines"),
    (ROWS, ["--quick", "--task=multi"], None, "--quick"),
    (ROWS, ["--quick"], None, "linear.enabled=false"),
    (ROWS, ["--set=linear.frozen_encoder=false"], None, "linear.frozen_encoder"),
    (ROWS, ["--set=linear.morphemes=false"], None, "linear.morphemes"),
]


def test_what_is_refused_is_one_line_and_leaves_nothing(
    kfold: Run, write_table: WriteTable
) -> None:
    for rows, flags, labels, named in BAD:
        data = write_table(("id", "text", "label"), rows)
        given = [] if "--quick" in flags else QUICK
        linear = "--quick" in flags and len(flags) > 1
        code, _, errors = kfold(f"--data={data}", *given, *flags, labels=labels, linear=linear)
        assert (code, errors.count("\n")) == (2, 1) and named in errors, errors
        assert left_behind() == []
    pairs = [(one, other, str(number)) for one, other, _, number in like_pairs()]
    for value, named in (("많이", "'많이'"), ("inf", "'inf'"), ("", "1 of 81"), ("nan", "1 of 81")):
        data = write_table(("text", "pair", "label"), [*pairs, ("하나", "둘", value)])
        code, _, errors = kfold(f"--data={data}", *PAIR, *QUICK, labels=None)
        assert (code, errors.count("\n")) == (2, 1) and named in errors, errors


def test_a_long_text_is_learnt_from_its_beginning_and_that_is_said_once(
    kfold: Run, write_csv: WriteCsv
) -> None:
    rows = [*separable(), ("꿈에서 " * 25_000, "꿈")]
    code, output, _ = kfold(f"--data={write_csv(rows)}", "--folds=2", *QUICK)
    assert code == 0
    assert output.count("1 texts are longer than 64 tokens; learnt from their beginning") == 1


ROWS = [(f"r{number}", *row) for number, row in enumerate(separable())]
PAIR = ["--task=pair-regression"]
