"""Losses beside the objective's, each with a weight of its own.

To add one: a subclass of `AuxiliaryLoss`, its line in `registry.AUXILIARY_LOSSES`, and its weight
in `Recipe`. Legend: b sequences of this process, L tokens, V vocabulary entries.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch.nn import functional
from transformers import ElectraConfig

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.model.flops import lm_head_flops
from malmoi.pretrain.objectives.context import EncoderPass, TokenLosses
from malmoi.pretrain.objectives.encoder_objective import Product
from malmoi.pretrain.objectives.masked_lm import encoder_masked_lm, lm_head_products
from malmoi.pretrain.objectives.watched import WatchedLoss, guessing


class AuxiliaryLoss(ABC):
    """A loss by which the encoder learns something more."""

    name: ClassVar[str]
    """Its key in a row of metrics, if it is `recorded`."""
    recorded: ClassVar[bool] = True
    at_cls: ClassVar[bool] = False
    """Whether it asks [CLS], once a text, instead of tokens."""
    head: ClassVar[str | None] = None
    """Field of `PairShape` that gives it a head of its own."""
    watched: ClassVar[WatchedLoss | None] = None
    """By what an explosion is seen where the objective itself has no weight."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    @staticmethod
    @abstractmethod
    def weight_in(recipe: Recipe) -> float:
        """Its weight; 0 where it takes no part."""

    @abstractmethod
    def loss(self, run: EncoderPass, objective: TokenLosses) -> torch.Tensor:
        """float32 [], a mean over the whole batch; this process's part of it."""

    def head_flops(self, config: ElectraConfig, masked: float, length: float) -> float:
        """Operations of its own head's forward pass for one token.

        Args:
            masked: fraction of the tokens that is masked.
            length: mean tokens of a text.
        """
        return 0.0

    def head_products(self, config: ElectraConfig, masked: int) -> list[Product]:
        """Its own head's linear layers, for so many masked tokens, if they are worth counting."""
        return []

    def describe(self, row: dict[str, float]) -> str:
        """Its part of the progress line; empty where it has none."""
        return ""


class SentenceDetection(AuxiliaryLoss):
    """Was anything in this text replaced? (ELECTRA, "Negative Results").

    It asks the detection head, which runs at [CLS] anyway.
    """

    name = "sentence_loss"
    recorded = False
    at_cls = True

    @staticmethod
    def weight_in(recipe: Recipe) -> float:
        """`objective.sentence_weight`."""
        return recipe.sentence_weight

    def loss(self, run: EncoderPass, objective: TokenLosses) -> torch.Tensor:
        """Binary cross entropy of the detection head's logit at [CLS], mean over texts."""
        batch, logits = run.batch, objective.detection_logits
        assert logits is not None
        changed = (run.input_ids != batch.input_ids).flatten().float()
        size = batch.input_ids.numel() + 1
        per_text = changed.new_zeros(size).scatter_add(0, batch.documents.flatten(), changed)
        is_cls = (batch.input_ids == run.context.tables.cls_id) & batch.real
        labels = (per_text[batch.documents] > 0).float()
        losses = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        return run.context.mean_over(torch.where(is_cls, losses, 0.0), is_cls)


class BagOfWords(AuxiliaryLoss):
    """[CLS] guesses all words of its text, as a paragraph vector does (Le and Mikolov 2014)."""

    name = "bag_loss"
    at_cls = True
    head = "bag_head"

    @staticmethod
    def weight_in(recipe: Recipe) -> float:
        """`objective.bag_weight`."""
        return recipe.bag_weight

    def loss(self, run: EncoderPass, objective: TokenLosses) -> torch.Tensor:
        """Cross entropy of a text's own words under [CLS]'s guess, mean over the words.

        Only the first text in each row is asked: in a batch of like lengths that is all of them.
        Packed rows differ in their number of texts, and reading it would make the device wait.
        """
        batch, tables = run.batch, run.context.tables
        logits = run.pair.bag_logits(run.states[:, 0]).float() + tables.bias  # [b, V]
        losses = -logits.log_softmax(dim=-1).gather(1, batch.input_ids)  # [b, L]
        first = batch.documents == batch.documents[:, :1]
        scope = batch.real & tables.may_stand(batch.input_ids) & first
        return run.context.mean_over(torch.where(scope, losses, 0.0), scope)

    def head_flops(self, config: ElectraConfig, masked: float, length: float) -> float:
        """One guess a text."""
        return lm_head_flops(config, 1 / length)

    def describe(self, row: dict[str, float]) -> str:
        """The loss."""
        return f"bag loss {row['bag_loss']:.3f}"


class CorrectiveLM(AuxiliaryLoss):
    """A discriminator guesses too what stood at the masked positions, from the corrupted text.

    Corrective language modelling (COCO-LM, Meng et al. 2021) without its copy mechanism (METRO,
    Bajaj et al. 2022).
    """

    name = "correction_loss"
    head = "correction_head"
    watched = guessing("correction_loss")

    @staticmethod
    def weight_in(recipe: Recipe) -> float:
        """`objective.correction_weight`."""
        return recipe.correction_weight

    def loss(self, run: EncoderPass, objective: TokenLosses) -> torch.Tensor:
        """Cross entropy at the masked positions."""
        guesses = encoder_masked_lm(run)
        return run.context.mean_over(guesses.losses, guesses.scope)

    def head_flops(self, config: ElectraConfig, masked: float, length: float) -> float:
        """The masked-LM head, at masked positions only."""
        return lm_head_flops(config, masked)

    def head_products(self, config: ElectraConfig, masked: int) -> list[Product]:
        """The masked-LM head, at masked positions only."""
        return lm_head_products(config, masked)

    def describe(self, row: dict[str, float]) -> str:
        """Loss, and how much was guessed right."""
        return f"correction loss {row['correction_loss']:.3f} acc {row['encoder_accuracy']:.3f}"
