"""The quick classifier, fitted on the labelled texts of a project: of one label a text, or several.

Legend: N labelled texts, K labels, P texts to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from malmoi.inference.labelling.labels_needed import FEWEST_OF_LABEL
from malmoi.inference.labelling.opinions import Opinion, best_threshold, given_matrix
from malmoi.inference.linear.quick import FEWEST_TEXTS, QuickResult, QuickTrainer
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


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """What was learnt, to be asked.

    Attributes:
        labels: K.
        labelled: float32 [N, K], out of fold.
        is_one: whether a text has exactly one label.
        gives: of several, which labels the N texts get, out of fold, bool [N, K].
        least: of several, the probability from which on a label is given, float [K].
    """

    trainer: QuickTrainer
    results: Sequence[QuickResult]
    labels: Sequence[str]
    labelled: np.ndarray
    is_one: bool
    gives: np.ndarray | None = None
    least: np.ndarray | None = None

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Of P texts, float32 [P, K]."""
        if not texts:
            return np.empty((0, len(self.labels)), dtype=np.float32)
        said = [self.trainer.probabilities(result, texts) for result in self.results]
        return said[0] if self.is_one else np.stack([one[:, 1] for one in said], axis=1)


def learn(
    trainer: QuickTrainer, texts: Sequence[LabelledText], ready: Readiness, *, is_one: bool
) -> Learnt:
    """Fit one classifier, or of several labels a text one for each: whether a text has it.

    Args:
        trainer: of the project.
        texts: N.
        ready: enough to learn from.
        is_one: whether a text has exactly one label.
    """
    labels, words = ready.labels, [text.text for text in texts]
    if is_one:
        names = [text.labels[0] for text in texts]
        result = trainer.fit(words, names, label_names=labels)
        return Learnt(
            trainer=trainer,
            results=[result],
            labels=labels,
            labelled=result.probabilities,
            is_one=True,
        )
    given = given_matrix([text.labels for text in texts], labels)
    results = [
        trainer.fit(words, [_HAS if one else _HAS_NOT for one in has], label_names=[_HAS_NOT, _HAS])
        for has in given.T
    ]
    labelled = np.stack([result.probabilities[:, 1] for result in results], axis=1)
    columns = list(zip(given.T, labelled.T, results, strict=True))
    gives = [_given_out_of_fold(has, said, result.fold_of) for has, said, result in columns]
    return Learnt(
        trainer=trainer,
        results=results,
        labels=labels,
        labelled=labelled,
        is_one=False,
        gives=np.stack(gives, axis=1),
        least=np.array([best_threshold(has, said) for has, said, _ in columns]),
    )


def opinion(learnt: Learnt, texts: Sequence[LabelledText], pool: Mapping[int, str]) -> Opinion:
    """Ask what was learnt: of labelled texts out of fold, of those of the pool after that.

    What somebody has labelled and others have yet to label is judged as if it were new.

    Args:
        learnt: of these texts.
        texts: N.
        pool: P, by their ids.
    """
    said = learnt.probabilities(list(pool.values()))
    own = {text.text_id: place for place, text in enumerate(texts)}
    for row, text_id in enumerate(pool):
        if text_id in own:
            said[row] = learnt.labelled[own[text_id]]
    return Opinion(
        labels=learnt.labels,
        labelled=learnt.labelled,
        pool=said,
        is_one=learnt.is_one,
        gives=learnt.gives,
    )


def _given_out_of_fold(has: np.ndarray, said: np.ndarray, fold_of: np.ndarray) -> np.ndarray:
    """Which texts get a label, by a threshold that none of their fold has a part in; bool [N]."""
    found = np.zeros(len(has), dtype=bool)
    for fold in np.unique(fold_of):
        inside = fold_of == fold
        found[inside] = said[inside] >= best_threshold(has[~inside], said[~inside])
    return found
