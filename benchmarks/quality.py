"""How good is an encoder? Fine-tuned on whole training files, scored once on the test files.

    python benchmarks/quality.py --model runs/pretrain/NAME --tasks nsmc,three
    python benchmarks/quality.py --model runs/pretrain/NAME --random-weights

Learning rate and epochs are chosen on a part of the training file, with one seed; only then is the
whole of it trained on, with every seed, and the test file scored, once for each. What is done is
kept in the results, so that no second look at a test file can choose anything.
"""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from downstream import NSMC, RATING_LABELS, REVIEWS, Results, fine_tune, mean_and_spread

from corpora.cleaning import clean_text
from corpora.command_line import run_command
from corpora.errors import InputError
from finetune.encoders import encoder_source, find_encoder
from finetune.training import TrainSettings

RESULTS = Path(__file__).parent / "results" / "quality.json"
Examples = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A training file, a test file, and what counts."""

    train: Callable[[], Examples]
    test: Callable[[], Examples]
    metric: str
    linear: float
    """The same metric for character n-grams and a linear SVM (../shared/data/README.md)."""


@dataclass(kw_only=True)
class QualitySettings:
    """Which encoder, which tasks, how often."""

    model: str | None = None
    """Encoder: directory, pre-training run or Hub id; by default the newest finished run."""
    name: str | None = None
    """What it is called in the results; by default the name of its folder."""
    random_weights: bool = False
    """Start from random weights of the same shape instead."""
    tasks: str = "nsmc,three"
    """Comma-separated tasks."""
    seeds: int = 3
    """Fine-tuning runs on each whole training file."""
    epochs: str = "3"
    """Comma-separated numbers of passes to choose from."""
    learning_rates: str = "1e-4,3e-4"
    """Comma-separated learning rates to choose from."""
    dev_train_size: int = 20_000
    """Texts of the training file that a choice is trained on."""
    dev_size: int = 10_000
    """Other texts of it that a choice is scored on."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: QualitySettings) -> None:
    """Choose, train, score what is missing, then print the table."""
    if not NSMC.is_file():
        print(f"skipped: no {NSMC.name} in ../shared/data")
        return
    names = settings.tasks.split(",")
    if unknown := [name for name in names if name not in TASKS]:
        raise InputError(f"expected --tasks of {', '.join(TASKS)}, found {unknown[0]}")
    source = encoder_source(settings.model or find_encoder())
    # A run's encoder lies in its folder `discriminator`.
    folder = Path(source).parent if Path(source).name == "discriminator" else Path(source)
    encoder = settings.name or folder.name
    if settings.random_weights:
        encoder += ", random weights"
    results = Results(settings.output)
    for name in names:
        _measure(name, encoder, source, settings, results)
    for name in names:
        task = TASKS[name]
        rows = results.of(task=name, encoder=encoder, part="test")
        scores = mean_and_spread([row[task.metric] for row in rows])
        print(f"{name:8} {task.metric:9} {scores}   linear {task.linear:.2f}")


def _measure(
    name: str, encoder: str, source: str, settings: QualitySettings, results: Results
) -> None:
    task = TASKS[name]
    train = task.train()
    key: dict[str, Any] = {"task": name, "encoder": encoder}
    shuffled = random.Random(0).sample(train, settings.dev_train_size + settings.dev_size)
    # A text that occurs twice must not be learnt and asked.
    learnt = {text for text, _ in shuffled[: settings.dev_train_size]}
    dev = [pair for pair in shuffled[settings.dev_train_size :] if pair[0] not in learnt]
    choices = [
        {"epochs": int(epochs), "learning_rate": float(rate)}
        for epochs in settings.epochs.split(",")
        for rate in settings.learning_rates.split(",")
    ]
    for choice in choices if len(choices) > 1 else []:
        if not results.of(**key, **choice, part="dev"):
            score = _score(source, shuffled[: settings.dev_train_size], dev, choice, 0, settings)
            results.add(key | choice | {"part": "dev", "seed": 0} | score)
    best = max(
        choices,
        key=lambda choice: max(
            (row[task.metric] for row in results.of(**key, **choice, part="dev")), default=0.0
        ),
    )
    test = task.test()
    for seed in range(settings.seeds):
        if not results.of(**key, part="test", seed=seed):
            score = _score(source, train, test, best, seed, settings)
            results.add(key | best | {"part": "test", "seed": seed} | score)


def _score(
    source: str,
    train: Examples,
    test: Examples,
    choice: dict[str, Any],
    seed: int,
    settings: QualitySettings,
) -> dict[str, object]:
    # Random weights have nothing that a smaller rate in lower layers would keep.
    decay = 1.0 if settings.random_weights else None
    training = TrainSettings(**choice, seed=seed, layer_decay=decay)
    return fine_tune(source, train, test, training, random_weights=settings.random_weights)


def _rows(path: Path, text: str, label: str) -> list[tuple[str, str]]:
    """All rows, without quoting, as NSMC's files are written; an empty cell stays a text."""
    table = pd.read_csv(path, sep="\t", quoting=3, keep_default_na=False, dtype=str)
    return list(zip(table[text], table[label], strict=True))


def _nsmc(path: Path) -> Examples:
    return [(clean_text(text), label) for text, label in _rows(path, "document", "label")]


def _three_train() -> Examples:
    """180,000 of the rated reviews, as many of each class (부정 1-4, 중립 5-8, 긍정 9-10)."""
    by_label: dict[str, list[str]] = {}
    for text, rating in _rows(REVIEWS, "document", "rating"):
        if cleaned := clean_text(text):
            by_label.setdefault(RATING_LABELS[rating], []).append(cleaned)
    draw = random.Random(0)
    chosen = [
        (text, label) for label in sorted(by_label) for text in draw.sample(by_label[label], 60_000)
    ]
    draw.shuffle(chosen)
    return chosen


def _three_test() -> Examples:
    rows = _rows(NSMC.parent / "sentiment3_test.tsv", "document", "label")
    return [(clean_text(text), label) for text, label in rows]


TASKS = {
    "nsmc": Task(
        train=lambda: _nsmc(NSMC),
        test=lambda: _nsmc(NSMC.parent / "ratings_test.txt"),
        metric="accuracy",
        linear=87.81,
    ),
    "three": Task(train=_three_train, test=_three_test, metric="macro_f1", linear=67.56),
}


if __name__ == "__main__":
    sys.exit(run_command(QualitySettings, main, "Fine-tune on whole files, score test files once."))
