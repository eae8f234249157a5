"""Encoder and linear model together may score lower than one of them, which is said."""

from types import SimpleNamespace
from typing import Any

import pytest

from finetune.training.linear_folds import Added


@pytest.mark.parametrize(
    ("encoder", "linear", "both", "expected"),
    [
        ([0.5, 0.6], [0.3, 0.3], [0.4, 0.5], "linear.enabled=false"),
        ([0.5, 0.4], [0.3, 0.3], [0.4, 0.5], ""),
        ([0.3, 0.3], [0.5, 0.6], [0.4, 0.5], "--quick"),
        ([0.4, 0.5], [0.4, 0.5], [0.4, 0.5], ""),
    ],
)
def test_only_what_each_fold_says_is_said(
    encoder: list[float], linear: list[float], both: list[float], expected: str
) -> None:
    parts: Any = [SimpleNamespace(fold_scores=one) for one in (encoder, linear, both)]
    unused: Any = None
    added = Added(encoder=parts[0], linear=parts[1], both=parts[2], stack=unused, part=None)
    said = added.better_alone()
    assert expected in said and bool(said) == bool(expected)
