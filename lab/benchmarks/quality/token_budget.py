"""What do few tokens teach? Dev accuracy against tokens seen, from different starts and recipes.

    python -m lab.benchmarks.quality.token_budget
    python -m lab.benchmarks.quality.token_budget --arms warm-rtd,warm-unigram --tokens 50e6
    python -m lab.benchmarks.quality.token_budget --arms warm-noise-bag --also DIR …
    python -m lab.benchmarks.quality.token_budget --arms warm-default,warm-rtd --tokens 1e6,5e6,20e6

For every arm, number of tokens and seed: pre-training (tiny, reviews), then fine-tuning on 20,000
NSMC training reviews and scoring on 20,000 others of the same file. Takes hours; what is done is
kept, and the same command goes on. Runs lie under runs/benchmarks, in a folder named as --output.
"""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.benchmarks.data import NSMC_TRAIN
from lab.benchmarks.quality.downstream import (
    PretrainedSettings,
    Results,
    encoder_name,
    fine_tune,
    mean_and_spread,
    numbers_of,
    pretrain_once,
    read_record,
    runs_of,
    split_reviews,
    vocabulary_flags,
)
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import file_sha256
from malmoi.finetune.settings import TrainSettings

# token_budget.json is of runs that began with skip-gram vectors.
RESULTS = Path(__file__).parents[1] / "results" / "token_budget_word_vectors.json"

# What an arm begins with, made once for each seed: word vectors or not, and a generator as
# large as the discriminator where the two stages want one.
STARTS: dict[str, list[str]] = {
    "random": ["--init", "random"],
    "warm": ["--init", "word-vectors"],
    "warm, equal sizes": ["--init", "word-vectors", "--set", "generator.size=1"],
    "warm, 4,096 entries": ["--init", "word-vectors", "--vocab-size", "4096"],
}
# What the arms begin from; of a flag given twice the last counts.
PLAIN: list[object] = ["--recipe", "rtd"]
# What the first released encoder learnt.
NOISE_BAG = ["--recipe", "noise"]
# What the released encoder learnt (lab/release/make.py), but for the tokens.
RELEASED = ["--recipe", "few-tokens"]
RELEASED += ["--tokens-per-batch", "8192", "--learning-rate", "7e-4"]
# Start and flags of each arm.
ARMS: dict[str, tuple[str, list[str]]] = {
    "random-rtd": ("random", []),
    "warm-rtd": ("warm", []),
    "warm-mlm": ("warm", ["--recipe", "mlm"]),
    "warm-mlm-30": ("warm", ["--recipe", "mlm", "--set", "masking.fraction=0.3"]),
    "warm-noise": ("warm", ["--set", "objective.unigram_fraction=1"]),
    "warm-unigram": ("warm", ["--set", "objective.unigram_fraction=0.5"]),
    "warm-unigram-average": (
        "warm",
        ["--set", "objective.unigram_fraction=0.5", "--set", "optimizer.average_fraction=0.2"],
    ),
    "warm-weight-10": ("warm", ["--set", "objective.discriminator_weight=10"]),
    "warm-weight-rising": ("warm", ["--set", "objective.weight_warmup=0.5"]),
    "warm-decay-10": ("warm", ["--set", "optimizer.weight_decay=0.1"]),
    "warm-mlm-first": (
        "warm, equal sizes",
        ["--recipe", "two-stage"],
    ),
    "warm-small-vocabulary": ("warm, 4,096 entries", []),
    "warm-short": ("warm", ["--max-length", "32"]),
    "warm-gdes": ("warm", ["--recipe", "gdes"]),
    "warm-mask-30": (
        "warm",
        ["--set", "objective.unigram_fraction=0.5", "--set", "masking.fraction=0.3"],
    ),
    "warm-default": ("warm", ["--recipe", "default"]),
    "warm-noise-bag": ("warm", NOISE_BAG),
    "warm-noise-bag-packed": ("warm", [*NOISE_BAG, "--set", "batching.rows=packed"]),
    "warm-noise-bag-muon": ("warm", [*NOISE_BAG, "--set", "optimizer.name=muon"]),
    "warm-noise-bag-mask-30": ("warm", [*NOISE_BAG, "--set", "masking.fraction=0.3"]),
    "warm-noise-bag-rate-10": ("warm", [*NOISE_BAG, "--learning-rate", "1e-3"]),
    "warm-unigram-bag": ("warm", ["--recipe", "noise-first"]),
    "warm-noise-bag-correction": ("warm", ["--recipe", "few-tokens"]),
    "released": ("warm", RELEASED),
    "warm-noise-correction": (
        "warm",
        ["--set", "objective.unigram_fraction=1", "--set", "objective.correction_weight=5"],
    ),
    "warm-mlm-bag": ("warm", ["--recipe", "mlm", "--set", "objective.bag_weight=1"]),
}


