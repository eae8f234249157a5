"""One round of learning: fit on what is labelled, measure, and say which texts come next.

Legend: N labelled texts, K labels, P texts to choose from.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from app.learning.due import LABELS_A_ROUND
from app.learning.ranking import ranked
from malmoi.errors import InputError
from malmoi.inference.linear.quick import FEWEST_TEXTS, QuickResult, QuickTrainer
from malmoi.labels.access import ProjectAccess
from malmoi.labels.learning_texts import LabelledText, labelled_texts, texts_to_choose_from
from malmoi.labels.projects import read_project
from malmoi.labels.scores import (
    ModelQuality,
    TextScore,
    random_sample,
    score_versions,
    write_scores,
)
from malmoi.model_folders import find_encoder

# Fewer texts of the random sample say too little: a standard error of 9 points at an F1 of 0.5.
FEWEST_OF_SAMPLE = 30
# Texts that a round looks at. The first has read none before, and somebody waits for it.
_POOL, _FIRST_POOL = 5_000, 1_000
# Labelled texts whose doubts are kept: the likeliest errors.
_MOST_DOUBTS = 5_000
_MOST_PROJECTS = 3


@dataclass(frozen=True, kw_only=True)
class LearningResult:
    """What a round did.

    Attributes:
        status: `learnt`; `recent`: fewer than `LABELS_A_ROUND` are new; `few`: `missing` says of
            what; `multi`: the project has several labels a text, which is not learnt yet.
        labels: labelled texts there are.
        kinds: different labels that they have.
        missing: texts, of `few`; 0 where it is a second label that is missing.
        new: labels that no round has learnt from.
        cross_validated_f1: see `malmoi.labels.scores.ModelQuality`.
        sample_f1: see there.
        sample_texts: see there.
        seconds: that it took.
    """

    status: str
    labels: int = 0
    kinds: int = 0
    missing: int = 0
    new: int = 0
    cross_validated_f1: float | None = None
    sample_f1: float | None = None
    sample_texts: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For the process that asked."""
        return asdict(self)


class Learner:
    """Learns round after round, and reads of every project only what is new.

    It acts as a local person of the server's own: what it writes are scores, never labels.
    """

    def __init__(self) -> None:
        """Nothing is loaded yet."""
        self._trainers: OrderedDict[tuple[str, int], QuickTrainer] = OrderedDict()
        self._encoder: Any = None

    def learn(self, access: ProjectAccess, *, forced: bool = False) -> LearningResult:
        """One round for a project, if it is due.

        Args:
            access: of a person who is admin everywhere, as the server itself is.
            forced: whether somebody asked for it, however few labels are new.

        Raises:
            InputError: the database cannot be used, or the project is archived.
        """
        started = time.monotonic()
        if read_project(access).kind != "single":
            return LearningResult(status="multi")
        texts = labelled_texts(access)
        kinds = len({text.labels for text in texts})
        trainer = self._trainer(access)
        if len(texts) < FEWEST_TEXTS or kinds < 2:
            # Somebody has begun to label: what can be done before the first round is done now.
            trainer.read(list(texts_to_choose_from(access, _FIRST_POOL).values()))
            return LearningResult(
                status="few",
                labels=len(texts),
                kinds=kinds,
                missing=max(0, FEWEST_TEXTS - len(texts)),
                new=len(texts),
            )
        before = score_versions(access)
        new = len(texts) - (before[-1].quality.labels if before else 0)
        if not forced and before and new < LABELS_A_ROUND:
            return LearningResult(status="recent", labels=len(texts), kinds=kinds, new=max(0, new))
        names = [text.labels[0] for text in texts]
        result = trainer.fit([text.text for text in texts], names, name="quick")
        quality = _quality(access, texts, result)
        pool = texts_to_choose_from(access, _POOL if before else _FIRST_POOL)
        scores = _scores(trainer, result, texts, pool)
        write_scores(access, f"quick-{len(texts)}", scores, quality)
        return LearningResult(
            status="learnt",
            kinds=kinds,
            seconds=round(time.monotonic() - started, 1),
            **asdict(quality),
        )

    def _trainer(self, access: ProjectAccess) -> QuickTrainer:
        key = (str(access.engine.url), access.project_id)
        if key not in self._trainers:
            self._trainers[key] = QuickTrainer(self._load_encoder())
        self._trainers.move_to_end(key)
        if len(self._trainers) > _MOST_PROJECTS:
            self._trainers.popitem(last=False)
        return self._trainers[key]

    def _load_encoder(self) -> Any:
        if self._encoder is None:
            try:
                place = find_encoder()
            except InputError:
                return None  # n-grams, morphemes and word vectors are enough
            from malmoi.inference.linear.frozen_encoder import FrozenEncoder  # torch

            self._encoder = FrozenEncoder.load(place)
        return self._encoder


