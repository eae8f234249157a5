"""The training loop: batches in, steps, checkpoints, stop."""

import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedTokenizerFast

from malmoi.command_line import raise_if_stopped
from malmoi.devices import autocast, matrix_dtype
from malmoi.errors import InputError
from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.config.run_plan import ExecutionPlan, RunPlan
from malmoi.pretrain.config.schema import Rows
from malmoi.pretrain.config.stacking import mean_part, part_at
from malmoi.pretrain.data.batches import Batch, Prefetcher, iter_plans
from malmoi.pretrain.data.tokenized import TokenizedCorpus
from malmoi.pretrain.engine.checkpoint import TrainerState, save_state
from malmoi.pretrain.engine.monitor import Monitor
from malmoi.pretrain.engine.optimizer import (
    Optimizers,
    WeightAverage,
    clip_gradients,
    learning_rate_at,
)
from malmoi.pretrain.engine.processes import Processes
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.model.stacking import run_part, stack
from malmoi.pretrain.objectives.step import SEED_STRIDE, Moment, StepResult, TrainingObjective
from malmoi.pretrain.objectives.vocabulary import vocabulary_tables
from malmoi.settings import Precision

# A kill loses no more than these seconds and a step, however long execution.save_steps take.
_SECONDS_BETWEEN_SAVES = 240.0
# First steps of a sitting or stage: without the compiled networks, compiling, recording graphs.
_COMPILING_STEPS = 5


def compile_networks(pair: ElectraPair, execution: ExecutionPlan, rows: Rows) -> bool:
    """Compile both encoders if the plan says so; whether they are."""
    if execution.compile == "off":
        return False
    for network in pair.networks().values():
        network.electra.compile(
            dynamic=rows != "packed",
            mode="reduce-overhead" if execution.compile == "graphs" else None,
        )
    return True


def make_objective(
    pair: ElectraPair,
    corpus: TokenizedCorpus,
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    processes: Processes,
    precision: Precision,
) -> TrainingObjective:
    """The objective of a recipe, over this corpus and vocabulary."""
    device = processes.device
    return TrainingObjective(
        recipe=recipe,
        tables=vocabulary_tables(
            tokenizer, pair.discriminator.config.vocab_size, corpus.token_counts(), device
        ),
        rank=processes.rank,
        world_size=processes.world_size,
        add_up=processes.add_up,
        mask_dtype=matrix_dtype(device, precision),
    )


