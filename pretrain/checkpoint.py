"""State to resume from: written whole or not at all, checksummed, the last two kept."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import safetensors.torch
import torch

from corpora.errors import InputError
from pretrain.networks import ElectraPair
from pretrain.optimizer import Optimizers, WeightAverage

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
    stage: int = 0
    """Of a two-stage run: 0 while the generator is trained, then 1."""
    averaged: int = 0
    """Steps whose weights are in the average."""


def save_state(
    directory: Path,
    pair: ElectraPair,
    optimizers: Optimizers,
    progress: Progress,
    average: WeightAverage | None = None,
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
        average = average or WeightAverage()
        files = {
            "weights": {name: parameter.detach() for name, parameter in pair.named_parameters()},
            "optimizer": optimizers.state(pair),
            "average": average.mean,
        }
        progress = replace(progress, averaged=average.count)
        checksums = {}
        for file, tensors in files.items():
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
    optimizers: Optimizers,
    report: Callable[[str], None],
) -> tuple[Progress, WeightAverage]:
    """Load the newest undamaged checkpoint into `pair` and `optimizers`.

    Args:
        report: gets a line for each damaged checkpoint that is passed over.

    Raises:
        InputError: there is no checkpoint, or none is whole.
    """
    for path in _checkpoints(directory):
        try:
            progress, tensors = _read(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            report(f"checkpoint {path} is damaged ({error}); trying the one before it")
            continue
        with torch.no_grad():
            for name, parameter in pair.named_parameters():
                parameter.copy_(tensors["weights"][name])
        optimizers.restore(pair, tensors["optimizer"])
        average = WeightAverage()
        average.count = progress.averaged
        average.mean = {
            name: tensor.to(next(pair.parameters()).device)
            for name, tensor in tensors["average"].items()
        }
        return progress, average
    raise InputError(
        f"expected a checkpoint to resume from in {directory}, found none that is whole; "
        "start again without --resume and with a new --output"
    )


def has_state(directory: Path) -> bool:
    """Whether there is any checkpoint, damaged ones included."""
    return bool(_checkpoints(directory))


def _checkpoints(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-*"), reverse=True)


def _read(path: Path) -> tuple[Progress, dict[str, dict[str, torch.Tensor]]]:
    record = json.loads((path / "progress.json").read_text())
    tensors = {}
    for file, checksum in record["sha256"].items():
        blob = (path / f"{file}.safetensors").read_bytes()
        if hashlib.sha256(blob).hexdigest() != checksum:
            raise ValueError(f"checksum of {file}.safetensors does not match")
        tensors[file] = safetensors.torch.load(blob)
    known = {field.name for field in fields(Progress)}
    values = {key: value for key, value in record["progress"].items() if key in known}
    return Progress(**values), tensors
