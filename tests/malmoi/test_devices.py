"""In which number format matrix products are computed."""

import platform
import subprocess
import sys
import time

import pytest
import torch

from malmoi.devices import prefers_bf16

CPU = torch.device("cpu")


def test_bf16_is_taken_on_cpus_that_multiply_it_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, has_instruction, has_amx, expected in (
        ("AMD EPYC", True, False, True),
        ("AMD EPYC", False, False, False),
        ("Intel Xeon", True, False, False),
        ("Intel Xeon", True, True, True),
    ):
        for function, value in (
            ("get_capabilities", {"cpu_name": name}),
            ("_is_avx512_bf16_supported", has_instruction),
            ("_is_amx_tile_supported", has_amx),
        ):
            monkeypatch.setattr(torch.cpu, function, lambda value=value: value)
        assert prefers_bf16(CPU) is expected, (name, has_instruction, has_amx)


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the rule knows x86 CPUs only"
)
def test_the_format_taken_is_the_faster_one_here() -> None:
    """The rule knows CPUs by name; one that it has wrong is said, for no run is wrong by it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that this thread's own clock counts all of the work
    matrices = {
        kind: torch.randn(1024, 1024, dtype=kind) for kind in (torch.float32, torch.bfloat16)
    }
    best = dict.fromkeys(matrices, float("inf"))
    for _ in range(20):  # in turns: other processes slow down both
        for kind, matrix in matrices.items():
            began = time.thread_time()
            matrix @ matrix
            best[kind] = min(best[kind], time.thread_time() - began)
    torch.set_num_threads(threads)
    ratio = best[torch.float32] / best[torch.bfloat16]
    if 0.8 < ratio < 1.25:
        pytest.skip(f"bf16 products have {ratio:.2f} times the rate of fp32 here: either will do")
    if prefers_bf16(CPU) is not (ratio > 1):
        name = torch.cpu.get_capabilities().get("cpu_name")
        pytest.xfail(f"bf16 products have {ratio:.2f} times the rate of fp32 on {name}: tell us")


_STEPS = """
import sys
import torch
from malmoi.devices import keep_freed_memory

def resident_mib():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

if sys.argv[1] == "keep":
    keep_freed_memory(torch.device("cpu"))
before = resident_mib()
block = torch.ones(64 * 2**18)  # 64 MiB
del block
print(resident_mib() - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc's allocator is told to keep memory"
)
def test_memory_that_a_step_frees_is_kept_for_the_next() -> None:
    """In a process of its own: what an allocator is told holds for all that comes after."""
    kept = {}
    for what in ("keep", "leave"):
        done = subprocess.run(
            [sys.executable, "-c", _STEPS, what], capture_output=True, text=True, check=True
        )
        kept[what] = float(done.stdout)
    assert kept["keep"] > 60
    assert kept["leave"] < 10
