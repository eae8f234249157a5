"""What comparisons of encoders share: a pre-training run by flags, and what comes out downstream.

The test file has no place here: reviews to learn from and to score on are both of the training
file. Nine tenths of their texts, without labels, are in the file of rated reviews too, from which
the comparisons pre-train, as text of the domain is at hand in practice; what that is worth is in
lab/log.
"""

import json
import math
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from lab.benchmarks.data import RATED_REVIEWS, DataSettings
from malmoi.errors import InputError
from malmoi.files import file_sha256, write_at_once
from malmoi.flags import parse_flags
from malmoi.labels.tasks import read_task
from malmoi.pretrain.config.run_config import read_config
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.settings import shown

if TYPE_CHECKING:
    from malmoi.finetune.settings import TrainSettings

# What takes seconds to import is imported where it is used, so that `--help` is answered at once.

ROOT = Path(__file__).parents[3]
# Flags of pretrain/run.py that change nothing of what a run learns.
_OF_NO_EFFECT = {"device", "execution.save_steps", "execution.log_steps"}
# Three classes from the ratings of RATED_REVIEWS, as sentiment3_test.tsv was made.
RATING_LABELS = {
    str(rating): label.name
    for label in read_task(ROOT / "corpora" / "reviews").labels
    if label.ratings is not None
    for rating in range(label.ratings[0], label.ratings[1] + 1)
}


@dataclass(kw_only=True)
class DownstreamSettings(DataSettings):
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

    corpus: Path | None = None
    """Texts to pre-train on, or a folder of runs/cache/tokenized; by default the rated reviews."""

    def find_corpus(self) -> Path:
        """The texts to pre-train on.

        Raises:
            InputError: they are not there.
        """
        if self.corpus is None:
            return RATED_REVIEWS.find(self.folder)
        if not self.corpus.exists():
            raise InputError(f"expected --corpus of texts, found no {self.corpus}; name another")
        return self.corpus


