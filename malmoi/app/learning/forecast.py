"""How good a model would be with more labels: a power law through the points so far.

Learning curves follow F1(n) = a - b n^-c over much of their length (Hestness et al. 2017, "Deep
learning scaling is predictable, empirically", https://arxiv.org/abs/1712.00409; for active learning
and few texts it is a guess, and its interval says how good a one).

Legend: P points, Q numbers of labels asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from malmoi.app.intervals import TWO_SIDED_90, wide_enough

FEWEST_POINTS = 5
# What doubling the labels has to bring, or the curve counts as flat (assumption: a point of F1 is
# hardly worth labelling as many texts again).
_FLAT = 0.01


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What to expect at some numbers of labels.

    Attributes:
        labels: Q.
        f1: Q, 0 to 1.
        low: Q, where the interval of 90% begins.
        high: Q, where it ends.
        flat: whether twice the labels of today bring less than a point.
    """

    labels: tuple[int, ...]
    f1: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    flat: bool


def forecast(
    points: Sequence[tuple[int, float]], factors: Sequence[float] = (1.0, 1.25, 1.5, 2.0)
) -> Forecast | None:
    """Go on with a learning curve.

    Args:
        points: P of (labels, F1), of rising numbers of labels.
        factors: of the labels of the last point, Q.

    Returns:
        None with fewer than `FEWEST_POINTS`, with labels that differ by less than half, or where no
        curve can be fitted.
    """
    if len(points) < FEWEST_POINTS or points[-1][0] < 1.5 * points[0][0]:
        return None
    from scipy.optimize import curve_fit

    labels = np.array([number for number, _ in points], dtype=np.float64)
    scores = np.array([f1 for _, f1 in points], dtype=np.float64)
    last = labels[-1]

    def curve(number: np.ndarray, top: float, gap: float, power: float) -> np.ndarray:
        # By shares of the last number, so that the three do not depend on its size.
        return np.asarray(top - gap * (number / last) ** -power)

    start = (min(1.0, scores.max() + 0.05), 0.1, 0.5)
    try:
        found, covariance = curve_fit(
            curve, labels, scores, p0=start, bounds=([0, 0, 0.1], [1, 1, 2]), maxfev=5_000
        )
    except (RuntimeError, ValueError):
        return None
    asked = np.array([round(factor * last) for factor in factors], dtype=np.float64)
    expected = curve(asked, *found)
    noise = float(((scores - curve(labels, *found)) ** 2).sum() / max(1, len(points) - 3))
    spread = _spread(curve, asked, found, covariance, noise)
    today, doubled = curve(np.array([last, 2 * last]), *found)
    # A score on so many labelled texts is at least as unsure as a share of them.
    low, high = np.transpose(
        [
            wide_enough(f1 - half, f1 + half, f1, int(number), TWO_SIDED_90)
            for f1, half, number in zip(
                _as_shares(expected), TWO_SIDED_90 * spread, asked, strict=True
            )
        ]
    )
    return Forecast(
        labels=tuple(int(number) for number in asked),
        f1=_as_shares(expected),
        low=_as_shares(low),
        high=_as_shares(high),
        flat=bool(doubled - today < _FLAT),
    )


def _spread(
    curve: object, asked: np.ndarray, found: np.ndarray, covariance: np.ndarray, noise: float
) -> np.ndarray:
    """Standard deviation of a new point, of the curve's (delta method) and of one round; [Q]."""
    assert callable(curve)
    slopes = []
    for place in range(len(found)):
        step = np.zeros(len(found))
        step[place] = 1e-5
        slopes.append((curve(asked, *(found + step)) - curve(asked, *(found - step))) / 2e-5)
    jacobian = np.stack(slopes, axis=1)
    if not np.isfinite(covariance).all():
        return np.full(len(asked), np.inf)
    variance = np.einsum("qi,ij,qj->q", jacobian, covariance, jacobian)
    return np.sqrt(np.maximum(variance, 0) + noise)


def _as_shares(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in np.clip(values, 0, 1))
