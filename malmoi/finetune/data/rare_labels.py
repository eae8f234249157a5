"""Labels with fewer texts than there are folds: left out, joined into one, or learnt all the same.

Legend: K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from malmoi.errors import InputError

if TYPE_CHECKING:
    from malmoi.finetune.data.examples import Examples
    from malmoi.finetune.settings import Rare

# What rare labels are joined into; there may be such a label already.
JOINED = "기타"
# A label needs one text to learn it by and one to be asked about.
LEAST_KEPT = 2


def rare_labels(examples: Examples, per_label: int) -> list[str]:
    """The labels that have texts, but fewer than `per_label`."""
    return [label for label, count in examples.counts.items() if 0 < count < per_label]


def treat_rare(examples: Examples, way: Rare, per_label: int) -> Examples:
    """The texts once rare labels are dropped with their texts, or joined into one, `JOINED`.

    Args:
        examples: with labels.
        way: `keep` changes nothing.
        per_label: texts that a label needs.

    Raises:
        InputError: fewer than two labels are left.
    """
    rare = {label: examples.counts[label] for label in rare_labels(examples, per_label)}
    if not rare or way == "keep":
        return examples
    before = len(examples.texts)
    if way == "join":
        found = _joined(examples, list(rare))
    else:
        found = examples
        # Of several labels a text, others may become rare with it.
        while few := rare_labels(found, per_label):
            rare |= {label: found.counts[label] for label in few if label not in rare}
            found = _without(found, few)
    if len(found.labels) < 2:
        raise InputError(
            "{path} has texts enough of fewer than two labels once those of {rare} are gone "
            "(--rare {way}); add texts, or lower --folds",
            path=examples.path,
            rare=", ".join(rare),
            way=way,
        )
    return replace(found, rare=rare, rare_texts=before - len(found.texts))


def _joined(examples: Examples, rare: Sequence[str]) -> Examples:
    labels = [label for label in examples.labels if label not in rare or label == JOINED]
    labels += [] if JOINED in labels else [JOINED]
    place_of = [labels.index(name if name in labels else JOINED) for name in examples.labels]
    return replace(
        examples,
        labels=labels,
        label_ids=[place_of[label] for label in examples.label_ids],
        label_sets=[
            tuple(sorted({place_of[label] for label in several})) for several in examples.label_sets
        ],
    )


def _without(examples: Examples, rare: Sequence[str]) -> Examples:
    gone = {examples.labels.index(label) for label in rare}
    sets = examples.label_sets or [(label,) for label in examples.label_ids]
    left = examples.only(np.flatnonzero([gone.isdisjoint(several) for several in sets]))
    labels = [label for label in examples.labels if label not in rare]
    place_of = {examples.labels.index(label): place for place, label in enumerate(labels)}
    return replace(
        left,
        labels=labels,
        label_ids=[place_of[label] for label in left.label_ids],
        label_sets=[tuple(place_of[label] for label in several) for several in left.label_sets],
    )
