"""Which tokenizer serves the encoder best? Not by counts, but by what comes out downstream.

    python -m lab.benchmarks.quality.tokenizer_kinds --tokenizers wordpiece=DIR,unigram=DIR,bpe=DIR

For every tokenizer and seed: pre-training (tiny, same corpus, same number of tokens), then
fine-tuning and scoring on reviews of NSMC's training file; its test file has no place here. Takes
hours; what is done is kept, and the same command goes on. Runs lie under runs/benchmarks.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from lab.benchmarks.data import NSMC_TRAIN
from lab.benchmarks.quality.downstream import (
    PretrainedSettings,
    Results,
    fine_tune,
    mean_and_spread,
    pretrain_once,
    read_record,
    runs_of,
    split_reviews,
)
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.finetune.settings import TrainSettings

RESULTS = Path(__file__).parents[1] / "results" / "tokenizer_kinds.json"


@dataclass(kw_only=True)
class KindsSettings(PretrainedSettings):
    """What to compare, and for how long."""

    tokenizers: str = ""
    """Comma-separated NAME=DIRECTORY, as `malmoi tokenizer train` writes them."""
    tokens: int = 1_000_000
    """Tokens of each pre-training."""
    seeds: int = 3
    """Pre-training and fine-tuning runs of each tokenizer."""
    first_seed: int = 0
    """Seed of the first of them."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: KindsSettings) -> None:
    """Run what is missing of tokenizers x seeds, then print the table."""
    parts = settings.tokenizers.split(",") if settings.tokenizers else []
    if unfit := [part for part in parts if "=" not in part]:
        raise InputError(f"expected --tokenizers NAME=DIRECTORY[,...], found {unfit[0]!r}")
    tokenizers = dict(part.split("=", 1) for part in parts)
    if not tokenizers:
        raise InputError(
            "expected --tokenizers NAME=DIRECTORY[,...], found none; train them with `python -m "
            "tokenizer train`"
        )
    corpus = settings.find_corpus()
    nsmc = NSMC_TRAIN.find(settings.folder)
    train, dev = split_reviews(nsmc, settings.train_size, settings.dev_size)
    results = Results(
        settings.output,
        corpus=corpus.name,
        preset="tiny",
        tokens=settings.tokens,
        train_size=len(train),
        dev_size=len(dev),
        epochs=settings.epochs,
    )
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        for name, directory in tokenizers.items():
            key = {"tokenizer": name, "seed": seed}
            if results.of(**key):
                continue
            encoder = pretrain_once(
                runs_of(settings.output) / f"{name}-{settings.tokens}-{seed}",
                ["--tokenizer", directory, "--preset", "tiny", "--seed", seed]
                + ["--max-tokens", settings.tokens]
                + ["--recipe", "rtd"],
                corpus=corpus,
            )
            record = read_record(encoder)
            score = fine_tune(encoder, train, dev, TrainSettings(epochs=settings.epochs), seed=seed)
            results.add(
                key
                | {
                    "entries": record["vocab_size"],
                    "parameters": record["networks"]["discriminator"]["parameters"],
                    "corpus_tokens": record["corpus_tokens"],
                    "tokens_seen": record["progress"]["tokens"],
                    "generator_loss": record["final_metrics"]["generator_loss"],
                    "discriminator_recall": record["final_metrics"]["discriminator_recall"],
                }
                | score
            )
    for name in tokenizers:
        scores = [run["accuracy"] for run in results.of(tokenizer=name)]
        print(f"{name:24} {mean_and_spread(scores)}")


if __name__ == "__main__":
    sys.exit(
        run_command(KindsSettings, main, "Compare tokenizers by the classifiers they lead to.")
    )
