"""What an objective has to say of itself.

To add one: a subclass of `EncoderObjective` in a file of its own, its line in
`malmoi.pretrain.objectives.registry.OBJECTIVES`, and its name in
`malmoi.pretrain.config.objective`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from transformers import ElectraConfig

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.objectives.context import EncoderPass, TokenLosses
from malmoi.pretrain.objectives.watched import WatchedLoss

Product = tuple[int, int, int]
"""Rows, inputs and outputs of a linear layer."""


class EncoderObjective(ABC):
    """What the encoder that is handed out learns. It is chosen by name, once a run."""

    replaces_tokens: ClassVar[bool] = True
    """True: the encoder reads texts in which tokens were replaced, by a generator or by noise.
    False: it reads [MASK], and there is no second network."""
    needs_lm_head: ClassVar[bool] = False
    """Whether it guesses tokens, with a masked-LM head on the encoder."""
    detects: ClassVar[bool] = False
    """Whether it asks the discriminator's head which tokens were replaced, and counts the answers:
    there is no precision or recall else."""
    watched: ClassVar[WatchedLoss]
    """Its loss; the key says too where a row of metrics has it."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    @abstractmethod
    def token_losses(self, run: EncoderPass) -> TokenLosses:
        """Losses at the tokens of a batch; counts go into `run.counts`."""

    @abstractmethod
    def head_flops(self, config: ElectraConfig, masked: float) -> float:
        """Operations of the heads' forward pass for one token, see `malmoi.pretrain.model.flops`.

        Args:
            masked: fraction of the tokens that is masked.
        """

    @abstractmethod
    def head_products(self, config: ElectraConfig, tokens: int, masked: int) -> list[Product]:
        """The heads' linear layers, for so many tokens and masked ones."""

    @abstractmethod
    def describe(self, row: dict[str, float]) -> str:
        """Its part of the progress line, from a row of metrics."""

    def weight_at(self, fraction: float) -> float:
        """Weight of the loss when `fraction` of the run is done."""
        warmup = self.recipe.weight_warmup
        risen = min(1.0, fraction / warmup) if warmup > 0 else 1.0
        return self.recipe.discriminator_weight * risen

    def trivial_answer(self, counts: dict[str, int]) -> str:
        """What it has learnt instead of the task, by the counts since the last row.

        Returns:
            One clause for a warning; empty where nothing looks wrong.
        """
        return ""
