"""What a model says about a text or a pair of texts: a label, several labels, or a value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from malmoi.inference.description import ModelDescription

# Between the labels of one text where they stand in one cell.
SEPARATOR = ", "


@dataclass(frozen=True)
class Prediction:
    """One label.

    Attributes:
        label: the most probable label.
        probabilities: label to probability, in the model's order of labels; they add up to 1.
        cut: whether the text was longer than what an encoder reads of it:
            `malmoi.inference.windows.MOST_WINDOWS` windows, one of a pair. A linear part reads all.
        known: whether the model knows any piece of the text; what it says of another (in a strange
            script, of signs alone) says nothing.
    """

    label: str
    probabilities: dict[str, float]
    cut: bool = False
    known: bool = True

    @property
    def confidence(self) -> float:
        """Probability of `label`, 0 to 1."""
        return self.probabilities[self.label]


@dataclass(frozen=True)
class LabelsPrediction(Prediction):
    """Any number of labels, none included: those whose probability reaches their threshold.

    Attributes:
        label: `labels` joined by `SEPARATOR`.
        probabilities: label to probability, each between 0 and 1 by itself.
        labels: in the model's order.
    """

    labels: tuple[str, ...] = ()

    @property
    def confidence(self) -> float:
        """Probability of the likeliest label, 0 to 1, whether it reaches its threshold or not."""
        return max(self.probabilities.values())


@dataclass(frozen=True)
class ValuePrediction(Prediction):
    """A number, such as how alike two texts are.

    Attributes:
        label: the value as text.
        probabilities: empty.
        value: in the unit of the training data.
    """

    value: float = field(default=math.nan)

    @property
    def confidence(self) -> float:
        """Not a number: the model says nothing about how sure it is."""
        return math.nan


def probabilities_of(
    logits: np.ndarray, description: ModelDescription, temperature: float
) -> np.ndarray:
    """Logits of B texts as probabilities, or values as they are; float32 [B, K].

    Args:
        logits: float32 [B, K].
        description: says what the model gives.
        temperature: divides the logits (Guo et al. 2017).
    """
    scaled = logits / np.float32(temperature)
    if description.gives == "value":
        return scaled
    if description.gives == "labels":
        return 1 / (1 + np.exp(-scaled))
    return softmax(scaled)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of one label a text, [B, K], in the number format of the logits, [B, K]."""
    powers: np.ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def decided(probabilities: np.ndarray, description: ModelDescription) -> np.ndarray:
    """Which labels the texts get: bool [B, K]; of values none."""
    if description.gives == "labels":
        return probabilities >= np.asarray(description.thresholds, dtype=np.float32)
    chosen = np.zeros(probabilities.shape, dtype=bool)
    if description.gives == "label":
        chosen[np.arange(len(chosen)), probabilities.argmax(axis=1)] = True
    return chosen


def predictions_of(
    probabilities: np.ndarray,
    cut: Sequence[bool],
    known: Sequence[bool],
    description: ModelDescription,
) -> list[Prediction]:
    """B predictions.

    Args:
        probabilities: float32 [B, K], of `probabilities_of`.
        cut: B flags.
        known: B flags.
        description: says what the model gives.
    """
    labels = description.labels
    rows = probabilities.tolist()
    if description.gives == "value":
        return [
            ValuePrediction(f"{row[0]:.6g}", {}, was_cut, is_known, value=row[0])
            for row, was_cut, is_known in zip(rows, cut, known, strict=True)
        ]
    if description.gives == "labels":
        found: list[Prediction] = []
        chosen = decided(probabilities, description)
        for row, was_cut, is_known, marks in zip(rows, cut, known, chosen, strict=True):
            names = tuple(labels[place] for place in np.flatnonzero(marks))
            named = dict(zip(labels, row, strict=True))
            joined = SEPARATOR.join(names)
            found.append(LabelsPrediction(joined, named, was_cut, is_known, labels=names))
        return found
    best = probabilities.argmax(axis=1).tolist()
    return [
        Prediction(labels[place], dict(zip(labels, row, strict=True)), was_cut, is_known)
        for place, row, was_cut, is_known in zip(best, rows, cut, known, strict=True)
    ]
