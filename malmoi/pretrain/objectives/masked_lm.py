"""Masked LM: guess what [MASK] hides (BERT, Devlin et al. 2019).

Legend: b sequences of this process, L tokens, N masked positions, V vocabulary entries.
"""

import torch
from transformers import ElectraConfig

from malmoi.pretrain.model.flops import lm_head_flops
from malmoi.pretrain.objectives.context import EncoderPass, TokenLosses
from malmoi.pretrain.objectives.encoder_objective import EncoderObjective, Product
from malmoi.pretrain.objectives.generator import masked_cross_entropy
from malmoi.pretrain.objectives.replacing import blockwise_argmax
from malmoi.pretrain.objectives.watched import guessing


def encoder_masked_lm(run: EncoderPass, *, hidden_only: bool = False) -> TokenLosses:
    """Cross entropy of the encoder's guesses at the masked positions, 0 elsewhere.

    Args:
        hidden_only: count what it guesses where [MASK] stands only; the loss stays that of all.
    """
    batch, tables = run.batch, run.context.tables
    logits = run.pair.encoder_lm_logits(run.states.flatten(0, 1)[batch.places])
    guesses = masked_cross_entropy(logits, batch.targets, batch.is_place, tables)
    with torch.no_grad():
        right = blockwise_argmax(guesses.logits) == batch.targets
        asked = batch.hidden(tables) if hidden_only else guesses.counted
        run.counts["encoder_places"] = asked.sum()
        run.counts["encoder_guessed"] = (right & asked).sum()
    none = guesses.losses.new_zeros(batch.input_ids.numel())
    # Filled-up places add nothing, wherever they point.
    losses = none.index_add(0, batch.places, guesses.losses)
    scope = none.index_add(0, batch.places, guesses.counted.float()) > 0
    return TokenLosses(losses=losses.view_as(batch.input_ids), scope=scope.view_as(batch.input_ids))


def lm_head_products(config: ElectraConfig, rows: int) -> list[Product]:
    """The linear layers of a masked-LM head on so many rows."""
    width = config.embedding_size
    return [(rows, config.hidden_size, width), (rows, width, config.vocab_size)]


class GuessesAtMasks(EncoderObjective):
    """The encoder guesses tokens, at masked positions only."""

    needs_lm_head = True

    def head_flops(self, config: ElectraConfig, masked: float) -> float:
        """The masked-LM head."""
        return lm_head_flops(config, masked)

    def head_products(self, config: ElectraConfig, tokens: int, masked: int) -> list[Product]:
        """The masked-LM head."""
        return lm_head_products(config, masked)


class MaskedLM(GuessesAtMasks):
    """One network, which reads [MASK]; its loss stands where else the generator's does."""

    replaces_tokens = False
    watched = guessing("generator_loss")

    def token_losses(self, run: EncoderPass) -> TokenLosses:
        """Cross entropy at the masked positions."""
        losses = encoder_masked_lm(run, hidden_only=True)
        run.counts["guessed"] = run.counts["encoder_guessed"]
        return losses

    def weight_at(self, fraction: float) -> float:
        """Always 1: there is no other network's loss to weigh it against."""
        return 1.0

    def describe(self, row: dict[str, float]) -> str:
        """Loss, and how much was guessed right."""
        return f"loss {row['generator_loss']:.3f} acc {row['encoder_accuracy']:.3f}"