class Results:
    """Measured rows in a JSON file, written after each, so that what is done is never repeated.

    The file is read anew every time: two processes may fill it together, if they measure
    different arms.

    Args:
        setting: what all rows have in common. None is the default, so that a file from before a
            setting existed counts as made with it.

    Raises:
        InputError: the file has rows of another setting, which must not stand in for ours.
    """

    def __init__(self, path: Path, **setting: object) -> None:
        self._path = path
        before = self._read().get("setting", {})
        self._setting = before | setting
        for name, value in setting.items():
            if self.rows and before.get(name) != value:
                raise InputError(
                    f"expected results with {name} {value} in {path}, found some with "
                    f"{before.get(name)}; name another file of results"
                )

    def _read(self) -> dict[str, Any]:
        if not self._path.is_file():
            return {"runs": []}
        try:
            everything: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(
                f"{self._path}: expected results as JSON, found damage ({error}); restore it from "
                "git, or name another by --output"
            ) from error
        if not isinstance(everything, dict) or not isinstance(everything.get("runs"), list):
            raise InputError(
                f"{self._path}: expected results with their runs, found none; restore it from git, "
                "or name another by --output"
            )
        return everything

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows so far."""
        rows: list[dict[str, Any]] = self._read()["runs"]
        return rows

    def of(self, **key: object) -> list[dict[str, Any]]:
        """The rows that agree with `key`."""
        return [row for row in self.rows if key.items() <= row.items()]

    def add(self, row: dict[str, Any]) -> None:
        """Write and print one more row, with what computed it: CPUs differ in number format."""
        import torch

        from malmoi.devices import choose_device, prefers_bf16

        row = row | {
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "bf16": prefers_bf16(choose_device()),
        }
        with FileLock(f"{self._path}.lock"):  # a row of another process between must not be lost
            everything = {"setting": self._setting, "runs": [*self.rows, row]}
            write_at_once(self._path, json.dumps(everything, ensure_ascii=False, indent=1) + "\n")
        brief = {name: value for name, value in row.items() if name != "final_metrics"}
        print(json.dumps(brief, ensure_ascii=False), flush=True)


def numbers_of(flag: str, text: str) -> list[float]:
    """What a flag of comma-separated numbers says.

    Raises:
        InputError: one of them is none, infinite or negative.
    """
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError as error:
        raise InputError(f"expected --{flag} of comma-separated numbers, found {text}") from error
    if not all(0 <= number < math.inf for number in numbers):
        raise InputError(f"expected --{flag} of finite numbers from 0 on, found {text}")
    return numbers


def runs_of(results: Path) -> Path:
    """Where the pre-training runs behind a file of results lie: another file, other runs."""
    return ROOT / "runs" / "benchmarks" / results.stem


def pretrain_once(output: Path, flags: Sequence[object], *, corpus: Path) -> Path:
    """The finished run in `output`, made or gone on with if need be.

    Raises:
        InputError: the run there was made by other flags, or was stopped before its end.
        SystemExit: it failed, and has said why.
    """
    arguments = ["--corpus", str(corpus), *map(str, flags), "--output", str(output)]
    record = _record_so_far(output)
    if record:
        _check_same_run(output, arguments, record.get("given", {}))
    if record.get("status") == "finished":
        return output
    if any((output / "state").glob("step-*")):
        arguments.append("--resume")
    command = [sys.executable, str(ROOT / "pretrain" / "run.py"), *arguments]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code not in (0, 128 + signal.SIGINT, 128 + signal.SIGTERM):
        raise SystemExit(code)
    # Signals end a run in good order, with its weights unfinished.
    if _record_so_far(output).get("status") != "finished":
        raise InputError(
            f"expected a finished run in {output}, found it stopped; the same command goes on"
        )
    return output


def _record_so_far(output: Path) -> dict[str, Any]:
    return read_record(output) if (output / "run.json").is_file() else {}


def _check_same_run(output: Path, arguments: list[str], made: dict[str, Any]) -> None:
    settings = parse_flags(PretrainSettings, program=None, about="", arguments=arguments)
    given = read_config(settings).as_json()
    for name in sorted(given.keys() | made.keys()):
        value, found = given.get(name), made.get(name)
        if name == "init" and value and found:  # a run of ours, or a word; checkouts move
            value, found = Path(value).name, Path(found).name
        if name in _OF_NO_EFFECT or found == value:
            continue
        raise InputError(
            f"expected the run in {output} with {shown(name, value)}, found {shown(name, found)}; "
            "move it away, or name another file of results by --output"
        )


def vocabulary_flags(corpus: Path, tokenizer: Path | None) -> list[object]:
    """Flags of pretrain/run.py: this tokenizer, or one of 16,000 entries, as in the first runs."""
    from malmoi.pretrain.data.tokenized import is_tokenized

    if tokenizer is not None:
        return ["--tokenizer", tokenizer]
    return [] if is_tokenized(corpus) else ["--vocab-size", 16_000]


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


def identity_of(source: str | Path, *, random_weights: bool = False) -> dict[str, str]:
    """What rows of an encoder, or of random weights in its shape, are told by beside its name.

    Another encoder, put into the same folder later, must not come into the same mean. Nothing for
    an encoder of the Hub.
    """
    if random_weights:
        from malmoi.finetune.training.encoders import shape_of

        return {"shape": shape_of(source)}
    weights = Path(source) / "model.safetensors"
    return {"weights_sha256": file_sha256(weights)} if weights.is_file() else {}


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
    from malmoi.text.cleaning.cleaner import clean_text
    from malmoi.text.reading.records import iter_records

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
    settings: "TrainSettings",
    *,
    seed: int = 42,
    random_weights: bool = False,
) -> dict[str, object]:
    """Fine-tune a pre-training run on (text, label) pairs and score it on others, in percent."""
    from sklearn.metrics import accuracy_score, f1_score

    from malmoi.finetune.training.encoders import load_encoder_tokenizer, load_for_classification
    from malmoi.finetune.training.fit import train_classifier
    from malmoi.inference.classifier import Classifier
    from malmoi.inference.engine_choice import open_stock
    from malmoi.inference.stock import described
    from malmoi.model_folders import encoder_source

    labels = sorted({label for _, label in train})
    source = encoder_source(directory)
    tokenizer = load_encoder_tokenizer(source)
    model = load_for_classification(
        source,
        labels,
        dropout=settings.dropout,
        seed=seed,
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
        seed=seed,
    )
    seconds = time.perf_counter() - started
    opened = open_stock(described(model, tokenizer, source))
    predictions = Classifier(opened, source).predict([text for text, _ in dev])
    expected = [label for _, label in dev]
    found = [prediction.label for prediction in predictions]
    return {
        "accuracy": 100 * accuracy_score(expected, found),
        "macro_f1": 100 * f1_score(expected, found, average="macro"),
        "seconds": round(seconds, 1),
    }
