"""Is a run that is killed again and again the same as one that is not, byte for byte?

    python -m lab.benchmarks.robustness.random_kills --kills 50

One run goes straight through; another, with the same flags, is ended by SIGKILL at random moments
and resumed each time. Compared are both networks as they are handed out and all tensors of the
last checkpoint. The moments are of three kinds: at some step (spread evenly over the run, and a
random time after it), while a checkpoint is being written, and before training, while Python is
loading, the corpus being cleaned, or the checkpoint read.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import write_at_once

ROOT = Path(__file__).parents[3]
RESULTS = Path(__file__).parents[1] / "results" / "random_kills.json"
# Every second kill waits for a checkpoint, and every fifth does not wait for training.
_WRITING_EVERY, _START_EVERY = 2, 5
_POLL_SECONDS = 0.0005


@dataclass(kw_only=True)
class KillSettings:
    """How often to kill, and what."""

    kills: int = 50
    """How often the run is killed."""
    steps: int = 250
    """Optimizer steps of the run."""
    save_steps: int = 4
    """Steps between checkpoints."""
    corpus: Path = ROOT / "corpora" / "comments"
    """Texts to train on."""
    flags: str = (
        "--init random --recipe rtd --vocab-size 1024 --tokens-per-batch 256 "
        "--set optimizer.average_fraction=0.2"
    )
    """Other flags of pretrain/run.py."""
    seed: int = 0
    """Seed of the moments."""
    output: Path = RESULTS
    """JSON file of the result."""


@dataclass(kw_only=True)
class Kill:
    """One kill: what was waited for, and what it hit."""

    kind: str
    """step, writing or start."""
    after_step: int
    """The last step that was reported before it; that of the sitting before if none was."""
    during_write: bool
    """Whether it left a checkpoint half written."""


@dataclass(kw_only=True)
class Sitting:
    """A running command, and what it has reported."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    launched: float = field(default_factory=time.perf_counter)

    def seconds(self) -> float:
        """Seconds since it was launched."""
        return time.perf_counter() - self.launched

    def read_until_step(self, step: int) -> int:
        """Read its output up to a step's line; returns the last step seen, -1 if none was."""
        last = -1
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("step "):
                last = int(line.split()[1].replace(",", ""))
                if last >= step:
                    break
        return last


def main(settings: KillSettings) -> None:
    """Run straight, run with kills, compare, write the result."""
    if settings.kills < 1 or settings.steps <= settings.kills + 2 * settings.save_steps:
        raise InputError(
            f"expected 1 kill or more, and more steps than kills and two checkpoints take, found "
            f"{settings.kills} kills in {settings.steps} steps, {settings.save_steps} a checkpoint"
        )
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="malmoi-kills-") as name:
        # Each in a folder of its own, so that the second cleans and tokenises anew.
        straight, killed = Path(name) / "straight", Path(name) / "killed"
        sitting = _start(settings, straight, resume=False)
        sitting.read_until_step(0)
        startup = sitting.seconds()
        _finish(sitting)
        step = (sitting.seconds() - startup) / settings.steps
        kills, sittings = _run_with_kills(settings, killed, startup, step)
        expected, found = _fingerprint(straight / "run"), _fingerprint(killed / "run")
    differing = sorted(name for name in expected if found.get(name) != expected[name])
    result = {
        "equal": not differing,
        "differing": differing,
        "kills": len(kills),
        "sittings": sittings,
        "during_write": sum(kill.during_write for kill in kills),
        "before_training": sum(kill.kind == "start" for kill in kills),
        "steps": settings.steps,
        "save_steps": settings.save_steps,
        "flags": settings.flags,
        "seed": settings.seed,
        "sha256": expected,
        "seconds": round(time.perf_counter() - began),
        "torch": version("torch"),
        "moments": [asdict(kill) for kill in kills],
    }
    write_at_once(settings.output, json.dumps(result, indent=1) + "\n")
    print(
        f"{len(kills)} kills, {result['during_write']} of them while a checkpoint was written, "
        f"{result['before_training']} before training; "
        + ("weights and state are equal" if not differing else f"differing: {differing}")
    )
    if differing:
        raise InputError(f"expected equal bytes after {len(kills)} kills, found {differing}")


