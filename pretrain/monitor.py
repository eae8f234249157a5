"""What a run shows and records: progress, metrics.jsonl, TensorBoard, and warnings.

A plausible loss can hide a discriminator that has learnt nothing but that most tokens are
original, so precision and recall are shown beside it and a recall stuck at 0 is said aloud.
"""

import json
import math
import time
from pathlib import Path
from types import TracebackType

import torch
from rich.progress import BarColumn, Progress, TextColumn
from torch.utils.tensorboard import SummaryWriter

from corpora.atomic import write_at_once
from corpora.command_line import is_terminal
from pretrain.objective import COUNT_NAMES, StepResult

# Below this the discriminator calls practically every token original.
STUCK_RECALL = 0.01
# Losses in the first steps say nothing yet.
_FIRST_WARNING_STEP = 100


class Monitor:
    """Collects step results on the device and reports them every `log_steps` steps."""

    def __init__(self, directory: Path, *, log_steps: int, first_step: int) -> None:
        self.warnings: list[str] = []
        self._log_steps = log_steps
        rows = _rows_until(directory / "metrics.jsonl", first_step)
        self.last: dict[str, float] = rows[-1] if rows else {}
        self._metrics = (directory / "metrics.jsonl").open("a", encoding="utf-8")
        self._board = SummaryWriter(str(directory / "tensorboard"), purge_step=first_step)
        self._bar = (
            Progress(TextColumn("{task.fields[line]}"), BarColumn(bar_width=20), transient=False)
            if is_terminal()
            else None
        )
        self._task = self._bar.add_task("", total=1.0, line="") if self._bar else None
        self._reset()

    def __enter__(self) -> "Monitor":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()
        self._metrics.close()
        self._board.close()

    def _reset(self) -> None:
        self._results: list[StepResult] = []
        self._since = time.perf_counter()

    def say(self, line: str) -> None:
        """Print a line above the progress bar."""
        if self._bar:
            self._bar.console.print(line, highlight=False)
        else:
            print(line, flush=True)

    def add(
        self, result: StepResult, *, step: int, learning_rate: float, fraction: float, left: float
    ) -> None:
        """Take one step's result.

        Args:
            step: optimizer steps done, this one included.
            fraction: how much of the run is done, 0 to 1.
            left: seconds left, estimated.
        """
        self._results.append(result)
        if step % self._log_steps == 0 or fraction >= 1:
            self._report(step, learning_rate, fraction, left)

    def _report(self, step: int, learning_rate: float, fraction: float, left: float) -> None:
        # The only place that waits for the device.
        counts = torch.stack([result.counts for result in self._results]).sum(dim=0).tolist()
        count = dict(zip(COUNT_NAMES, counts, strict=True))
        row = {
            "step": step,
            "generator_loss": _mean([result.generator_loss for result in self._results]),
            "generator_accuracy": count["guessed"] / max(1, count["masked"]),
            "discriminator_loss": _mean([result.discriminator_loss for result in self._results]),
            "discriminator_precision": count["true_positive"] / max(1, count["predicted_replaced"]),
            "discriminator_recall": count["true_positive"] / max(1, count["replaced"]),
            "replaced_fraction": count["replaced"] / max(1, count["tokens"]),
            "tokens_per_second": count["tokens"] / (time.perf_counter() - self._since),
            "learning_rate": learning_rate,
        }
        self.last = row
        self._metrics.write(json.dumps(row) + "\n")
        self._metrics.flush()
        for name, value in row.items():
            if name != "step":
                self._board.add_scalar(name, value, step)
        line = (
            f"step {step:,}  {row['tokens_per_second']:,.0f} tokens/s  "
            f"generator loss {row['generator_loss']:.3f} acc {row['generator_accuracy']:.3f}  "
            f"discriminator loss {row['discriminator_loss']:.3f} "
            f"precision {row['discriminator_precision']:.3f} "
            f"recall {row['discriminator_recall']:.3f}  left {_clock(left)}"
        )
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=min(1.0, fraction), line=line)
        else:
            print(line, flush=True)
        self._warn_if_stuck(step, row["discriminator_recall"], row["replaced_fraction"], fraction)
        self._reset()

    def _warn_if_stuck(self, step: int, recall: float, replaced: float, fraction: float) -> None:
        if recall >= STUCK_RECALL or (step < _FIRST_WARNING_STEP and fraction < 1):
            return
        already = any("recall" in warning for warning in self.warnings)
        if already and fraction < 1:
            return
        trivial = -sum(p * math.log(p) for p in (replaced, 1 - replaced) if p > 0)
        warning = (
            f"step {step:,}: discriminator recall is {recall:.3f}: it has only learnt that most "
            f"tokens are original, so its loss of about {trivial:.2f} is what guessing 'original' "
            "everywhere gives; it needs more tokens (a longer run, or --init from a released "
            "checkpoint)"
        )
        self.warnings.append(warning)
        self.say(f"warning: {warning}")


def _rows_until(path: Path, step: int) -> list[dict[str, float]]:
    """Cut a metrics file back to `step`: what came after the checkpoint will be done again."""
    if not path.exists():
        return []
    rows: list[dict[str, float]] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line of a killed run may be half a line
        if row["step"] <= step:
            rows.append(row)
    write_at_once(path, "".join(json.dumps(row) + "\n" for row in rows))
    return rows


def _mean(values: list[torch.Tensor]) -> float:
    return float(torch.stack(values).mean())


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
