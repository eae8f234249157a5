"""State to resume from: written whole or not at all, checksummed, the last two kept."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from malmoi.errors import InputError
from malmoi.files import sync, sync_tree
from malmoi.pretrain.engine.optimizer import Optimizers, WeightAverage
from malmoi.pretrain.model.networks import ElectraPair

KEPT = 2
_TENSOR_FILES = ("weights", "optimizer", "average")


@dataclass(kw_only=True)
class TrainerState:
    """Where a run stands. Random draws need no state: each step seeds its own."""

    step: int = 0
    """Optimizer steps done."""
    tokens: int = 0
    """Tokens seen, padding not counted."""
    flops: float = 0.0
    """Estimated floating-point operations spent."""
    seconds: float = 0.0
    """Training time, over all sittings."""
    compiling_seconds: float = 0.0
    """Those of them in which networks were compiled: the clock of --max-minutes leaves them out."""
    stage: int = 0
    """0; in a two-stage run 1 after the generator's stage."""
    hardware_flops_per_token: float = 0.0
    """Operations in matrix products for each token of the stage's first step, forward and
    backward, by torch's counter; 0 before it."""
    tokens_of_first_stage: int = 0
    """Tokens seen before the stage, or before the layers that run now did."""
    hardware_flops_of_first_stage: float = 0.0
    """Operations spent on them."""
    depth: float = 0.0
    """Part of the layers that run, where a run stacks them; 0 before its first step."""
    averaged: int = 0
    """Steps whose weights are in the average."""
    length: str = ""
    """What the run's end was when they were: one of another length has another end. Empty before
    the first sitting."""
    warnings: list[str] = field(default_factory=list)
    """What the monitor has warned of so far."""

    @property
    def clock(self) -> float:
        """Seconds of training in earnest.

        It says the learning rate of `--max-minutes`, and compiling would use up the warm-up.
        """
        return self.seconds - self.compiling_seconds

    @property
    def hardware_flops(self) -> float:
        """Operations in matrix products so far."""
        tokens = self.tokens - self.tokens_of_first_stage
        return self.hardware_flops_of_first_stage + self.hardware_flops_per_token * tokens

    def begin_stage(self, stage: int) -> None:
        """Go over to a stage whose steps cost something else."""
        self.hardware_flops_of_first_stage = self.hardware_flops
        self.tokens_of_first_stage = self.tokens
        self.hardware_flops_per_token = 0.0
        self.stage = stage


def save_state(
    directory: Path,
    pair: ElectraPair,
    optimizers: Optimizers,
    progress: TrainerState,
    average: WeightAverage | None = None,
) -> Path:
    """Write `directory/step-N/` through a temporary name; then drop all but the last two.

    What is there stays whole whenever the process is killed or the power goes off.

    Raises:
        OSError: the disk is full; earlier checkpoints are untouched then.
    """
    final = directory / f"step-{progress.step:08d}"
    scratch, aside = directory / f".{final.name}.tmp", directory / f".{final.name}.old"
    for left_over in directory.glob(".step-*"):  # of a process that was killed
        shutil.rmtree(left_over)
    scratch.mkdir(parents=True)
    try:
        average = average or WeightAverage()
        files = {
            "weights": {name: parameter.detach() for name, parameter in pair.named_parameters()},
            "optimizer": optimizers.state(pair),
            "average": average.mean,
        }
        progress = replace(progress, averaged=average.count)
        checksums = {"progress": _progress_checksum(asdict(progress))}
        for file, tensors in files.items():
            # save() and our own write, not save_file(): a full disk is an OSError then.
            blob = safetensors.torch.save({key: t.contiguous() for key, t in tensors.items()})
            (scratch / f"{file}.safetensors").write_bytes(blob)
            checksums[file] = hashlib.sha256(blob).hexdigest()
        record = {"progress": asdict(progress), "sha256": checksums}
        (scratch / "progress.json").write_text(json.dumps(record, indent=2))
        sync_tree(scratch)
        if final.exists():
            final.rename(aside)
        scratch.rename(final)
        sync(directory)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    for old in [aside, *_checkpoints(directory)[KEPT:]]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def load_state(
    directory: Path,
    pair: ElectraPair,
    optimizers: Optimizers,
    report: Callable[[str], None],
    *,
    set_aside: bool = True,
) -> tuple[TrainerState, WeightAverage]:
    """Load the newest undamaged checkpoint into `pair` and `optimizers`.

    Args:
        report: gets a line for each damaged checkpoint that is passed over.
        set_aside: rename those to `damaged-step-N`, so that they do not count as one of the last
            two; not while other processes read them too.

    Raises:
        InputError: there is no checkpoint, none is whole, or it is of other networks.
    """
    damaged: list[Path] = []
    for path in _checkpoints(directory):
        try:
            progress, tensors = _read(path)
        except (OSError, ValueError) as error:
            report(f"checkpoint {path} is damaged ({error}); trying the one before it")
            damaged.append(path)
            continue
        _check_shapes(path, pair, tensors["weights"])
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
        if set_aside:
            for other in damaged:
                shutil.rmtree(directory / f"damaged-{other.name}", ignore_errors=True)
                other.rename(directory / f"damaged-{other.name}")
        return progress, average
    raise InputError(
        "expected a checkpoint to resume from in {directory}, found none that is whole; start "
        "again without --resume and with a new --output",
        directory=directory,
    )