@dataclass(kw_only=True)
class BudgetSettings(PretrainedSettings):
    """Which arms, how long, how often."""

    arms: str = "random-rtd,warm-rtd,warm-mlm,warm-noise-bag"
    """Comma-separated names; all are listed when one is unknown."""
    tokens: str = "0,1e6,5e6,20e6"
    """Comma-separated numbers of tokens seen."""
    seeds: int = 3
    """Runs of each; they differ in first weights, order, masks and fine-tuning."""
    first_seed: int = 0
    """Seed of the first of them."""
    tokenizer: Path | None = None
    """Tokenizer directory; by default one of 16,000 entries is trained on the reviews."""
    also: Path | None = None
    """Encoder with its run.json, such as a released one, to score too, at the tokens it saw."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: BudgetSettings) -> None:
    """Run what is missing, then print the table."""
    arms = settings.arms.split(",")
    if unknown := [arm for arm in arms if arm not in ARMS]:
        raise InputError(f"expected --arms of {', '.join(ARMS)}, found {unknown[0]}")
    budgets = [int(number) for number in numbers_of("tokens", settings.tokens)]
    corpus = settings.find_corpus()
    nsmc = NSMC_TRAIN.find(settings.folder)
    train, dev = split_reviews(nsmc, settings.train_size, settings.dev_size)
    results = Results(
        settings.output,
        corpus=corpus.name,
        tokenizer=None if settings.tokenizer is None else str(settings.tokenizer),
        preset="tiny",
        train_size=len(train),
        dev_size=len(dev),
        epochs=settings.epochs,
    )
    also = {} if settings.also is None else _identity(settings.also)
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        for tokens in budgets:
            for arm in arms:
                start = ARMS[arm][0]
                # Without a token seen only the start tells arms apart.
                name = start if tokens == 0 else arm
                key = {"arm": name, "tokens": tokens, "seed": seed}
                if results.of(**key):
                    continue
                encoder = _start(start, seed, settings, corpus)
                if tokens:
                    encoder = pretrain_once(
                        runs_of(settings.output) / f"{arm}-{tokens}-{seed}",
                        ["--init", encoder, *pretraining_flags(arm, tokens, seed)],
                        corpus=corpus,
                    )
                # Without vectors learnt before there is little to keep in the lower layers.
                decay = 1.0 if start == "random" else None
                training = TrainSettings(epochs=settings.epochs, layer_decay=decay)
                score = fine_tune(encoder, train, dev, training, seed=seed)
                results.add(key | _progress(encoder) | score)
        if settings.also is not None and not results.of(**also, seed=seed):
            training = TrainSettings(epochs=settings.epochs)
            score = fine_tune(settings.also, train, dev, training, seed=seed)
            results.add(also | {"seed": seed} | _progress(settings.also) | score)
    rows = results.rows
    for tokens in [*budgets, *([also["tokens"]] if also else [])]:
        for name in sorted({row["arm"] for row in rows if row["tokens"] == tokens}):
            scores = [row["accuracy"] for row in results.of(arm=name, tokens=tokens)]
            print(f"{tokens / 1e6:6.0f}M {name:24} {mean_and_spread(scores)}")
    _plot(rows, settings.output.with_suffix(".png"))


def _identity(encoder: Path) -> dict[str, Any]:
    """What rows of an encoder that was trained elsewhere are told by.

    Its name carries the weights' hash, so that no folder is taken for an arm.

    Raises:
        InputError: it has no record of its pre-training, or no weights.
    """
    weights = encoder / "model.safetensors"
    for path in (encoder / "run.json", weights):
        if not path.is_file():
            raise InputError(f"expected --also of an encoder with its record, found no {path}")
    sha256 = file_sha256(weights)
    return {
        "arm": f"{encoder_name(str(encoder))} ({sha256[:8]})",
        "tokens": read_record(encoder)["progress"]["tokens"],
        "weights_sha256": sha256,
    }


def _progress(encoder: Path) -> dict[str, Any]:
    """How far its pre-training went, and where that left its losses."""
    record = read_record(encoder)
    return {
        "tokens_seen": record["progress"]["tokens"],
        "pretraining_seconds": round(record["progress"]["seconds"]),
        "final_metrics": record["final_metrics"],
    }


def pretraining_flags(arm: str, tokens: int, seed: int) -> list[object]:
    """Flags of pretrain/run.py for an arm, but for what it begins with."""
    flags: list[object] = ["--preset", "tiny", "--seed", seed, "--max-tokens", tokens]
    return flags + ["--set", "execution.save_steps=500", *PLAIN, *ARMS[arm][1]]


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Mean accuracy against tokens seen, a line an arm; the starts are its first points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    for arm in sorted({row["arm"] for row in rows if row["arm"] in ARMS}):
        mine = [row for row in rows if row["arm"] in (arm, ARMS[arm][0])]
        budgets = sorted({row["tokens"] for row in mine})
        scores = [[row["accuracy"] for row in mine if row["tokens"] == n] for n in budgets]
        means = [statistics.mean(each) for each in scores]
        spreads = [statistics.stdev(each) if len(each) > 1 else 0.0 for each in scores]
        axis.errorbar([n / 1e6 for n in budgets], means, spreads, marker="o", capsize=3, label=arm)
    for name in sorted({row["arm"] for row in rows} - ARMS.keys() - STARTS.keys()):
        mine = [row for row in rows if row["arm"] == name]
        seen = statistics.mean(row["tokens"] for row in mine) / 1e6
        accuracy = statistics.mean(row["accuracy"] for row in mine)
        axis.plot(seen, accuracy, linestyle="", marker="*", markersize=12, label=name)
    axis.set_xscale("symlog", linthresh=1)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("million tokens seen")
    axis.set_ylabel("NSMC dev accuracy, %")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _start(start: str, seed: int, settings: BudgetSettings, corpus: Path) -> Path:
    """The untrained networks of a seed, with or without word vectors."""
    flags: list[object] = ["--preset", "tiny", "--seed", seed, "--max-steps", 0]
    flags += PLAIN
    flags += vocabulary_flags(corpus, settings.tokenizer)
    flags += STARTS[start]
    folder = runs_of(settings.output) / f"start-{start.replace(',', '').replace(' ', '-')}-{seed}"
    return pretrain_once(folder, flags, corpus=corpus)


if __name__ == "__main__":
    sys.exit(run_command(BudgetSettings, main, "Dev accuracy against tokens of pre-training."))
