"""Texts to token ids for prediction: by Rust threads, without transformers where possible.

Legend: N texts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tokenizers import Tokenizer

from malmoi.inference.batching import TokenizedTexts, tokenize_all

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from malmoi.inference.description import ModelDescription


class TextTokenizer(Protocol):
    """Safe to use from several threads."""

    def __call__(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> TokenizedTexts: ...


class FastTokenizer:
    """A tokenizer of the Rust library, whose truncation is set once, so that threads share it."""

    def __init__(self, serialized: str, description: ModelDescription) -> None:
        """Read a tokenizer.json.

        Args:
            serialized: the JSON text.
            description: says how many tokens are kept, and what pads.
        """
        self._backend = Tokenizer.from_str(serialized)
        self._backend.encode_special_tokens = True  # a typed [SEP] is text; not kept in the file
        stored = self._backend.truncation or {}
        self._backend.enable_truncation(
            description.max_length, direction=stored.get("direction", "right")
        )
        self._backend.no_padding()
        self._description = description

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenizedTexts:
        """Token ids as `malmoi.inference.batching.tokenize_all` gives them (tested)."""
        given: list[Any] = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        if len(given) == 1:  # without waiting for another thread
            encodings = [self._backend.encode(texts[0], None if pairs is None else pairs[0])]
        else:
            encodings = self._backend.encode_batch_fast(given)
        rows = [encoding.ids or [self._description.pad] for encoding in encodings]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        # To look for what was cut takes long, and shorter ones are whole.
        full = counts >= self._description.max_length
        was_cut = np.zeros(len(rows), dtype=bool)
        for place in np.flatnonzero(full):
            was_cut[place] = bool(encodings[place].overflowing)
        second = None
        if pairs is not None and self._description.token_types:
            seconds = (sum(encoding.type_ids) for encoding in encodings)
            second = (counts - np.fromiter(seconds, np.int64, len(rows))).astype(np.int32)
        return TokenizedTexts(
            flat=np.fromiter(chain.from_iterable(rows), np.int32, int(counts.sum())),
            offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            second_from=second,
            pad=self._description.pad,
            was_cut=was_cut,
        )


class SlowTokenizer:
    """A tokenizer that only transformers has."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, description: ModelDescription) -> None:
        """See `FastTokenizer`."""
        self._tokenizer, self._description = tokenizer, description
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenizedTexts:
        """See `FastTokenizer`."""
        with self._lock:
            tokens = tokenize_all(self._tokenizer, texts, self._description.max_length, pairs=pairs)
        return tokens if self._description.token_types else replace(tokens, second_from=None)


def serialized_tokenizer(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The tokenizer.json of a fast tokenizer, and the side on which it cuts; None of a slow one."""
    if not tokenizer.is_fast:
        return None
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.enable_truncation(1, direction=tokenizer.truncation_side)
    return str(backend.to_str())
