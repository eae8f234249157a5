"""Number formats for inference; which device and autocast to use is `pretrain.devices`' answer."""

import torch
from torch import nn

from pretrain.devices import prefers_bf16


def best_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the hardware multiplies it faster, else float32."""
    return torch.bfloat16 if prefers_bf16(device) else torch.float32


def convert_matrices(model: nn.Module, device: torch.device) -> None:
    """Convert the weights of linear layers to `best_dtype`, once, in place; for inference only.

    Under autocast the numbers are the same as with float32 weights, which it would convert
    again on every call: for one short text that conversion costs more than the model itself.
    """
    dtype = best_dtype(device)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.to(dtype)
