"""Layers that begin as copies of those below them while a run goes on.

Gong et al. 2019, "Efficient Training of BERT by Progressively Stacking"; when:
`malmoi.pretrain.config.stacking`. What it is worth: lab/log/pre-training.md.
"""

from collections.abc import Iterator
from itertools import islice

import torch
from torch import nn

from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.model.networks import ElectraPair


class StackedLayers(nn.ModuleList):
    """All layers of an encoder, of which the first `running` compute."""

    running: int

    def __iter__(self) -> Iterator[nn.Module]:
        return islice(super().__iter__(), self.running)


def run_part(pair: ElectraPair, part: float) -> None:
    """Let this part of each network's layers compute and learn, and the others stand by."""
    for network in pair.networks().values():
        encoder = network.electra.encoder
        if not isinstance(encoder.layer, StackedLayers):
            encoder.layer = StackedLayers(encoder.layer)
        encoder.layer.running = max(1, round(len(encoder.layer) * part))
        for place in range(len(encoder.layer)):
            encoder.layer[place].requires_grad_(place < encoder.layer.running)


def stack(pair: ElectraPair, optimizers: Optimizers, part: float) -> None:
    """Let more layers run: new ones begin as those that did, in their order, moments included."""
    ran = {name: network.electra.encoder.layer.running for name, network in pair.networks().items()}
    run_part(pair, part)
    for name, network in pair.networks().items():
        layers = network.electra.encoder.layer
        for place in range(ran[name], layers.running):
            below = layers[place % ran[name]]
            for old, new in zip(below.parameters(), layers[place].parameters(), strict=True):
                with torch.no_grad():
                    new.copy_(old)
                optimizers.copy_state(old, new)
