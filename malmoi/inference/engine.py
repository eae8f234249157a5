"""What computes the logits of a batch: torch or ONNX Runtime, each in two number formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, get_args

from malmoi.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from malmoi.inference.batching import PaddedBatch

EngineName = Literal["torch-fp32", "torch-bf16", "onnx-fp32", "onnx-int8"]
# What stands for an engine where there is no encoder.
Engineless = Literal["linear"]
# `auto`: what was measured, else by what the machine can do; `fastest`: the fastest that agrees
# with torch in fp32, measured now; `torch`: in the number format that is the faster one on most
# machines of this kind.
EngineChoice = Literal[
    "auto", "fastest", "torch", "torch-fp32", "torch-bf16", "onnx-fp32", "onnx-int8"
]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
# What `auto` takes without measuring: for tests and containers.
ENGINE_VARIABLE = "MALMOI_ENGINE"


class Engine(Protocol):
    """A network that is ready to compute; safe to use from several threads."""

    @property
    def name(self) -> EngineName | Engineless:
        """Which engine it is."""

    @property
    def tokens_in_batch(self) -> int:
        """Padded tokens in one batch with which it is fastest."""

    @property
    def batches_at_once(self) -> int:
        """How many batches it computes side by side, each in a thread of the caller's."""

    @property
    def place(self) -> str:
        """The device: `cpu`, `cuda`."""

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        """Logits of B texts, float32 [B, K]."""


def check_engine(name: str, where: str) -> EngineChoice:
    """The engine of this name.

    Raises:
        InputError: there is none; `where` says in the line where it was named.
    """
    for known in get_args(EngineChoice):
        if name == known:
            return known
    raise InputError(
        "expected {what} of {engines}, found {name!r}",
        what=where,
        engines=", ".join(get_args(EngineChoice)),
        name=name,
    )
