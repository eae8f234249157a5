"""Long texts: is it better to read them in windows than to cut them?

    python -m benchmarks.quality.long_texts --data FOLDER

An encoder is fine-tuned on the beginnings of petitions, as k-fold does it, to tell their category;
held-out petitions are then cut or read in windows by the same classifier. Runs that are there are
kept.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from benchmarks.data import PETITIONS, DataSettings
from benchmarks.quality.fitting import percent
from finetune.evaluation.scores import score_task
from finetune.plan import plan_training
from finetune.settings import TrainSettings
from finetune.training.encoders import load_encoder_tokenizer, load_for_classification
from finetune.training.fit import TrainingData, hidden_size, train
from malmoi.command_line import run_command
from malmoi.devices import choose_device
from malmoi.files import write_at_once
from malmoi.inference.batching import tokenize_all
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.model_loading import longest_input
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
    texts, targets, labels = petitions(settings.folder, settings.labels)
    found = json.loads(settings.output.read_text()) if settings.output.is_file() else {}
    runs: list[dict[str, Any]] = found.get("runs", [])
    for seed in range(len(runs), settings.seeds):
        runs.append(_measured(settings, texts, targets, labels, seed))
        print(runs[-1], flush=True)
        values = {
            "command": "python -m benchmarks.quality.long_texts",
            "model": settings.model,
            "epochs": settings.epochs,
            "labels": labels,
            "learnt": settings.learn,
            "held_out": settings.test,
            "runs": runs,
        }
        write_at_once(settings.output, json.dumps(values, ensure_ascii=False, indent=1))
    for way in ("cut", "windows"):
        scores = [run[way]["macro_f1"] for run in runs]
        print(f"{way:8}{np.mean(scores):6.1f} ± {np.std(scores, ddof=1):.1f}")


def petitions(folder: Path, count: int) -> tuple[list[str], np.ndarray, list[str]]:
    """Clean petitions of the most frequent categories: texts, places of the labels, labels."""
    rows = [
        (clean_text(record.text), record.label)
        for file in PETITIONS.values()
        for record in iter_records(
            file.find(folder), text_column="content", label_column="category"
        )
    ]
    often = Counter(label for _, label in rows if label and label != _OTHER)
    labels = [label for label, _ in often.most_common(count)]
    unique = {text: label for text, label in rows if text and label in labels}
    targets = np.array([labels.index(label) for label in unique.values()], dtype=np.int64)
    return list(unique), targets, labels


def _measured(
    settings: LongTextSettings,
    texts: list[str],
    targets: np.ndarray,
    labels: list[str],
    seed: int,
) -> dict[str, Any]:
    learnt, test = train_test_split(
        np.arange(len(texts)),
        train_size=settings.learn,
        test_size=settings.test,
        stratify=targets,
        random_state=seed,
    )
    tokenizer = load_encoder_tokenizer(settings.model)
    shape = load_for_classification(settings.model, labels)
    plan = plan_training(
        TrainSettings(epochs=settings.epochs),
        hidden_size=hidden_size(shape),
        longest_input=longest_input(shape, tokenizer),
    )
    tokens = tokenize_all(tokenizer, texts, plan.max_length)
    data = TrainingData(
        task="single", labels=labels, tokens=tokens, targets=targets, strata=targets
    )
    model = load_for_classification(settings.model, labels, seed=seed)
    train(model, data, np.sort(learnt), plan, seed=seed)
    device = choose_device()
    rows, _ = tokens.rows_of(test)
    scores: dict[str, Any] = {"seed": seed, "windows_per_text": round(len(rows) / len(test), 2)}
    for way, read in (("cut", tokens.beginnings()), ("windows", tokens)):
        found = predict_probabilities(model, DeviceTokens(read, device), test, "single", device)
        scores[way] = percent(score_task("single", targets[test], found, labels, None))
    return scores


if __name__ == "__main__":
    sys.exit(run_command(LongTextSettings, main, "Compare cutting long texts with windows."))
