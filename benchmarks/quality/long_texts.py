"""Long texts: is it better to read them in windows than to cut them?

    python -m benchmarks.quality.long_texts --data FOLDER

An encoder is fine-tuned on the beginnings of petitions, as k-fold does it, to tell their category;
held-out petitions are then cut or read in windows by the same classifier. A third way learns from
two random windows of each text in half as many epochs. Runs that are there are kept.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
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
from malmoi.inference.batching import TokenizedTexts, offsets_of, tokenize_all
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.model_loading import longest_input
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records

RESULTS = Path(__file__).parents[1] / "results" / "long_texts.json"
# Says nothing about what a petition is about.
_OTHER = "기타"
_WINDOWS_LEARNT = 2


@dataclass(kw_only=True)
class LongTextSettings(DataSettings):
    """What to train, and how often."""

    model: str = "malmoi-small"
    """Encoder to begin with."""
    labels: int = 6
    """The most frequent categories are taken, "other" left out."""
    test: int = 800
    """Petitions that are held out; the others are learnt."""
    epochs: int = 4
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
            "learnt": len(texts) - settings.test,
            "held_out": settings.test,
            "runs": runs,
        }
        write_at_once(settings.output, json.dumps(values, ensure_ascii=False, indent=1))
    for way in [name for name in runs[0] if isinstance(runs[0][name], dict)]:
        scores = [run[way]["macro_f1"] for run in runs]
        print(f"{way:32}{np.mean(scores):6.1f} ± {np.std(scores, ddof=1):.1f}")


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
        np.arange(len(texts)), test_size=settings.test, stratify=targets, random_state=seed
    )
    tokenizer = load_encoder_tokenizer(settings.model)
    shape = load_for_classification(settings.model, labels)
    plan = plan_training(
        TrainSettings(epochs=settings.epochs),
        hidden_size=hidden_size(shape),
        longest_input=longest_input(shape, tokenizer),
    )
    tokens = tokenize_all(tokenizer, texts, plan.max_length)
    scores: dict[str, Any] = {
        "seed": seed,
        "windows_per_text": round(float(tokens.rows_of(test)[0].size / len(test)), 2),
    }
    draw = np.random.default_rng(seed)
    drawn = _drawn(tokens, learnt, draw)
    ways = {
        "beginnings": (
            plan,
            learnt,
            TrainingData(
                task="single", labels=labels, tokens=tokens, targets=targets, strata=targets
            ),
        ),
        "two random windows": (
            replace(plan, epochs=plan.epochs // _WINDOWS_LEARNT),
            np.arange(len(learnt) * _WINDOWS_LEARNT),
            TrainingData(
                task="single",
                labels=labels,
                tokens=drawn,
                targets=np.repeat(targets[learnt], _WINDOWS_LEARNT),
                strata=np.repeat(targets[learnt], _WINDOWS_LEARNT),
            ),
        ),
    }
    for learns, (how, places, data) in ways.items():
        model = load_for_classification(settings.model, labels, seed=seed)
        train(model, data, places, how, seed=seed)
        device = choose_device()
        for reads, read in (("cut", tokens.beginnings()), ("windows", tokens)):
            on_device = DeviceTokens(read, device)
            found = predict_probabilities(model.to(device), on_device, test, "single", device)
            scores[f"learns {learns}, reads {reads}"] = percent(
                score_task("single", targets[test], found, labels, None)
            )
    return scores


def _drawn(tokens: TokenizedTexts, places: np.ndarray, draw: np.random.Generator) -> TokenizedTexts:
    """Windows of the texts at `places`, drawn at random, as short texts: some of each in turn."""
    rows, text = tokens.rows_of(places)
    first = np.searchsorted(text, np.arange(len(places)))
    counts = np.bincount(text, minlength=len(places))
    chosen = rows[
        (first[:, None] + draw.integers(0, counts[:, None], (len(places), _WINDOWS_LEARNT))).ravel()
    ]
    begin, end = tokens.offsets[chosen], tokens.offsets[chosen + 1]
    return replace(
        tokens,
        flat=np.concatenate([tokens.flat[b:e] for b, e in zip(begin, end, strict=True)]),
        offsets=offsets_of(end - begin),
        was_cut=np.zeros(len(chosen), dtype=bool),
        windows=None,
    )


if __name__ == "__main__":
    sys.exit(run_command(LongTextSettings, main, "Compare cutting long texts with windows."))
