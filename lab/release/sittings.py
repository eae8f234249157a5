"""Pre-training in sittings: so many minutes now, and the same call goes on."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.release.check import read_json

ROOT = Path(__file__).parents[2]


def pretraining_command(corpus: Path, run: Path, tokens: float, flags: Sequence[str]) -> list[str]:
    """The command that begins a run of so many tokens, or goes on with it."""
    command = [sys.executable, str(ROOT / "pretrain" / "run.py"), "--corpus", str(corpus)]
    command += [*flags, "--max-tokens", str(tokens), "--output", str(run)]
    return [*command, "--resume"] if any((run / "state").glob("step-*")) else command


def pretrain(
    corpus: Path,
    run: Path,
    tokens: float,
    minutes: float,
    flags: Sequence[str],
    *,
    folder: Path | None = None,
) -> bool:
    """Go on with a run of pretrain/run.py for so many minutes; whether it is finished.

    Args:
        flags: what it learns, and from what.
        folder: to run in, from which a relative `corpus` is seen; by default the current one.

    Raises:
        SystemExit: the training failed, with its code.
    """
    if is_finished(run):
        return True
    process = subprocess.Popen(pretraining_command(corpus, run, tokens, flags), cwd=folder)
    try:
        code = process.wait(minutes * 60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # it saves, and goes on from there
        code = process.wait()
        if code in (128 + signal.SIGTERM, -signal.SIGTERM):  # the latter while it starts
            return False
    leave_with(code)
    return is_finished(run)


def is_finished(run: Path) -> bool:
    """Whether a run of pretrain/run.py has come to its end."""
    return (run / "run.json").is_file() and read_json(run / "run.json").get("status") == "finished"


def leave_with(code: int) -> None:
    """End as a stage did that failed: it has said why."""
    if code:
        raise SystemExit(code)
