"""Replaced-token detection: was a token replaced? (ELECTRA, Clark et al. 2020, 2).

Legend: b sequences of this process, L tokens.
"""

import math
from typing import ClassVar

import torch
from torch.nn import functional
from transformers import ElectraConfig

from malmoi.pretrain.model.flops import detection_head_flops
from malmoi.pretrain.objectives.context import Counts, EncoderPass, TokenLosses
from malmoi.pretrain.objectives.encoder_objective import EncoderObjective, Product
from malmoi.pretrain.objectives.local_batch import LocalBatch
from malmoi.pretrain.objectives.watched import telling_apart

# Below this the discriminator gives practically every token the usual answer.
STUCK_RECALL = 0.01


class ReplacedTokenDetection(EncoderObjective):
    """Replaced or original, asked at every token."""

    detects = True
    watched = telling_apart("discriminator_loss")
    masked_only: ClassVar[bool] = False
    """Whether only masked positions are asked about."""

    def token_losses(self, run: EncoderPass) -> TokenLosses:
        """Binary cross entropy of the discriminator's head."""
        batch, recipe = run.batch, self.recipe
        logits = run.pair.discriminator.discriminator_predictions(run.states).float()  # [b, L]
        labels = replaced_labels(batch, run.input_ids, whole_spans=recipe.replaced_spans)
        losses = functional.binary_cross_entropy_with_logits(
            logits, labels.float(), reduction="none"
        )
        scope = batch.masked if self.masked_only else batch.real
        if recipe.sentence_weight > 0:
            # [CLS] answers for the whole text then, not for itself.
            scope = scope & (batch.input_ids != run.context.tables.cls_id)
        count_detected(run.counts, logits, labels, scope)
        return TokenLosses(losses=losses, scope=scope, detection_logits=logits)

    def head_flops(self, config: ElectraConfig, masked: float) -> float:
        """The discriminator's head, which runs at every token."""
        return detection_head_flops(config)

    def head_products(self, config: ElectraConfig, tokens: int, masked: int) -> list[Product]:
        """The discriminator's head, which runs at every token."""
        return detection_head_products(config, tokens)

    def describe(self, row: dict[str, float]) -> str:
        """Loss, precision and recall."""
        return describe_detection(row)

    def trivial_answer(self, counts: dict[str, int]) -> str:
        """Whether all tokens that it is asked about are called what most of them are."""
        tokens = counts["masked" if self.masked_only else "tokens"]
        replaced, found = counts["replaced"], counts["true_positive"]
        if not 0 < replaced < tokens:  # nothing to find: the generator learns alone
            return ""
        usual, rare, of = "original", "replaced", replaced
        if replaced > tokens / 2:
            usual, rare, of = rare, usual, tokens - replaced
            found = of - (counts["predicted_replaced"] - counts["true_positive"])
        if found / of >= STUCK_RECALL:
            return ""
        share = replaced / tokens
        trivial = -sum(p * math.log(p) for p in (share, 1 - share))
        return (
            f"discriminator recall of {rare} tokens is {found / of:.3f}: it has "
            f"only learnt that most {'masked ' if self.masked_only else ''}tokens are {usual}, so "
            f"its loss of about {trivial:.2f} is what guessing '{usual}' everywhere gives"
        )


class ReplacedMaskedTokenDetection(ReplacedTokenDetection):
    """ELECTRA 15%: the same, asked at masked positions only (Section 3.4)."""

    masked_only = True


def replaced_labels(
    batch: LocalBatch, corrupted: torch.Tensor, *, whole_spans: bool = False
) -> torch.Tensor:
    """bool [b, L], True where a token is not what stood there.

    A sample that equals the original counts as original. With `whole_spans` all of a masked run
    counts as replaced when one of its tokens is (replaced-span detection).
    """
    changed = corrupted != batch.input_ids
    if not whole_spans:
        return changed
    begins = batch.masked.clone()
    begins[:, 1:] &= ~batch.masked[:, :-1]
    # Runs are numbered within the row; 0 is what stands before the first.
    runs = begins.long().cumsum(1) * batch.masked
    changed_in_run = torch.zeros_like(runs).scatter_add(1, runs, changed.long())
    return (changed_in_run.gather(1, runs) > 0) & batch.masked


def count_detected(
    counts: Counts, logits: torch.Tensor, labels: torch.Tensor, scope: torch.Tensor
) -> None:
    """Count what the discriminator's head found among the tokens in scope.

    Args:
        logits: float32 [b, L], above 0 for "replaced".
        labels: bool [b, L], True where a token was replaced.
        scope: bool [b, L].
    """
    with torch.no_grad():
        predicted = (logits > 0) & scope
        counts["true_positive"] = (predicted & labels).sum()
        counts["predicted_replaced"] = predicted.sum()
        counts["replaced"] = (labels & scope).sum()


def detection_head_products(config: ElectraConfig, rows: int) -> list[Product]:
    """The head's first layer; the one of a single output is too small to matter."""
    return [(rows, config.hidden_size, config.hidden_size)]


def describe_detection(row: dict[str, float]) -> str:
    """Loss, precision and recall of the discriminator's head."""
    return (
        f"discriminator loss {row['discriminator_loss']:.3f} "
        f"precision {row['discriminator_precision']:.3f} "
        f"recall {row['discriminator_recall']:.3f}"
    )
