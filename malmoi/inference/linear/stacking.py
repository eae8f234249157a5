"""How much each part of a classifier counts: learnt from what each says of texts new to it.

Stacked generalisation (Wolpert 1992) with one weight a part, none below 0 (Breiman 1996, "Stacked
regressions"): the sum of weighted logits has the smallest negative log-likelihood.

Legend: N texts, P parts, K labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

# A part has to be worth its cost. Each makes the likelihood that has to be reached so much better
# (fractions of the negative log-likelihood; assumptions): a little for a table of weights; more
# for an encoder, which costs half a second to load, and most of the time of a text.
_PRICE = 0.002
_ENCODER_PRICE = 0.02
# Parts are chosen on so many texts at most: more decide nothing else, and take longer.
_TEXTS_TO_CHOOSE_BY = 20_000
# Pulls the weights of standardised logits towards 0, for few texts (assumption).
_DECAY = 1e-3
# Of standardised logits, where no part deserves a weight (assumption): 5 labels get 0.16 to 0.24.
_LEAST = 0.1


@dataclass(frozen=True)
class Stack:
    """Which parts are added, and how; a part that is left out has no weight here."""

    weights: dict[str, float]

    def combined(self, logits: Mapping[str, np.ndarray]) -> np.ndarray:
        """The weighted sum of the logits of the parts, each [N, K]; float64 [N, K]."""
        return np.asarray(
            sum(weight * logits[part] for part, weight in self.weights.items()), dtype=np.float64
        )


def learn_stack(
    logits: Mapping[str, np.ndarray],
    label_ids: np.ndarray,
    always: Collection[str] = (),
    *,
    balanced: bool = False,
) -> Stack:
    """Choose parts and their weights.

    Args:
        logits: by the part, [N, K], of texts that it did not learn from.
        label_ids: int64 [N].
        always: parts that cost nothing more, for they are there anyhow.
        balanced: the parts speak as if all labels were equally frequent. How frequent they are is
            taken into account while weights are learnt, or whichever part finds no rare label wins.
    """
    labels = next(iter(logits.values())).shape[1]
    frequency = log_frequency(label_ids, labels) if balanced else np.zeros(labels)
    parts = [name for name, values in logits.items() if _spread(values) > 0]
    if not parts:
        return Stack(dict.fromkeys(logits, 1.0))
    step = max(1, len(label_ids) // _TEXTS_TO_CHOOSE_BY)
    few = {name: np.asarray(logits[name][::step], dtype=np.float64) for name in parts}
    best: tuple[float, tuple[str, ...]] = (np.inf, ())
    for size in range(1, len(parts) + 1):
        for chosen in combinations(parts, size):
            _, loss = _fit([few[name] for name in chosen], label_ids[::step], frequency)
            paid = set(chosen) - set(always)
            price = _PRICE * len(paid) + _ENCODER_PRICE * ("encoder" in paid)
            best = min(best, (loss * (1 + price), chosen))
    taken = [np.asarray(logits[name], dtype=np.float64) for name in best[1]]
    weights, _ = _fit(taken, label_ids, frequency)
    found = {name: w for name, w in zip(best[1], weights.tolist(), strict=True) if w > 0}
    # Where none is surer than chance, the labels get nearly equal probabilities, but in an order.
    return Stack(found or {name: _LEAST / _spread(logits[name]) for name in best[1]})


def log_frequency(label_ids: np.ndarray, labels: int) -> np.ndarray:
    """Logarithm of how many of N texts have each of K labels, half a one for none; float64 [K]."""
    return np.asarray(np.log(np.maximum(np.bincount(label_ids, minlength=labels), 0.5)))


def _spread(logits: np.ndarray) -> float:
    """Standard deviation around the mean of each text, on which no probability depends."""
    return float((logits - logits.mean(axis=1, keepdims=True)).std())


def _fit(
    logits: list[np.ndarray], label_ids: np.ndarray, frequency: np.ndarray
) -> tuple[np.ndarray, float]:
    """Weights [P] and the mean negative log-likelihood; convex, by L-BFGS.

    Args:
        logits: of the parts, each [N, K].
        label_ids: int64 [N].
        frequency: float [K], added to the logits of every text.
    """
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    values = np.stack(logits)  # [P, N, K]
    values = values - values.mean(axis=2, keepdims=True)
    scale = np.maximum(values.std(axis=(1, 2), keepdims=True), 1e-9)
    values = values / scale
    given = values[:, np.arange(len(label_ids)), label_ids]  # [P, N]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total = np.tensordot(weights, values, 1) + frequency
        highest = total.max(axis=1, keepdims=True)
        shares = np.exp(total - highest)
        sums = shares.sum(axis=1, keepdims=True)
        likelihood = (np.log(sums) + highest)[:, 0] - weights @ given - frequency[label_ids]
        expected = np.einsum("nk,pnk->pn", shares / sums, values)
        slope = (expected - given).mean(axis=1) + 2 * _DECAY * weights
        return float(likelihood.mean() + _DECAY * (weights**2).sum()), slope

    bounds = [(0.0, None)] * len(values)
    with threadpool_limits(1):  # see `malmoi.inference.linear.fitting`
        found = minimize(loss, np.ones(len(values)), jac=True, bounds=bounds, method="L-BFGS-B")
    return found.x / scale[:, 0, 0], float(found.fun)
