"""The learning curve and what is expected of more labels."""

from datetime import UTC, datetime

import numpy as np
import pytest

from malmoi.app.intervals import share_interval
from malmoi.app.learning.forecast import comparable_points, forecast
from malmoi.labels.scores import ModelQuality, ScoreVersion


def curve(number: float, top: float = 0.9) -> float:
    return top - 1.5 * number**-0.5


def test_a_power_law_is_gone_on_with() -> None:
    found = forecast([(n, curve(n)) for n in range(20, 220, 20)])
    assert found is not None
    assert found.labels == (200, 250, 300, 400)
    for labels, f1, low, high in zip(found.labels, found.f1, found.low, found.high, strict=True):
        assert f1 == pytest.approx(curve(labels), abs=0.01)
        assert low <= f1 <= high
    assert not found.flat


def test_the_interval_holds_what_comes_and_is_wider_with_noise() -> None:
    draw = np.random.default_rng(0)
    inside = widths = 0.0
    rounds = 200
    for _ in range(rounds):
        points = [(n, curve(n) + draw.normal(0, 0.02)) for n in range(20, 320, 20)]
        found = forecast(points)
        assert found is not None
        inside += found.low[2] <= curve(found.labels[2]) + draw.normal(0, 0.02) <= found.high[2]
        widths += found.high[2] - found.low[2]
    assert 0.8 <= inside / rounds <= 0.98
    assert widths / rounds > 0.06


def test_a_flat_curve_is_called_flat() -> None:
    found = forecast([(n, 0.8) for n in range(100, 800, 100)])
    assert found is not None
    assert found.flat
    assert found.f1[-1] == pytest.approx(0.8, abs=0.02)


def test_a_gain_that_nobody_can_be_sure_of_is_not_called_flat() -> None:
    """Of curves on which twice the labels bring 3 to 6 points, read off noisily."""
    draw, flat, gains = np.random.default_rng(1), 0, []
    for _ in range(100):
        points = [(n, curve(n) + draw.normal(0, 0.02)) for n in range(20, 160, 20)]
        found = forecast(points)
        assert found is not None
        flat += found.flat
        gains.append(found.next_gain)
    assert flat <= 5
    assert np.median(gains) == pytest.approx(curve(160) - curve(140), abs=0.004)


def test_a_new_label_is_no_harm() -> None:
    """Scores of fewer labels are not gone on with."""

    def version(labels: int, f1: float, kinds: int) -> ScoreVersion:
        quality = ModelQuality(labels=labels, cross_validated_f1=f1, kinds=kinds)
        return ScoreVersion(
            version=labels, model="m", created_at=datetime.now(UTC), quality=quality
        )

    before = [version(n, curve(n), 2) for n in range(20, 120, 20)]
    assert comparable_points([*before, version(120, 0.5, 3), version(140, 0.6, 3)]) == [
        (120, 0.5),
        (140, 0.6),
    ]


def test_too_little_gives_no_forecast() -> None:
    for points in (
        [],
        [(20, 0.3), (40, 0.4), (60, 0.5), (80, 0.55)],
        # Five points of nearly as many labels say nothing of many more.
        [(1_000 + n, 0.8) for n in range(5)],
    ):
        assert forecast(points) is None


def test_an_interval_has_a_width_whatever_the_score() -> None:
    """Of a model that says one label of all texts, as of one that has been right so far."""
    found = forecast([(n, 1 / 3) for n in range(100, 600, 100)])
    assert found is not None
    assert all(high - low > 0.04 for low, high in zip(found.low, found.high, strict=True))
    # Nor is hardly any noise a certainty: what is told does not jump with it.
    points = [(n, 1 / 3 + 0.0011 * (-1) ** (n // 100)) for n in range(100, 900, 100)]
    nearly = forecast(points)
    assert nearly is not None
    assert all(high - low > 0.03 for low, high in zip(nearly.low, nearly.high, strict=True))
    for share in (0.0, 0.5, 1.0):
        low, high = share_interval(share, 30)
        assert low <= share <= high and high - low > 0.1
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    assert share_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert share_interval(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert share_interval(0.5, 400)[1] < share_interval(0.5, 100)[1]
    assert share_interval(1.0, 0) == (0.0, 1.0)
