"""Weights for inference; which device and number format to use is `pretrain.devices`' answer."""

import torch
from torch import nn

from pretrain.devices import matrix_dtype


def convert_matrices(model: nn.Module, device: torch.device) -> None:
    """Convert the weights of linear layers to `matrix_dtype`, once, in place; for inference only.

    Under autocast the numbers are the same as with float32 weights, which it would convert
    again on every call: for one short text that conversion costs more than the model itself.
    """
    dtype = matrix_dtype(device)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.to(dtype)
