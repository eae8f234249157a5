"""Which engine `auto` takes: the fastest on this machine that agrees with torch in fp32.

Measured once a checkpoint and machine, on texts of the sample corpora, and kept beside the export.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from malmoi.errors import InputError
from malmoi.inference.batched_logits import logits_by_length
from malmoi.inference.batching import TokenizedTexts
from malmoi.inference.description import ModelDescription
from malmoi.inference.engine import Engine, EngineName
from malmoi.inference.prediction import decided, probabilities_of
from malmoi.labels.tasks import own_tasks
from malmoi.paths import sample
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records

# One text in 200 may get another label, and the score of the labels that people gave may be lower
# by a fifth of a point.
LEAST_AGREEMENT = 0.995
MOST_LOST_F1 = 0.002
# Values must be this near, in standard deviations of those of the reference.
_NEAR_VALUE = 0.05
# A text with another label is then 0.1% (assumption: enough to tell 99.5% from 98.5%).
CALIBRATION_TEXTS = 1000
# Fewer than that tell nothing.
_FEWEST_TEXTS = 200
# Texts that the speed is measured on, again and again.
_TIMED_TEXTS = 250
_ROUNDS = 3
REFERENCE: EngineName = "torch-fp32"


def calibration_texts(
    description: ModelDescription,
) -> tuple[list[str], np.ndarray | None] | None:
    """Texts of the task with these labels, else of all samples; `CALIBRATION_TEXTS` at most.

    Returns:
        N clean texts, and the places of the labels that people gave them, int64 [N], or None where
        the texts are not of the classifier's own task. None where the samples are not there.
    """
    tasks = [task for task in own_tasks() if set(task.label_names) == set(description.labels)]
    places = [task.data for task in tasks] or [
        sample("comments"),
        *(task.data for task in own_tasks()),
    ]
    found: list[tuple[str, str | None]] = []
    for place in places:
        try:
            records = list(iter_records(place))
        except InputError:
            continue
        share = CALIBRATION_TEXTS // len(places)
        step = max(1, len(records) // share)
        chosen = islice(records[::step], share)
        found += [(text, record.label) for record in chosen if (text := clean_text(record.text))]
    if len(found) < _FEWEST_TEXTS:
        return None
    texts, labels = [text for text, _ in found], [label for _, label in found]
    if description.gives != "label" or not set(labels) <= set(description.labels):
        return texts, None
    ids = [description.labels.index(label) for label in labels if label is not None]
    return texts, np.array(ids, dtype=np.int64)


def measure(
    engines: Mapping[EngineName, Engine],
    tokens: TokenizedTexts,
    description: ModelDescription,
    targets: np.ndarray | None = None,
) -> dict[str, Any]:
    """Compare engines; the first one is the reference.

    Args:
        tokens: N texts.
        targets: int64 [N], see `calibration_texts`.

    Returns:
        `engine`: the name of the fastest that agrees; `measured`: by engine, `texts_per_second`,
        `same_labels`, a share, with targets `macro_f1`, and whether it `agrees`; `texts`.
    """
    names = list(engines)
    everything = range(tokens.texts)
    timed = everything[:: max(1, len(everything) // _TIMED_TEXTS)]
    outcomes = {name: _logits(engines[name], tokens, everything) for name in names}
    agreement = {
        name: agreement_of(outcomes[names[0]], outcomes[name], description) for name in names
    }
    scores = {} if targets is None else {name: _macro_f1(outcomes[name], targets) for name in names}
    seconds = {name: float("inf") for name in names}
    # In turns, and the best of each: other work on the machine slows down whom it meets.
    for _ in range(_ROUNDS):
        for name in names:
            began = time.perf_counter()
            _logits(engines[name], tokens, timed)
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    good = [
        name
        for name in names
        if agreement[name] >= LEAST_AGREEMENT
        and (not scores or scores[names[0]] - scores[name] <= MOST_LOST_F1)
    ]
    return {
        "engine": min(good, key=lambda name: seconds[name]),
        "texts": len(everything),
        "measured": {
            name: {
                "texts_per_second": round(len(timed) / seconds[name]),
                "same_labels": round(agreement[name], 4),
                "agrees": name in good,
                **({"macro_f1": round(scores[name], 4)} if scores else {}),
            }
            for name in names
        },
    }


def _macro_f1(logits: np.ndarray, targets: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(targets, logits.argmax(axis=1), average="macro"))


def agreement_of(expected: np.ndarray, found: np.ndarray, description: ModelDescription) -> float:
    """Share of texts with the same labels, or nearly the same value, by logits, float32 [N, K]."""
    if description.gives == "value":
        near = np.abs(expected - found) <= _NEAR_VALUE * max(float(expected.std()), 1e-6)
        return float(near.mean())
    decisions = [
        decided(probabilities_of(logits, description, 1.0), description)
        for logits in (expected, found)
    ]
    return float((decisions[0] == decisions[1]).all(axis=1).mean())


def _logits(engine: Engine, tokens: TokenizedTexts, places: Sequence[int]) -> np.ndarray:
    found: list[np.ndarray] = [np.zeros(0)] * len(places)
    for batch, logits in logits_by_length(engine, tokens, places):
        for place, row in zip(batch, logits, strict=True):
            found[place] = row
    return np.stack(found)
