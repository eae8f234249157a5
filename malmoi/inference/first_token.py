"""A stock ELECTRA classifier, with the last layer computed for the first token alone.

The head reads nothing else, so logits and gradients are the same (tested), for less work: the last
layer needs only keys and values of the other tokens. Training and prediction both take it.

Legend: B texts in a batch, T tokens of the longest text in it, H hidden size, K labels.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import dropout, scaled_dot_product_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class FirstTokenElectra(nn.Module):
    """Shares the modules, and so the weights, of an `ElectraForSequenceClassification`."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Share a model of the kind that `reads_first_token_only` accepts.

        Dropout follows the mode of the model, not of this module.
        """
        super().__init__()
        electra: Any = model.electra
        self.embeddings = electra.embeddings
        self.project = getattr(electra, "embeddings_project", nn.Identity())
        self.layers = electra.encoder.layer
        self.classifier: Any = model.classifier

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits, [B, K].

        Args:
            input_ids: int64 [B, T].
            attention_mask: int64 [B, T], 1 where a token is no padding.
            token_type_ids: int64 [B, T]; None means 0 everywhere.
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


def logits_of(model: PreTrainedModel) -> Callable[..., torch.Tensor]:
    """`model(**inputs).logits` as a function of the inputs, by the shorter way where there is one.

    Args:
        model: a stock classifier; it may be trained through the function. `token_type_ids` are
            left out for one that takes none.
    """
    # As PreTrainedModel.is_activation_checkpointing, which older versions of transformers lack.
    saves_memory = any(getattr(part, "gradient_checkpointing", False) for part in model.modules())
    if reads_first_token_only(model) and not saves_memory:
        return FirstTokenElectra(model)
    takes_types = "token_type_ids" in signature(model.forward).parameters

    def logits(**inputs: torch.Tensor) -> torch.Tensor:
        if not takes_types:
            inputs.pop("token_type_ids", None)
        found: torch.Tensor = model(**inputs).logits
        return found

    return logits


def _layer(
    layer: Any, queries: torch.Tensor, hidden: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """One layer for the tokens in `queries`, [B, Q, H], that look at `hidden`, [B, T, H]."""
    attention = layer.attention.self
    projected = attention.query(queries), attention.key(hidden), attention.value(hidden)
    query, key, value = (
        values.unflatten(-1, (-1, attention.attention_head_size)).transpose(1, 2)
        for values in projected
    )
    dropped = attention.dropout.p if layer.training else 0.0
    # Gradients on a CPU go through matrix products: see `malmoi.devices.attention_for`.
    if torch.is_grad_enabled() and query.requires_grad and query.device.type == "cpu":
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + bias
        found = dropout(scores.softmax(dim=-1).to(value.dtype), dropped) @ value
    else:
        found = scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropped)
    found = found.transpose(1, 2).flatten(-2)
    attended = layer.attention.output(found, queries)
    return layer.feed_forward_chunk(attended)
