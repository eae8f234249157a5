"""Does pre-training by fewer operations give the same encoder for less time?

    python -m lab.benchmarks.quality.fewer_operations --corpus TEXTS.txt
    python -m lab.benchmarks.quality.fewer_operations --corpus TEXTS.txt --arms plain,stacked

Every arm trains the default recipe from the same start by the same schedule of learning rates;
`plain-half` and `plain-quarter` do so for fewer tokens, which is the curve that an arm has to beat.

`stacked`: a part of the layers at first, which are copied on top of themselves until all are
there, Adam's moments too (Gong et al. 2019). `dropped`: the layers between the first and the last
read half of each text's tokens, [CLS], the hidden ones and the rarest of the others (Hou et al.
2022, who take those with the largest losses instead of the rarest).

First it measures what a token costs with fewer layers or tokens. Seconds are those of a
processor, of the training alone. Scores: fine-tuned on NSMC training reviews, accuracy on others of
that file; and, of runs within one pass over the corpus, the losses on texts that no arm has seen,
words replaced by noise. Give a --corpus without the reviews that are scored on. What is done is
kept; the same command goes on.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerFast

from lab.benchmarks.data import NSMC_TRAIN
from lab.benchmarks.quality.downstream import (
    ROOT,
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
from malmoi.devices import attention_for, choose_device, keep_freed_memory
from malmoi.errors import InputError
from malmoi.finetune.settings import TrainSettings
from malmoi.pretrain.config.run_plan import LengthPlan, plan_from_json
from malmoi.pretrain.data.batches import Batch, Prefetcher, iter_plans, plan_epoch
from malmoi.pretrain.data.tokenized import TokenizedCorpus, open_tokenized
from malmoi.pretrain.engine.checkpoint import TrainerState, load_state
from malmoi.pretrain.engine.loop import Trainer, make_objective
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.engine.processes import Processes
from malmoi.pretrain.model.stacking import run_part, stack
from malmoi.pretrain.objectives.step import StepResult
from malmoi.pretrain.start import make_networks

RESULTS = Path(__file__).parents[1] / "results" / "fewer_operations.json"
# Batches at the end of the first pass that losses are measured on.
_HELD_BATCHES = 20
_LOSSES = ("detection_loss", "correction_loss", "bag_loss")


@dataclass(frozen=True)
class Arm:
    """What an arm saves.

    Attributes:
        tokens: part of --tokens that it sees.
        depths: part of the layers that run from a part of its steps on, in their order.
        kept: part of the tokens that the layers in the middle read.
    """

    tokens: float = 1.0
    depths: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    kept: float = 1.0

    def depth_at(self, fraction: float, layers: int) -> int:
        """How many layers run when `fraction` of the steps is done."""
        return round(layers * [part for start, part in self.depths if start <= fraction][-1])


ARMS = {
    "plain": Arm(),
    "plain-half": Arm(tokens=0.5),
    "plain-quarter": Arm(tokens=0.25),
    "stacked": Arm(depths=((0.0, 0.25), (0.35, 0.5), (0.7, 1.0))),
    "stacked-three-quarters": Arm(tokens=0.75, depths=((0.0, 0.25), (0.35, 0.5), (0.7, 1.0))),
    "stacked-half": Arm(depths=((0.0, 0.5), (0.5, 1.0))),
    "dropped": Arm(kept=0.5),
}


@dataclass(kw_only=True)
class FewerSettings(PretrainedSettings):
    """Which arms, how long, how often."""

    arms: str = "plain,plain-half,stacked,dropped"
    """Comma-separated names; all are listed when one is unknown."""
    tokens: int = 2_000_000
    """Tokens that the whole run sees."""
    preset: str = "tiny"
    """Sizes of the networks."""
    tokenizer: Path = ROOT / "checkpoints" / "malmoi-small"
    """Tokenizer directory."""
    tokens_per_batch: int = 4_096
    """Tokens of a step."""
    seeds: int = 3
    """Runs of each; they differ in first weights, order, masks and fine-tuning."""
    cost_steps: int = 5
    """Steps that what a token costs is the median of; 0: do not measure it."""
    train_size: int = 4_000
    dev_size: int = 10_000
    output: Path = RESULTS
    """JSON file of the results."""


class DroppingEncoder(nn.Module):
    """An ELECTRA encoder whose layers between the first and the last read some tokens only."""

    def __init__(self, encoder: Any, kept: float) -> None:
        super().__init__()
        self.layer: nn.ModuleList = encoder.layer
        self.kept = kept
        self.importance = torch.zeros(())
        """float32 [b, L]: of a row the tokens with the largest are read."""

    def forward(self, hidden: torch.Tensor, attention_mask: Any = None, **inputs: Any) -> Any:
        """[b, L, H] -> the last hidden states, as transformers hands them out."""
        from transformers.modeling_outputs import (
            BaseModelOutputWithPastAndCrossAttentions as Output,
        )

        width = hidden.shape[1]
        number = min(width, -(-int(width * self.kept) // 4) * 4)
        places = self.importance.topk(number, dim=1).indices.sort(dim=1).values
        rows = torch.arange(len(hidden))[:, None]
        among = attention_mask
        if among is not None:  # [b, 1, 1 or L, L]
            among = among.expand(len(hidden), 1, width, width)[
                rows[:, :, None], 0, places[:, :, None], places[:, None, :]
            ][:, None]
        first, *middle, last = self.layer
        whole = first(hidden, attention_mask)
        part = whole[rows, places]
        for layer in middle:
            part = layer(part, among)
        return Output(last(whole.index_put((rows, places), part), attention_mask))


class ShorterTrainer(Trainer):
    """A trainer whose steps leave out what an arm leaves out."""

    def begin(self, arm: Arm) -> None:
        """Let tokens be left out, and layers from the first step on."""
        self.arm, self.part = arm, 0.0
        self.stock: dict[str, Any] = {}
        if arm.kept < 1:
            for name, network in self.pair.networks().items():
                electra = network.electra
                self.stock[name] = electra.encoder
                electra.encoder = DroppingEncoder(electra.encoder, arm.kept)
                electra.register_forward_pre_hook(self._weigh, with_kwargs=True)

    def end(self) -> None:
        """Let all tokens run through stock encoders again."""
        for name, encoder in self.stock.items():
            electra = self.pair.networks()[name].electra
            electra.encoder = encoder

    def _weigh(self, electra: Any, given: tuple[Any, ...], inputs: dict[str, Any]) -> None:
        """Say which tokens matter, by what the generator is shown: it reads before the other."""
        ids, tables = given[0], self.objective.tables
        generator = self.pair.generator
        if generator is None or electra is generator.electra:
            importance = tables.surprisal[ids].float()
            importance[ids == tables.mask_id] = 1e4
            importance[:, 0] = 1e5
            mask = inputs["attention_mask"]
            if mask is not None:
                importance = importance.masked_fill(mask == 0, -1.0)
            self.importance = importance
        if isinstance(electra.encoder, DroppingEncoder):
            electra.encoder.importance = self.importance

    def take_step(self, batch: Batch, fraction: float) -> tuple[float, StepResult]:
        """A step with the layers of that moment."""
        layers = self.pair.discriminator.config.num_hidden_layers
        part = self.arm.depth_at(fraction, layers) / layers
        if not self.part:
            run_part(self.pair, part)
        elif part != self.part:
            stack(self.pair, self.optimizers, part)
        self.part = part
        return super().take_step(batch, fraction)


def make_trainer(
    start: Path, arm: Arm, length: LengthPlan
) -> tuple[ShorterTrainer, TokenizedCorpus, PreTrainedTokenizerFast]:
    """A trainer of an arm, from the weights of an untrained run."""
    record = read_record(start)
    corpus, tokenizer = open_tokenized(Path(record["tokenized_corpus"]))
    planned = replace(plan_from_json(record["plan"], start), length=length)
    processes = Processes(device=choose_device("cpu"))
    keep_freed_memory(processes.device)
    pair = make_networks(planned, tokenizer)
    pair.set_attention(attention_for(processes.device))
    pair.set_dropout(planned.networks.dropout)
    optimizers = Optimizers(pair, planned.optimizer)
    load_state(start / "state", pair, optimizers, print)
    objective = make_objective(
        pair, corpus, tokenizer, planned.objective, processes, planned.networks.precision
    )
    trainer = ShorterTrainer(
        pair, optimizers, objective, planned, processes, TrainerState(), flops_per_token=0.0
    )
    trainer.begin(arm)
    pair.train()
    return trainer, corpus, tokenizer


def take_steps(
    trainer: ShorterTrainer, corpus: TokenizedCorpus, tokenizer: PreTrainedTokenizerFast
) -> Iterator[float]:
    """Train to the end; after each step the processor's microseconds a token."""
    planned, progress = trainer.plan, trainer.progress
    plans = iter_plans(
        corpus.lengths, planned.batching.tokens_per_batch, planned.start.seed, row_length=None
    )
    with Prefetcher(corpus, plans, tokenizer, trainer.processes.device) as batches:
        while (fraction := trainer.done_fraction()) < 1:
            batch = next(batches)
            began = time.process_time()
            trainer.take_step(batch, fraction)
            progress.step += 1
            progress.tokens += batch.num_tokens
            yield (time.process_time() - began) / batch.num_tokens * 1e6


