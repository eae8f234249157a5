"""The linear model beside the encoder, in the encoder's own folds, and both added up.

How much each counts is learnt by stacking: for the texts of a fold from the out-of-fold logits of
the other folds, for the model that is kept from all. As with the temperature
(`malmoi.finetune.evaluation.calibration`), what the weights know of a text is what models that
trained on it say of others; strictly inside each training part every encoder would have to be
trained several times.

Legend: N texts, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from malmoi.finetune.evaluation.fold_results import CrossValidation
from malmoi.finetune.evaluation.scores import score_task
from malmoi.finetune.plan import LinearPlan
from malmoi.inference.linear.cross_fitting import (
    fit_linear,
    out_of_fold_logits,
    stack_out_of_fold,
)
from malmoi.inference.linear.fitting import count_texts
from malmoi.inference.linear.linear_part import LinearPart
from malmoi.inference.linear.morphemes import read_morphemes
from malmoi.inference.linear.stacking import Stack
from malmoi.inference.prediction import softmax
from malmoi.progress import Progress, no_progress

# Name of the fine-tuned encoder among the parts.
TRAINED = "encoder"
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
    """

    encoder: CrossValidation
    linear: CrossValidation
    both: CrossValidation
    stack: Stack
    part: LinearPart | None

    def describe(self) -> dict[str, Any]:
        """Scores and weights, ready for JSON."""
        scores = {
            name: {"mean_f1": one.mean_score, "sd_f1": one.sd_score, "fold_f1": one.fold_scores}
            for name, one in self._rows()
        }
        return {**scores, "weights": self.stack.weights}

    def better_alone(self) -> str:
        """A line where one of the two had the higher macro F1 in each fold; "" elsewhere.

        Weights are learnt for the likelihood of all texts, which rare labels hardly touch.
        """
        ways = {
            "encoder": "--set linear.enabled=false keeps it alone",
            "linear model": "--quick fits one alone",
        }
        for (name, way), one in zip(ways.items(), (self.encoder, self.linear), strict=True):
            pairs = zip(one.fold_scores, self.both.fold_scores, strict=True)
            if all(alone > both for alone, both in pairs):
                return f"the {name} alone has a higher macro F1 in each fold: {way}"
        return ""

    def table(self) -> str:
        """The three scores under each other."""
        lines = [
            f"  {name:<8}{one.mean_score:.4f} ± {one.sd_score:.4f}" for name, one in self._rows()
        ]
        shown = ", ".join(f"{name} {weight:.2f}" for name, weight in self.stack.weights.items())
        return "\n".join(["macro F1 of the encoder, a linear model, and both", *lines, shown])

    def _rows(self) -> list[tuple[str, CrossValidation]]:
        return [("encoder", self.encoder), ("linear", self.linear), ("both", self.both)]


def add_linear(
    texts: Sequence[str],
    result: CrossValidation,
    plan: LinearPlan,
    progress: Progress = no_progress,
) -> Added:
    """Fit a linear model in the folds of every seed, and add it to the encoder.

    Args:
        texts: N, clean.
        result: of the encoder.
        plan: which parts.
        progress: called after every fit.
    """
    counted = count_texts(texts, morphemes=read_morphemes if plan.morphemes else None)
    linear, both = [], []
    stack: Stack | None = None
    for seed in result.seeds:
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
        alone = stack_out_of_fold(logits, result.targets, fold_of, balanced=plan.balanced)
        encoder = np.log(np.maximum(result.probabilities(seed), _SMALLEST))
        stacked = stack_out_of_fold(
            {TRAINED: encoder, **logits},
            result.targets,
            fold_of,
            always={TRAINED},
            balanced=plan.balanced,
        )
        linear.append(softmax(alone.logits).astype(np.float32))
        both.append(softmax(stacked.logits).astype(np.float32))
        stack = stack or stacked.stack
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
