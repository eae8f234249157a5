"""What one way to classify reached and costs, and the table in which all of them stand."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from malmoi.finetune.evaluation.scores import macro_f1

# Stands for an answer that is no label (an LLM's): wrong whatever was expected.
NO_LABEL = -1

_LATENCY_TEXTS = 50


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What one way to classify reached in the folds that all share.

    Attributes:
        name: for the table.
        predictions: label id of each of N texts by what did not train on it; `NO_LABEL` for an
            answer that is none; None where nothing was asked or came back.
        fold_f1: macro F1 of each fold that has predictions
            (`malmoi.finetune.evaluation.scores.macro_f1`).
        train_seconds: all folds together.
        latency_ms: median milliseconds for one text on its own; None if not measured.
        won_per_text: what an endpoint charged for a text; 0 for what runs on this machine.
    """

    name: str
    predictions: list[int | None]
    fold_f1: list[float]
    train_seconds: float
    latency_ms: float | None
    won_per_text: float = 0.0

    @property
    def mean_f1(self) -> float:
        return float(np.mean(self.fold_f1))

    @property
    def sd_f1(self) -> float | None:
        """Standard deviation of `fold_f1` as a sample (n - 1); None for a single number."""
        return float(np.std(self.fold_f1, ddof=1)) if len(self.fold_f1) > 1 else None

    @property
    def texts(self) -> int:
        """How many texts have a prediction."""
        return sum(prediction is not None for prediction in self.predictions)

    def summary(self) -> dict[str, Any]:
        """The row of the table, ready for JSON: all but the predictions."""
        return {
            "name": self.name,
            "mean_f1": self.mean_f1,
            "sd_f1": self.sd_f1,
            "fold_f1": self.fold_f1,
            "texts": self.texts,
            "train_seconds": self.train_seconds,
            "latency_ms": self.latency_ms,
            "won_per_text": self.won_per_text,
        }


def fold_f1(
    expected: Sequence[int],
    predicted: Sequence[int | None],
    fold_of: Sequence[int],
    num_labels: int,
) -> list[float]:
    """Macro F1 of each fold over the texts that have a prediction (not None).

    As the encoder's folds are scored; a fold without any prediction is left out.
    """
    scores = []
    for fold in sorted(set(fold_of)):
        asked = [
            (label, said)
            for label, said, place in zip(expected, predicted, fold_of, strict=True)
            if place == fold and said is not None
        ]
        if asked:
            labels, found = zip(*asked, strict=True)
            scores.append(macro_f1(labels, found, num_labels))
    return scores


def median_latency_ms(predict: Callable[[list[str]], object], texts: Sequence[str]) -> float:
    """Median milliseconds of `predict([text])` over the first 50 texts, after one to warm up."""
    predict([texts[0]])
    taken = []
    for text in texts[:_LATENCY_TEXTS]:
        started = time.perf_counter()
        predict([text])
        taken.append(time.perf_counter() - started)
    return float(np.median(taken)) * 1000


def comparison_table(baselines: Sequence[Baseline]) -> str:
    """All results under each other, for a terminal.

    F1 is a fraction, latency in milliseconds for one text, the price in won for one text.
    """
    rows = [("", "macro F1", "ms a text", "won a text")]
    for one in baselines:
        total = len(one.predictions)
        sample = "" if one.texts == total else f" ({one.texts:,} of {total:,} texts)"
        spread = " " * 9 if one.sd_f1 is None else f" ± {one.sd_f1:.4f}"
        latency = "–"
        if one.latency_ms is not None:
            latency = f"{one.latency_ms:,.{2 if one.latency_ms < 100 else 0}f}"
        f1 = f"{one.mean_f1:.4f}{spread}"
        rows.append((one.name + sample, f1, latency, f"{one.won_per_text:,.2f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [name.ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        )
        for name, *numbers in rows
    )
