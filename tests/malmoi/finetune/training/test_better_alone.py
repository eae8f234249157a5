"""Encoder and linear model together may score lower than one of them, which is said."""

from types import SimpleNamespace
from typing import Any

from malmoi.finetune.training.linear_folds import Added


def test_only_what_each_fold_says_is_said() -> None:
    for encoder, linear, both, expected in (
        ([0.5, 0.6], [0.3, 0.3], [0.4, 0.5], "linear.enabled=false"),
        ([0.5, 0.4], [0.3, 0.3], [0.4, 0.5], ""),
        ([0.3, 0.3], [0.5, 0.6], [0.4, 0.5], "--quick"),
        ([0.4, 0.5], [0.4, 0.5], [0.4, 0.5], ""),
    ):
        parts: Any = [SimpleNamespace(fold_scores=one) for one in (encoder, linear, both)]
        unused: Any = None
        added = Added(encoder=parts[0], linear=parts[1], both=parts[2], stack=unused, part=None)
        said = added.better_alone()
        assert expected in said and bool(said) == bool(expected)
