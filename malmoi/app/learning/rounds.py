"""One round of learning: fit on what is labelled, measure, and say which texts come next.

Legend: N labelled texts, K labels, P texts to choose from.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.app.learning.project_model import ModelProblem, ProjectModel, ProjectModels
from malmoi.files import write_at_once
from malmoi.inference.labelling.filling import LIVE, model_that_fills, said_of_all
from malmoi.inference.labelling.fitting import Readiness, learn, learnable, opinion, readiness
from malmoi.inference.labelling.labels_needed import FEWEST_OF_SAMPLE, LABELS_A_ROUND
from malmoi.inference.labelling.opinions import Opinion, f1_of_present, given_matrix
from malmoi.inference.linear.frozen_encoder import FrozenEncoder, encoders_at_hand
from malmoi.inference.linear.quick import QuickTrainer
from malmoi.inference.vectors.sentence_encoder import SentenceEncoder, find_sentence_encoder
from malmoi.labels.access import ProjectAccess
from malmoi.labels.filled_export import export_filled
from malmoi.labels.project import Project
from malmoi.labels.projects import read_project
from malmoi.labels.scores import (
    ModelQuality,
    OutdatedOrderError,
    TextScore,
    drawn_by_chance,
    random_sample,
    score_versions,
    write_scores,
)
from malmoi.labels.training_texts import (
    LabelledText,
    labelled_texts,
    texts_after,
    texts_to_choose_from,
)

# Texts on which a chosen model is compared with the one that learns. Fewer than of the sample, for
# both are measured on the same texts (assumption).
FEWEST_TO_COMPARE = 20
# Texts that a round looks at. The first has read none before, and somebody waits for it; each of
# the next ones reads some more.
_POOL, _FIRST_POOL, _POOL_OF_LABEL = 5_000, 300, 15
# Labelled texts whose doubts are kept: the likeliest errors.
_MOST_DOUBTS = 5_000
_MOST_PROJECTS = 3
# Texts that are read ahead at a time: some seconds, for which a round may have to wait.
_READ_AHEAD = 500


@dataclass(frozen=True, kw_only=True)
class LearningResult:
    """What a round did.

    Attributes:
        status: `learnt`; `recent`: fewer than `LABELS_A_ROUND` are new; `few`: `missing` says of
            what.
        labels: labelled texts there are.
        kinds: different labels that can be learnt of them.
        missing: texts, of `few`; 0 where it is labels that are missing.
        new: labels that no round has learnt from.
        left_out: of several labels a text, those with too few texts, or without too few.
        cross_validated_f1: see `malmoi.labels.scores.ModelQuality`.
        sample_f1: see there.
        sample_texts: see there.
        chosen_f1: see there.
        drawn_texts: see there.
        drawn_right: see there.
        model: that suggests and orders from now on; None where this round wrote no order.
        problem: why the chosen model could not be asked, as `ModelProblem`; None where it could,
            or none is chosen.
        seconds: that it took.
    """

    status: str
    labels: int = 0
    kinds: int = 0
    missing: int = 0
    new: int = 0
    left_out: tuple[str, ...] = ()
    cross_validated_f1: float | None = None
    sample_f1: float | None = None
    sample_texts: int = 0
    chosen_f1: float | None = None
    drawn_texts: int = 0
    drawn_right: int = 0
    model: str | None = None
    problem: ModelProblem | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For the process that asked."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class _Round:
    """What a round begins with.

    Attributes:
        project: as it was when the round began.
        texts: N.
        ready: whether these are enough.
        is_one: whether a text has exactly one label.
        chosen: the model of the project; None without one that can be asked.
        problem: why it cannot.
        started: by the monotonic clock, in seconds.
    """

    access: ProjectAccess
    project: Project
    texts: list[LabelledText]
    ready: Readiness
    is_one: bool
    chosen: ProjectModel | None
    problem: ModelProblem | None
    started: float

    def result(self, status: str, **more: Any) -> LearningResult:
        """What it did, with what it began with."""
        return LearningResult(
            status=status,
            **{"kinds": len(self.ready.labels), **more},
            left_out=self.ready.left_out,
            problem=self.problem,
            seconds=round(time.monotonic() - self.started, 1),
        )


class Learner:
    """Learns round after round, and reads of every project only what is new.

    It acts as a local person of the server's own: what it writes are scores, never labels.
    """

    def __init__(self) -> None:
        self._trainers: OrderedDict[tuple[str, int], QuickTrainer] = OrderedDict()
        self._encoders: list[FrozenEncoder] = []
        self._sentences: SentenceEncoder | None = None
        self._models = ProjectModels()

    def learn(self, access: ProjectAccess, *, forced: bool = False) -> LearningResult:
        """One round for a project, if it is due; another one where it changed meanwhile.

        Args:
            access: of a person who is admin everywhere, as the server itself is.
            forced: whether somebody asked for it, however few labels are new.

        Raises:
            InputError: the database cannot be used, or the project is archived.
        """
        try:
            return self._round(access, forced=forced)
        except OutdatedOrderError:
            return self._round(access, forced=forced)

    def fill(
        self, access: ProjectAccess, model: str, files: Sequence[str], after: int
    ) -> dict[str, Any]:
        """Read some texts ahead, so that rounds have their turn between; of the last, fill files.

        Args:
            model: see `malmoi.inference.labelling.filling.model_that_fills`.
            files: to be written; see `malmoi.labels.filled_export.export_filled`. One alone that
                ends with .json gets the labels and the confidence of every text, by its id.
            after: the last text that was read.

        Returns:
            `after`, the last text that was read, and how many were now; or, at the end, the
            numbers of `Filled`.

        Raises:
            InputError: as `model_that_fills` and `export_filled`.
        """
        trainer = self._trainer(access) if model == LIVE else None
        if trainer is not None and (texts := texts_after(access, after, _READ_AHEAD)):
            trainer.read(list(texts.values()))
            return {"after": max(texts), "read": len(texts)}
        if files[0].endswith(".json"):
            said = said_of_all(access, model, trainer)
            write_at_once(Path(files[0]), json.dumps({str(one): said[one][:2] for one in said}))
            return {"texts": len(said)}
        says = model_that_fills(access, model, trainer)
        return asdict(export_filled(access, [Path(file) for file in files], says))

    def _round(self, access: ProjectAccess, *, forced: bool) -> LearningResult:
        now = self._begun(access)
        if not now.ready.is_ready:
            return self._before_learning(now)
        before = score_versions(access, newest=1)
        new = len(now.texts) - (before[-1].quality.labels if before else 0)
        # A label that is retired takes its texts away, which changes as much as new ones do.
        if not forced and before and abs(new) < LABELS_A_ROUND:
            return now.result("recent", labels=len(now.texts), new=max(0, new))
        pool = texts_to_choose_from(
            access, min(_POOL, max(_FIRST_POOL, _POOL_OF_LABEL * len(now.texts)))
        )
        fitted = learn(self._trainer(access), now.texts, now.ready, is_one=now.is_one)
        learnt = opinion(fitted, now.texts, pool)
        given = given_matrix([text.labels for text in now.texts], learnt.labels)
        order, chosen_f1 = learnt, None
        model = f"quick-{len(now.texts)}"
        if now.chosen is not None:
            theirs = _opinion_of(now.chosen, now.texts, list(pool.values()))
            chosen_f1, is_better = _compared(now, given, learnt, theirs)
            if is_better:
                order, model = theirs, now.chosen.name
        quality = _quality(now, given, learnt, chosen_f1)
        scores = _scores(now.texts, list(pool), order, learnt, learnt.doubts(given))
        write_scores(access, model, scores, quality, project=now.project)
        return now.result("learnt", model=model, **asdict(quality))

    def _begun(self, access: ProjectAccess) -> _Round:
        started = time.monotonic()
        project = read_project(access)
        found = self._models.of(project)
        is_one = project.kind == "single"
        texts = learnable(labelled_texts(access), project.label_names, is_one=is_one)
        return _Round(
            access=access,
            project=project,
            texts=texts,
            ready=readiness(texts, project.label_names, is_one=is_one),
            is_one=is_one,
            chosen=found if isinstance(found, ProjectModel) else None,
            problem=found if isinstance(found, ModelProblem) else None,
            started=started,
        )

    def _before_learning(self, now: _Round) -> LearningResult:
        """Do what can be done before the first round: a chosen model suggests, and texts are read.

        What it suggests is no point of the learning curve.
        """
        pool = texts_to_choose_from(now.access, _FIRST_POOL)
        model = None
        if now.chosen is not None and pool:
            said = _opinion_of(now.chosen, [], list(pool.values()))
            model = now.chosen.name
            scores = _scores([], list(pool), said, said, np.empty(0))
            write_scores(now.access, model, scores, project=now.project)
        if now.texts:  # somebody has begun to label
            self._trainer(now.access).read(list(pool.values()))
        labels = len(now.texts)
        return now.result("few", labels=labels, new=labels, missing=now.ready.missing, model=model)

    def _trainer(self, access: ProjectAccess) -> QuickTrainer:
        key = (str(access.engine.url), access.project_id)
        if key not in self._trainers:
            self._encoders = self._encoders or encoders_at_hand()
            self._sentences = self._sentences or find_sentence_encoder()
            self._trainers[key] = QuickTrainer(self._encoders, sentences=self._sentences)
        self._trainers.move_to_end(key)
        if len(self._trainers) > _MOST_PROJECTS:
            self._trainers.popitem(last=False)
        return self._trainers[key]


def _opinion_of(
    chosen: ProjectModel, texts: Sequence[LabelledText], pool: Sequence[str]
) -> Opinion:
    return Opinion(
        labels=chosen.labels,
        labelled=chosen.probabilities([text.text for text in texts]),
        pool=chosen.probabilities(pool),
        is_one=True,
    )


def _compared(
    now: _Round, given: np.ndarray, learnt: Opinion, theirs: Opinion
) -> tuple[float | None, bool]:
    """The macro F1 of the chosen model, and whether it is the better one to go by.

    On the labelled texts that it has not learnt from, else it would only say what it was told. Of
    too few of them there is no F1, and it is taken at the word of whoever has chosen it.
    """
    assert now.chosen is not None
    fresh = ~now.chosen.has_learnt([text.text for text in now.texts])
    if fresh.sum() < FEWEST_TO_COMPARE:
        return None, True
    own = f1_of_present(given[fresh], learnt.decided(learnt.labels)[fresh])
    other = f1_of_present(given[fresh], theirs.decided(learnt.labels)[fresh])
    return other, other > own


def _quality(
    now: _Round, given: np.ndarray, learnt: Opinion, chosen_f1: float | None
) -> ModelQuality:
    """How good the model is that learns, whichever of the two suggests."""
    sample = set(random_sample(now.access))
    places = [place for place, text in enumerate(now.texts) if text.text_id in sample]
    decided = learnt.decided(learnt.labels)
    sample_f1 = None
    if len(places) >= FEWEST_OF_SAMPLE:
        sample_f1 = f1_of_present(given[places], decided[places])
    drawn = drawn_by_chance(now.access)
    by_chance = [place for place, text in enumerate(now.texts) if text.text_id in drawn]
    return ModelQuality(
        labels=len(now.texts),
        kinds=len(learnt.labels),
        drawn_texts=len(by_chance),
        drawn_right=int((given == decided)[by_chance].all(axis=1).sum()),
        cross_validated_f1=f1_of_present(given, decided),
        sample_f1=sample_f1,
        sample_texts=len(places),
        chosen_f1=chosen_f1,
    )


def _scores(
    texts: Sequence[LabelledText],
    pool: Sequence[int],
    order: Opinion,
    learnt: Opinion,
    doubts: np.ndarray,
) -> Iterator[TextScore]:
    """Of the pool, with an order; and the doubts about labelled texts, the greatest first.

    Args:
        texts: N, with what `learnt` says of them out of fold. A chosen model may have learnt
            them, so it doubts none.
        pool: P ids.
        order: whose suggestions and order are to hold.
        learnt: whose doubts are.
        doubts: its doubts, [N].
    """
    own = {text.text_id: place for place, text in enumerate(texts)}
    for place, row in enumerate(order.order() if pool else ()):
        labelled = own.get(pool[row])
        yield _score(
            order.labels,
            pool[row],
            order.pool[row],
            priority=1 - place / len(pool),
            doubt=None if labelled is None else doubts[labelled],
        )
    waiting = set(pool)
    rest = [place for text_id, place in own.items() if text_id not in waiting]
    rest.sort(key=lambda place: -doubts[place])
    for place in rest[:_MOST_DOUBTS]:
        yield _score(
            learnt.labels,
            texts[place].text_id,
            learnt.labelled[place],
            priority=None,
            doubt=doubts[place],
        )


def _score(
    labels: Sequence[str],
    text_id: int,
    said: np.ndarray,
    *,
    priority: float | None,
    doubt: float | None,
) -> TextScore:
    first, *others = np.argsort(-said, kind="stable")[:2]
    second = others[0] if others else None  # a project may have a single label to give or not
    return TextScore(
        text_id=text_id,
        priority=priority,
        label=labels[first],
        score=_probability(said[first]),
        second_label=None if second is None else labels[second],
        second_score=None if second is None else _probability(said[second]),
        doubt=None if doubt is None else _probability(doubt),
    )


def _probability(value: float) -> float:
    """Rounding may have left it a little outside."""
    return min(1.0, max(0.0, float(value)))
