"""What do few tokens teach? Dev accuracy against tokens seen, from different starts and recipes.

    python benchmarks/token_budget.py
    python benchmarks/token_budget.py --arms warm-rtd,warm-unigram --tokens 50e6 --seeds 1

For every arm, number of tokens and seed: pre-training (tiny, reviews), then fine-tuning on 20,000
NSMC training reviews and scoring on 20,000 others of the same file. Takes hours; what is done is
kept, and the same command goes on. Runs lie under runs/benchmarks/token_budget.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from downstream import (
    NSMC,
    REVIEWS,
    ROOT,
    DownstreamSettings,
    fine_tune,
    mean_and_spread,
    pretrain_once,
    read_record,
    split_reviews,
)

from corpora.atomic import write_at_once
from corpora.command_line import run_command
from corpora.errors import InputError
from finetune.training import TrainSettings

RESULTS = Path(__file__).parent / "results" / "token_budget.json"
RUNS = ROOT / "runs" / "benchmarks" / "token_budget"

# Flags of each arm; `warm` begins with the skip-gram vectors, once made for each seed.
ARMS: dict[str, tuple[str, list[str]]] = {
    "random-rtd": ("random", []),
    "warm-rtd": ("warm", []),
    "warm-mlm": ("warm", ["--objective", "mlm"]),
    "warm-mlm-30": ("warm", ["--objective", "mlm", "--mask-fraction", "0.3"]),
    "warm-noise": ("warm", ["--unigram-fraction", "1"]),
    "warm-unigram": ("warm", ["--unigram-fraction", "0.5"]),
    "warm-unigram-average": (
        "warm",
        ["--unigram-fraction", "0.5", "--average-fraction", "0.2"],
    ),
    "warm-weight-10": ("warm", ["--discriminator-weight", "10"]),
    "warm-muon": ("warm", ["--optimizer", "muon"]),
    "warm-gdes": ("warm", ["--sharing", "gdes"]),
    "warm-short": ("warm", ["--max-length", "32"]),
}


@dataclass(kw_only=True)
class BudgetSettings(DownstreamSettings):
    """Which arms, how long, how often."""

    arms: str = "random-rtd,warm-rtd,warm-mlm,warm-unigram"
    """Comma-separated names; all are listed when one is unknown."""
    tokens: str = "0,1e6,5e6,20e6"
    """Comma-separated numbers of tokens seen."""
    seeds: int = 3
    """Runs of each; they differ in first weights, order, masks and fine-tuning."""
    tokenizer: Path | None = None
    """Tokenizer directory; by default one of 16,000 entries is trained on the reviews."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: BudgetSettings) -> None:
    """Run what is missing, then print the table."""
    if not NSMC.is_file() or not REVIEWS.is_file():
        print(f"skipped: no {NSMC.name} or {REVIEWS.name} in ../shared/data")
        return
    arms = settings.arms.split(",")
    if unknown := [arm for arm in arms if arm not in ARMS]:
        raise InputError(f"expected --arms of {', '.join(ARMS)}, found {unknown[0]}")
    budgets = [int(float(number)) for number in settings.tokens.split(",")]
    train, dev = split_reviews(NSMC, settings.train_size, settings.dev_size)
    done = json.loads(settings.output.read_text()) if settings.output.is_file() else {}
    runs = done.setdefault("runs", [])
    done["setting"] = {
        "corpus": REVIEWS.name,
        "preset": "tiny",
        "train_size": len(train),
        "dev_size": len(dev),
        "epochs": settings.epochs,
    }
    for seed in range(settings.seeds):
        for tokens in budgets:
            for arm in arms:
                start, flags = ARMS[arm]
                # Without a token seen only the start tells arms apart.
                name = start if tokens == 0 else arm
                if any((r["arm"], r["tokens"], r["seed"]) == (name, tokens, seed) for r in runs):
                    continue
                encoder = _start(start, seed, settings.tokenizer)
                if tokens:
                    encoder = pretrain_once(
                        RUNS / f"{arm}-{tokens}-{seed}",
                        ["--init", encoder, "--preset", "tiny", "--seed", seed]
                        + ["--max-tokens", tokens, "--save-steps", 500, *flags],
                    )
                random_weights = name == "random"
                score = fine_tune(
                    encoder,
                    train,
                    dev,
                    TrainSettings(
                        epochs=settings.epochs,
                        seed=seed,
                        layer_decay=1.0 if random_weights else None,
                    ),
                )
                record = read_record(encoder)
                runs.append(
                    {
                        "arm": name,
                        "tokens": tokens,
                        "seed": seed,
                        "tokens_seen": record["progress"]["tokens"],
                        "seconds": round(record["progress"]["seconds"]),
                        "final_metrics": record["final_metrics"],
                    }
                    | score
                )
                shown = {key: value for key, value in runs[-1].items() if key != "final_metrics"}
                print(json.dumps(shown), flush=True)
                write_at_once(settings.output, json.dumps(done, indent=1))
    for tokens in budgets:
        for name in sorted({r["arm"] for r in runs if r["tokens"] == tokens}):
            scores = [r["accuracy"] for r in runs if (r["arm"], r["tokens"]) == (name, tokens)]
            print(f"{tokens / 1e6:6.0f}M {name:24} {mean_and_spread(scores)}")


def _start(start: str, seed: int, tokenizer: Path | None) -> Path:
    """The untrained networks of a seed, with or without skip-gram vectors."""
    flags: list[object] = ["--preset", "tiny", "--seed", seed, "--max-steps", 0]
    flags += ["--init", "skip-gram" if start == "warm" else "random"]
    if tokenizer is not None:
        flags += ["--tokenizer", tokenizer]
    return pretrain_once(RUNS / f"start-{start}-{seed}", flags)


if __name__ == "__main__":
    sys.exit(run_command(BudgetSettings, main, "Dev accuracy against tokens of pre-training."))
