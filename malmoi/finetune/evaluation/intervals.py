"""How far scores on one test may be chance: 95% intervals by drawing its texts again (bootstrap).

Legend: N texts, K labels, B draws.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from malmoi.finetune.evaluation.scores import is_whole, rounded
from malmoi.inference.paired_runs import macro_f1_of_kinds
from malmoi.inference.tasks import Task, has_values

_DRAWS = 1_000
_SEED = 0


def intervals_95(
    task: Task, targets: np.ndarray, predicted: np.ndarray, labels: Sequence[str]
) -> dict[str, list[float]]:
    """The interval of each main score of a task, low and high, by its name in `score_task`.

    What another training would give moves scores, too, and is not in it.

    Args:
        targets: see `malmoi.finetune.data.examples.Examples.targets`.
        predicted: what was decided, in the same shape.
        labels: K names.
    """
    if has_values(task):
        drawn = _of_values(targets.astype(np.float64), predicted.astype(np.float64))
    elif task == "multi":
        drawn = _of_several(targets > 0, predicted > 0)
    else:
        drawn = _of_one(targets, predicted, len(labels))
    return {
        name: [float(value) for value in np.quantile(values, (0.025, 0.975))]
        for name, values in drawn.items()
    }


def _of_one(targets: np.ndarray, predicted: np.ndarray, num_labels: int) -> dict[str, np.ndarray]:
    both = np.stack([targets, predicted], axis=1)
    kinds, counts = np.unique(both, axis=0, return_counts=True)
    draws = np.random.default_rng(_SEED).multinomial(len(both), counts / len(both), size=_DRAWS)
    right = kinds[:, 0] == kinds[:, 1]
    return {
        "macro_f1": macro_f1_of_kinds(draws, kinds, num_labels)[0],
        "accuracy": draws[:, right].sum(axis=1) / len(both),
    }


def _of_several(targets: np.ndarray, predicted: np.ndarray) -> dict[str, np.ndarray]:
    labels = targets.shape[1]
    exact = (targets == predicted).all(axis=1, keepdims=True)
    sums = _drawn_sums(np.hstack([targets & predicted, targets, predicted, exact]))
    both, given, said = (sums[:, start : start + labels] for start in range(0, 3 * labels, labels))
    f1 = 2 * both / np.maximum(given + said, 1)
    return {
        "macro_f1": (f1 * (given > 0)).sum(axis=1) / np.maximum((given > 0).sum(axis=1), 1),
        "micro_f1": 2 * both.sum(axis=1) / np.maximum((given + said).sum(axis=1), 1),
        "accuracy": sums[:, -1] / len(targets),
    }


def _of_values(targets: np.ndarray, predicted: np.ndarray) -> dict[str, np.ndarray]:
    count = len(targets)
    # Ranks of all texts stand for those of each draw.
    one, other = (rankdata(values) / count - 0.5 for values in (targets, predicted))
    right = rounded(predicted, targets) == targets
    columns = [one, other, one * one, other * other, one * other, abs(targets - predicted), right]
    mean = (_drawn_sums(np.stack(columns, axis=1)) / count).T
    spread = (mean[2] - mean[0] ** 2) * (mean[3] - mean[1] ** 2)
    found = {
        "spearman": (mean[4] - mean[0] * mean[1]) / np.sqrt(np.maximum(spread, 1e-12)),
        "mean_absolute_error": mean[5],
    }
    return found | ({"rounded_accuracy": mean[6]} if is_whole(targets) else {})


def _drawn_sums(columns: np.ndarray) -> np.ndarray:
    """Sums over the texts of each draw, float64 [B, columns]; columns [N, columns]."""
    random, count = np.random.default_rng(_SEED), len(columns)
    values = columns.astype(np.float64)
    return np.stack(
        [
            np.bincount(random.integers(count, size=count), minlength=count) @ values
            for _ in range(_DRAWS)
        ]
    )


def with_interval(scores: Mapping[str, Any], intervals: Mapping[str, Sequence[float]]) -> str:
    """The scores that have an interval, for a line: macro F1 0.8123 (0.7901 to 0.8345)."""
    return ", ".join(
        f"{name.replace('_', ' ').replace('f1', 'F1')} {scores[name]:.4f} ({low:.4f} to {high:.4f})"
        for name, (low, high) in intervals.items()
    )
