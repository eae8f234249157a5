"""How many labels does a classifier need, and which kind of classifier at which number?

    python -m lab.benchmarks.quality.few_labels --data FOLDER

Of each task's training texts a part is kept to score on; from the others a few are drawn, as people
would label them: at random, the same for every way. Ways are a linear SVM over characters,
`finetune/kfold.py --quick`, and `finetune/kfold.py` as it is, whose classifier is scored whole
(encoder + linear) and without its linear part. `--settings="--epochs 20"` gives kfold.py other
flags, under a name of their own: settings may be chosen by this table, so test files have no part
in it. SetFit (Tunstall et al. 2022) is a fifth way where it is installed.

What is measured is kept, so that the same command goes on; each row is one draw.
"""

import importlib.util
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.data import DataSettings
from lab.benchmarks.quality.downstream import ROOT, Results, encoder_name, numbers_of
from lab.benchmarks.quality.tasks import TASKS, Comparison, Rows
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.model_folders import LINEAR, LINEAR_WEIGHTS

RESULTS = Path(__file__).parents[1] / "results" / "few_labels.json"
DEFAULT_TASKS = "memos,written,nsmc,hate"
# Texts that are scored, at most a third of a task's.
SCORED = 2_000
# kfold.py wants one of each label in each of its five folds.
LEAST_OF_LABEL = 5
SVM, QUICK, ENCODER, BOTH, SETFIT = "svm", "quick", "encoder", "encoder + linear", "setfit"
# SetFit's own first example: pairs from 20 iterations, one epoch.
_SETFIT_ITERATIONS = 20


@dataclass(kw_only=True)
class FewLabelsSettings(DataSettings):
    """Which tasks, how many labels, how often."""

    model: str = "malmoi-small"
    """Encoder: name, folder or Hub id."""
    tasks: str = DEFAULT_TASKS
    """Comma-separated tasks of one label a text."""
    labels: str = "50,100,200,500,1000,2000"
    """Comma-separated numbers of labelled texts."""
    draws: int = 5
    """Draws of texts for each number."""
    ways: str = f"{SVM},{QUICK},{BOTH}"
    """Comma-separated ways; the encoder alone comes with both."""
    settings: str = ""
    """Further flags of finetune/kfold.py, for the way with an encoder: --settings="--epochs 20"."""
    output: Path = RESULTS
    """JSON file of the results; the plot stands beside it."""


def main(settings: FewLabelsSettings) -> None:
    """Measure what is missing, then print the table and draw the plot."""
    tasks, ways = settings.tasks.split(","), settings.ways.split(",")
    for kind, named, known in (
        ("tasks", tasks, [name for name, one in TASKS.items() if one.task == "single"]),
        ("ways", ways, [SVM, QUICK, BOTH, SETFIT]),
    ):
        if unknown := [name for name in named if name not in known]:
            raise InputError(f"expected --{kind} of {', '.join(known)}, found {unknown[0]}")
    if SETFIT in ways and importlib.util.find_spec("setfit") is None:
        raise InputError("setfit is not installed; leave it out of --ways, or pip install setfit")
    for file in (file for name in tasks for file in TASKS[name].needs):
        file.find(settings.folder)
    results = Results(settings.output)
    for name in tasks:
        for rows in _measured(name, ways, settings, results):
            for row in rows:
                results.add(row)
    table = _table([row for row in results.rows if row["task"] in tasks])
    _show(table)
    _plot(table, settings.output.with_suffix(".png"))


def _measured(
    name: str, ways: list[str], settings: FewLabelsSettings, results: Results
) -> Iterator[list[dict[str, Any]]]:
    """Rows of every number, draw and way that has none yet."""
    comparison = TASKS[name]
    learn, test = _split(comparison, settings.folder)
    for number in map(int, numbers_of("labels", settings.labels)):
        for draw in range(settings.draws):
            drawn = learn.at(_draw(learn.targets, number, draw))
            for way in ways:
                key: dict[str, Any] = {"task": name, "labels": number, "draw": draw}
                if way not in (SVM, QUICK):
                    key |= {"model": encoder_name(settings.model), "settings": settings.settings}
                if results.of(**key, way=way):
                    continue
                began = time.perf_counter()
                scores = _score(way, comparison, drawn, test, settings, draw)
                seconds = round(time.perf_counter() - began, 1)
                yield [
                    key | {"way": one, "seconds": seconds, "macro_f1": round(score, 2)}
                    for one, score in scores.items()
                ]