def _check_shapes(path: Path, pair: ElectraPair, weights: dict[str, torch.Tensor]) -> None:
    expected = {name: tuple(parameter.shape) for name, parameter in pair.named_parameters()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if expected != found:
        name = min(n for n in expected | found if expected.get(n) != found.get(n))
        raise InputError(
            "expected the networks that the run began with, found other ones: {name} of "
            "{expected} where the checkpoint {path} has {found}; put back what --init or "
            "generator.init named, or start again with another --output",
            name=name,
            expected=expected.get(name),
            path=path,
            found=found.get(name),
        )


def progress_found(directory: Path) -> TrainerState | None:
    """Where the newest checkpoint says that the run stands, its tensors not looked at.

    None where no checkpoint can say it.
    """
    for path in _checkpoints(directory):
        try:
            return _read_progress(path)[0]
        except (OSError, ValueError):
            continue  # `load_state` reports it
    return None


def has_state(directory: Path) -> bool:
    """Whether there is any checkpoint, damaged ones included."""
    return bool(_checkpoints(directory))


def _checkpoints(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-*"), reverse=True)


def _read(path: Path) -> tuple[TrainerState, dict[str, dict[str, torch.Tensor]]]:
    """A checkpoint, every byte of it checked.

    Raises:
        OSError, ValueError: it is damaged.
    """
    progress, checksums = _read_progress(path)
    try:
        tensors = {}
        for file in _TENSOR_FILES:
            blob = (path / f"{file}.safetensors").read_bytes()
            if hashlib.sha256(blob).hexdigest() != checksums[file]:
                raise ValueError(f"checksum of {file}.safetensors does not match")
            # Cloned: what lies at odd addresses may be added up in another order, and a resumed
            # run must compute to the last bit what the uninterrupted one does.
            tensors[file] = {k: t.clone() for k, t in safetensors.torch.load(blob).items()}
    except (KeyError, TypeError) as error:
        raise ValueError(f"progress.json is incomplete: {error}") from error
    return progress, tensors


def _read_progress(path: Path) -> tuple[TrainerState, dict[str, str]]:
    """Where a checkpoint stands, and the checksums of its tensor files.

    Raises:
        OSError, ValueError: it is damaged.
    """
    record = json.loads((path / "progress.json").read_text())
    try:
        values, checksums = dict(record["progress"]), dict(record["sha256"])
        if checksums["progress"] != _progress_checksum(values):
            raise ValueError("checksum of progress.json does not match")
        return TrainerState(**values), checksums
    except (KeyError, TypeError) as error:
        raise ValueError(f"progress.json is incomplete: {error}") from error


def _progress_checksum(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
