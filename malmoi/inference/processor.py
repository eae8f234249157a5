"""What the processor can do, which decides the engine: read, not measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from malmoi.inference.engine import EngineName
from malmoi.workers.local import available_cores

_FACTS = Path("/proc/cpuinfo")
# Products of bytes that are summed in 32 bits, of Intel and AMD, and of ARM. Without one of them
# sums of two products are cut off at 16 bits: other logits, and hardly sooner.
_SUMS_BYTES = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"}


def suited_engine() -> EngineName:
    """The ONNX engine that is the faster one by the abilities of this processor."""
    apple = (platform.system(), platform.machine()) == ("Darwin", "arm64")
    able = any(_SUMS_BYTES & set(line.split()) for line in _described())
    return "onnx-int8" if apple or able else "onnx-fp32"


def has_gpu() -> bool:
    """Whether there is a GPU that torch may compute with; torch is not asked."""
    return Path("/dev/nvidia0").exists()


def machine_facts() -> tuple[str, int, bool]:
    """What is the same on another machine where the same engine is the fastest."""
    described = "\n".join(_described()[:2])
    other = f"{platform.processor()} {platform.machine()} {os.cpu_count()}"
    return described or other, available_cores(), has_gpu()


def _described() -> list[str]:
    """Lines with name and abilities; empty where the system does not tell."""
    try:
        lines = _FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if line.startswith(("model name", "flags", "Features"))]
