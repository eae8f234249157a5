"""What was found out of a model of values, as a page; see `page`."""

from collections.abc import Mapping, Sequence

import numpy as np

from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.fold_results import CrossValidation
from malmoi.finetune.report.files import pooled_scores
from malmoi.finetune.report.page import between, rendered
from malmoi.finetune.report.remarks import ScoreRemark

_MISTAKES = 20
# Different values that have a row each.
_SHOWN_VALUES = 20
_CARDS = {
    "mean_absolute_error": ("평균 절대 오차", ".3f"),
    "spearman": ("스피어만 상관", ".4f"),
    "rounded_accuracy": ("반올림하면 맞는 비율", ".1%"),
}


def value_page(
    examples: Examples,
    result: CrossValidation,
    facts: Mapping[str, Mapping[str, object]],
    *,
    notes: Sequence[ScoreRemark] = (),
    intervals: Mapping[str, Sequence[float]] | None = None,
    own_test: tuple[str, str] | None = None,
) -> str:
    """The page as HTML.

    Args:
        examples: texts with values.
        result: predictions; of several seeds the first is shown.
        facts: `settings` and `environment`, to show.
        notes: remarks.
        intervals: of the scores of a test, low and high, by name.
        own_test: card on a test of its own, number and words.
    """
    predicted, values = result.predicted(result.seeds[0]), result.targets
    errors, scores = abs(values - predicted), pooled_scores(result)
    texts = examples.texts
    if examples.pairs is not None:
        texts = [f"{one} / {other}" for one, other in zip(texts, examples.pairs, strict=True)]
    cards = [
        (format(scores[name], form), words + between((intervals or {}).get(name)))
        for name, (words, form) in _CARDS.items()
        if name in scores
    ]
    own = [] if own_test is None else [own_test]
    different = np.unique(values)
    return rendered(
        "values.html",
        examples,
        is_test=result.folds == 1,
        content=facts,
        cards=[*cards, (f"{len(texts):,}", "글"), *own],
        fold_scores=[fold.scores for fold in result.results] if result.folds > 1 else [],
        remarks=[one.korean for one in notes],
        of_values=[
            (value, inside.sum(), predicted[inside].mean(), errors[inside].mean())
            for value in (different if len(different) <= _SHOWN_VALUES else ())
            if (inside := values == value).any()
        ],
        mistakes=[
            (values[place], predicted[place], examples.ids[place], texts[place])
            for place in np.argsort(-errors, kind="stable")[:_MISTAKES]
        ],
    )
