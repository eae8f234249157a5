"""What a run says on the terminal: of its texts, its scores, and what they do not say."""

from collections import Counter

import numpy as np

from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.folds import SplitTexts, absent_kinds
from malmoi.finetune.evaluation.fold_results import CrossValidation, FoldResult
from malmoi.finetune.evaluation.scores import score
from malmoi.finetune.report.remarks import remarks, remarks_on_alike
from malmoi.inference.tasks import Task, main_score, score_name

# Rows that are named one by one.
_SHOWN = 5
# Columns of the table of folds: key of the scores and heading.
_COLUMNS: dict[Task, tuple[tuple[str, str], ...]] = {
    "single": (("macro_f1", "macro F1"), ("weighted_f1", "weighted F1"), ("accuracy", "accuracy")),
    "multi": (("macro_f1", "macro F1"), ("micro_f1", "micro F1"), ("accuracy", "accuracy")),
    "pair": (("macro_f1", "macro F1"), ("weighted_f1", "weighted F1"), ("accuracy", "accuracy")),
    "value": (
        ("spearman", "Spearman"),
        ("mean_absolute_error", "absolute error"),
        ("rounded_accuracy", "rounded accuracy"),
    ),
    "pair-regression": (
        ("spearman", "Spearman"),
        ("pearson", "Pearson"),
        ("mean_squared_error", "squared error"),
    ),
}


def print_data(examples: Examples, split: SplitTexts | None = None, cut: str = "") -> None:
    """Say what is learnt from: how many texts of what, and what was left out.

    Args:
        split: what stays in one fold; None of a test.
        cut: a line on texts that are too long; none where it is empty.
    """
    counts = ", ".join(f"{label} {count:,}" for label, count in examples.counts.items())
    what = examples.what
    shown = f" ({counts})" if counts else ""
    print(f"data: {examples.path}, {len(examples.texts):,} {what}{shown}")
    if examples.label_columns:
        print(f"labels: the columns of 0 and 1, {', '.join(examples.label_columns)}")
    if examples.separators:
        print(f"labels: any of {examples.separators} stands between those of one cell")
    for reason, count in (
        ("left out {:,} rows without a label", examples.unlabelled),
        (f"left out {{:,}} repeated {what}", examples.repeats),
        (f"left out {{:,}} {what} that are empty after cleaning", examples.empty),
        (f"{{:,}} {what} have no label, which is learnt, too", examples.without_label),
    ):
        if count:
            print(reason.format(count))
    if examples.rare:
        rare = ", ".join(f"{label} {count:,}" for label, count in examples.rare.items())
        did = f"left out {examples.rare_texts:,} {what} of" if examples.rare_texts else "joined"
        print(f"rare labels: {did} {rare}")
    if examples.contradictions:
        rows = [
            f"{one.id} {one.label or 'none'} ({one.kept_id} {one.kept_label or 'none'})"
            for one in examples.contradicting[:_SHOWN]
        ]
        rest = examples.contradictions - len(rows)
        more = f" and {rest:,} more, see data.contradicting in report.json" if rest else ""
        print(
            f"warning: left out {examples.contradictions:,} rows that give a text another label "
            f"than its first row, which is learnt: {', '.join(rows)}{more}"
        )
    if cut:
        print(cut)
    if (test := examples.own_test) is not None:
        print(f"test: {len(test.examples.texts):,} {what} that are in no fold: {test.origin}")
        for line, count in (
            (f"left out {{:,}} {what} that stand in the test", test.in_both),
            ("{:,} rows of a part for development are learnt, too", test.joined),
        ):
            if count:
                print(line.format(count))
    for remark in remarks_on_alike(split) if split is not None else ():
        print(remark.english)
    if split is not None and split.groups is not None:
        sizes = np.bincount(split.groups)
        print(
            f"groups: {sizes[sizes > 1].sum():,} {what} in {(sizes > 1).sum():,} groups of "
            "several, each in one fold"
        )


def print_absent_labels(split: SplitTexts, examples: Examples) -> None:
    """Say which labels a fold lacks, for their groups or texts are few; of one label each."""
    if examples.task not in ("single", "pair"):
        return
    groups_of = np.arange(len(split.strata)) if split.groups is None else split.groups
    without = Counter(
        label
        for fold_of in split.fold_of.values()
        for _, label in absent_kinds(split.strata, fold_of, split.folds)
    )
    folds = split.folds * len(split.fold_of)
    for label, count in without.items():
        groups = len(np.unique(groups_of[split.strata == label]))
        print(
            f"the texts of {examples.labels[label]} are in {groups:,} groups: {count} of "
            f"{folds} folds are without it and scored by the other labels"
        )


def print_fold(fold: FoldResult, task: Task, whose: str = "") -> None:
    """Say the score of a fold; `whose` begins the line."""
    shown = f"{fold.scores[main_score(task)]:.4f}"
    print(f"{whose}{score_name(task)} for fold {fold.fold}: {shown}", flush=True)


def print_scores(result: CrossValidation, *, weighted: bool) -> None:
    """Say what the folds come to, and what that does not say.

    Args:
        weighted: whether rare labels counted more in training.
    """
    print(
        f"Average {score_name(result.task)}: {result.summary.mean:.4f} "
        f"(standard deviation {result.summary.sd:.4f})"
    )
    print(fold_table(result), flush=True)
    print_remarks(result, weighted=weighted)


def print_remarks(result: CrossValidation, *, weighted: bool) -> None:
    """Say what the scores do not, of one label a text or pair; of several seeds the first."""
    if result.task not in ("single", "pair"):
        return
    predicted = result.predicted(result.seeds[0])
    scores = score(result.targets.tolist(), predicted.tolist(), result.labels)
    for one in remarks(scores, weighted=weighted):
        print(one.english, flush=True)


def fold_table(result: CrossValidation) -> str:
    """All folds, then mean ± standard deviation and the 95% interval of the mean; aligned text."""
    columns = [
        (key, name)
        for key, name in _COLUMNS[result.task]
        if all(key in fold.scores for fold in result.results)
    ]
    seeds = len(result.seeds) > 1
    header = [*(["seed"] if seeds else []), "fold", "texts", *(name for _, name in columns)]
    # A linear model has none.
    epochs = any(fold.epochs for fold in result.results)
    rows = [[*header, *(["epoch"] if epochs else []), "seconds"]]
    for fold in result.results:
        rows.append(
            [
                *([str(fold.seed)] if seeds else []),
                str(fold.fold),
                f"{len(fold.places):,}",
                *(f"{fold.scores[key]:.4f}" for key, _ in columns),
                *([str(fold.best_epoch)] if epochs else []),
                f"{fold.seconds:.1f}",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
    found = result.summary
    lines.append(
        f"{columns[0][1]} {found.mean:.4f} ± {found.sd:.4f} (sd of {len(result.results)} folds), "
        f"95% interval of the mean {found.low:.4f} to {found.high:.4f}"
    )
    return "\n".join(lines)
