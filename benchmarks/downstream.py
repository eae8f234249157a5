"""What comparisons of encoders share: a pre-training run by flags, and what comes out downstream.

The test file has no place here: reviews to learn from and to score on are both of the training
file.
"""

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.metrics import accuracy_score, f1_score

from corpora.atomic import write_at_once
from corpora.cleaning import clean_text
from corpora.errors import InputError
from corpora.reading import iter_records
from finetune.classifier import Classifier
from finetune.encoders import encoder_source, load_encoder_tokenizer, load_for_classification
from finetune.training import TrainSettings, train_classifier

ROOT = Path(__file__).parents[1]
NSMC = ROOT.parent / "shared" / "data" / "nsmc" / "ratings_train.txt"
REVIEWS = NSMC.parent / "reviews_rated.tsv.gz"
# Three classes from the ratings of REVIEWS, as its sentiment3_test.tsv was made.
RATING_LABELS = (
    dict.fromkeys(("1", "2", "3", "4"), "부정")
    | dict.fromkeys(("5", "6", "7", "8"), "중립")
    | dict.fromkeys(("9", "10"), "긍정")
)


@dataclass(kw_only=True)
class DownstreamSettings:
    """How an encoder is scored."""

    train_size: int = 20_000
    """Reviews to fine-tune on."""
    dev_size: int = 20_000
    """Other reviews to score on."""
    epochs: int = 3
    """Passes over the training reviews."""


@dataclass(kw_only=True)
class PretrainedSettings(DownstreamSettings):
    """How encoders that the comparison trains itself are trained and scored."""

    corpus: Path = REVIEWS
    """Texts to pre-train on, or a folder of runs/cache/tokenized."""


class Results:
    """Measured rows in a JSON file, written after each, so that what is done is never repeated.

    The file is read anew every time: two processes may fill it together, if they measure
    different arms.
    """

    def __init__(self, path: Path, **setting: object) -> None:
        self._path = path
        self._setting = setting

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows so far."""
        if not self._path.is_file():
            return []
        rows: list[dict[str, Any]] = json.loads(self._path.read_text(encoding="utf-8"))["runs"]
        return rows

    def of(self, **key: object) -> list[dict[str, Any]]:
        """The rows that agree with `key`."""
        return [row for row in self.rows if key.items() <= row.items()]

    def add(self, row: dict[str, Any]) -> None:
        """Write and print one more row."""
        everything = {"setting": self._setting, "runs": [*self.rows, row]}
        write_at_once(self._path, json.dumps(everything, ensure_ascii=False, indent=1) + "\n")
        brief = {name: value for name, value in row.items() if name != "final_metrics"}
        print(json.dumps(brief, ensure_ascii=False), flush=True)


def pretrain_once(output: Path, flags: Sequence[object], *, corpus: Path) -> Path:
    """The finished run in `output`, made or gone on with if need be."""
    if (output / "discriminator").is_dir():
        return output
    command = [sys.executable, str(ROOT / "pretrain" / "run.py"), "--corpus", str(corpus)]
    command += [*map(str, flags), "--output", str(output)]
    if (output / "state").is_dir():
        command.append("--resume")
    subprocess.run(command, cwd=ROOT, check=True)
    return output


def read_record(run: Path) -> dict[str, Any]:
    """What the run says of itself."""
    record: dict[str, Any] = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return record


def encoder_name(source: str) -> str:
    """What an encoder is called in results: its run, its released folder or its Hub id."""
    folder = Path(source)
    if not folder.is_dir():
        return source
    # A run's encoder lies in its folder `discriminator`.
    return folder.parent.name if folder.name == "discriminator" else folder.name


def mean_and_spread(scores: Sequence[float]) -> str:
    """`85.16 ± 0.12 (3 seeds)`; the spread is the standard deviation over the seeds."""
    if not scores:
        return "not measured"
    spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return f"{statistics.mean(scores):6.2f} ± {spread:.2f} ({len(scores)} seeds)"


def split_reviews(
    data: Path, train_size: int, dev_size: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Two disjoint random parts; a text that occurs twice stays on one side."""
    seen: dict[str, str] = {}
    for record in iter_records(data, need_label=True):
        text = clean_text(record.text)
        if text and record.label is not None:
            seen.setdefault(text, record.label)
    examples = sorted(seen.items())
    random.Random(0).shuffle(examples)
    wanted = train_size + dev_size
    if len(examples) < wanted:
        raise InputError(f"expected {wanted:,} labelled texts, found {len(examples):,}")
    return examples[:train_size], examples[train_size:wanted]


def fine_tune(
    directory: str | Path,
    train: list[tuple[str, str]],
    dev: list[tuple[str, str]],
    settings: TrainSettings,
    *,
    random_weights: bool = False,
) -> dict[str, object]:
    """Fine-tune a pre-training run on (text, label) pairs and score it on others, in percent."""
    labels = sorted({label for _, label in train})
    source = encoder_source(directory)
    tokenizer = load_encoder_tokenizer(source)
    model = load_for_classification(
        source,
        labels,
        dropout=settings.dropout,
        seed=settings.seed,
        random_weights=random_weights,
        tokenizer=tokenizer,
    )
    started = time.perf_counter()
    train_classifier(
        model,
        tokenizer,
        [text for text, _ in train],
        [labels.index(label) for _, label in train],
        settings,
    )
    seconds = time.perf_counter() - started
    predictions = Classifier(model, tokenizer, source).predict([text for text, _ in dev])
    expected = [label for _, label in dev]
    found = [prediction.label for prediction in predictions]
    return {
        "accuracy": 100 * accuracy_score(expected, found),
        "macro_f1": 100 * f1_score(expected, found, average="macro"),
        "seconds": round(seconds, 1),
    }
