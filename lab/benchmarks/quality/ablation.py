"""The paper's ablations at a small size: objectives, schedules, sharing, generator sizes.

    python -m lab.benchmarks.quality.ablation                   # preset tiny, on a CPU, in hours
    python -m lab.benchmarks.quality.ablation --preset small --flops 2e16   # on a GPU

Every arm pre-trains with the same number of operations (the paper's counting), then its encoder
is fine-tuned and scored on NSMC (two classes) and on reviews by rating (부정 1-4, 중립 5-8,
긍정 9-10), both on parts of training files. What is done is kept, and the same command goes on.
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

from lab.benchmarks.data import NSMC_TRAIN, RATED_REVIEWS
from lab.benchmarks.quality.downstream import (
    RATING_LABELS,
    PretrainedSettings,
    Results,
    fine_tune,
    mean_and_spread,
    pretrain_once,
    read_record,
    runs_of,
    split_reviews,
    vocabulary_flags,
)
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.finetune.settings import TrainSettings
from malmoi.pretrain.config.settings import PresetName

# ablation.json is of runs that began with skip-gram vectors.
RESULTS = Path(__file__).parents[1] / "results" / "ablation_word_vectors.json"

# Clark et al. 2020: objectives Table 5, schedules Figure 3 (right) and Appendix F, sharing
# Section 3.2, generator sizes Figure 3 (left). Within a group everything else is equal: two-stage
# and sharing all need a generator of full size, so the others of their groups have one too, and
# two-stage shares nothing, so no schedule does. Arms of the same flags are one run. Ours differ
# from the paper where docs/decisions.md says so: adversarial has a batch mean for baseline, and
# the discriminator's weight of 50 stands before the losses of Replace MLM and All-Tokens MLM too.
GROUPS: dict[str, dict[str, list[str]]] = {
    "objective": {
        "start alone": ["--max-steps", "0"],
        "ELECTRA": [],
        "All-Tokens MLM": ["--recipe", "all-tokens-mlm"],
        "Replace MLM": ["--recipe", "replace-mlm"],
        "ELECTRA 15%": ["--recipe", "electra-15"],
        "BERT": ["--recipe", "mlm"],
    },
    "schedule": {
        "joint": ["--set", "generator.sharing=none", "--set", "generator.size=1"],
        "two-stage": ["--set", "objective.schedule=two-stage", "--set", "generator.size=1"],
        "adversarial": [
            *("--set", "objective.schedule=adversarial"),
            *("--set", "generator.sharing=none", "--set", "generator.size=1"),
        ],
    },
    "sharing": {
        "none": ["--set", "generator.sharing=none", "--set", "generator.size=1"],
        "word": ["--set", "generator.sharing=word", "--set", "generator.size=1"],
        "instance": ["--set", "generator.size=1"],
        "gdes": ["--set", "generator.sharing=gdes", "--set", "generator.size=1"],
        "all": ["--set", "generator.sharing=all", "--set", "generator.size=1"],
    },
    "generator size": {
        "1/8": ["--set", "generator.size=0.125"],
        "1/4": [],
        "1/2": ["--set", "generator.size=0.5"],
        "1": ["--set", "generator.size=1"],
    },
}


@dataclass(kw_only=True)
class AblationSettings(PretrainedSettings):
    """Which groups, how much compute, how often; as a whole some 6 hours of one core."""

    train_size: int = 10_000
    dev_size: int = 10_000
    epochs: int = 2
    groups: str = ",".join(GROUPS)
    """Comma-separated groups of arms."""
    preset: PresetName = "tiny"
    """Size of the discriminator."""
    flops: float = 5e13
    """Operations of each pre-training, by the paper's counting; 5e13 is about 1.6 million tokens of
    ELECTRA at preset tiny."""
    init: str = "word-vectors"
    """Start of every arm."""
    seeds: int = 2
    """Runs of each arm."""
    tokenizer: Path | None = None
    """Tokenizer directory; by default one of 16,000 entries is trained on the reviews."""
    output: Path = RESULTS
    """JSON file of the results; the plot lies beside it."""


def main(settings: AblationSettings) -> None:
    """Run what is missing, then print the tables and draw the plot."""
    groups = settings.groups.split(",")
    if unknown := [group for group in groups if group not in GROUPS]:
        raise InputError(f"expected --groups of {', '.join(GROUPS)}, found {unknown[0]}")
    sizes = (settings.train_size, settings.dev_size)
    nsmc, reviews = (file.find(settings.folder) for file in (NSMC_TRAIN, RATED_REVIEWS))
    tasks = {"nsmc": split_reviews(nsmc, *sizes), "three": split_by_rating(reviews, *sizes)}
    corpus = settings.find_corpus()
    results = Results(
        settings.output,
        corpus=corpus.name,
        tokenizer=None if settings.tokenizer is None else str(settings.tokenizer),
        preset=settings.preset,
        flops=settings.flops,
        init=settings.init,
        train_size=settings.train_size,
        dev_size=settings.dev_size,
        epochs=settings.epochs,
    )
    for seed in range(settings.seeds):
        for group in groups:
            for flags in GROUPS[group].values():
                key = {"flags": " ".join(flags), "seed": seed}
                if not results.of(**key):  # arms of two groups may be one run
                    results.add(key | _measure(flags, seed, settings, corpus, tasks))
    for group in groups:
        print(group)
        for name, flags in GROUPS[group].items():
            mine = results.of(flags=" ".join(flags))
            two = mean_and_spread([run["nsmc"] for run in mine])
            three = mean_and_spread([run["three"] for run in mine])
            print(f"  {name:16} NSMC {two}   three classes {three}")
    # All groups: rows of those that were not asked for are there too.
    _plot(results.rows, list(GROUPS), settings.output.with_suffix(".png"))


def _measure(
    flags: list[str],
    seed: int,
    settings: AblationSettings,
    corpus: Path,
    tasks: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]]]],
) -> dict[str, object]:
    name = "-".join(flag.strip("-") for flag in flags) or "electra"
    given: list[object] = ["--preset", settings.preset, "--seed", seed, "--init", settings.init]
    given += [] if "--max-steps" in flags else ["--set", f"length.max_flops={settings.flops}"]
    # The last of a flag given twice counts.
    given += ["--recipe", "rtd", "--set", "execution.save_steps=500", *flags]
    if settings.init in ("random", "word-vectors"):  # a checkpoint has a vocabulary
        given += vocabulary_flags(corpus, settings.tokenizer)
    folder = runs_of(settings.output) / f"{settings.preset}-{settings.flops:g}-{name}-{seed}"
    run = pretrain_once(folder, given, corpus=corpus)
    record = read_record(run)
    scores: dict[str, object] = {}
    for task, (train, dev) in tasks.items():
        score = fine_tune(run, train, dev, TrainSettings(epochs=settings.epochs), seed=seed)
        scores[task] = score["accuracy" if task == "nsmc" else "macro_f1"]
    return scores | {
        "tokens_seen": record["progress"]["tokens"],
        "seconds": round(record["progress"]["seconds"]),
        "final_metrics": {key: round(value, 4) for key, value in record["final_metrics"].items()},
    }


def split_by_rating(
    reviews: Path, train_size: int, dev_size: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Two disjoint random parts of the rated reviews, as many of each class; no text in both."""
    from malmoi.text.cleaning.cleaner import clean_text
    from malmoi.text.reading.records import iter_records

    by_label: dict[str, dict[str, None]] = {label: {} for label in RATING_LABELS.values()}
    for record in iter_records(reviews, label_column="rating", need_label=True):
        if text := clean_text(record.text):
            by_label[RATING_LABELS[str(record.label)]][text] = None
    each = -(-(train_size + dev_size) // 3)
    source = random.Random(0)
    examples = []
    taken: set[str] = set()
    for label, texts in by_label.items():
        fresh = sorted(set(texts) - taken)
        chosen = source.sample(fresh, each)
        taken.update(chosen)
        examples += [(text, label) for text in chosen]
    source.shuffle(examples)
    return examples[:train_size], examples[train_size : train_size + dev_size]


def _plot(runs: list[dict[str, object]], groups: list[str], path: Path) -> None:
    """One column a group, one row a task: every run a dot, the mean a line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tasks = {"nsmc": "NSMC dev accuracy, %", "three": "three classes dev macro F1, %"}
    size = (4 * len(groups), 3.5 * len(tasks))
    figure, axes = pyplot.subplots(
        len(tasks), len(groups), figsize=size, sharex="col", sharey="row", squeeze=False
    )
    for row, (task, label) in zip(axes, tasks.items(), strict=True):
        row[0].set_ylabel(label)
        for axis, group in zip(row, groups, strict=True):
            for place, flags in enumerate(GROUPS[group].values()):
                scores = [float(str(r[task])) for r in runs if r["flags"] == " ".join(flags)]
                if scores:
                    axis.scatter([place] * len(scores), scores, s=18)
                    axis.hlines(sum(scores) / len(scores), place - 0.3, place + 0.3)
    for top, bottom, group in zip(axes[0], axes[-1], groups, strict=True):
        top.set_title(group)
        bottom.set_xticks(range(len(GROUPS[group])), list(GROUPS[group]), rotation=30, ha="right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(run_command(AblationSettings, main, "The paper's ablations at equal operations."))
