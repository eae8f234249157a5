"""What a run shows and records: progress, metrics.jsonl, TensorBoard, and warnings.

A plausible loss can hide a discriminator that has learnt nothing but that most tokens are
original, so precision and recall are shown beside it and a recall stuck at 0 is said aloud.
"""

import json
import time
from collections import deque
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any, TextIO

import torch
from rich.progress import BarColumn, Progress, TextColumn

from malmoi.command_line import is_terminal
from malmoi.files import write_at_once
from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.engine.processes import Processes
from malmoi.pretrain.objectives.context import COUNT_NAMES
from malmoi.pretrain.objectives.registry import AUXILIARY_LOSSES, resolve_recipe
from malmoi.pretrain.objectives.step import StepResult
from malmoi.pretrain.objectives.watched import WatchedLoss

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# Losses in the first steps say nothing yet.
_FIRST_WARNING_STEP = 100
# A discriminator finds nothing while the learning rate still rises.
_STUCK_FRACTION = 0.1
# A generator that is no better than guessing by frequency after so much of the run, and in so many
# rows of metrics one after the other, has stalled (assumption).
_STALLED_FRACTION = 0.5
_STALLED_ROWS = 3
# By so many nats more than at the start: nothing but a learning rate too high does that, save for
# a generator that is trained to mislead.
_EXPLODED_BY = 2.0
# A discriminator's loss may jump by as much and be well again five steps later (seen), and so may
# any loss between two small batches, so it is the mean over so many steps that has to be higher.
_EXPLODED_STEPS = 20