def cost(start: Path, arm: Arm, steps: int) -> float:
    """Processor's microseconds a token: the median of so many steps after a first one."""
    length = LengthPlan(limit="max_steps", amount=steps + 1, epochs=None)
    _, *others = take_steps(*make_trainer(start, arm, length))
    return round(statistics.median(others), 1)


def train(start: Path, arm: Arm, tokens: int, output: Path) -> dict[str, Any]:
    """Train from an untrained run, and write the networks.

    Returns:
        Processor seconds of the run, tokens, and losses on held out texts.
    """
    length = LengthPlan(limit="max_tokens", amount=round(tokens * arm.tokens), epochs=None)
    trainer, corpus, tokenizer = make_trainer(start, arm, length)
    began = time.process_time()
    for _ in take_steps(trainer, corpus, tokenizer):
        pass
    seconds = time.process_time() - began
    trainer.end()
    trainer.pair.save_networks(output, tokenizer)
    losses = held_out_losses(trainer, corpus, tokenizer)
    seen = {"tokens_seen": trainer.progress.tokens, "steps": trainer.progress.step}
    return seen | {"cpu_seconds": round(seconds, 1)} | losses


def held_out_losses(
    trainer: ShorterTrainer, corpus: TokenizedCorpus, tokenizer: PreTrainedTokenizerFast
) -> dict[str, float]:
    """Losses of the whole encoder on the last batches of the first pass, in which noise stands.

    None where the run came so far that it has learnt from them.
    """
    planned, pair = trainer.plan, trainer.pair
    seed, size = planned.start.seed, planned.batching.tokens_per_batch
    plans = plan_epoch(corpus.lengths, size, seed, 0)
    if trainer.progress.step > len(plans) - _HELD_BATCHES:
        return {}
    objective = make_objective(
        pair,
        corpus,
        tokenizer,
        replace(planned.objective, unigram_fraction=1.0),
        trainer.processes,
        planned.networks.precision,
    )
    sums: dict[str, float] = {}
    random = torch.Generator().manual_seed(0)
    with (
        Prefetcher(
            corpus, iter(plans[-_HELD_BATCHES:]), tokenizer, trainer.processes.device
        ) as batches,
        torch.no_grad(),
    ):
        for _ in range(_HELD_BATCHES):
            result = objective(pair, next(batches), random)
            losses = result.auxiliary | {"detection_loss": result.discriminator_loss}
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0.0) + float(loss) / _HELD_BATCHES
    return {name: round(total, 4) for name, total in sums.items()}


