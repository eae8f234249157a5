"""State to resume from: written whole or not at all, checksummed, the last two kept."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import safetensors.torch
import torch

from corpora.errors import InputError
from pretrain.networks import ElectraPair

KEPT = 2


@dataclass(kw_only=True)
class Progress:
    """Where a run stands. Random draws need no state: each step seeds its own."""

    step: int = 0
    """Optimizer steps done."""
    tokens: int = 0
    """Tokens seen, padding not counted."""
    flops: float = 0.0
    """Estimated floating-point operations spent."""
    seconds: float = 0.0
    """Training time, over all sittings."""


def save_state(
    directory: Path, pair: ElectraPair, optimizer: torch.optim.Optimizer, progress: Progress
) -> Path:
    """Write `directory/step-N/` through a temporary name; then drop all but the last two.

    Raises:
        OSError: the disk is full; earlier checkpoints are untouched then.
    """
    final = directory / f"step-{progress.step:08d}"
    scratch = directory / f".{final.name}.tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        names = {id(parameter): name for name, parameter in pair.named_parameters()}
        weights = {name: parameter.detach() for name, parameter in pair.named_parameters()}
        moments = {
            f"{names[id(parameter)]}/{key}": value
            for parameter, state in optimizer.state.items()
            for key, value in state.items()
            if isinstance(value, torch.Tensor)
        }
        checksums = {}
        for file, tensors in (("weights", weights), ("optimizer", moments)):
            # save() and our own write, not save_file(): a full disk is an OSError then.
            blob = safetensors.torch.save({key: t.contiguous() for key, t in tensors.items()})
            (scratch / f"{file}.safetensors").write_bytes(blob)
            checksums[file] = hashlib.sha256(blob).hexdigest()
        record = {"progress": asdict(progress), "sha256": checksums}
        (scratch / "progress.json").write_text(json.dumps(record, indent=2))
        if final.exists():
            shutil.rmtree(final)
        scratch.rename(final)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    for old in _checkpoints(directory)[KEPT:]:
        shutil.rmtree(old)
    return final


def load_state(
    directory: Path,
    pair: ElectraPair,
    optimizer: torch.optim.Optimizer,
    report: Callable[[str], None],
) -> Progress:
    """Load the newest undamaged checkpoint into `pair` and `optimizer`.

    Args:
        report: gets a line for each damaged checkpoint that is passed over.

    Raises:
        InputError: there is no checkpoint, or none is whole.
    """
    for path in _checkpoints(directory):
        try:
            progress, weights, moments = _read(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            report(f"checkpoint {path} is damaged ({error}); trying the one before it")
            continue
        _restore(pair, optimizer, weights, moments)
        return progress
    raise InputError(
        f"expected a checkpoint to resume from in {directory}, found none that is whole; "
        "start again without --resume and with a new --output"
    )


def has_state(directory: Path) -> bool:
    """Whether there is any checkpoint, damaged ones included."""
    return bool(_checkpoints(directory))


def _checkpoints(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-*"), reverse=True)


def _read(path: Path) -> tuple[Progress, dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    record = json.loads((path / "progress.json").read_text())
    tensors = []
    for file in ("weights", "optimizer"):
        blob = (path / f"{file}.safetensors").read_bytes()
        if hashlib.sha256(blob).hexdigest() != record["sha256"][file]:
            raise ValueError(f"checksum of {file}.safetensors does not match")
        tensors.append(safetensors.torch.load(blob))
    known = {field.name for field in fields(Progress)}
    values = {key: value for key, value in record["progress"].items() if key in known}
    return Progress(**values), tensors[0], tensors[1]


def _restore(
    pair: ElectraPair,
    optimizer: torch.optim.Optimizer,
    weights: dict[str, torch.Tensor],
    moments: dict[str, torch.Tensor],
) -> None:
    with torch.no_grad():
        for name, parameter in pair.named_parameters():
            parameter.copy_(weights[name])
            state = {}
            for key in ("step", "exp_avg", "exp_avg_sq"):
                if f"{name}/{key}" in moments:
                    # The step count too: fused AdamW wants it beside the weights.
                    state[key] = moments[f"{name}/{key}"].to(parameter.device)
            if state:
                optimizer.state[parameter] = state
