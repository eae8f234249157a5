"""Texts to token ids for prediction: by Rust threads, without transformers where possible.

Legend: N texts.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tokenizers import Tokenizer

from malmoi.inference.batching import (
    PROBE,
    TokenizedTexts,
    calls,
    joined,
    offsets_of,
    tokenize_all,
)
from malmoi.inference.windows import Frame, in_windows

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerBase

    from malmoi.inference.description import ModelDescription

# Ours leave 0.004% of the pieces of their own corpora unknown (measured on six of them).
MANY_UNKNOWN = 0.05
# Enough for a share to the percent, and read in a second (assumption).
_TEXTS_TO_KNOW_WORDS = 2_000


class TextTokenizer(Protocol):
    """Safe to use from several threads.

    Attributes:
        uninformative_ids: ids of what stands around texts, and for what is unknown in them.
    """

    uninformative_ids: Sequence[int]

    def __call__(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> TokenizedTexts: ...


class FastTokenizer:
    """A tokenizer of the Rust library, whose settings are never changed, so that threads share it.

    Texts are not truncated: what is too long becomes windows. Pairs are.
    """

    def __init__(self, serialized: str, description: ModelDescription) -> None:
        self._serialized, self._description = serialized, description
        self._backend, from_end = _read(serialized)
        read = json.loads(serialized)
        special = [one["id"] for one in read["added_tokens"] if one["special"]]
        unknown = read["model"].get("unk_id")
        if unknown is None:
            unknown = self._backend.token_to_id(read["model"].get("unk_token") or "")
        # What SentencePiece writes for the space before a word stands beside an unknown one, too.
        found = (unknown, self._backend.token_to_id("▁"))
        self.uninformative_ids: Sequence[int] = [
            *special,
            *(one for one in found if one is not None),
        ]
        self._frame = Frame.found(
            self._backend.encode(PROBE).ids,
            self._backend.encode(PROBE, add_special_tokens=False).ids,
            from_end=from_end,
        )

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenizedTexts:
        """Token ids as `malmoi.inference.batching.tokenize_all` gives them (tested)."""
        if pairs is not None:
            return self._of_pairs(texts, pairs)
        pad = [self._description.pad]
        parts = []
        for some in calls(texts):
            encodings = _encoded(self._backend, texts[some])
            # Row by row, for the lists of all would take more memory than anything else.
            counts = np.fromiter((len(one) or 1 for one in encodings), np.int64, len(encodings))
            ids = chain.from_iterable(one.ids or pad for one in encodings)
            flat = np.fromiter(ids, np.int32, int(counts.sum()))
            parts.append(in_windows(flat, counts, self._description.max_length, self._frame))
        return joined(parts, self._description.pad)

    def _of_pairs(self, texts: Sequence[str], pairs: Sequence[str]) -> TokenizedTexts:
        encodings = _encoded(self._truncating, list(zip(texts, pairs, strict=True)))
        rows = [encoding.ids or [self._description.pad] for encoding in encodings]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        # To look for what was cut takes long, and shorter ones are whole.
        full = counts >= self._description.max_length
        was_cut = np.zeros(len(rows), dtype=bool)
        for place in np.flatnonzero(full):
            was_cut[place] = bool(encodings[place].overflowing)
        second = None
        if self._description.token_types:
            seconds = (sum(encoding.type_ids) for encoding in encodings)
            second = (counts - np.fromiter(seconds, np.int64, len(rows))).astype(np.int32)
        return TokenizedTexts(
            flat=np.fromiter(chain.from_iterable(rows), np.int32, int(counts.sum())),
            offsets=offsets_of(counts),
            second_from=second,
            pad=self._description.pad,
            was_cut=was_cut,
        )

    @cached_property
    def _truncating(self) -> Tokenizer:
        """The same tokenizer for pairs; made when there are any."""
        backend, from_end = _read(self._serialized)
        backend.enable_truncation(
            self._description.max_length, direction="left" if from_end else "right"
        )
        return backend


def _read(serialized: str) -> tuple[Tokenizer, bool]:
    """A tokenizer that cuts nothing, and whether it is one that cuts texts at their beginning."""
    backend = Tokenizer.from_str(serialized)
    backend.encode_special_tokens = True  # a typed [SEP] is text; not kept in the file
    from_end = (backend.truncation or {}).get("direction") == "left"
    backend.no_truncation()
    backend.no_padding()
    return backend, from_end


def _encoded(backend: Tokenizer, given: Sequence[Any]) -> list[Encoding]:
    """Encodings of texts, or of pairs of them."""
    if len(given) == 1:  # without waiting for another thread
        one = given[0]
        return [backend.encode(one) if isinstance(one, str) else backend.encode(*one)]
    return backend.encode_batch_fast(list(given))


def unread_words(tokenizer: TextTokenizer, texts: Sequence[str]) -> tuple[float, str]:
    """The share of the words of whose letters a tokenizer knows none, and the commonest such word.

    Digits and punctuation are left out: nearly every tokenizer knows them.

    Args:
        texts: of many, some spread evenly are looked at.
    """
    words = Counter(word for text in some_of(texts) for word in text.split())
    letters = {word: "".join(filter(str.isalpha, word)) for word in words}
    lettered = [word for word in words if letters[word]]
    if not lettered:
        return 0.0, ""
    tokens = tokenizer([letters[word] for word in lettered])
    is_read = tokens.has_other_than(tokenizer.uninformative_ids)
    unread = [word for word, known in zip(lettered, is_read, strict=True) if not known]
    share = sum(words[word] for word in unread) / sum(words[word] for word in lettered)
    return share, max(unread, key=words.__getitem__, default="")


def some_of(texts: Sequence[str]) -> Sequence[str]:
    """Enough texts to know their words by, spread evenly over all."""
    return texts[:: max(1, len(texts) // _TEXTS_TO_KNOW_WORDS)]


class SlowTokenizer:
    """A tokenizer that only transformers has."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, description: ModelDescription) -> None:
        self._tokenizer, self._description = tokenizer, description
        space = tokenizer.convert_tokens_to_ids("▁")
        self.uninformative_ids: Sequence[int] = [
            *tokenizer.all_special_ids,
            *([space] if isinstance(space, int) else []),
        ]
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenizedTexts:
        with self._lock:
            tokens = tokenize_all(self._tokenizer, texts, self._description.max_length, pairs=pairs)
        return tokens if self._description.token_types else replace(tokens, second_from=None)


def text_tokenizer(
    tokenizer: PreTrainedTokenizerBase, description: ModelDescription
) -> TextTokenizer:
    """A tokenizer of transformers for prediction, by Rust alone where it can be."""
    serialized = serialized_tokenizer(tokenizer)
    if serialized is None:
        return SlowTokenizer(tokenizer, description)
    return FastTokenizer(serialized, description)


def serialized_tokenizer(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The tokenizer.json of a fast tokenizer, and the side on which it cuts; None of a slow one."""
    if not tokenizer.is_fast:
        return None
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.enable_truncation(1, direction=tokenizer.truncation_side)
    return str(backend.to_str())
