"""All-tokens MLM: guess what stood everywhere, with a copy mechanism (Clark et al. 2020, 3.4).

Legend: b sequences of this process, L tokens.
"""

import torch
from torch.nn import functional
from transformers import ElectraConfig

from malmoi.pretrain.model.flops import detection_head_flops, lm_head_flops
from malmoi.pretrain.objectives.context import EncoderPass, TokenLosses
from malmoi.pretrain.objectives.encoder_objective import EncoderObjective, Product
from malmoi.pretrain.objectives.masked_lm import lm_head_products
from malmoi.pretrain.objectives.replaced_token_detection import (
    count_detected,
    describe_detection,
    detection_head_products,
)
from malmoi.pretrain.objectives.replacing import blockwise_argmax
from malmoi.pretrain.objectives.watched import guessing


class AllTokensMLM(EncoderObjective):
    """A mixture of copying the input and guessing.

    The paper: with the copy probability D of a sigmoid layer, the output is D x (the input token)
    + (1 - D) x softmax. Here the sigmoid layer is the discriminator's own head, whose logit says
    "replaced", so that D = 1 - sigmoid.
    """

    needs_lm_head = True
    detects = True
    watched = guessing("discriminator_loss")

    def token_losses(self, run: EncoderPass) -> TokenLosses:
        """Cross entropy of the mixture at every token."""
        batch, tables = run.batch, run.context.tables
        replaced = run.pair.discriminator.discriminator_predictions(run.states).float()  # [b, L]
        logits = run.pair.encoder_lm_logits(run.states.flatten(0, 1)).float() + tables.bias
        targets = batch.input_ids.flatten()
        log_guess = -functional.cross_entropy(logits, targets, reduction="none")
        log_guess = log_guess.view_as(replaced) + functional.logsigmoid(replaced)
        same = run.input_ids == batch.input_ids
        log_copy = functional.logsigmoid(-replaced).masked_fill(~same, float("-inf"))
        # Special tokens can only be copied: guessing them is minus infinity, whose gradient
        # would be NaN.
        guessable = tables.may_stand(targets).view_as(same)
        both = torch.logaddexp(log_copy, torch.where(guessable, log_guess, -1e4))
        losses = torch.where(batch.real & (guessable | same), -both, 0.0)
        with torch.no_grad():
            count_detected(run.counts, replaced, ~same, batch.real)
            right = (blockwise_argmax(logits) == targets) & batch.masked.flatten()
            run.counts["encoder_places"] = batch.is_place.sum()
            run.counts["encoder_guessed"] = right.sum()
        return TokenLosses(losses=losses, scope=batch.real)

    def head_flops(self, config: ElectraConfig, masked: float) -> float:
        return lm_head_flops(config, 1.0) + detection_head_flops(config)

    def head_products(self, config: ElectraConfig, tokens: int, masked: int) -> list[Product]:
        return detection_head_products(config, tokens) + lm_head_products(config, tokens)

    def describe(self, row: dict[str, float]) -> str:
        """Loss, precision and recall of the copy mechanism."""
        return describe_detection(row)
