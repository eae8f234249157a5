"""`malmoi compare FIRST SECOND`: which of two runs is better on the texts that both have."""

from dataclasses import dataclass

import tyro

ABOUT = (
    "Compare two runs of finetune/kfold.py text by text: their macro F1, the interval of the "
    "difference, and texts of which only one is right. What was predicted is read from "
    "predictions.csv, of each text by a model that had not learnt it."
)
_LONGEST = 60


@dataclass(kw_only=True)
class CompareSettings:
    """What is compared."""

    first: tyro.conf.Positional[str]
    """A run: its name in runs/finetune, or a folder."""
    second: tyro.conf.Positional[str]
    """Another one."""
    texts: int = 10
    """How many texts are shown of which only one of the two is right."""


def main(settings: CompareSettings) -> None:
    """Print the scores, their difference, and texts behind it."""
    from malmoi.inference.paired_runs import compare_runs, run_folder

    found = compare_runs(run_folder(settings.first), run_folder(settings.second))
    print(f"{found.texts:,} texts with the same label in both runs")
    print(f"macro F1 {found.first_f1:.4f}  {settings.first}")
    print(f"macro F1 {found.second_f1:.4f}  {settings.second}")
    better = settings.second if found.low > 0 else settings.first
    verdict = f"{better} is better on such texts" if found.is_sure else "it may be chance"
    if not found.same_folds:
        verdict = (
            "no verdict, for the two kept other texts in one fold (in_one_fold in report.json), "
            "and what a model has nearly learnt it knows; run both by one version and the same "
            "flags"
        )
    print(
        f"difference {found.second_f1 - found.first_f1:+.4f}, 95% interval {found.low:+.4f} to "
        f"{found.high:+.4f}: {verdict}"
    )
    print(f"right alone: {found.first_alone:,} texts the first, {found.second_alone:,} the second")
    for text in found.differing[: settings.texts]:
        line = " ".join(text.text.split())
        shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
        print(f"  {text.id}  {text.label}: {text.first} / {text.second}  {shown}")
