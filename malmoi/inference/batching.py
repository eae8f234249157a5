"""Texts as batches of token ids, for training and prediction alike.

Legend: N texts, B texts in a batch, T tokens of the longest text in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

# Bounds the memory of tokenising: lists of Python integers are ten times the arrays they become.
_TEXTS_IN_CALL = 10_000


def _cut(encoded: BatchEncoding, max_length: int) -> list[bool]:
    """Which texts were longer than what is kept; of a slow tokenizer, which are as long."""
    if encoded.is_fast:
        return [bool(encoding.overflowing) for encoding in encoded.encodings or ()]
    return [len(row) >= max_length for row in encoded["input_ids"]]


@dataclass(frozen=True, kw_only=True)
class TokenizedTexts:
    """N texts, or pairs of texts, tokenised once for all folds; 4 bytes a token.

    Attributes:
        flat: int32, the ids of all texts one after the other.
        offsets: int64 [N + 1], where each text begins.
        second_from: int32 [N], tokens before the second text of a pair; None where there is none.
        pad: id of the padding token.
        was_cut: bool [N], the texts that were longer than what is kept of them.
    """

    flat: np.ndarray
    offsets: np.ndarray
    second_from: np.ndarray | None
    pad: int
    was_cut: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, int64 [N]."""
        return np.diff(self.offsets)

    @property
    def cut(self) -> int:
        """How many texts were longer than what is kept of them."""
        return int(self.was_cut.sum())


def tokenize_all(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    max_length: int,
    *,
    pairs: Sequence[str] | None = None,
) -> TokenizedTexts:
    """Tokenise all texts, each with its pair if there is one.

    Args:
        tokenizer: fast or slow.
        texts: N.
        max_length: most tokens of a text or of a pair; of a pair the longer text is cut.
        pairs: N second texts.
    """
    parts: list[np.ndarray] = []
    counts: list[int] = []
    seconds: list[int] = []
    was_cut: list[bool] = []
    pad = int(tokenizer.pad_token_id)
    for first in range(0, len(texts), _TEXTS_IN_CALL):
        stop = first + _TEXTS_IN_CALL
        encoded = tokenizer(
            list(texts[first:stop]),
            None if pairs is None else list(pairs[first:stop]),
            truncation=True,
            max_length=max_length,
            padding=False,
            split_special_tokens=True,  # a typed [SEP] is text
            return_attention_mask=False,
            return_token_type_ids=pairs is not None,
        )
        # A tokenizer without [CLS] gives nothing for an empty text, which no model can read.
        rows = [row or [pad] for row in encoded["input_ids"]]
        counts += map(len, rows)
        parts.append(np.fromiter((piece for row in rows for piece in row), dtype=np.int32))
        if pairs is not None:
            seconds += [len(row) - sum(row) for row in encoded["token_type_ids"]]
        was_cut += _cut(encoded, max_length)
    return TokenizedTexts(
        flat=np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        second_from=None if pairs is None else np.array(seconds, dtype=np.int32),
        pad=pad,
        was_cut=np.array(was_cut, dtype=bool),
    )


@dataclass(frozen=True, kw_only=True)
class PaddedBatch:
    """B texts, padded to T tokens.

    Attributes:
        input_ids: int64 [B, T].
        attention_mask: int64 [B, T], 1 where a token is no padding.
        token_type_ids: int64 [B, T], 1 in the second text of a pair, 0 elsewhere.
    """

    input_ids: np.ndarray
    attention_mask: np.ndarray
    token_type_ids: np.ndarray


def padded(tokens: TokenizedTexts, places: Sequence[int] | np.ndarray) -> PaddedBatch:
    """The texts at `places` as a batch, padded to the longest of them."""
    chosen = np.asarray(places, dtype=np.int64)
    lengths = tokens.lengths[chosen][:, None]
    columns = np.arange(int(lengths.max()))
    mask = columns < lengths
    where = np.minimum(tokens.offsets[chosen][:, None] + columns, len(tokens.flat) - 1)
    types = np.zeros(mask.shape, dtype=np.int64)
    if tokens.second_from is not None:
        types[(columns >= tokens.second_from[chosen][:, None]) & mask] = 1
    return PaddedBatch(
        input_ids=np.where(mask, tokens.flat[where], tokens.pad).astype(np.int64),
        attention_mask=mask.astype(np.int64),
        token_type_ids=types,
    )


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