def _run_with_kills(
    settings: KillSettings, folder: Path, startup: float, step: float
) -> tuple[list[Kill], int]:
    """Kill and resume; startup and step: the seconds before training and of a step, about."""
    draw = random.Random(settings.seed)
    # Not in the last steps: the next checkpoint's write, and a step more, must come before the end.
    last_target = settings.steps - 2 * settings.save_steps
    targets = sorted(draw.randrange(1, last_target) for _ in range(settings.kills))
    state = folder / "run" / "state"
    kills: list[Kill] = []
    half: set[tuple[str, int]] = set()
    last_step = 0
    for number, target in enumerate(targets):
        sitting = _start(settings, folder, resume=_has_checkpoint(state))
        if number % _START_EVERY == 0:
            kind = "start"
            # It may start sooner than the first did, and must not be done before it is killed.
            timer = threading.Timer(draw.uniform(0, startup), sitting.process.kill)
            timer.start()
            last_step = max(last_step, sitting.read_until_step(0))
            timer.cancel()
        else:
            kind = "writing" if number % _WRITING_EVERY else "step"
            first = sitting.read_until_step(0)
            startup = sitting.seconds()
            last_step = max(first, sitting.read_until_step(target) if first < target else first)
            if last_step < 0:
                raise InputError(f"the run ended before it trained: {_errors(sitting)}")
            if kind == "writing":
                _wait_for_write(state, sitting)
            time.sleep(draw.uniform(0, step))
        sitting.process.send_signal(signal.SIGKILL)
        sitting.process.wait()
        half, left_over = _half_written(state), half
        kills.append(Kill(kind=kind, after_step=last_step, during_write=bool(half - left_over)))
        print(f"kill {number + 1}: {kills[-1]}", flush=True)
        if _is_finished(folder / "run"):
            raise InputError(f"the run was complete after {number + 1} kills; give it more --steps")
    _finish(_start(settings, folder, resume=_has_checkpoint(state)))
    return kills, len(kills) + 1


def _start(settings: KillSettings, folder: Path, *, resume: bool) -> Sitting:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(ROOT / "pretrain" / "run.py"), "--output", "run"]
    command += ["--corpus", str(settings.corpus.resolve()), "--max-steps", str(settings.steps)]
    command += ["--set", f"execution.save_steps={settings.save_steps}"]
    command += ["--set", "execution.log_steps=1", "--device", "cpu"]
    command += [*settings.flags.split(), *(["--resume"] if resume else [])]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Sitting(process=process)


def _finish(sitting: Sitting) -> None:
    sitting.read_until_step(sys.maxsize)
    if sitting.process.wait() != 0:
        raise InputError(f"expected pretrain/run.py to finish, found: {_errors(sitting)}")


def _errors(sitting: Sitting) -> str:
    return " ".join(sitting.lines[-3:])


def _wait_for_write(state: Path, sitting: Sitting) -> None:
    """Until a checkpoint is half written, or the run has ended."""
    while sitting.process.poll() is None:
        if any(entry.name.startswith(".step-") for entry in os.scandir(state)):
            return
        time.sleep(_POLL_SECONDS)


def _half_written(state: Path) -> set[tuple[str, int]]:
    """What kills have left of checkpoints, and when each was last changed."""
    return {(path.name, path.stat().st_ctime_ns) for path in state.glob(".step-*.tmp")}


def _has_checkpoint(state: Path) -> bool:
    return any(state.glob("step-*"))


def _is_finished(run: Path) -> bool:
    record = run / "run.json"
    return record.is_file() and json.loads(record.read_text())["status"] == "finished"


def _fingerprint(run: Path) -> dict[str, str]:
    """SHA-256 of each file of tensors in the networks and in the newest checkpoint."""
    newest = max((run / "state").glob("step-*"))
    folders = [run / "discriminator", run / "generator", newest]
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.glob("*.safetensors"))
    }


if __name__ == "__main__":
    sys.exit(run_command(KillSettings, main, "Kill a pre-training run at random and compare."))
