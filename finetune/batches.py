"""Texts as batches of token ids, for training and prediction alike.

Legend: B texts in a batch, T tokens of the longest text in it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from transformers import PreTrainedTokenizerBase


def tokenize(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_length: int
) -> list[list[int]]:
    """Token ids of every text, at most `max_length` and at least one, in one call."""
    ids: list[list[int]] = tokenizer(
        list(texts),
        truncation=True,
        max_length=max_length,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
    )["input_ids"]
    # A tokenizer without [CLS] gives nothing for an empty text, which no model can read.
    return [row or [int(tokenizer.pad_token_id)] for row in ids]


def batches_by_length(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Group places so that texts of like length share a batch and padding is near zero.

    Args:
        lengths: tokens of every text.
        max_tokens: most tokens of a batch, padding included; one longer text goes alone.

    Yields:
        Places in `lengths`, shortest texts first; equal lengths keep their order.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    starts = [0]
    for position, place in enumerate(order):
        if position > starts[-1] and (position - starts[-1] + 1) * lengths[place] > max_tokens:
            starts.append(position)
    for start, end in pairwise([*starts, len(order)]):
        if end > start:
            yield order[start:end]


def pad_batch(ids: list[list[int]], pad: int, device: torch.device) -> dict[str, torch.Tensor]:
    """Token ids of B texts as `input_ids` and `attention_mask`, both int64 [B, T]."""
    width = max(len(row) for row in ids)
    input_ids = torch.tensor([row + [pad] * (width - len(row)) for row in ids])
    lengths = torch.tensor([len(row) for row in ids])
    mask = (torch.arange(width) < lengths[:, None]).long()
    return {"input_ids": input_ids.to(device), "attention_mask": mask.to(device)}
