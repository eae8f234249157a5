"""What is known of the models on this machine: how good they were in folds, and which is best.

Legend: K labels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from malmoi.app.intervals import share_interval, wide_enough
from malmoi.errors import InputError
from malmoi.inference.paired_runs import PairedRuns, compare_runs, run_folder
from malmoi.model_folders import LINEAR, is_linear_alone, read_json

_REPORT, _CARD = "report.json", "README.md"
# Longer ones are not of this project.
_MOST_CARD_BYTES = 100_000


@dataclass(frozen=True, kw_only=True)
class LabelScore:
    """How well one label was found; the first three from 0 to 1, and of how many texts."""

    f1: float
    precision: float
    recall: float
    texts: int


@dataclass(frozen=True, kw_only=True)
class FoldReport:
    """What the folds said of a model.

    Attributes:
        f1: macro F1, the mean over the folds, 0 to 1.
        low: where its interval of 95% begins; never narrower than that of a share of
            as many texts (see `malmoi.app.intervals`).
        high: where it ends.
        texts: labelled, of all folds.
        data: hash of the texts; "" where the report has none.
        labels: by their names, in the order of the rows of `confusion`.
        confusion: K rows, the given label, of K numbers of texts, the predicted one; or empty.
    """

    f1: float
    low: float
    high: float
    texts: int
    data: str
    labels: dict[str, LabelScore]
    confusion: tuple[tuple[int, ...], ...]

    @property
    def is_sure(self) -> bool:
        """Whether anything is known of its interval."""
        return (self.low, self.high) != (0.0, 1.0)


def fold_report(model: Path) -> FoldReport | None:
    """The report of a model; None where there is none that can be read."""
    for folder in (model.parent, model):  # a run has its report above, a released model beside
        file = folder / _REPORT
        try:
            found = _read(file, file.stat().st_mtime_ns)
        except OSError:
            continue
        if found is not None:
            return found
    return None


@lru_cache(maxsize=512)
def _read(file: Path, changed: int) -> FoldReport | None:
    report = read_json(file)
    try:
        f1 = float(report["mean_f1"])
        pooled, data = report.get("pooled") or {}, report.get("data") or {}
        low, high = _interval(report, f1, int(data.get("texts", 0)))
        return FoldReport(
            f1=f1,
            low=low,
            high=high,
            texts=int(data.get("texts", 0)),
            data=str(data.get("sha256", "")),
            labels={
                str(name): LabelScore(
                    f1=float(one["f1"]),
                    precision=float(one["precision"]),
                    recall=float(one["recall"]),
                    texts=int(one["support"]),
                )
                for name, one in (pooled.get("labels") or {}).items()
            },
            confusion=tuple(
                tuple(int(number) for number in row) for row in pooled.get("confusion") or ()
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def compared(first: Path, second: Path) -> PairedRuns | None:
    """Two models text by text; None where a run has not kept what it predicted."""
    try:
        folders = [run_folder(str(model)) for model in (first, second)]
        return _compared(*((run, (run / "report.json").stat().st_mtime_ns) for run in folders))
    except (InputError, OSError):
        return None


@lru_cache(maxsize=16)
def _compared(first: tuple[Path, int], second: tuple[Path, int]) -> PairedRuns:
    return compare_runs(first[0], second[0])


def _interval(report: dict[str, Any], f1: float, texts: int) -> tuple[float, float]:
    try:
        low, high = (min(1.0, max(0.0, float(end))) for end in report["interval_95"])
    except (KeyError, TypeError, ValueError):
        return share_interval(f1, texts)
    return wide_enough(low, high, f1, texts)


def labels_of(model: Path) -> list[str]:
    """Labels as the configuration names them, without loading any weights; empty if damaged."""
    try:
        if is_linear_alone(model):
            return list(json.loads((model / LINEAR).read_text(encoding="utf-8"))["labels"])
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
        return list(config["id2label"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        # Loading it will say what is wrong; a list of models need not.
        return []


def card(model: Path) -> str:
    """What is written about a released model, without its head of YAML; "" without any."""
    try:
        text = (model / _CARD).read_bytes()[:_MOST_CARD_BYTES].decode("utf-8", errors="replace")
    except OSError:
        return ""
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2]
    return text.replace("<!-- numbers: begin -->\n", "").replace("<!-- numbers: end -->\n", "")


def same_labels(models: Sequence[Path], labels: Sequence[str]) -> list[Path]:
    """Those of the models that say these labels, in whatever order."""
    return [model for model in models if set(labels_of(model)) == set(labels)]


def best(models: Sequence[Path]) -> Path | None:
    """The model to trust most; None of none.

    By the lower end of the interval of its F1: a high score on a handful of texts may be luck. The
    first of equals, and the first of those that nothing is known of.
    """

    def lower_end(model: Path) -> float:
        report = fold_report(model)
        return -1.0 if report is None else report.low

    return max(models, key=lower_end, default=None)


def better_than(model: Path, models: Sequence[Path]) -> Path | None:
    """The best of the models with the same labels, where it is another one that scored higher."""
    mine = fold_report(model)
    other = best(same_labels(models, labels_of(model)))
    theirs = None if other is None else fold_report(other)
    if mine is None or theirs is None or other == model or theirs.f1 <= mine.f1:
        return None
    return other
