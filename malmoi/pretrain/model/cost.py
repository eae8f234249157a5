"""What networks cost on this machine: parameters, operations really made, and its own rate."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from malmoi.pretrain.model.networks import ElectraPair


def parameter_counts(pair: ElectraPair) -> dict[str, dict[str, int]]:
    """Parameters of each network, in all and without embeddings (word, position, type)."""
    counts = {}
    for name, network in pair.networks().items():
        total = network.num_parameters()
        embedded = sum(
            parameter.numel()
            for key, parameter in network.electra.embeddings.named_parameters()
            if "embeddings" in key
        )
        counts[name] = {"parameters": total, "without_embeddings": total - embedded}
    return counts


def hardware_flops(step: Callable[[], Any]) -> int:
    """Operations in the matrix products that a call really makes, by torch's own counter."""
    with FlopCounterMode(display=False) as counter:
        step()
    return int(counter.get_total_flops())


def matrix_seconds(
    shapes: dict[tuple[int, int, int], int],
    device: torch.device,
    dtype: torch.dtype,
    *,
    repeats: int = 5,
) -> tuple[float, float]:
    """How long the machine needs for these products alone, forward and backward.

    The physical limit of a step: nothing but its linear layers' three products each (output,
    gradient of the input, gradient of the weight), one after the other.

    Returns:
        Seconds of one step, and the rate in operations a second.
    """
    seconds = operations = 0.0
    for (rows, inputs, outputs), times in shapes.items():
        x = torch.randn(rows, inputs, device=device).to(dtype)
        weight = torch.randn(outputs, inputs, device=device).to(dtype)
        y = torch.randn(rows, outputs, device=device).to(dtype)

        def products(
            x: torch.Tensor = x, weight: torch.Tensor = weight, y: torch.Tensor = y
        ) -> None:
            functional.linear(x, weight)
            y @ weight
            y.t() @ x

        products()
        best = float("inf")
        for _ in range(repeats):
            _wait(device)
            began = time.perf_counter()
            products()
            _wait(device)
            best = min(best, time.perf_counter() - began)
        seconds += best * times
        operations += 6.0 * rows * inputs * outputs * times
    return seconds, operations / seconds


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