def main(settings: FewerSettings) -> None:
    """Run what is missing, then print the table."""
    arms = settings.arms.split(",")
    if unknown := [arm for arm in arms if arm not in ARMS]:
        raise InputError(f"expected --arms of {', '.join(ARMS)}, found {unknown[0]}")
    corpus = settings.find_corpus()
    results = Results(
        settings.output,
        corpus=corpus.name,
        tokens=settings.tokens,
        tokens_per_batch=settings.tokens_per_batch,
        train_size=settings.train_size,
        dev_size=settings.dev_size,
        epochs=settings.epochs,
    )
    preset, runs = settings.preset, runs_of(settings.output)

    def start_of(seed: int) -> Path:
        flags: list[object] = ["--preset", preset, "--seed", seed, "--max-steps", 0]
        flags += ["--tokenizer", settings.tokenizer]
        flags += ["--tokens-per-batch", settings.tokens_per_batch]
        return pretrain_once(runs / f"start-{preset}-{seed}", flags, corpus=corpus)

    for depth, kept in ((1.0, 1.0), (0.5, 1.0), (0.25, 1.0), (1.0, 0.5)):
        key: dict[str, Any] = {"preset": preset, "depth": depth, "kept": kept}
        if settings.cost_steps and not results.of(**key):
            shorter = Arm(depths=((0.0, depth),), kept=kept)
            results.add(key | {"us_a_token": cost(start_of(0), shorter, settings.cost_steps)})
    keys: list[dict[str, Any]] = [
        {"preset": preset, "arm": arm, "seed": seed}
        for seed in range(settings.seeds)
        for arm in arms
    ]
    for key in keys:
        if not results.of(**key, what="pre-training"):
            output = runs / f"{preset}-{key['arm']}-{key['seed']}"
            row = train(start_of(key["seed"]), ARMS[key["arm"]], settings.tokens, output)
            results.add(key | {"what": "pre-training"} | row)
    if missing := [key for key in keys if not results.of(**key, what="fine-tuning")]:
        nsmc = NSMC_TRAIN.find(settings.folder)
        reviews, dev = split_reviews(nsmc, settings.train_size, settings.dev_size)
        training = TrainSettings(epochs=settings.epochs)
        for key in missing:
            encoder = runs / f"{preset}-{key['arm']}-{key['seed']}" / "discriminator"
            score = fine_tune(encoder, reviews, dev, training, seed=key["seed"])
            results.add(key | {"what": "fine-tuning"} | score)
    for arm in arms:
        rows = results.of(preset=preset, arm=arm)
        for name in ("cpu_seconds", *_LOSSES, "accuracy"):
            print(f"{arm:16} {name:16} {mean_and_spread([r[name] for r in rows if name in r])}")


if __name__ == "__main__":
    sys.exit(run_command(FewerSettings, main, "Pre-training by fewer operations."))
