"""A stock ELECTRA classifier, with the last layer computed for the first token alone.

The head reads nothing else, so the logits are the same (tested), for less work: of the last layer
only keys and values are needed of the other tokens.

Legend: B texts in a batch, T tokens of the longest text in it, H hidden size, K labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class FirstTokenElectra(nn.Module):
    """Shares the modules, and so the weights, of an `ElectraForSequenceClassification`."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Take over a model in eval mode, of the kind that `reads_first_token_only` accepts."""
        super().__init__()
        electra: Any = model.electra
        self.embeddings = electra.embeddings
        self.project = getattr(electra, "embeddings_project", nn.Identity())
        self.layers = electra.encoder.layer
        self.classifier: Any = model.classifier

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """Logits, [B, K].

        Args:
            input_ids: int64 [B, T].
            attention_mask: int64 [B, T], 1 where a token is no padding.
            token_type_ids: int64 [B, T].
        """
        hidden = self.project(self.embeddings(input_ids, token_type_ids=token_type_ids))
        # Added to scores, not boolean: exported, a boolean mask costs a search for rows of NaN.
        lowest = torch.finfo(torch.bfloat16).min  # finite in either number format
        bias = (1 - attention_mask[:, None, None, :].to(hidden.dtype)) * lowest
        for layer in self.layers[:-1]:
            hidden = _layer(layer, hidden, hidden, bias)
        hidden = _layer(self.layers[-1], hidden[:, :1], hidden, bias)
        logits: torch.Tensor = self.classifier(hidden)
        return logits


def reads_first_token_only(model: PreTrainedModel) -> bool:
    """Whether a model is a classifier that `FirstTokenElectra` can stand for."""
    config = model.config
    return type(model).__name__ == "ElectraForSequenceClassification" and not (
        config.is_decoder or config.add_cross_attention
    )


def _layer(
    layer: Any, queries: torch.Tensor, hidden: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """One layer for the tokens in `queries`, [B, Q, H], that look at `hidden`, [B, T, H]."""
    attention = layer.attention.self

    def heads(values: torch.Tensor) -> torch.Tensor:
        return values.unflatten(-1, (-1, attention.attention_head_size)).transpose(1, 2)

    found = scaled_dot_product_attention(
        heads(attention.query(queries)),
        heads(attention.key(hidden)),
        heads(attention.value(hidden)),
        attn_mask=bias,
    )
    attended = layer.attention.output(found.transpose(1, 2).flatten(-2), queries)
    return layer.feed_forward_chunk(attended)
