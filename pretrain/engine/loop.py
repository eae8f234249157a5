"""The training loop: batches in, steps, checkpoints, stop."""

import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedTokenizerFast

from malmoi.devices import autocast, matrix_dtype
from malmoi.errors import InputError
from pretrain.config.settings import PretrainSettings, batch_tokens, peak_learning_rate
from pretrain.data.batches import Batch, Prefetcher, iter_plans, planned_batches
from pretrain.data.tokenized import TokenizedCorpus
from pretrain.engine.checkpoint import Progress, save_state
from pretrain.engine.monitor import Monitor
from pretrain.engine.optimizer import Optimizers, WeightAverage, clip_gradients
from pretrain.engine.processes import Processes
from pretrain.model.networks import ElectraPair
from pretrain.objectives.losses import SEED_STRIDE, Moment, Objective, StepResult
from pretrain.objectives.replacing import vocabulary_tables

# A kill loses no more than these seconds and a step, however long --save-steps take.
_SECONDS_BETWEEN_SAVES = 240.0
# First steps of a sitting or stage: without the compiled networks, compiling, recording graphs.
_COMPILING_STEPS = 5


def packs_rows(settings: PretrainSettings, device: torch.device) -> bool:
    """Whether rows are filled with several texts.

    On a CPU the two are equally fast (docs/performance.md), and rows of like lengths need no mask
    of every row. A GPU wants one shape, for torch.compile and CUDA graphs.
    """
    if settings.batching == "auto":
        return device.type == "cuda"
    return settings.batching == "packed"


def compile_mode(
    settings: PretrainSettings, device: torch.device
) -> Literal["graphs", "on", "off"]:
    """What `--compile` comes to on a device.

    An encoder of 12 layers is some thousand small kernels a step, and a host needs longer to start
    them than a GPU to run them (docs/performance.md): graphs start them all at once. They want the
    same shape in every step, which packed rows have.

    Raises:
        InputError: graphs are asked for where there can be none.
    """
    packed = packs_rows(settings, device)
    if settings.compile == "graphs" and (device.type != "cuda" or not packed):
        raise InputError(
            f"--compile graphs needs a GPU and --batching packed, found {device.type} and "
            f"{'packed' if packed else 'length'}; take --compile on"
        )
    if settings.compile != "auto":
        return settings.compile
    if device.type == "cpu":
        return "off"
    return "graphs" if packed else "on"


def compile_networks(pair: ElectraPair, settings: PretrainSettings, device: torch.device) -> bool:
    """Compile both encoders if the flags and the device want it; whether they are."""
    mode = compile_mode(settings, device)
    if mode == "off":
        return False
    for network in pair.networks().values():
        network.electra.compile(
            dynamic=not packs_rows(settings, device),
            mode="reduce-overhead" if mode == "graphs" else None,
        )
    return True


def planned_steps(
    settings: PretrainSettings, corpus: TokenizedCorpus, device: torch.device
) -> int | None:
    """Steps the run will take; None when it is bounded by time, tokens or operations."""
    if any((settings.max_minutes, settings.max_tokens, settings.max_flops)):
        return None
    if settings.max_steps is not None:
        return settings.max_steps
    return planned_batches(
        corpus.lengths,
        batch_tokens(settings),
        settings.seed,
        epochs=settings.epochs,
        row_length=settings.max_length if packs_rows(settings, device) else None,
    )


def planned_tokens(
    settings: PretrainSettings, tokens_an_epoch: int, device: torch.device
) -> float | None:
    """Tokens the run will see at most; None where that is unknown or none.

    Of `--max-minutes` nothing is known; on a CPU they count as few (0): two cores see
    less than a million in one (docs/performance.md). What a token costs, which `--max-flops` asks
    for, is not known before there are networks.
    """
    if settings.max_flops is not None or settings.max_steps == 0:
        return None
    if settings.max_minutes is not None:
        return 0 if device.type == "cpu" else None
    if settings.max_steps is not None:
        return settings.max_steps * batch_tokens(settings)
    if settings.max_tokens is not None:
        return settings.max_tokens
    return settings.epochs * tokens_an_epoch


