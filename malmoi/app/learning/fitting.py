"""The quick classifier, fitted on the labelled texts of a project: of one label a text, or several.

Legend: N labelled texts, K labels, P texts to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from malmoi.app.learning.labels_needed import FEWEST_OF_LABEL
from malmoi.app.learning.opinions import Opinion, best_threshold, given_matrix
from malmoi.inference.linear.quick import FEWEST_TEXTS, QuickTrainer
from malmoi.labels.training_texts import LabelledText

_HAS, _HAS_NOT = "has it", "has it not"


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """Whether there is enough to learn from.

    Attributes:
        missing: texts that it still takes; 0 where it is labels that are missing.
        labels: K, those that can be learnt.
        left_out: of a project with several labels a text, those that cannot yet.
    """

    missing: int
    labels: tuple[str, ...]
    left_out: tuple[str, ...]
    is_ready: bool


def learnable(
    texts: Sequence[LabelledText], labels: Sequence[str], *, is_one: bool
) -> list[LabelledText]:
    """The texts to learn from: of one label a text, those whose label can still be chosen.

    A retired one would be suggested again otherwise. Of several, labels are left out one by one.

    Args:
        texts: labelled.
        labels: of the project, that can be chosen.
        is_one: whether a text has exactly one.
    """
    return [text for text in texts if not is_one or text.labels[0] in labels]


def readiness(texts: Sequence[LabelledText], labels: Sequence[str], *, is_one: bool) -> Readiness:
    """Look at what is labelled.

    Args:
        texts: N.
        labels: of the project, that can be chosen.
        is_one: whether a text has exactly one.
    """
    missing = max(0, FEWEST_TEXTS - len(texts))
    if is_one:
        met = tuple(sorted({label for text in texts for label in text.labels}))
        ready = not missing and len(met) > 1
        return Readiness(missing=missing, labels=met, left_out=(), is_ready=ready)
    counts = given_matrix([text.labels for text in texts], labels).sum(axis=0)
    enough = {
        label: FEWEST_OF_LABEL <= count <= len(texts) - FEWEST_OF_LABEL
        for label, count in zip(labels, counts.tolist(), strict=True)
    }
    known = tuple(label for label in labels if enough[label])
    return Readiness(
        missing=missing,
        labels=known,
        left_out=tuple(label for label in labels if not enough[label]),
        is_ready=not missing and bool(known),
    )


def fitted(
    trainer: QuickTrainer,
    texts: Sequence[LabelledText],
    ready: Readiness,
    pool: Mapping[int, str],
    *,
    is_one: bool,
) -> Opinion:
    """Fit, and ask the classifier: of labelled texts out of fold, of those of the pool after that.

    What somebody has labelled and others have yet to label is judged as if it were new.

    Args:
        trainer: of the project.
        texts: N.
        ready: enough to learn from.
        pool: P, by their ids.
        is_one: whether a text has exactly one label.
    """
    found = (_one if is_one else _several)(trainer, texts, ready.labels, pool)
    own = {text.text_id: place for place, text in enumerate(texts)}
    for row, text_id in enumerate(pool):
        if text_id in own:
            found.pool[row] = found.labelled[own[text_id]]
    return found


def _one(
    trainer: QuickTrainer,
    texts: Sequence[LabelledText],
    labels: Sequence[str],
    pool: Mapping[int, str],
) -> Opinion:
    names = [text.labels[0] for text in texts]
    result = trainer.fit([text.text for text in texts], names, label_names=labels)
    said = np.empty((0, len(labels)), dtype=np.float32)
    if pool:
        said = trainer.probabilities(result, list(pool.values()))
    return Opinion(labels=labels, labelled=result.probabilities, pool=said, is_one=True)


def _several(
    trainer: QuickTrainer,
    texts: Sequence[LabelledText],
    labels: Sequence[str],
    pool: Mapping[int, str],
) -> Opinion:
    """By a classifier of two classes for each label: whether a text has it."""
    words = [text.text for text in texts]
    given = given_matrix([text.labels for text in texts], labels)
    labelled = np.empty((len(texts), len(labels)), dtype=np.float32)
    said = np.empty((len(pool), len(labels)), dtype=np.float32)
    gives = np.empty((len(texts), len(labels)), dtype=bool)
    for column in range(len(labels)):
        has = given[:, column]
        names = [_HAS if one else _HAS_NOT for one in has]
        result = trainer.fit(words, names, label_names=[_HAS_NOT, _HAS])
        labelled[:, column] = result.probabilities[:, 1]
        gives[:, column] = _given_out_of_fold(has, labelled[:, column], result.fold_of)
        if pool:
            said[:, column] = trainer.probabilities(result, list(pool.values()))[:, 1]
    return Opinion(labels=labels, labelled=labelled, pool=said, is_one=False, gives=gives)


def _given_out_of_fold(has: np.ndarray, said: np.ndarray, fold_of: np.ndarray) -> np.ndarray:
    """Which texts get a label, by a threshold that none of their fold has a part in; bool [N]."""
    found = np.zeros(len(has), dtype=bool)
    for fold in np.unique(fold_of):
        inside = fold_of == fold
        found[inside] = said[inside] >= best_threshold(has[~inside], said[~inside])
    return found
