"""Long texts: is it better to read them in windows than to cut them?

    python -m lab.benchmarks.quality.long_texts --data FOLDER

An encoder is fine-tuned on the beginnings of petitions, as k-fold does it, to tell their category;
held-out petitions are then cut or read in windows by the same classifier. Runs that are there are
kept.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from lab.benchmarks.data import PETITIONS, DataSettings
from lab.benchmarks.quality.downstream import Results, mean_and_spread
from lab.benchmarks.quality.fitting import fit_encoder, percent
from lab.benchmarks.quality.tasks import Rows
from malmoi.command_line import run_command
from malmoi.devices import choose_device
from malmoi.finetune.evaluation.scores import score_task
from malmoi.finetune.settings import TrainSettings
from malmoi.inference.batching import tokenize_all
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records

RESULTS = Path(__file__).parents[1] / "results" / "long_texts.json"
# Says nothing about what a petition is about.
_OTHER = "기타"


@dataclass(kw_only=True)
class LongTextSettings(DataSettings):
    """What to train, and how often."""

    model: str = "malmoi-small"
    """Encoder to begin with."""
    labels: int = 4
    """The most frequent categories are taken, "other" left out."""
    learn: int = 800
    """Petitions that are learnt."""
    test: int = 400
    """Petitions that are held out."""
    epochs: int = 3
    """Passes over the petitions that are learnt."""
    seeds: int = 3
    """Trainings, each with another split."""
    threads: int = 1
    """Threads that compute."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: LongTextSettings) -> None:
    """Train, and score each way of reading; print and write the table."""
    torch.set_num_threads(settings.threads)
    rows, labels = petitions(settings.folder, settings.labels)
    results = Results(
        settings.output,
        model=settings.model,
        epochs=settings.epochs,
        labels=labels,
        learnt=settings.learn,
        held_out=settings.test,
    )
    for seed in range(settings.seeds):
        if not results.of(seed=seed):
            results.add(_measured(settings, rows, labels, seed))
    for way in ("cut", "windows"):
        print(f"{way:8}{mean_and_spread([run[way]['macro_f1'] for run in results.rows])}")


def petitions(folder: Path, count: int) -> tuple[Rows, list[str]]:
    """Clean petitions of the most frequent categories, each text once, and those categories."""
    found = [
        (clean_text(record.text), record.label)
        for file in PETITIONS.values()
        for record in iter_records(
            file.find(folder), text_column="content", label_column="category"
        )
    ]
    often = Counter(label for _, label in found if label and label != _OTHER)
    labels = [label for label, _ in often.most_common(count)]
    unique = {text: label for text, label in found if text and label in labels}
    targets = np.array([labels.index(label) for label in unique.values()], dtype=np.int64)
    return Rows(texts=list(unique), targets=targets), labels


def _measured(
    settings: LongTextSettings, rows: Rows, labels: list[str], seed: int
) -> dict[str, Any]:
    """Scores in percent of both ways of reading, by one training."""
    learnt, held_out = train_test_split(
        np.arange(len(rows.texts)),
        train_size=settings.learn,
        test_size=settings.test,
        stratify=rows.targets,
        random_state=seed,
    )
    fitted = fit_encoder(
        settings.model,
        rows.at(np.sort(learnt)),
        TrainSettings(epochs=settings.epochs),
        task="single",
        labels=labels,
        seed=seed,
    )
    test = rows.at(held_out)
    tokens = tokenize_all(fitted.tokenizer, test.texts, fitted.max_length)
    windows = round(len(tokens.lengths) / tokens.texts, 2)
    scores: dict[str, Any] = {"seed": seed, "windows_per_text": windows}
    device, places = choose_device(), np.arange(tokens.texts)
    for way, read in (("cut", tokens.beginnings()), ("windows", tokens)):
        found = predict_probabilities(
            fitted.model, DeviceTokens(read, device), places, "single", device
        )
        scores[way] = percent(score_task("single", test.targets, found, labels))
    return scores


if __name__ == "__main__":
    sys.exit(run_command(LongTextSettings, main, "Compare cutting long texts with windows."))
