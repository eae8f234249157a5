"""What did pre-training bring? The same architecture fine-tuned from different starts.

    python -m lab.benchmarks.quality.pretraining_gain \\
        --starts warm=runs/pretrain/a,trained=runs/pretrain/b

Every start, and random weights, is fine-tuned on the same reviews of a labelled file and scored
on other reviews of the same file, over several seeds. Test files have no place here: this is for
choosing. Results are written after every run, and a second call goes on where the first stopped.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from lab.benchmarks.data import NSMC_TRAIN
from lab.benchmarks.quality.downstream import (
    DownstreamSettings,
    Results,
    encoder_name,
    fine_tune,
    identity_of,
    mean_and_spread,
    split_reviews,
)
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.finetune.settings import TrainSettings

RANDOM = "random weights"
RESULTS = Path(__file__).parents[1] / "results" / "pretraining_gain.json"


@dataclass(kw_only=True)
class GainSettings(DownstreamSettings):
    """Which starts to compare, on what."""

    starts: str = ""
    """Comma-separated NAME=DIRECTORY of pre-training runs, all of one architecture; by default the
    newest finished run."""
    texts: Path | None = None
    """Labelled file; both parts are drawn from it. By default NSMC's training file."""
    seeds: int = 3
    """Fine-tuning runs of each start (weights of the head, order, dropout)."""
    epochs: int = 4
    """Passes over the training reviews."""
    layer_decay: float | None = None
    """By default what finetune/kfold.py takes: 0.8 for a pre-trained encoder up to 256 wide, 1 for
    random weights, which have nothing to keep."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: GainSettings) -> None:
    """Run what is missing of starts x seeds, then print the table."""
    from malmoi.finetune.training.encoders import encoder_source
    from malmoi.model_folders import find_encoder

    data = settings.texts or NSMC_TRAIN.find(settings.folder)
    if not data.is_file():
        raise InputError(f"expected a labelled file, found no {data}; give another by --texts")
    parts = settings.starts.split(",") if settings.starts else []
    if unfit := [part for part in parts if "=" not in part]:
        raise InputError(f"expected --starts NAME=DIRECTORY[,...], found {unfit[0]!r}")
    starts = dict(part.split("=", 1) for part in parts)
    if not starts:
        newest = encoder_source(find_encoder())
        starts = {encoder_name(newest): newest}
    train, dev = split_reviews(data, settings.train_size, settings.dev_size)
    arms = {RANDOM: next(iter(starts.values()))} | starts
    identities = {
        arm: identity_of(encoder_source(directory), random_weights=arm == RANDOM)
        for arm, directory in arms.items()
    }
    results = Results(
        settings.output,
        train_size=len(train),
        dev_size=len(dev),
        epochs=settings.epochs,
        data=data.name,
    )
    for seed in range(settings.seeds):
        for arm, directory in arms.items():
            layer_decay = _layer_decay(arm, settings)
            key = {"arm": arm, "seed": seed, "layer_decay": layer_decay} | identities[arm]
            if results.of(**key):
                continue
            score = fine_tune(
                directory,
                train,
                dev,
                TrainSettings(epochs=settings.epochs, layer_decay=layer_decay),
                seed=seed,
                random_weights=arm == RANDOM,
            )
            results.add(key | score)
    for arm in arms:
        rows = results.of(arm=arm, layer_decay=_layer_decay(arm, settings), **identities[arm])
        print(f"{arm:32} {mean_and_spread([row['accuracy'] for row in rows])}")


def _layer_decay(arm: str, settings: GainSettings) -> float:
    if settings.layer_decay is not None:
        return settings.layer_decay
    return 1.0 if arm == RANDOM else 0.8


if __name__ == "__main__":
    sys.exit(run_command(GainSettings, main, "Fine-tune from different starts and compare."))
