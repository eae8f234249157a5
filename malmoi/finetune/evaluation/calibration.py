"""Whether a classifier's probabilities can be believed: temperature scaling and its measure.

Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks" (ICML 2017,
https://arxiv.org/abs/1706.04599). Legend: N texts, K labels, M bins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malmoi.inference.prediction import softmax

FloatArray = NDArray[np.float64]

# As in the paper's experiments (section 5).
BINS = 15
# A fit that runs into one of these found no minimum: hardly a text was right, or none was unsure.
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 20.0
# What float32 rounds to zero still has a logarithm then; a softmax gives it at 87 logits' distance.
_SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReliabilityBin:
    """Texts whose confidence lies in (lower, upper].

    Attributes:
        lower: fraction.
        upper: fraction.
        texts: how many.
        confidence: mean probability of the predicted label; 0 for an empty bin.
        accuracy: fraction of them predicted right; 0 for an empty bin.
    """

    lower: float
    upper: float
    texts: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Out-of-fold probabilities before and after temperature scaling.

    Attributes:
        temperature: fitted on all texts; for the model that is trained on all of them.
        fold_temperatures: fold to the temperature fitted on the other folds.
        probabilities: [N, K], each fold's scaled by its own temperature.
        ece_before: expected calibration error, a fraction.
        ece_after: the same of `probabilities`.
        nll_before: mean negative log-likelihood of the given labels, nats.
        nll_after: the same of `probabilities`.
        bins_before: M bins.
        bins_after: the same of `probabilities`.
    """

    temperature: float
    fold_temperatures: dict[int, float]
    probabilities: FloatArray
    ece_before: float
    ece_after: float
    nll_before: float
    nll_after: float
    bins_before: list[ReliabilityBin]
    bins_after: list[ReliabilityBin]

    @classmethod
    def measured(
        cls,
        given: FloatArray,
        scaled: FloatArray,
        labels: NDArray[np.int64],
        temperature: float,
        fold_temperatures: dict[int, float],
    ) -> "Calibration":
        """How far probabilities [N, K] can be believed, given and scaled; labels [N]."""
        before, after = reliability_bins(given, labels), reliability_bins(scaled, labels)
        return cls(
            temperature=temperature,
            fold_temperatures=fold_temperatures,
            probabilities=scaled,
            ece_before=expected_calibration_error(before),
            ece_after=expected_calibration_error(after),
            nll_before=negative_log_likelihood(given, labels),
            nll_after=negative_log_likelihood(scaled, labels),
            bins_before=before,
            bins_after=after,
        )

    def describe(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            "temperature": self.temperature,
            "fold_temperatures": {str(f): t for f, t in self.fold_temperatures.items()},
            "bins": len(self.bins_before),
            "ece_before": self.ece_before,
            "ece_after": self.ece_after,
            "nll_before": self.nll_before,
            "nll_after": self.nll_after,
        }


def calibrate_out_of_fold(
    probabilities: ArrayLike, label_ids: ArrayLike, fold_of: ArrayLike
) -> Calibration:
    """Scale each fold's probabilities by the temperature that the other folds ask for.

    The temperature of a text is thus fitted without its label, so that the error after scaling
    is one to expect of new texts. No prediction changes: one temperature a fold keeps the order.

    Args:
        probabilities: [N, K], each text's by a model that did not train on it.
        label_ids: [N], given labels, 0 to K - 1.
        fold_of: [N], two different folds at least.
    """
    given = np.asarray(probabilities, dtype=np.float64)
    labels = np.asarray(label_ids, dtype=np.int64)
    folds = np.asarray(fold_of, dtype=np.int64)
    temperatures: dict[int, float] = {}
    scaled = np.empty_like(given)
    for fold in np.unique(folds):
        inside = folds == fold
        found = fit_temperature(given[~inside], labels[~inside])
        scaled[inside] = apply_temperature(given[inside], found)
        temperatures[int(fold)] = found
    return Calibration.measured(given, scaled, labels, fit_temperature(given, labels), temperatures)


def fit_temperature(probabilities: ArrayLike, label_ids: ArrayLike) -> float:
    """The temperature T that makes the labels likeliest under softmax(log p / T).

    log p serves as the logits: they differ by a constant a text, which softmax does not see. The
    negative log-likelihood is convex in 1/T (Guo et al., section 4.2), so its slope has one zero,
    found here by halving. Where every text is right it would fall for ever, and a classifier be
    certain of everything: so a label counts (N + 1) / (N + K), the others 1 / (N + K) each, as in
    Platt, "Probabilistic outputs for support vector machines" (1999), section 2.2.

    Args:
        probabilities: [N, K].
        label_ids: [N], 0 to K - 1.

    Returns:
        Above 1 where the model is too confident, below 1 where too little; from 0.05 to 20.
    """
    logits = _log(np.asarray(probabilities, dtype=np.float64))
    labels = np.asarray(label_ids, dtype=np.int64)
    smoothing = logits.shape[1] / (len(labels) + logits.shape[1])
    target = (1 - smoothing) * logits[np.arange(len(labels)), labels].mean()
    target += smoothing * logits.mean()

    def slope(inverse: float) -> float:
        expected = (softmax(logits * inverse) * logits).sum(axis=1).mean()
        return float(expected - target)

    low, high = 1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE
    if slope(low) >= 0:
        return HIGHEST_TEMPERATURE
    if slope(high) <= 0:
        return LOWEST_TEMPERATURE
    while high - low > 1e-6 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 2 / (low + high)


def apply_temperature(probabilities: ArrayLike, temperature: float) -> FloatArray:
    """softmax(log p / temperature), [N, K]."""
    return softmax(_log(np.asarray(probabilities, dtype=np.float64)) / temperature)


def reliability_bins(
    probabilities: ArrayLike, label_ids: ArrayLike, bins: int = BINS
) -> list[ReliabilityBin]:
    """Texts by the probability of their predicted label, in bins of equal width over (0, 1].

    Args:
        probabilities: [N, K].
        label_ids: [N], 0 to K - 1.
        bins: M.
    """
    given = np.asarray(probabilities, dtype=np.float64)
    confidence = given.max(axis=1)
    right = given.argmax(axis=1) == np.asarray(label_ids)
    # (lower, upper] as in the paper; a rounding error must not make an extra bin above 1.
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    found = []
    for number in range(bins):
        inside = place == number
        texts = int(inside.sum())
        found.append(
            ReliabilityBin(
                lower=number / bins,
                upper=(number + 1) / bins,
                texts=texts,
                confidence=float(confidence[inside].mean()) if texts else 0.0,
                accuracy=float(right[inside].mean()) if texts else 0.0,
            )
        )
    return found


def expected_calibration_error(bins: list[ReliabilityBin]) -> float:
    """Mean distance of accuracy and confidence over bins, weighted by texts (Guo et al., eq. 3)."""
    texts = sum(part.texts for part in bins)
    return sum(part.texts * abs(part.accuracy - part.confidence) for part in bins) / texts


def negative_log_likelihood(probabilities: ArrayLike, label_ids: ArrayLike) -> float:
    """Mean over texts of -ln of the given label's probability, nats."""
    given = np.asarray(probabilities, dtype=np.float64)
    labels = np.asarray(label_ids, dtype=np.int64)
    # abs: the mean of ln 1 would be shown as -0.
    return abs(float(_log(given[np.arange(len(labels)), labels]).mean()))


def _log(probabilities: FloatArray) -> FloatArray:
    return np.log(np.maximum(probabilities, _SMALLEST))
