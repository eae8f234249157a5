"""In which number format matrix products are computed."""

import platform
import time

import pytest
import torch

from pretrain.devices import prefers_bf16

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "has_instruction", "has_amx", "expected"),
    [
        ("AMD EPYC", True, False, True),
        ("AMD EPYC", False, False, False),
        ("Intel Xeon", True, False, False),
        ("Intel Xeon", True, True, True),
    ],
    ids=["AMD with bf16", "AMD without", "Intel without tiles", "Intel with tiles"],
)
def test_bf16_is_taken_on_cpus_that_multiply_it_faster(
    name: str,
    has_instruction: bool,
    has_amx: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": name})
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_instruction)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_amx)
    assert prefers_bf16(CPU) is expected


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the rule knows x86 CPUs only"
)
def test_the_format_taken_is_the_faster_one_here() -> None:
    """The rule knows CPUs by name; this machine's must not be a kind that it has wrong."""
    matrices = {
        kind: torch.randn(1024, 1024, dtype=kind) for kind in (torch.float32, torch.bfloat16)
    }
    best = dict.fromkeys(matrices, float("inf"))
    for _ in range(20):  # in turns: other processes slow down both
        for kind, matrix in matrices.items():
            began = time.perf_counter()
            matrix @ matrix
            best[kind] = min(best[kind], time.perf_counter() - began)
    ratio = best[torch.float32] / best[torch.bfloat16]
    if 0.8 < ratio < 1.25:
        pytest.skip(f"bf16 products have {ratio:.2f} times the rate of fp32 here: either will do")
    assert prefers_bf16(CPU) is (ratio > 1)
