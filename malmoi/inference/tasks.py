"""What a model is asked: one label of several, several at once, a value, or a question about
two texts."""

from typing import Literal

Task = Literal["single", "multi", "pair", "value", "pair-regression"]

# What transformers calls them in config.json; it decides the loss of its own Trainer, too.
PROBLEM_TYPES: dict[Task, str] = {
    "single": "single_label_classification",
    "multi": "multi_label_classification",
    "pair": "single_label_classification",
    "value": "regression",
    "pair-regression": "regression",
}

# The one output of a regression has to be called something in `id2label`.
REGRESSION_LABELS = ["score"]


def has_values(task: Task) -> bool:
    """Whether what is learnt is a number, not labels."""
    return task in ("value", "pair-regression")


def reads_pairs(task: str) -> bool:
    return task in ("pair", "pair-regression")


def main_score(task: Task) -> str:
    """The score that folds are compared by: a key of what `score_task` returns.

    KorSTS is compared by Spearman's correlation (Ham et al. 2020, section 4.2), the others by
    macro F1.
    """
    return "spearman" if has_values(task) else "macro_f1"


def score_name(task: Task) -> str:
    """The main score as people call it."""
    return "Spearman correlation" if has_values(task) else "F1 score"