def learning_rate_at(fraction: float, peak: float, warmup_fraction: float) -> float:
    """Linear warm-up, then linear decay to zero.

    Args:
        fraction: how much of the run is done, 0 to 1.
    """
    if fraction < warmup_fraction:
        return peak * fraction / warmup_fraction
    return peak * (1 - fraction) / max(1e-9, 1 - warmup_fraction)


def make_objective(
    pair: ElectraPair,
    corpus: TokenizedCorpus,
    tokenizer: PreTrainedTokenizerFast,
    settings: PretrainSettings,
    processes: Processes,
) -> Objective:
    """The objective of the flags, over this corpus and vocabulary."""
    device = processes.device
    return Objective(
        recipe=settings.recipe(),
        tables=vocabulary_tables(
            tokenizer, pair.discriminator.config.vocab_size, corpus.token_counts(), device
        ),
        rank=processes.rank,
        world_size=processes.world_size,
        add_up=processes.add_up,
        mask_dtype=matrix_dtype(device, settings.precision),
    )


@contextmanager
def collect_signals() -> Iterator[list[int]]:
    """Collect SIGTERM and the first Ctrl-C instead of dying of them; a second Ctrl-C stops at once.

    Raises:
        KeyboardInterrupt: at the second Ctrl-C.
    """
    received: list[int] = []

    def collect(number: int, frame: object) -> None:
        if number == signal.SIGINT:
            if number in received:
                raise KeyboardInterrupt
            # Not print: the signal may have come in the middle of one.
            os.write(2, b"\nfinishing this step, then saving; Ctrl-C again stops at once\n")
        received.append(number)

    try:
        before = {n: signal.signal(n, collect) for n in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: the caller handles signals
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Trainer:
    """Takes steps from where `progress` stands.

    Order, masks, samples and dropout depend on the seed and the step alone, so a resumed run
    draws what the uninterrupted one would have drawn. What depends on how much of the run is done
    (learning rate, masked fraction, share of noise) is the same too, save with `--max-minutes`,
    where the clock says it.
    """

    def __init__(
        self,
        pair: ElectraPair,
        optimizers: Optimizers,
        objective: Objective,
        settings: PretrainSettings,
        processes: Processes,
        progress: Progress,
        *,
        total_steps: int | None,
        flops_per_token: float,
        compiled: bool = False,
    ) -> None:
        self.pair = pair
        self.optimizers = optimizers
        self.objective = objective
        self.settings = settings
        self.processes = processes
        self.progress = progress
        self.compiled = compiled
        self.average = WeightAverage()
        self.last_positions = 0
        """Positions of this sitting's last batch, padding included."""
        self.last_gradient_norm = torch.zeros(())
        """Norm of its gradients, before they were clipped."""
        self._total_steps = total_steps
        limits = (total_steps, settings.max_tokens, settings.max_flops, settings.max_minutes)
        self._length = " ".join(map(str, limits))
        self._flops_per_token = flops_per_token
        self._random = torch.Generator(device=processes.device)
        self._checked_step = progress.step
        self._lap_began = 0.0
        self._saved_at = time.monotonic()

    def done_fraction(self) -> float:
        """How much of the run is done, 0 to 1."""
        if self._total_steps is not None:
            return self.progress.step / self._total_steps if self._total_steps else 1.0
        if self.settings.max_tokens is not None:
            return self.progress.tokens / self.settings.max_tokens
        if self.settings.max_flops is not None:
            return self.progress.flops / self.settings.max_flops
        # Clocks differ, and learning rates must not.
        seconds = float(self.processes.from_main(self._clock()))
        return seconds / ((self.settings.max_minutes or 0) * 60)

    def _clock(self) -> float:
        """Seconds of training in earnest.

        It says the learning rate of `--max-minutes`, and compiling would use up the warm-up.
        """
        return self.progress.seconds - self.progress.compiling_seconds

    def _lap(self) -> float:
        """Count the seconds since the last lap as training, and return them."""
        now = time.perf_counter()
        seconds, self._lap_began = now - self._lap_began, now
        self.progress.seconds += seconds
        return seconds

    def _fraction_of(self, batch: Batch) -> float:
        """How much of the run a step on this batch is; 0 where the time it takes decides."""
        if self._total_steps is not None:
            return 1 / self._total_steps
        if self.settings.max_tokens is not None:
            return batch.num_tokens / self.settings.max_tokens
        if self.settings.max_flops is not None:
            return batch.num_tokens * self._flops_per_token / self.settings.max_flops
        return 0.0

    def run(
        self,
        corpus: TokenizedCorpus,
        tokenizer: PreTrainedTokenizerFast,
        directory: Path,
        monitor: Monitor,
        received: Sequence[int] = (),
    ) -> bool:
        """Train until the run's end, and write a checkpoint there.

        Args:
            received: where `collect_signals` puts what it gets: once there is something, the step
                is finished and saved, and no other is taken.

        Returns:
            True when the run is complete, False when a signal ended it after a checkpoint.

        Raises:
            InputError: the loss or the gradient is not finite, or the loss explodes.
        """
        settings, progress, processes = self.settings, self.progress, self.processes
        plans = iter_plans(
            corpus.lengths,
            batch_tokens(settings),
            settings.seed,
            row_length=settings.max_length if packs_rows(settings, processes.device) else None,
            skip=progress.step,
        )
        self.pair.train()
        if progress.length not in ("", self._length):
            # What it averaged was the end that the run was to have then.
            self.average, progress.averaged = WeightAverage(), 0
        progress.length = self._length
        taken, stage = 0, progress.stage
        with Prefetcher(corpus, plans, tokenizer, processes.device) as batches:
            self._lap_began = time.perf_counter()
            # Asked once a step: with --max-minutes what is waited for below takes time too, and
            # the step that is reported and saved as the last one has to be the last.
            fraction = self.done_fraction()
            while fraction < 1:
                batch = next(batches)
                rate, result = self.take_step(batch, fraction)
                progress.step += 1
                progress.tokens += batch.num_tokens
                progress.flops += self._flops_per_token * batch.num_tokens
                seconds = self._lap()
                # A second stage has other networks to compile.
                taken = 1 if progress.stage != stage else taken + 1
                stage = progress.stage
                if self.compiled and taken <= _COMPILING_STEPS:
                    progress.compiling_seconds += seconds
                fraction = self.done_fraction()
                reporting = fraction >= 1 or progress.step % settings.log_steps == 0
                monitor.add(
                    result,
                    step=progress.step,
                    tokens=progress.tokens,
                    flops=progress.flops,
                    learning_rate=rate,
                    fraction=fraction,
                    left=self._clock() * (1 - fraction) / max(fraction, 1e-9),
                )
                # Several GPUs ask each other seldom: asking waits for them.
                asks = processes.world_size == 1 or processes.device.type == "cpu" or reporting
                # After the last step there is nothing to leave out but the export.
                stopping = asks and fraction < 1 and processes.any_of(bool(received))
                # The last one before the average of weights takes their place: who is killed before
                # the networks are written goes on from the weights themselves.
                overdue = time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_SAVES
                saving = stopping or fraction >= 1 or progress.step % settings.save_steps == 0
                saving = saving or (asks and processes.any_of(overdue))
                # Reading losses and gradients waits for the device, so only when something depends
                # on it: weights that are no longer numbers must not become a checkpoint.
                if saving or reporting:
                    self._check(float(processes.add_up(result.loss.detach())), rate, monitor)
                # A GPU works on what it was given: what reports and checks waited for is training.
                self._lap()
                if saving:
                    must = stopping or fraction >= 1
                    processes.in_main(partial(self._save, directory, monitor, must=must))
                    self._saved_at = time.monotonic()
                    self._lap_began = time.perf_counter()
                if stopping:
                    by = "Ctrl-C" if signal.SIGINT in received else "SIGTERM"
                    monitor.say(f"{by}: saved at step {progress.step:,}; go on with --resume")
                    return False
        self.average.put_into(self.pair)
        if settings.schedule == "two-stage" and progress.step and progress.stage == 0:
            self.pair.start_discriminator_from_generator()
            monitor.warn(
                f"step {progress.step:,}: the run ended before its second stage began, so the "
                "discriminator is a copy of the generator and has learnt nothing of its own; take "
                "a longer run or a smaller --first-stage"
            )
        return True

    def _save(self, directory: Path, monitor: Monitor, *, must: bool) -> None:
        # Who goes on after an explosion wants weights from before it.
        if monitor.rises() and not must:
            return
        save_state(directory / "state", self.pair, self.optimizers, self.progress, self.average)

    def take_step(self, batch: Batch, fraction: float) -> tuple[float, StepResult]:
        """One optimizer step. Returns its learning rate and what came of it."""
        settings, progress = self.settings, self.progress
        stage = self._stage(fraction)
        step_seed = settings.seed * 1_000_003 + progress.step
        # Dropout, of this process's own rows: masks alike in all of them would tie rows together.
        torch.manual_seed(step_seed + self.processes.rank * SEED_STRIDE)
        self._random.manual_seed(step_seed + 1)  # masks and samples
        if self.compiled:
            # What CUDA graphs gave in the step before may be written over now.
            torch.compiler.cudagraph_mark_step_begin()
        # A step's rate is that of its middle, so that neither first nor last is zero (by the clock,
        # which knows no step's length before it, the first is). The last may be cut short.
        middle = fraction + 0.5 * min(self._fraction_of(batch), 1 - fraction)
        rate = learning_rate_at(middle, peak_learning_rate(settings), settings.warmup_fraction)
        self.optimizers.set_rate(rate)
        counter = FlopCounterMode(display=False)
        with self._counting(counter):
            with autocast(self.processes.device, settings.precision):
                result = self.objective(
                    self.pair, batch, self._random, Moment(fraction=fraction, stage=stage)
                )
            result.loss.backward()
        if not progress.hardware_flops_per_token:  # so it was counted, in every process
            flops = torch.tensor(float(counter.get_total_flops()), device=self.processes.device)
            progress.hardware_flops_per_token = (
                self.processes.add_up(flops).item() / batch.num_tokens
            )
        self.last_positions = batch.input_ids.numel()
        self.processes.add_up_gradients(self.pair.parameters())
        self.last_gradient_norm = clip_gradients(self.pair.parameters(), settings.max_gradient_norm)
        self.optimizers.step()
        if settings.average_fraction > 0 and fraction >= 1 - settings.average_fraction:
            self.average.add(self.pair)
            progress.averaged = self.average.count
        return rate, result

    @contextmanager
    def _counting(self, counter: FlopCounterMode) -> Iterator[None]:
        """Count a step's operations, if it is the first of a run or of its second stage.

        Counting costs time, so that step stands for the others. The counter sees nothing of
        compiled networks, so it is taken without compiling.
        """
        if self.progress.hardware_flops_per_token:
            yield
            return
        eager = torch.compiler.set_stance("force_eager") if self.compiled else nullcontext()
        with eager, counter:
            yield

    def _stage(self, fraction: float) -> int:
        """0 while a two-stage run trains its generator; on the way to 1 the weights go over."""
        if self.settings.schedule != "two-stage":
            return 1
        if self.progress.stage == 0 and fraction >= self.settings.first_stage:
            self.pair.start_discriminator_from_generator()
            self.progress.begin_stage(1)
        if self.progress.stage == 1:
            self.pair.freeze_generator()
        return self.progress.stage

    def _check(self, loss: float, rate: float, monitor: Monitor) -> None:
        half = "half the --learning-rate"
        if self.settings.optimizer == "muon":
            half += " and --muon-learning-rate"
        first, last = self._checked_step + 1, self.progress.step
        self._checked_step = last
        steps = f"at step {last:,}" if first == last else f"in steps {first:,} to {last:,}"
        where = f"{steps} with learning rate {rate:.2e}"
        advice = f"go on from the last checkpoint with --resume and {half}, or start again with it"
        if not math.isfinite(loss):
            raise InputError(f"the loss is no longer finite {where}; {advice}")
        # The loss is that of the weights before the step; after it they are only as finite as this.
        if not math.isfinite(float(self.last_gradient_norm)):
            raise InputError(f"the gradient is no longer finite {where}; {advice}")
        if exploded := monitor.exploded():
            raise InputError(f"the loss exploded {where}: {exploded}; {advice}")
