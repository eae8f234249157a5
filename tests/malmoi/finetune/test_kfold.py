"""k-fold from the command line to the files it leaves; and what it refuses, leaving none."""

import csv
import errno
import hashlib
import json
import os
import random
import shutil
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors import SafetensorError
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from malmoi.command_line import run_command
from malmoi.finetune.kfold import ABOUT, main
from malmoi.finetune.settings import KfoldSettings
from malmoi.finetune.training.cross_validation import Experiment, run_job
from malmoi.inference.classifier import Classifier
from malmoi.model_folders import find_classifiers
from tests.malmoi.finetune.conftest import LABELS, OPENINGS, WriteCsv, separable

ROOT = Path(__file__).parents[3]
LEARN = ["--epochs=6", "--learning-rate=3e-3", "--batch-size=8", "--set=training.layer_decay=1"]
QUICK = ["--epochs=1"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kfold(
    encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run the command in an empty folder: exit code, standard output, error output."""
    workplace = tmp_path / "workplace"
    workplace.mkdir()
    monkeypatch.chdir(workplace)

    def run(  # type: ignore[no-untyped-def]
        *flags: str,
        labels: str | None = ",".join(LABELS),
        model: str | None = str(encoder),
        linear: bool = False,
    ):
        given = [f"--labels={labels}"] if labels is not None else []
        given += [] if linear else ["--set=linear.enabled=false"]
        given += [*([f"--model={model}"] if model else []), *flags]
        monkeypatch.setattr(sys, "argv", ["kfold.py", *given])
        code = run_command(KfoldSettings, main, ABOUT)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def left_behind() -> list[str]:
    """What a run left in its folder."""
    return sorted(path.as_posix() for path in Path().rglob("*"))


def average(output: str) -> float:
    (line,) = [line for line in output.splitlines() if line.startswith("Average F1 score: ")]
    return float(line.split()[3])


def fold_lines(output: str) -> list[str]:
    """The lines that say how good the folds are."""
    return [line for line in output.splitlines() if line.startswith(("F1 score", "Average"))]


def test_separable_texts_are_learned(kfold: Run, write_csv: WriteCsv) -> None:
    data = write_csv(separable())
    code, output, errors = kfold(f"--data={data}", *LEARN)
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0].startswith("reading ") and "'text'" in lines[0] and "'label'" in lines[0]
    assert lines[1] == f"data: {data}, 63 texts (꿈 21, 일기 21, 일정 21)"
    folds = [line for line in lines if line.startswith("F1 score for fold ")]
    assert [line.split(":")[0][-1] for line in folds] == ["1", "2", "3", "4", "5"]
    assert average(output) > 0.9

    (model,) = find_classifiers()
    assert model.parent.name.startswith("memos-")
    assert sorted(path.name for path in model.parent.parent.iterdir()) == [model.parent.name]
    assert sorted(path.name for path in model.parent.iterdir()) == [
        "model",
        "predictions.csv",
        "report.html",
        "report.json",
    ]
    assert all(os.access(path, os.R_OK) for path in model.rglob("*"))
    assert (model / "model.safetensors").stat().st_mode & 0o777 == 0o644
    check_report(model.parent / "report.json", output)
    check_predictions(model.parent / "predictions.csv")
    check_model(model)


def check_report(path: Path, output: str) -> None:
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["plan"]["data"]["labels"] == LABELS
    assert report["data"]["per_label"] == {label: 21 for label in LABELS}
    assert report["data"]["texts"] == 63
    rows = [json.dumps([text, label], ensure_ascii=False) for text, label in separable()]
    assert report["data"]["sha256"] == hashlib.sha256("".join(rows).encode()).hexdigest()
    assert report["plan"]["training"]["epochs"] == 6
    assert report["plan"]["training"]["max_length"] == 64  # What the model has positions for.
    assert report["versions"]["torch"]
    assert f"{report['mean_f1']:.4f} (standard deviation {report['sd_f1']:.4f})" in output
    for number, fold in enumerate(report["folds"], 1):
        assert f"F1 score for fold {number}: {fold['macro_f1']:.4f}" in output
    assert sum(map(sum, report["pooled"]["confusion"])) == 63
    assert set(report["pooled"]["labels"]) == set(LABELS)
    assert report["seconds"] > 0


def check_predictions(path: Path) -> None:
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["text"], row["label"]) for row in rows] == separable()
    assert rows[0]["id"] == "memos.csv:2"
    assert Counter(row["fold"] for row in rows) == {"1": 13, "2": 13, "3": 13, "4": 12, "5": 12}
    for row in rows:
        probabilities = {label: float(row[f"probability {label}"]) for label in LABELS}
        assert sum(probabilities.values()) == pytest.approx(1, abs=1e-4)
        assert row["predicted"] == max(LABELS, key=probabilities.__getitem__)


def check_model(model: Path) -> None:
    stock, loading = AutoModelForSequenceClassification.from_pretrained(
        model, output_loading_info=True
    )
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    classifier = Classifier.load(model)
    assert list(stock.config.id2label.values()) == classifier.labels == LABELS
    predictions = classifier.predict([text for text, _ in separable()])
    right = sum(p.label == label for p, (_, label) in zip(predictions, separable(), strict=True))
    assert right / 63 > 0.95
    report = json.loads((model.parent / "report.json").read_text(encoding="utf-8"))
    assert classifier.temperature == report["calibration"]["temperature"] != 1


def test_shuffled_labels_are_not_learned(kfold: Run, write_csv: WriteCsv) -> None:
    texts, labels = zip(*separable(), strict=True)
    mixed = random.Random(0).sample(labels, len(labels))
    code, output, _ = kfold(f"--data={write_csv(zip(texts, mixed, strict=True))}", *LEARN)
    assert code == 0
    assert average(output) < 0.6


def test_same_seed_same_run(kfold: Run, write_csv: WriteCsv, named_too_early: list[str]) -> None:
    data = write_csv(separable())
    outputs = [kfold(f"--data={data}", f"--output={name}", *QUICK)[1] for name in "ab"]
    assert fold_lines(outputs[0]) == fold_lines(outputs[1])
    assert len(fold_lines(outputs[0])) == 6
    for name in ("predictions.csv", "model/model.safetensors"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()
    assert named_too_early == []


def test_repeats_never_straddle_folds(kfold: Run, write_csv: WriteCsv) -> None:
    rows = separable()
    spaced = [(f"  {text}\u200b ", label) for text, label in rows[:10]]
    other = [(rows[0][0], "일정"), ("   ", "일기")]
    code, output, _ = kfold(f"--data={write_csv(rows + spaced + other)}", "--output=run", *QUICK)
    assert code == 0
    assert "\nleft out 10 repeated texts\n" in output
    # The row that is learnt, and the one that says something else of the same text, are named.
    kept, refused = f"memos.csv:2 {rows[0][1]}", f"memos.csv:{len(rows) + 12} 일정"
    (named,) = [line for line in output.splitlines() if "another label" in line]
    assert f"{refused} ({kept})" in named
    (found,) = json.loads(Path("run/report.json").read_text())["data"]["contradicting"]
    assert f"{found['id']} {found['label']}" == refused
    assert f"{found['kept_id']} {found['kept_label']}" == kept
    assert "같은 글, 다른 라벨" in Path("run/report.html").read_text(encoding="utf-8")
    assert "\nleft out 1 texts that are empty after cleaning\n" in output
    with Path("run/predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    assert len(texts) == len(set(texts)) == 63


def test_random_weights_and_decomposed_labels(kfold: Run, write_csv: WriteCsv) -> None:
    labels = unicodedata.normalize("NFD", " 꿈 , 일기,일정")
    data = f"--data={write_csv(separable())}"
    code, output, _ = kfold(data, "--recipe=random-weights", "--output=run", *QUICK, labels=labels)
    assert code == 0
    assert "million parameters, random weights)" in output
    report = json.loads(Path("run/report.json").read_text(encoding="utf-8"))
    assert report["plan"]["encoder"]["random_weights"] is True
    assert report["plan"]["training"]["layer_decay"] == 1.0


ROWS = separable()
FEW = [row for row in ROWS if row[1] != "일정"] + [(text, "일정") for text in OPENINGS["일정"]]
# Rows, flags, --labels, and what the one line names.
BAD: list[tuple[list[tuple[str, str]], str, str | None, list[str]]] = [
    (
        [*ROWS, ("딴 글", "메모"), ("딴 글 2", "메모"), ("또", "오류")],
        "",
        "꿈,일기,일정",
        ["메모 (2, first memos.csv:65)", "오류 (1, first memos.csv:67)"],
    ),
    (ROWS, "", "꿈,일기,일정,메모", ["메모"]),
    (FEW, "", "꿈,일기,일정", ["일정 (3, first memos.csv:44)", "at least 5"]),
    # A row of a sum has no text; the only row of a label repeats a text of another.
    (
        [*ROWS, ("", "500"), (" ", "500"), (ROWS[0][0], "겹침")],
        "",
        "꿈,일기,일정,500,겹침",
        ["500 (2, first memos.csv:65)"],
    ),
    ([*ROWS, (ROWS[0][0], "겹침")], "", "꿈,일기,일정,겹침", ["겹침 (0, first memos.csv:65)"]),
    (
        [*ROWS, ("이름 없는 글", ""), ("또 하나", "  ")],
        "",
        "꿈,일기,일정",
        ["2 of 65 rows", "memos.csv:65", "data.skip_unlabelled"],
    ),
    ([*ROWS, ("또 하나", "일긔")], "", None, ["일긔 (1, first memos.csv:65", "일기"]),
    (ROWS, "--folds=1", "꿈,일기,일정", ["--folds"]),
    (ROWS, "--epochs=0", "꿈,일기,일정", ["--epochs"]),
    (ROWS, "", "꿈,일기,일정,꿈 ", ["꿈"]),
    (ROWS, "", "꿈,,일기", ["'꿈,,일기'"]),
    (ROWS, "", "꿈", ["'꿈'"]),
    (ROWS, "--output=..", "꿈,일기,일정", ["--output"]),
    (ROWS, "--output=../memos.csv", "꿈,일기,일정", ["../memos.csv is a file"]),
    (ROWS, "--output=../memos.csv/run", "꿈,일기,일정", ["../memos.csv is a file"]),
    (ROWS, "--model=runs/none", "꿈,일기,일정", ["runs/none"]),
    (ROWS, "--model=../bare", "꿈,일기,일정", ["../bare", "model.safetensors"]),
    (ROWS, "--model=", "꿈,일기,일정", ["pretrain/run.py"]),
]


def test_bad_input_is_one_line_and_leaves_nothing(
    kfold: Run, write_csv: WriteCsv, encoder: Path
) -> None:
    Path("runs").mkdir()
    bare = Path(shutil.copytree(encoder, "../bare"))
    (bare / "model.safetensors").unlink()
    for rows, flags, labels, named in BAD:
        data = write_csv(rows)
        model = None if flags == "--model=" else str(encoder)
        given = flags.split() if model else []  # of a flag given twice the last one counts
        code, output, errors = kfold(f"--data={data}", *QUICK, *given, labels=labels, model=model)
        assert (code, errors.count("\n")) == (2, 1) and errors.startswith("error: "), errors
        assert all(name in errors for name in named), errors
        assert "F1 score" not in output and left_behind() == ["runs"]
    data = write_csv([]).with_name("own.jsonl")
    lines = [{"id": "a1", "text": "꿈", "label": "꿈"}, {"id": "a2", "text": "일", "label": None}]
    data.write_text("\n".join(json.dumps(row) for row in lines), encoding="utf-8")
    code, _, errors = kfold(f"--data={data}")
    assert code == 2 and "1 of 2 rows" in errors and "own.jsonl:2, id a2" in errors


def test_without_data_the_labels_name_a_sample(kfold: Run) -> None:
    for flags, labels, named in (
        ([], "가,나", "가, 나"),
        ([], None, "--data"),
        (["--task=multi"], ",".join(LABELS), "--task multi"),
    ):
        code, _, errors = kfold(*flags, labels=labels)
        assert code == 2 and named in errors and errors.count("\n") == 1


def test_sample_is_found_by_its_labels(kfold: Run) -> None:
    for labels, sample in (("일기,꿈,오류,메모,일정", "memos"), ("부정,중립,긍정", "reviews")):
        folder = Path("corpora") / sample
        folder.mkdir(parents=True)
        shutil.copy(ROOT / folder / "task.toml", folder)
        code, _, errors = kfold(labels=labels)
        assert code == 2
        assert errors.startswith(f"error: no such file or folder: {folder}/{sample}.csv; ")


@pytest.mark.parametrize(
    "full",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model.safetensors"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
        Exception("No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_leaves_only_the_finished_folds(
    kfold: Run, write_csv: WriteCsv, monkeypatch: pytest.MonkeyPatch, full: Exception
) -> None:
    def save(self: PreTrainedModel, directory: Path) -> None:
        Path(directory).mkdir(exist_ok=True)
        (Path(directory) / "model.safetensors").write_bytes(b"half")
        raise full

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", save)
    code, _, errors = kfold(f"--data={write_csv(separable())}", "--output=run", *QUICK, "--folds=2")
    assert code == 2
    assert errors.startswith("error: the disk is full while writing ")
    assert [path for path in left_behind() if not path.startswith(".run.work")] == []
    assert ".run.work/seed-42-fold-2.npz" in left_behind()
    assert not [path for path in left_behind() if path.endswith("safetensors")]


def test_what_another_run_left_of_the_same_output_is_not_deleted_without_a_word(
    kfold: Run, write_csv: WriteCsv, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = f"--data={write_csv(separable())}"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr("malmoi.finetune.training.fold_processes.run_job", stop)
        assert kfold(data, "--output=run", *QUICK)[0] == 130
    code, output, _ = kfold(data, "--output=run", *QUICK, "--learning-rate=1e-5")
    assert code == 0 and "begun anew" in output


def test_a_stopped_run_does_only_what_is_left(
    kfold: Run, write_csv: WriteCsv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after fold 3; the same command again, without --output, does the last two."""
    data = f"--data={write_csv(separable())}"
    _, whole, _ = kfold(data, "--output=whole", *QUICK)
    trained: list[tuple[int, int]] = []

    def counted(experiment: Experiment, seed: int, fold: int, *rest: object) -> None:
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append((seed, fold))
        run_job(experiment, seed, fold, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("malmoi.finetune.training.fold_processes.run_job", counted)
    code, _, errors = kfold(data, *QUICK)
    assert (code, errors) == (130, "stopped\n")
    trained.clear()
    _, output, _ = kfold(data, *QUICK, "--learning-rate=1e-5")  # another plan: from the beginning
    assert trained == [(42, 1), (42, 2), (42, 3)]
    trained.clear()
    monkeypatch.setattr(
        "malmoi.finetune.training.fold_processes.run_job",
        lambda experiment, seed, fold, *rest: (
            trained.append((seed, fold)),
            run_job(experiment, seed, fold, *rest),
        ),
    )
    code, output, errors = kfold(data, *QUICK)
    assert (code, errors) == (0, "")
    assert "going on with a run that was stopped: 3 of 6 trainings are done" in output
    assert trained == [(42, 4), (42, 5), (42, 0)]
    assert fold_lines(output) == fold_lines(whole)
    (run,) = [path for path in Path("runs/finetune").iterdir() if path.name.startswith("memos-")]
    for name in ("predictions.csv", "model/model.safetensors"):
        assert (run / name).read_bytes() == Path("whole", name).read_bytes()


def test_processes_side_by_side_give_the_same(kfold: Run, write_csv: WriteCsv) -> None:
    data = f"--data={write_csv(separable())}"
    flags = ["--folds=2", *QUICK]
    code, one, errors = kfold(data, "--output=one", *flags)
    assert (code, errors) == (0, "")
    code, two, errors = kfold(data, "--output=two", "--jobs=2", *flags)
    assert (code, errors) == (0, "")
    assert fold_lines(one) == fold_lines(two)
    for name in ("predictions.csv", "model/model.safetensors"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_a_process_with_bad_luck_is_one_line(kfold: Run, write_csv: WriteCsv) -> None:
    flags = [
        "--folds=2",
        "--jobs=2",
        "--learning-rate=1",
        "--set=training.weight_decay=1e38",
        "--epochs=4",
    ]
    code, _, errors = kfold(f"--data={write_csv(separable())}", *flags)
    assert code == 2
    assert errors.startswith("error: the loss became ")
    assert errors.count("\n") == 1
    assert left_behind() == []
