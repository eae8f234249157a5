"""The linear model beside the encoder, in the encoder's own folds, and both added up.

How much each counts is learnt by stacking: for the texts of a fold from the out-of-fold logits of
the other folds, for the model that is kept from all. As with the temperature
(`finetune.evaluation.calibration`), what the weights know of a text is what models that trained
on it say of others; strictly inside each training part every encoder would have to be
trained several times.

With few texts the encoder as it is, with a linear model on what it makes of them, may be better
than the fine-tuned one; it is measured too, and kept in its place where it is likelier to be right.

Legend: N texts, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from finetune.evaluation.scores import score_task
from finetune.plan import LinearPlan
from finetune.training.cross_validation import CrossValidation
from malmoi.inference.linear.cross_fitting import (
    OnFit,
    fit_linear,
    out_of_fold_logits,
    stack_out_of_fold,
)
from malmoi.inference.linear.fitting import CountedTexts, count_texts
from malmoi.inference.linear.frozen_encoder import FrozenEncoder
from malmoi.inference.linear.linear_part import LinearPart
from malmoi.inference.linear.quick import FEWEST_TEXTS, QuickResult, QuickTrainer
from malmoi.inference.linear.stacking import Stack
from malmoi.inference.prediction import softmax

# Name of the fine-tuned encoder among the parts.
TRAINED = "encoder"
# From so many texts on the fine-tuned encoder is at least as good (docs/scores.md, "Few labels").
FEW_TEXTS = 1_000
_SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, kw_only=True)
class Added:
    """An encoder, a linear model, and the two together, in the same folds.

    Attributes:
        encoder: the encoder alone.
        linear: the linear model alone.
        both: added up.
        stack: weights of what is kept, fitted on all texts.
        part: the linear model of all texts; None where it does not help.
        frozen: a linear model that reads the encoder as it is; None where it was not tried.
        instead: the classifier of all texts that `frozen` is of, where that is the better one.
    """

    encoder: CrossValidation
    linear: CrossValidation
    both: CrossValidation
    stack: Stack
    part: LinearPart | None
    frozen: CrossValidation | None = None
    instead: QuickResult | None = None

    @property
    def result(self) -> CrossValidation:
        """What is kept, in the folds."""
        return self.both if self.frozen is None or self.instead is None else self.frozen

    def describe(self) -> dict[str, Any]:
        """Scores and weights, ready for JSON."""
        scores = {
            name: {"mean_f1": one.mean_score, "sd_f1": one.sd_score, "fold_f1": one.fold_scores}
            for name, one in self._rows()
        }
        return {**scores, "weights": (self.instead or self.stack).weights}

    def alone(self) -> dict[str, CrossValidation]:
        """Each of the two by itself, by its name."""
        return {name: one for name, one in self._rows() if name != "both"}

    def table(self) -> str:
        """The scores under each other."""
        lines = [
            f"  {name:<8}{one.mean_score:.4f} ± {one.sd_score:.4f}" for name, one in self._rows()
        ]
        shown = ", ".join(f"{name} {weight:.2f}" for name, weight in self.stack.weights.items())
        return "\n".join(["macro F1 of the encoder, a linear model, and both", *lines, shown])

    def _rows(self) -> list[tuple[str, CrossValidation]]:
        rows = [("encoder", self.encoder), ("linear", self.linear), ("both", self.both)]
        return rows if self.frozen is None else [*rows, ("frozen", self.frozen)]


def add_linear(
    texts: Sequence[str],
    result: CrossValidation,
    plan: LinearPlan,
    progress: OnFit | None = None,
) -> Added:
    """Fit a linear model in the folds of every seed, and add it to the encoder.

    Args:
        texts: N, clean.
        result: of the encoder.
        plan: which parts.
        progress: called after every fit.
    """
    counted = count_texts(texts, kiwi=plan.kiwi)
    linear, both = [], []
    stack: Stack | None = None
    for seed in result.seeds:
        alone, added, found = _of_seed(counted, result, plan, seed, progress)
        linear.append(alone)
        both.append(added)
        stack = stack or found
    assert stack is not None
    part = None
    if set(stack.weights) - {TRAINED}:
        part = fit_linear(
            counted,
            result.targets,
            result.labels,
            stack,
            encoder=TRAINED,
            balanced=plan.balanced,
            seed=result.seeds[0],
        )
    return Added(
        encoder=result,
        linear=_with(result, linear),
        both=_with(result, both),
        stack=stack,
        part=part,
    )


def try_frozen(
    texts: Sequence[str], added: Added, plan: LinearPlan, encoder: FrozenEncoder
) -> Added:
    """Measure the encoder as it is, with a linear model on it, in the same folds.

    Args:
        texts: N, clean.
        added: what is there already.
        plan: which parts.
        encoder: the one that was fine-tuned, as it was before.
    """
    trainer = QuickTrainer(encoder, kiwi=plan.kiwi)
    result = added.encoder
    found = [
        trainer.fit(
            texts,
            [result.labels[label] for label in result.targets],
            fold_of=result.fold_of(seed),
            label_names=result.labels,
            balanced=plan.balanced,
            seed=seed,
        )
        for seed in result.seeds
    ]
    frozen = _with(result, [one.probabilities for one in found])
    better = _log_likelihood(frozen) > _log_likelihood(added.both)
    return replace(added, frozen=frozen, instead=found[0] if better else None)


def is_few(texts: int) -> bool:
    """Whether an encoder that is not trained may be the better one."""
    return FEWEST_TEXTS <= texts < FEW_TEXTS


def _log_likelihood(result: CrossValidation) -> float:
    """Mean over texts and seeds of the logarithm of the right label's probability."""
    given = [
        result.probabilities(seed)[np.arange(len(result.targets)), result.targets]
        for seed in result.seeds
    ]
    return float(np.log(np.maximum(given, _SMALLEST)).mean())


def _of_seed(
    counted: CountedTexts,
    result: CrossValidation,
    plan: LinearPlan,
    seed: int,
    progress: OnFit | None,
) -> tuple[np.ndarray, np.ndarray, Stack]:
    """Out-of-fold probabilities of the linear model and of both, [N, K], and the final weights."""
    fold_of = result.fold_of(seed)
    logits = out_of_fold_logits(
        counted,
        result.targets,
        len(result.labels),
        fold_of,
        balanced=plan.balanced,
        seed=seed,
        progress=progress,
    )
    alone = stack_out_of_fold(logits, result.targets, fold_of)
    encoder = np.log(np.maximum(result.probabilities(seed), _SMALLEST))
    stacked = stack_out_of_fold(
        {TRAINED: encoder, **logits}, result.targets, fold_of, always={TRAINED}
    )
    linear, both = (softmax(one.logits).astype(np.float32) for one in (alone, stacked))
    return linear, both, stacked.stack


def _with(result: CrossValidation, probabilities: Sequence[np.ndarray]) -> CrossValidation:
    """The same folds with other probabilities, [N, K] by the seed."""
    by_seed = dict(zip(result.seeds, probabilities, strict=True))
    return replace(
        result,
        results=[
            replace(
                fold,
                probabilities=by_seed[fold.seed][fold.places],
                scores=score_task(
                    result.task,
                    result.targets[fold.places],
                    by_seed[fold.seed][fold.places],
                    result.labels,
                    None,
                ),
            )
            for fold in result.results
        ],
    )
