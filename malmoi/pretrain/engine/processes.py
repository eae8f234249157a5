"""One process or several, started by `torchrun` or `accelerate launch --multi_gpu`, data parallel.

The tests start them on CPUs, either way; several GPUs were not there to try.

Every process draws the masks of the whole batch and works on its own rows of it; gradients are
added up, so weights stay equal in all of them and a run can go on with another number.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from malmoi.devices import choose_device
from malmoi.errors import InputError

Result = TypeVar("Result")

# The others wait while the main process cleans and tokenises, which may take hours; torch's 10 to
# 30 minutes would end them. If a process dies, torchrun ends the rest at once.
_PATIENCE = timedelta(days=2)


@dataclass(frozen=True, kw_only=True)
class Processes:
    """This process among the others of the run."""

    device: torch.device
    rank: int = 0
    world_size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this one prepares, prints and writes."""
        return self.rank == 0

    def add_up(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum over the processes. Any tensor -> the same shape, the same in all of them."""
        if self.world_size == 1:
            return tensor
        total = tensor.detach().clone()
        dist.all_reduce(total)
        return total

    def add_up_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace every gradient by its sum over the processes, in one message."""
        if self.world_size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = _flatten_dense_tensors(gradients)
        dist.all_reduce(flat)
        for gradient, total in zip(
            gradients, _unflatten_dense_tensors(flat, gradients), strict=True
        ):
            gradient.copy_(total)

    def from_main(self, value: Any) -> Any:
        """What the main process has for `value`; every process waits for it here."""
        if self.world_size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def in_main(self, work: Callable[[], Result]) -> Result | None:
        """Do `work` in the main process while the others wait for it.

        Returns:
            What it returns; None in the others.

        Raises:
            SystemExit: in the others, when it failed; the main process says why.
        """
        if self.world_size == 1:
            return work()
        if not self.is_main:
            if self.from_main(None) == "failed":
                raise SystemExit(2)
            return None
        try:
            result = work()
        except Exception:
            self.from_main("failed")
            raise
        self.from_main("done")
        return result

    def any_of(self, flag: bool) -> bool:
        """Whether `flag` is set in any process."""
        if self.world_size == 1:
            return flag
        return bool(self.add_up(torch.tensor(int(flag), device=self.device)) > 0)


def join_processes(device_name: str) -> Processes:
    """Join the processes that torchrun has started, if it has.

    Raises:
        InputError: more processes than GPUs, or a device that is not there.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Processes(device=choose_device(device_name))
    on_cpu = choose_device(device_name).type == "cpu"
    local = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]))
    if not on_cpu and local > torch.cuda.device_count():
        raise InputError(
            "expected at most one process a GPU, found {local} on {devices}; start fewer, or add "
            "--device cpu",
            local=local,
            devices=torch.cuda.device_count(),
        )
    state = PartialState(cpu=on_cpu, timeout=_PATIENCE)
    return Processes(
        device=torch.device("cpu") if on_cpu else state.device,
        rank=state.process_index,
        world_size=state.num_processes,
    )


def speaks_for_machine() -> bool:
    """Whether this is the process whose errors are shown; the others of a machine fail alike."""
    return int(os.environ.get("LOCAL_RANK", "0")) == 0


def leave_processes() -> None:
    """Take leave of the others, if there are any; without it torch warns at the end."""
    if dist.is_initialized():
        dist.destroy_process_group()