def _split(comparison: Comparison, data: Path) -> tuple[Rows, Rows]:
    """Texts to draw from and texts to score on; no text is in both."""
    rows = comparison.train(data)
    order = np.random.default_rng(0).permutation(len(rows.texts))
    scored = order[: min(SCORED, len(order) // 3)]
    known = {rows.texts[place] for place in scored}
    rest = np.array([place for place in order if rows.texts[place] not in known])
    return rows.at(np.sort(rest)), rows.at(np.sort(scored))


def _draw(targets: np.ndarray, number: int, draw: int) -> np.ndarray:
    """Places of so many rows, at random, but with some of each label. int64 [number]."""
    order = np.random.default_rng([number, draw]).permutation(len(targets))
    first = [
        place
        for label in np.unique(targets)
        for place in order[targets[order] == label][:LEAST_OF_LABEL]
    ]
    rest = order[~np.isin(order, first)]
    return np.sort(np.array([*first, *rest])[:number])


def _score(
    way: str,
    comparison: Comparison,
    drawn: Rows,
    test: Rows,
    settings: FewLabelsSettings,
    seed: int,
) -> dict[str, float]:
    """Macro F1 in percent of a way; of `encoder + linear` also that of its encoder."""
    from lab.benchmarks.quality.fitting import fit_linear, score_labels

    if way == SVM:
        return {way: fit_linear(comparison, drawn, test)["macro_f1"]}
    if way == SETFIT:
        predicted = _by_setfit(drawn, test.texts, settings.model, seed)
        return {way: score_labels(comparison, test, predicted)["macro_f1"]}
    # As people give it: it chooses its encoder by the labels.
    named = ["--model", settings.model, *shlex.split(settings.settings)]
    flags = ["--quick"] if way == QUICK else named
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _train(comparison, drawn, [*flags, "--seed", str(seed)], folder)
        model = folder / "run" / "model"
        found = {way: _by_classifier(model, comparison.labels, test.texts)}
        if way == BOTH:
            for part in (LINEAR, LINEAR_WEIGHTS):
                (model / part).unlink(missing_ok=True)
            found[ENCODER] = _by_classifier(model, comparison.labels, test.texts)
    return {one: score_labels(comparison, test, row)["macro_f1"] for one, row in found.items()}


def _train(comparison: Comparison, drawn: Rows, flags: list[str], folder: Path) -> None:
    import pandas as pd

    table = folder / "labelled.csv"
    named = [comparison.labels[target] for target in drawn.targets]
    pd.DataFrame({"text": drawn.texts, "label": named}).to_csv(table, index=False)
    command = [sys.executable, ROOT / "finetune" / "kfold.py", "--data", table, *flags]
    command += ["--output", folder / "run"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"kfold.py failed: {done.stderr.strip().splitlines()[-1]}")


def _by_classifier(model: Path, labels: list[str], texts: list[str]) -> np.ndarray:
    """Places of the predicted labels, int64 [N]."""
    from malmoi import Classifier

    classifier = Classifier.load(model, engine="torch")
    return np.array([labels.index(one.label) for one in classifier.predict(texts)])


def _by_setfit(drawn: Rows, texts: list[str], model: str, seed: int) -> np.ndarray:
    """Places of the labels that SetFit predicts, int64 [N]."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    from malmoi.model_folders import local_source

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, num_iterations=_SETFIT_ITERATIONS, num_epochs=1, seed=seed
        )
        trainer = Trainer(
            model=SetFitModel.from_pretrained(local_source(model)),
            args=arguments,
            train_dataset=Dataset.from_dict({"text": drawn.texts, "label": drawn.targets}),
        )
        trainer.train()
        return np.asarray(trainer.model.predict(texts), dtype=np.int64)


def _table(rows: list[dict[str, Any]]) -> dict[str, dict[str, dict[int, list[float]]]]:
    """Scores of the draws by task, way with its flags, and number of labels."""
    table: dict[str, dict[str, dict[int, list[float]]]] = {}
    for row in rows:
        way = " ".join(filter(None, [row["way"], row.get("settings", "")]))
        by_number = table.setdefault(row["task"], {}).setdefault(way, {})
        by_number.setdefault(row["labels"], []).append(row["macro_f1"])
    return table


def _show(table: dict[str, dict[str, dict[int, list[float]]]]) -> None:
    for task, ways in table.items():
        numbers = sorted({number for by_number in ways.values() for number in by_number})
        print(f"{task:32}" + "".join(f"{number:>14,}" for number in numbers))
        for way, by_number in ways.items():
            cells = []
            for number in numbers:
                scores = by_number.get(number, [])
                spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
                cells.append(f"{statistics.mean(scores):.1f} ± {spread:.1f}" if scores else "")
            print(f"  {way:30}" + "".join(f"{cell:>14}" for cell in cells))


def _plot(table: dict[str, dict[str, dict[int, list[float]]]], path: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print(f"no {path.name}: matplotlib is not installed (pip install -e '.[plots]')")
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(table), figsize=(4 * len(table), 3.6), squeeze=False, layout="constrained"
    )
    for axis, (task, ways) in zip(axes[0], table.items(), strict=True):
        # Other settings have a point here and there, and long names; they stand in the table.
        for way, by_number in ((way, found) for way, found in ways.items() if " --" not in way):
            numbers = sorted(by_number)
            means = [statistics.mean(by_number[number]) for number in numbers]
            axis.plot(numbers, means, marker="o", markersize=3, label=way)
        axis.set(xscale="log", title=task, xlabel="labelled texts", ylabel="macro F1")
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=7, loc="lower right")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    about = "Macro F1 by number of labels: a linear SVM, --quick, and encoders with a linear part."
    sys.exit(run_command(FewLabelsSettings, main, about))
