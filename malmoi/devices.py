"""Which device a run uses and in which number format its matrix products are computed."""

import ctypes
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import nn

from malmoi.errors import InputError
from malmoi.settings import Precision

# Constants of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
# Where torch's threads are, if there are some.
_PROCESS = os.getpid()


def choose_device(name: str = "auto") -> torch.device:
    """`auto` takes the GPU if there is one.

    Raises:
        InputError: a device was named that this machine lacks.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(
            "expected --device auto, cpu or cuda, found {name!r}", name=name
        ) from error
    if device.type not in ("cpu", "cuda"):
        raise InputError("expected --device auto, cpu or cuda, found {name!r}", name=name)
    count = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        raise InputError(
            "expected one of {count} CUDA devices, found --device {name}; use auto",
            count=count,
            name=name,
        )
    return device


@cache
def one_thread_after_fork(process: int) -> None:
    """Let torch compute with one thread in a forked process: its others stayed in the parent.

    Waiting for them, which torch would do, never ends.

    Args:
        process: the one that computes, by its number.
    """
    if process != _PROCESS:
        torch.set_num_threads(1)


def prefers_bf16(device: torch.device) -> bool:
    """Whether bf16 matrix products are faster than fp32 ones; emulated ones never are.

    Nor is every AVX-512 instruction for it: Intel's has half the rate of fp32 (measured,
    docs/performance.md). AMD's and Intel's AMX tiles count as faster, by their makers' figures; a
    test compares the rule with the machine it runs on. A rule instead of a measurement at every
    start: a noisy moment must not decide.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        # Older versions do not tell the name.
        facts = getattr(torch.cpu, "get_capabilities", dict[str, object])()
        return torch.cpu._is_amx_tile_supported() or (
            torch.cpu._is_avx512_bf16_supported() and "Intel" not in str(facts.get("cpu_name"))
        )
    return False


def matrix_dtype(device: torch.device, precision: Precision = "auto") -> torch.dtype:
    """The number format of matrix products; `auto` is the faster one of the device."""
    bf16 = prefers_bf16(device) if precision == "auto" else precision == "bf16"
    return torch.bfloat16 if bf16 else torch.float32


def autocast(device: torch.device, precision: Precision = "auto") -> AbstractContextManager[object]:
    """Matrix products in `matrix_dtype`; weights stay fp32."""
    dtype = matrix_dtype(device, precision)
    return nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype=dtype)


def attention_for(device: torch.device) -> str:
    """transformers' attention implementation that trains fastest on the device.

    On a CPU the backward pass of torch's fused attention takes three to seven times as long as
    plain matrix products at 16 to 128 tokens (docs/performance.md); "eager" is those products.
    """
    return "eager" if device.type == "cpu" else "sdpa"


def keep_freed_memory(device: torch.device) -> None:
    """Let the allocator of a CPU process keep large blocks that a step frees, for the next step.

    glibc gives every block of over 32 MiB back to the system at once, and the next one costs page
    faults anew: with fast matrix products more time than the products themselves
    (docs/performance.md). For a process that trains and ends: it stays as large as its largest
    step. Other allocators and systems are left as they are.
    """
    if device.type != "cpu" or not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, -1)


def convert_matrices(model: nn.Module, device: torch.device, precision: Precision = "auto") -> None:
    """Convert the weights of linear layers to `matrix_dtype`, once, in place; for inference only.

    Under autocast the numbers are the same as with float32 weights, which it would convert
    again on every call: for one short text that conversion costs more than the model itself.
    """
    dtype = matrix_dtype(device, precision)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.to(dtype)
