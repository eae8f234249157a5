"""Runs that `test_processes.py` has torchrun start: `torchrun in_processes.py PLAN FOLDER`.

PLAN is a JSON file with a list of scenarios, done one after the other by the same processes,
for loading torch takes longer than all of them. What each process saw goes to FOLDER/rank-N.json.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import PartialState

import malmoi.pretrain.run
from malmoi.command_line import run_command
from malmoi.pretrain.config.defaults import PRESETS
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.pretrain.engine import loop
from malmoi.pretrain.engine.monitor import Monitor
from malmoi.pretrain.model.networks import ElectraPair
from tests.malmoi.pretrain.conftest import SMALL


@dataclass(kw_only=True)
class Scenario:
    """One command."""

    name: str
    flags: list[str]
    port: int | None = None
    """Where the processes meet, if not where torchrun says."""
    sigterm_at: int | None = None
    """Step after which the last process gets SIGTERM."""
    disk_full: bool = False
    """Whether no checkpoint after the first can be written."""


def sha256(pair: ElectraPair) -> str:
    """A digest of all weights."""
    digest = hashlib.sha256()
    for _, parameter in pair.named_parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def perform(scenario: Scenario) -> dict[str, Any]:
    """Run the command in this process, in fp32; what it printed, and its weights at the end."""
    seen: dict[str, Any] = {"code": None, "weights": None}
    rank = int(os.environ.get("RANK", "0"))
    is_last = rank == int(os.environ.get("WORLD_SIZE", "1")) - 1
    train, add, save = loop.Trainer.run, Monitor.add, loop.save_state

    def run_and_hash(self: loop.Trainer, *args: Any) -> bool:
        finished = train(self, *args)
        seen["weights"] = sha256(self.pair)
        return finished

    def add_and_end(self: Monitor, *args: Any, step: int, **rest: Any) -> None:
        add(self, *args, step=step, **rest)
        if is_last and step == scenario.sigterm_at:
            os.kill(os.getpid(), signal.SIGTERM)

    def save_if_possible(*args: Any) -> Path:
        if scenario.disk_full:
            raise OSError(errno.ENOSPC, "No space left on device", "state")
        return save(*args)

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(PRESETS, "tiny", SMALL)
        patched.setattr(loop.Trainer, "run", run_and_hash)
        patched.setattr(Monitor, "add", add_and_end)
        patched.setattr(loop, "save_state", save_if_possible)
        # bf16 rounds each process's part of a sum, so it differs in the fourth digit.
        patched.setattr(sys, "argv", ["run.py", "--precision", "fp32", *scenario.flags])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                seen["code"] = run_command(PretrainSettings, malmoi.pretrain.run.main, "")
            except SystemExit as ended:
                seen["code"] = ended.code
    PartialState._reset_state()
    return seen | {"stdout": out.getvalue(), "stderr": err.getvalue()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    plan = json.loads(Path(sys.argv[1]).read_text())
    found = {}
    for each in plan:
        scenario = Scenario(**each)
        if scenario.port is not None:
            # torchrun's own meeting place still has the addresses of the time before.
            os.environ |= {"MASTER_PORT": str(scenario.port), "TORCHELASTIC_USE_AGENT_STORE": ""}
        found[scenario.name] = perform(scenario)
    Path(sys.argv[2], f"rank-{os.environ['RANK']}.json").write_text(json.dumps(found))
