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
from malmoi.inference.labelling.labels_needed import LABELS_A_ROUND
from malmoi.labels.scores import ScoreVersion

FEWEST_POINTS = 5
# What doubling the labels has to bring, or the curve counts as flat; and what a round of them has
# to bring, or the rest can be left to the model (assumption: a point of F1 is hardly worth either).
_FLAT = 0.01
# Parts of the points that are left out in turn, to see how sure a gain is.
_PARTS = 15
# Times the labels of today, as far as a guess is worth telling.
_FARTHEST = 4


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What to expect at some numbers of labels.

    Attributes:
        labels: Q.
        f1: Q, 0 to 1.
        low: Q, where the interval of 90% begins.
        high: Q, where it ends.
        flat: whether twice the labels of today bring less than a point, as the interval of 90% of
            that gain has it.
        next_gain: what the next round of labels brings.
        enough: labels from which on a round brings less than a point; None: that is far.
    """

    labels: tuple[int, ...]
    f1: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    flat: bool
    next_gain: float
    enough: int | None


def comparable_points(versions: Sequence[ScoreVersion]) -> list[tuple[int, float]]:
    """The points (labels, F1) of a learning curve that can be compared with its last one.

    A label that is new is hard to find at first, and takes the mean of all with it, though nothing
    has become worse: only rounds that knew as many labels count. Of each number of labels it is the
    last; labels that were withdrawn left others behind.

    Args:
        versions: the oldest first.
    """
    kinds = versions[-1].quality.kinds if versions else None
    points = {
        one.quality.labels: one.quality.cross_validated_f1
        for one in versions
        if one.quality.cross_validated_f1 is not None and one.quality.kinds == kinds
    }
    return sorted(points.items())


def forecast(points: Sequence[tuple[int, float]]) -> Forecast | None:
    """Go on with a learning curve, to twice the labels.

    Args:
        points: P of (labels, F1), of rising numbers of labels.

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

    def fit(kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        start = (min(1.0, scores.max() + 0.05), 0.1, 0.5)
        bounds = ([0, 0, 0.1], [1, 1, 2])
        x, y = labels[kept], scores[kept]
        found, covariance = curve_fit(curve, x, y, p0=start, bounds=bounds, maxfev=5_000)
        return found, covariance

    def doubled(found: np.ndarray) -> float:
        today, later = curve(np.array([last, 2 * last]), *found)
        return float(later - today)

    places = np.arange(len(points))
    parts = min(_PARTS, len(points))
    try:
        found, covariance = fit(places >= 0)
        # Delete a part at a time (Shao and Wu 1989, "A general theory for jackknife variance").
        gains = [doubled(fit(places % parts != part)[0]) for part in range(parts)]
    except (RuntimeError, ValueError, TypeError):
        return None
    asked = np.array([round(factor * last) for factor in (1.0, 1.25, 1.5, 2.0)], dtype=np.float64)
    expected = curve(asked, *found)
    noise = float(((scores - curve(labels, *found)) ** 2).sum() / max(1, len(points) - 3))
    spread = _spread(curve, asked, found, covariance, noise)
    most = doubled(found) + TWO_SIDED_90 * float(np.std(gains)) * (parts - 1) ** 0.5
    rounds = np.arange(last, _FARTHEST * last, LABELS_A_ROUND)
    brings = curve(rounds + LABELS_A_ROUND, *found) - curve(rounds, *found)
    enough = np.flatnonzero(brings < _FLAT)
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
        flat=most < _FLAT,
        next_gain=float(brings[0]),
        enough=int(rounds[enough[0]]) if len(enough) else None,
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
