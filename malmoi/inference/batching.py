"""Texts as batches of token ids, for training and prediction alike.

Legend: N texts, R rows (a text, or a window of a long one), B rows in a batch, T tokens of the
longest row in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from malmoi.inference.windows import Frame, WindowRows, in_windows

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

# Bound the memory of tokenising: what a tokenizer gives is a hundred times the arrays it becomes.
_TEXTS_IN_CALL = 10_000
_CHARACTERS_IN_CALL = 2_000_000
# Any text that no tokenizer takes for nothing.
PROBE = "가 1 a"


def _cut(encoded: BatchEncoding, max_length: int) -> list[bool]:
    """Which texts were longer than what is kept; of a slow tokenizer, which are as long."""
    if encoded.is_fast:
        return [bool(encoding.overflowing) for encoding in encoded.encodings or ()]
    return [len(row) >= max_length for row in encoded["input_ids"]]


@dataclass(frozen=True, kw_only=True)
class TokenizedTexts:
    """N texts, or pairs of texts, tokenised once for all folds, as R rows; 4 bytes a token.

    Attributes:
        flat: int32, the ids of all rows one after the other.
        offsets: int64 [R + 1], where each row begins.
        second_from: int32 [R], tokens before the second text of a pair; None where there is none.
        pad: id of the padding token.
        was_cut: bool [N], the texts that were longer than what is kept of them.
        windows: int64 [N + 1], where the rows of each text begin; None where each text is one row.
    """

    flat: np.ndarray
    offsets: np.ndarray
    second_from: np.ndarray | None
    pad: int
    was_cut: np.ndarray
    windows: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 [R]."""
        return np.diff(self.offsets)

    @property
    def texts(self) -> int:
        return len(self.was_cut)

    @property
    def cut(self) -> int:
        """How many texts were longer than what is kept of them."""
        return int(self.was_cut.sum())

    def rows_of(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of n of the texts, in order, and of each the text's index in `places`.

        Args:
            places: int64 [n].
        """
        if self.windows is None:
            return places, np.arange(len(places))
        counts = np.diff(self.windows)[places]
        text = np.repeat(np.arange(len(places)), counts)
        within = np.arange(len(text)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.windows[places][text] + within, text

    def has_other_than(self, ids: Sequence[int]) -> np.ndarray:
        """Which texts have a token that is none of these; bool [N]."""
        tells = np.logical_or.reduceat(~np.isin(self.flat, ids), self.offsets[:-1])
        return tells if self.windows is None else np.logical_or.reduceat(tells, self.windows[:-1])

    def beginnings(self) -> TokenizedTexts:
        """The first window of each text: what is left of it where texts are cut."""
        if self.windows is None:
            return self
        first, lengths = self.windows[:-1], self.lengths
        kept = np.zeros(len(lengths), dtype=bool)
        kept[first] = True
        return replace(
            self,
            flat=self.flat[np.repeat(kept, lengths)],
            offsets=offsets_of(lengths[kept]),
            second_from=None if self.second_from is None else self.second_from[kept],
            was_cut=self.was_cut | (np.diff(self.windows) > 1),
            windows=None,
        )


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Where n things of so many parts begin, one after the other, and the end; int64 [n + 1]."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def calls(texts: Sequence[str], most_texts: int = _TEXTS_IN_CALL) -> Iterator[slice]:
    """Texts that a tokenizer takes at once, in bounded memory; a longer text goes alone.

    Yields:
        Slices of `texts`, one at least.
    """
    first = characters = 0
    for place, text in enumerate(texts):
        full = place - first == most_texts or characters + len(text) > _CHARACTERS_IN_CALL
        if full and place > first:
            yield slice(first, place)
            first, characters = place, 0
        characters += len(text)
    if first < len(texts) or not first:
        yield slice(first, len(texts))


def joined(parts: Sequence[WindowRows], pad: int) -> TokenizedTexts:
    """The rows of one call after the other; one call at least."""
    if len(parts) == 1:
        whole = parts[0]
    else:
        some = any(part.windows is not None for part in parts)
        counted = (
            np.ones(len(part.was_cut), dtype=np.int64) if part.windows is None else part.windows
            for part in parts
        )
        whole = WindowRows(
            flat=np.concatenate([part.flat for part in parts]),
            counts=np.concatenate([part.counts for part in parts]),
            windows=np.concatenate(list(counted)) if some else None,
            was_cut=np.concatenate([part.was_cut for part in parts]),
        )
    return TokenizedTexts(
        flat=whole.flat,
        offsets=offsets_of(whole.counts),
        second_from=None,
        pad=pad,
        was_cut=whole.was_cut,
        windows=None if whole.windows is None else offsets_of(whole.windows),
    )


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
        max_length: most tokens of a row. A longer text becomes several, see
            `malmoi.inference.windows`; of a pair the longer text is cut.
        pairs: N second texts.
    """
    if pairs is not None:
        return _pairs(tokenizer, texts, pairs, max_length)
    pad = int(tokenizer.pad_token_id)
    whole, bare = (_ids(tokenizer, [PROBE], special=special)[0] for special in (True, False))
    frame = Frame.found(whole, bare, from_end=tokenizer.truncation_side == "left")
    parts = []
    for some in calls(texts):
        # A tokenizer without [CLS] gives nothing for an empty text, which no model can read.
        rows = [row or [pad] for row in _ids(tokenizer, texts[some], special=True)]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(counts.sum()))
        parts.append(in_windows(flat, counts, max_length, frame))
    return joined(parts, pad)