@contextmanager
def collect_signals() -> Iterator[list[int]]:
    """Collect SIGTERM and the first Ctrl-C instead of dying of them; a second Ctrl-C stops at once.

    Raises:
        KeyboardInterrupt: at the second Ctrl-C.
        Stopped: SIGTERM came before.
    """
    raise_if_stopped()
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
        objective: TrainingObjective,
        plan: RunPlan,
        processes: Processes,
        progress: TrainerState,
        *,
        flops_per_token: float,
        compiled: bool = False,
    ) -> None:
        self.pair = pair
        self.optimizers = optimizers
        self.objective = objective
        self.plan = plan
        self.processes = processes
        self.progress = progress
        self.compiled = compiled
        self.average = WeightAverage()
        self.last_positions = 0
        """Positions of this sitting's last batch, padding included."""
        self.last_gradient_norm = torch.zeros(())
        """Norm of its gradients, before they were clipped."""
        self._length = f"{plan.length.limit} {plan.length.amount:.15g}"
        self._flops_per_token = flops_per_token
        self._random = torch.Generator(device=processes.device)
        self._checked_step = progress.step
        self._lap_began = 0.0
        self._saved_at = time.monotonic()
        self._steps_of_stage = 0
        """Steps of this sitting in the stage that it is in."""
        if plan.networks.stacked:
            run_part(pair, progress.depth or part_at(0))

    def done_fraction(self) -> float:
        """How much of the run is done, 0 to 1."""
        length, progress = self.plan.length, self.progress
        if length.limit == "max_steps":
            return progress.step / length.amount if length.amount else 1.0
        if length.limit == "max_tokens":
            return progress.tokens / length.amount
        if length.limit == "max_flops":
            return progress.flops / length.amount
        # Clocks differ, and learning rates must not.
        return float(self.processes.from_main(progress.clock)) / (length.amount * 60)

    def _work_done(self, fraction: float) -> float:
        """How much of the time of the whole run a fraction of it has taken, 0 to 1."""
        if self.plan.length.limit == "max_minutes" or not self.plan.networks.stacked:
            return fraction
        return mean_part(fraction) / mean_part()

    def _lap(self) -> float:
        """Count the seconds since the last lap as training, and return them."""
        now = time.perf_counter()
        seconds, self._lap_began = now - self._lap_began, now
        self.progress.seconds += seconds
        return seconds

    def _fraction_of(self, batch: Batch) -> float:
        """How much of the run a step on this batch is; 0 where the time it takes decides."""
        length = self.plan.length
        if length.limit == "max_steps":
            return 1 / length.amount
        if length.limit == "max_tokens":
            return batch.num_tokens / length.amount
        if length.limit == "max_flops":
            return batch.num_tokens * self._flops_per_token / length.amount
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
        progress, batching = self.progress, self.plan.batching
        if progress.length != self._length:
            # What was averaged is the end that the run was to have before it got another length.
            self.average, progress.averaged = WeightAverage(), 0
        progress.length = self._length
        self.pair.train()
        plans = iter_plans(
            corpus.lengths,
            batching.tokens_per_batch,
            self.plan.start.seed,
            row_length=batching.row_length,
            skip=progress.step,
        )
        with Prefetcher(corpus, plans, tokenizer, self.processes.device) as batches:
            self._lap_began = time.perf_counter()
            # Asked once a step: with --max-minutes what is waited for below takes time too, and
            # the step that is reported and saved as the last one has to be the last.
            fraction = self.done_fraction()
            while fraction < 1:
                batch, stage = next(batches), progress.stage
                rate, result = self.take_step(batch, fraction)
                self._count(batch, same_stage=progress.stage == stage)
                fraction = self.done_fraction()
                done = self._work_done(fraction)
                monitor.add(
                    result,
                    step=progress.step,
                    tokens=progress.tokens,
                    flops=progress.flops,
                    learning_rate=rate,
                    fraction=fraction,
                    left=progress.clock * (1 - done) / max(done, 1e-9),
                )
                if self._save_if_due(directory, monitor, result, rate, fraction, received):
                    by = "Ctrl-C" if signal.SIGINT in received else "SIGTERM"
                    monitor.say(f"{by}: saved at step {progress.step:,}; go on with --resume")
                    return False
        self.average.put_into(self.pair)
        if self.plan.networks.stacked and 0 < progress.depth < 1:
            monitor.warn(
                f"step {progress.step:,}: the run ended before all layers ran; those above are "
                "copies that have learnt nothing themselves. Let it be longer"
            )
            self._stack(1.0)
        schedule = self.objective.resolved.schedule
        if progress.step and (warning := schedule.finish(self.pair, progress.stage)):
            monitor.warn(f"step {progress.step:,}: {warning}")
        return True

    def _count(self, batch: Batch, *, same_stage: bool) -> None:
        """Count a step on a batch, and its time."""
        progress = self.progress
        progress.step += 1
        progress.tokens += batch.num_tokens
        progress.flops += self._flops_per_token * batch.num_tokens
        seconds = self._lap()
        # A second stage has other networks to compile.
        self._steps_of_stage = self._steps_of_stage + 1 if same_stage else 1
        if self.compiled and self._steps_of_stage <= _COMPILING_STEPS:
            progress.compiling_seconds += seconds

    def _save_if_due(
        self,
        directory: Path,
        monitor: Monitor,
        result: StepResult,
        rate: float,
        fraction: float,
        received: Sequence[int],
    ) -> bool:
        """Look at the step that was taken where something depends on it, and save where it is time.

        Args:
            fraction: how much of the run is done with it.
            received: signals.

        Returns:
            Whether a signal asks to stop here.
        """
        execution, step, processes = self.plan.execution, self.progress.step, self.processes
        last = fraction >= 1
        reporting = last or step % execution.log_steps == 0
        # Several GPUs ask each other seldom: asking waits for them.
        asks = processes.world_size == 1 or processes.device.type == "cpu" or reporting
        # After the last step there is nothing to leave out but the export.
        stopping = asks and not last and processes.any_of(bool(received))
        # The last one before the average of weights takes their place: a run that is killed before
        # the networks are written goes on from the weights themselves.
        overdue = time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_SAVES
        saving = stopping or last or step % execution.save_steps == 0
        saving = saving or (asks and processes.any_of(overdue))
        # Reading losses and gradients waits for the device, so only when something depends
        # on it: weights that are no longer numbers must not become a checkpoint.
        if saving or reporting:
            self._check(float(processes.add_up(result.loss.detach())), rate, monitor)
        # A GPU works on what it was given: what reports and checks waited for is training.
        self._lap()

        def save() -> None:
            # Who goes on after an explosion wants weights from before it.
            if stopping or last or not monitor.rises():
                state = directory / "state"
                save_state(state, self.pair, self.optimizers, self.progress, self.average)

        if saving:
            processes.in_main(save)
            self._saved_at = time.monotonic()
            self._lap_began = time.perf_counter()
        return stopping

    def take_step(self, batch: Batch, fraction: float) -> tuple[float, StepResult]:
        """One optimizer step. Returns its learning rate and what came of it."""
        plan, progress = self.plan, self.progress
        stage = self.objective.resolved.schedule.enter_stage(self.pair, progress.stage, fraction)
        if stage != progress.stage:
            progress.begin_stage(stage)
        self._stack(fraction)
        step_seed = plan.start.seed * 1_000_003 + progress.step
        # Dropout, of this process's own rows: masks alike in all of them would tie rows together.
        torch.manual_seed(step_seed + self.processes.rank * SEED_STRIDE)
        self._random.manual_seed(step_seed + 1)  # masks and samples
        if self.compiled:
            # What CUDA graphs gave in the step before may be written over now.
            torch.compiler.cudagraph_mark_step_begin()
        # A step's rate is that of its middle, so that neither first nor last is zero (by the clock,
        # which knows no step's length before it, the first is). The last may be cut short.
        middle = fraction + 0.5 * min(self._fraction_of(batch), 1 - fraction)
        optimizer = plan.optimizer
        rate = learning_rate_at(middle, optimizer)
        self.optimizers.set_rate(rate)
        counter = FlopCounterMode(display=False)
        with self._counting(counter):
            with autocast(self.processes.device, plan.networks.precision):
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
        self.last_gradient_norm = clip_gradients(
            self.pair.parameters(), optimizer.max_gradient_norm
        )
        self.optimizers.step()
        if optimizer.average_fraction > 0 and fraction >= 1 - optimizer.average_fraction:
            self.average.add(self.pair)
            progress.averaged = self.average.count
        return rate, result

    def _stack(self, fraction: float) -> None:
        """Let as many layers run as this fraction of the run asks for, where a run stacks them."""
        progress = self.progress
        # A run that has got another length keeps the layers that it has.
        part = max(part_at(fraction), progress.depth)
        if self.plan.networks.stacked and part != progress.depth:
            if progress.depth:
                stack(self.pair, self.optimizers, part)
            progress.depth = part
            progress.begin_stage(progress.stage)

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

    def _check(self, loss: float, rate: float, monitor: Monitor) -> None:
        half = "half the --learning-rate"
        if self.plan.optimizer.name == "muon":
            half += " and optimizer.muon_learning_rate"
        first, last = self._checked_step + 1, self.progress.step
        self._checked_step = last
        steps = f"at step {last:,}" if first == last else f"in steps {first:,} to {last:,}"
        where = f"{steps} with learning rate {rate:.2e}"
        advice = f"go on from the last checkpoint with --resume and {half}, or start again with it"
        if not math.isfinite(loss):
            raise InputError(
                "the loss is no longer finite {where}; {advice}", where=where, advice=advice
            )
        # The loss is that of the weights before the step; after it they are only as finite as this.
        if not math.isfinite(float(self.last_gradient_norm)):
            raise InputError(
                "the gradient is no longer finite {where}; {advice}", where=where, advice=advice
            )
        if exploded := monitor.exploded():
            raise InputError(
                "the loss exploded {where}: {exploded}; {advice}",
                where=where,
                exploded=exploded,
                advice=advice,
            )