def _quality(access: ProjectAccess, texts: list[LabelledText], result: QuickResult) -> ModelQuality:
    sample = set(random_sample(access))
    places = np.array([place for place, text in enumerate(texts) if text.text_id in sample])
    measured = len(places) >= FEWEST_OF_SAMPLE
    return ModelQuality(
        labels=len(texts),
        cross_validated_f1=result.macro_f1,
        sample_f1=(
            f1_of_present(result.label_ids[places], result.probabilities[places].argmax(axis=1))
            if measured
            else None
        ),
        sample_texts=len(places),
    )


def f1_of_present(expected: np.ndarray, predicted: np.ndarray) -> float:
    """Macro F1 over the labels that are expected at least once, 0 to 1; both int64 [N].

    A small sample may lack rare labels, which would count 0 for nothing.
    """
    scores = []
    for label in np.unique(expected):
        right = int(((expected == label) & (predicted == label)).sum())
        scores.append(2 * right / int((expected == label).sum() + (predicted == label).sum()))
    return float(np.mean(scores))


def _scores(
    trainer: QuickTrainer, result: QuickResult, texts: list[LabelledText], pool: Mapping[int, str]
) -> Iterator[TextScore]:
    """Of the pool, with an order; and the doubts about labelled texts, the greatest first."""
    own = {text.text_id: place for place, text in enumerate(texts)}
    ids = list(pool)
    if ids:
        said = trainer.probabilities(result, list(pool.values()))
        # Of what somebody has labelled and others have yet to label: as if it were new.
        for row, text_id in enumerate(ids):
            if text_id in own:
                said[row] = result.probabilities[own[text_id]]
        for place, row in enumerate(ranked(said)):
            labelled = own.get(ids[row])
            yield _score(
                result,
                ids[row],
                said[row],
                priority=1 - place / len(ids),
                doubt=None if labelled is None else _doubt(result, labelled),
            )
    rest = [place for text_id, place in own.items() if text_id not in pool]
    rest.sort(key=lambda place: -_doubt(result, place))
    for place in rest[:_MOST_DOUBTS]:
        yield _score(
            result,
            texts[place].text_id,
            result.probabilities[place],
            priority=None,
            doubt=_doubt(result, place),
        )


def _doubt(result: QuickResult, place: int) -> float:
    return 1 - float(result.probabilities[place, result.label_ids[place]])


def _score(
    result: QuickResult,
    text_id: int,
    said: np.ndarray,
    *,
    priority: float | None,
    doubt: float | None,
) -> TextScore:
    first, second = np.argsort(-said)[:2]
    return TextScore(
        text_id=text_id,
        priority=priority,
        label=result.labels[first],
        score=_probability(said[first]),
        second_label=result.labels[second],
        second_score=_probability(said[second]),
        doubt=None if doubt is None else _probability(doubt),
    )


def _probability(value: float) -> float:
    """Rounding may have left it a little outside."""
    return min(1.0, max(0.0, float(value)))