def _ids(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, special: bool
) -> list[list[int]]:
    """Ids of whole texts."""
    found: list[list[int]] = tokenizer(
        list(texts),
        add_special_tokens=special,
        truncation=False,
        padding=False,
        split_special_tokens=True,  # a typed [SEP] is text
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # of texts longer than the model reads
    )["input_ids"]
    return found


def _pairs(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str],
    max_length: int,
) -> TokenizedTexts:
    """One row a pair; the longer text is cut."""
    parts: list[np.ndarray] = []
    counts: list[int] = []
    seconds: list[int] = []
    was_cut: list[bool] = []
    pad = int(tokenizer.pad_token_id)
    for first in range(0, len(texts), _TEXTS_IN_CALL):
        stop = first + _TEXTS_IN_CALL
        encoded = tokenizer(
            list(texts[first:stop]),
            list(pairs[first:stop]),
            truncation=True,
            max_length=max_length,
            padding=False,
            split_special_tokens=True,  # a typed [SEP] is text
            return_attention_mask=False,
            return_token_type_ids=True,
        )
        rows = [row or [pad] for row in encoded["input_ids"]]
        counts += map(len, rows)
        parts.append(np.fromiter((piece for row in rows for piece in row), dtype=np.int32))
        seconds += [len(row) - sum(row) for row in encoded["token_type_ids"]]
        was_cut += _cut(encoded, max_length)
    return TokenizedTexts(
        flat=np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32),
        offsets=offsets_of(np.array(counts)),
        second_from=np.array(seconds, dtype=np.int32),
        pad=pad,
        was_cut=np.array(was_cut, dtype=bool),
    )


@dataclass(frozen=True, kw_only=True)
class PaddedBatch:
    """B rows, padded to T tokens.

    Attributes:
        input_ids: int64 [B, T].
        attention_mask: int64 [B, T], 1 where a token is no padding.
        token_type_ids: int64 [B, T], 1 in the second text of a pair, 0 elsewhere.
    """

    input_ids: np.ndarray
    attention_mask: np.ndarray
    token_type_ids: np.ndarray


def padded(tokens: TokenizedTexts, places: Sequence[int] | np.ndarray) -> PaddedBatch:
    """The rows at `places` as a batch, padded to the longest of them."""
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
    """Group places so that rows of like length share a batch and padding is near zero.

    Args:
        lengths: tokens of every row.
        max_tokens: most tokens of a batch, padding included; one longer row goes alone.

    Yields:
        Places in `lengths`, shortest rows first; equal lengths keep their order.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    starts = [0]
    for position, place in enumerate(order):
        if position > starts[-1] and (position - starts[-1] + 1) * lengths[place] > max_tokens:
            starts.append(position)
    for start, end in pairwise([*starts, len(order)]):
        if end > start:
            yield order[start:end]