class Monitor:
    """Collects step results on the device and reports them every `log_steps` steps.

    With several processes only the main one prints and writes; all have to report at the same
    step, for the counts are added up over them.

    Args:
        first_step: steps done; later rows of a resumed run's metrics are cut off.
        warnings: those of the run's earlier sittings; new ones are appended to this list.
    """

    def __init__(
        self,
        directory: Path,
        *,
        log_steps: int,
        first_step: int,
        recipe: Recipe,
        processes: Processes,
        warnings: list[str] | None = None,
    ) -> None:
        self.warnings = [] if warnings is None else warnings
        self._log_steps = log_steps
        self._recipe = resolve_recipe(recipe)
        self._processes = processes
        # Steps and mean of the watched loss, by row: the run's first ones, this sitting's last.
        self._first_losses: dict[str, list[tuple[int, float]]] = {}
        self._recent: dict[str, deque[tuple[int, float]]] = {}
        self._stalled_rows = 0
        self.last: dict[str, float] = {}
        """The last row, of all processes; of a resumed run's earlier sittings in the main one."""
        self._metrics: TextIO | None = None
        self._board: SummaryWriter | None = None
        if processes.is_main:
            rows = self._rows_until(directory / "metrics.jsonl", first_step)
            if rows:
                self.last = rows[-1]
                for before, row in zip([{}, *rows], rows, strict=False):
                    self._keep_first(row, int(row["step"] - before.get("step", 0)))
            self._metrics = (directory / "metrics.jsonl").open("a", encoding="utf-8")
            self._board = _board(directory / "tensorboard", first_step)
        # All have to find the same loss exploded, or those that go on wait for the others forever.
        self._first_losses = processes.from_main(self._first_losses)
        self._bar = (
            Progress(TextColumn("{task.fields[line]}"), BarColumn(bar_width=20), transient=False)
            if processes.is_main and is_terminal()
            else None
        )
        self._task = self._bar.add_task("", total=1.0, line="") if self._bar else None
        self._reset()
        if processes.is_main and self._board is None:
            self.say(
                "no TensorBoard files: metrics.jsonl has the same numbers; to have them too: "
                "pip install -c constraints.txt -e '.[tensorboard]'"
            )

    def __enter__(self) -> "Monitor":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()
        for file in (self._metrics, self._board):
            if file is not None:
                file.close()

    def _reset(self) -> None:
        self._results: list[StepResult] = []
        self._since = time.perf_counter()

    def say(self, line: str) -> None:
        """Print a line above the progress bar."""
        if self._bar:
            self._bar.console.print(line, highlight=False)
        elif self._processes.is_main:
            print(line, flush=True)

    def warn(self, warning: str) -> None:
        """Say it and keep it for run.json."""
        self.warnings.append(warning)
        self.say(f"warning: {warning}")

    def add(
        self,
        result: StepResult,
        *,
        step: int,
        tokens: int,
        flops: float,
        learning_rate: float,
        fraction: float,
        left: float,
    ) -> None:
        """Take one step's result.

        Args:
            step: optimizer steps done, this one included.
            tokens: tokens seen in them.
            flops: operations spent on them, by the paper's counting.
            fraction: how much of the run is done, 0 to 1.
            left: seconds left, estimated.
        """
        # Not the graph that led to the loss, which would stay until the next report.
        self._results.append(replace(result, loss=result.loss.detach()))
        if step % self._log_steps == 0 or fraction >= 1:
            so_far = {"step": step, "tokens_seen": tokens, "paper_flops": flops}
            self._report(so_far, learning_rate, fraction, left)

    def add_cost(self, cost: dict[str, float]) -> None:
        """Show in TensorBoard, at the last step, what is known only at the end of the run."""
        if self._board is not None:
            for name, value in cost.items():
                self._board.add_scalar(f"cost/{name}", value, int(self.last.get("step", 0)))

    def _report(
        self, so_far: dict[str, float], learning_rate: float, fraction: float, left: float
    ) -> None:
        count, row = self._make_row(so_far, learning_rate)
        self.last = row
        watched = self._keep_first(row, len(self._results))
        recent = self._recent.setdefault(watched.key, deque())
        recent.append((len(self._results), row[watched.key]))
        while sum(steps for steps, _ in recent) - recent[0][0] >= _EXPLODED_STEPS:
            recent.popleft()
        step = int(so_far["step"])
        if self._metrics is not None:
            self._metrics.write(json.dumps(row) + "\n")
            self._metrics.flush()
        if self._board is not None:
            for name, value in row.items():
                if name != "step":
                    self._board.add_scalar(name, value, step)
        # The last step of a run of so many minutes ends a little after them.
        minutes, seconds = divmod(max(0, round(left)), 60)
        line = (
            f"step {step:,}  {row['tokens_per_second']:,.0f} tokens/s  "
            f"{self._recipe.describe(row)}  left {minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
        )
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=min(1.0, fraction), line=line)
        elif self._processes.is_main:
            print(line, flush=True)
        self._warn_if_stuck(step, count, fraction)
        self._warn_if_stalled(step, row, fraction)
        self._reset()

    def _make_row(
        self, so_far: dict[str, float], learning_rate: float
    ) -> tuple[dict[str, int], dict[str, float]]:
        """Counts and figures of the steps since the last row, of all processes.

        The only place that waits for the device.
        """
        results = self._results
        count = dict(zip(COUNT_NAMES, self._sum([r.counts for r in results]), strict=True))
        row = so_far | self._guessing(count) | self._learning(count)
        row |= {
            "tokens_per_second": count["tokens"] / (time.perf_counter() - self._since),
            "learning_rate": learning_rate,
        }
        binned = self._sum([r.binned_loss for r in results])
        for number, (loss, tokens) in enumerate(zip(*binned, strict=True), 1):
            # 1: the commonest tokens, a fifth of the corpus; 5: the rarest. No loss is not a loss
            # of 0: there is none while the generator learns alone.
            if tokens:
                row[f"loss_by_frequency_{number}"] = loss / tokens
        return count, row

    def _guessing(self, count: dict[str, int]) -> dict[str, float]:
        """Figures of the network that guesses what [MASK] hides; none where there is none.

        The loss that it learns from is that of all masked positions. All else counts those that
        show [MASK], for a token that was kept needs no guess.
        """
        if not self._recipe.guesses_masked:
            return {}
        hidden = max(1, count["hidden"])
        own, by_frequency = self._sum([r.hidden_losses for r in self._results])
        return {
            "generator_loss": self._mean([r.generator_loss for r in self._results]),
            "generator_hidden_loss": own / hidden,
            "generator_accuracy": count["guessed"] / hidden,
            # What guessing the same tokens by their frequency alone would have.
            "unigram_loss": by_frequency / hidden,
            "unigram_accuracy": count["commonest"] / hidden,
        }

    def _learning(self, count: dict[str, int]) -> dict[str, float]:
        """Figures of the encoder that is handed out; none of what this recipe or stage has not."""
        # Where two stages meet, those steps only that train it.
        trained = [r for r in self._results if r.trains_discriminator]
        found: dict[str, float] = {}
        if trained:
            found["discriminator_loss"] = self._mean([r.discriminator_loss for r in trained])
        if trained and self._recipe.objective.detects:
            found |= {
                "discriminator_precision": count["true_positive"]
                / max(1, count["predicted_replaced"]),
                "discriminator_recall": count["true_positive"] / max(1, count["replaced"]),
                "replaced_fraction": count["replaced"] / max(1, count["tokens"]),
            }
        for each in AUXILIARY_LOSSES:
            losses = [r.auxiliary.get(each.name) for r in trained or self._results]
            if each.recorded and (known := [loss for loss in losses if loss is not None]):
                found[each.name] = self._mean(known)
        runs = trained or not self._recipe.objective.replaces_tokens
        if runs and self._recipe.encoder_guesses:
            right, places = count["encoder_guessed"], count["encoder_places"]
            found["encoder_accuracy"] = right / max(1, places)
        return found

    def _sum(self, tensors: list[torch.Tensor]) -> Any:
        """Over steps and processes, as lists of Python numbers."""
        return self._processes.add_up(torch.stack(tensors).sum(dim=0)).tolist()

    def _mean(self, losses: list[torch.Tensor]) -> float:
        """Over steps; the parts of the processes add up."""
        return float(self._processes.add_up(torch.stack(losses).mean()))

    def _rows_until(self, path: Path, step: int) -> list[dict[str, float]]:
        """Cut a metrics file back to `step`: what came after the checkpoint will be done again."""
        if not path.exists():
            return []
        rows: list[dict[str, float]] = []
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                row = json.loads(line)
                keep = row["step"] <= step
                _ = 0.0 + row[self._recipe.watched(row).key] + row["tokens_seen"]
            except (ValueError, TypeError, KeyError):
                continue  # the last line of a killed run may be half a line
            if keep:
                rows.append(row)
        write_at_once(path, "".join(json.dumps(row) + "\n" for row in rows))
        return rows

    def _keep_first(self, row: dict[str, float], steps: int) -> WatchedLoss:
        """Add a row to the first ones, if it is one of them; returns the loss that is watched."""
        watched = self._recipe.watched(row)
        first = self._first_losses.setdefault(watched.key, [])
        if sum(steps for steps, _ in first) < watched.first_steps:
            first.append((steps, row[watched.key]))
        return watched

    def exploded(self) -> str:
        """How much worse a network has become than it was at the start; empty if it is not.

        Where a generator learns to guess, that is the surest sign; else it is the discriminator.
        """
        if not self.last:
            return ""
        watched = self._recipe.watched(self.last)
        recent = self._recent.get(watched.key, ())
        steps = sum(steps for steps, _ in recent)
        if steps < _EXPLODED_STEPS:
            return ""
        now = sum(steps * loss for steps, loss in recent) / steps
        first = self._first(watched)
        worse = now > first + _EXPLODED_BY
        return f"{now:.2f} for {watched.task}, {first:.2f} at the start" if worse else ""

    def rises(self) -> bool:
        """Whether the last row alone would be an explosion: no checkpoint of what may be one."""
        if not self.last:
            return False
        watched = self._recipe.watched(self.last)
        return self.last[watched.key] > self._first(watched) + _EXPLODED_BY

    def _first(self, watched: WatchedLoss) -> float:
        return median_low(loss for _, loss in self._first_losses[watched.key])

    def _warn_if_stalled(self, step: int, row: dict[str, float], fraction: float) -> None:
        """Say so where what guesses is for long no better than word frequencies."""
        network = self._recipe.guessing_network()
        if not network:
            return
        loss, trivial = row["generator_hidden_loss"], row["unigram_loss"]
        right, commonest = row["generator_accuracy"], row["unigram_accuracy"]
        is_worse = loss >= trivial or right <= commonest
        self._stalled_rows = self._stalled_rows + 1 if is_worse else 0
        early = step < _FIRST_WARNING_STEP or fraction < _STALLED_FRACTION
        already = any("stalled" in warning for warning in self.warnings)
        if early or already or self._stalled_rows < _STALLED_ROWS:
            return
        self.warn(
            f"step {step:,}: the {network} has stalled: where [MASK] stands its loss is {loss:.2f} "
            f"and {right:.1%} of its guesses are right, no better than the {trivial:.2f} and "
            f"{commonest:.1%} of guessing by word frequency; it needs more tokens, another "
            "--learning-rate, or --init from a released checkpoint"
        )

    def _warn_if_stuck(self, step: int, count: dict[str, int], fraction: float) -> None:
        """Say so where the encoder has learnt an answer that needs no text."""
        recipe = self._recipe.recipe
        if recipe.discriminator_weight == 0:
            return
        early = step < _FIRST_WARNING_STEP or fraction < _STUCK_FRACTION
        already = any("has only learnt" in warning for warning in self.warnings)
        if (early or already) and fraction < 1:
            return
        answer = self._recipe.objective.trivial_answer(count)
        if not answer:
            return
        warning = (
            f"step {step:,}: {answer}; it needs more tokens (a longer run, or --init from a "
            "released checkpoint)"
        )
        if self._recipe.schedule.takes_noise and recipe.unigram_fraction < 1:
            warning += " or replacements that are easier to find (--recipe noise)"
        self.warn(warning)


def _board(directory: Path, first_step: int) -> "SummaryWriter | None":
    """A writer that goes on after `first_step`; None without the optional package tensorboard."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(directory), purge_step=first_step + 1)
