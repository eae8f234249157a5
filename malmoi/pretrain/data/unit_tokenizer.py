"""Texts to token ids, some thousand at a time: what can be sent to another machine.

Neither torch nor transformers is imported, so that a node need not load them.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from tokenizers import Tokenizer

# A fifth of a second of work (measured), and the ids of a unit fit into a megabyte or two.
TEXTS_IN_UNIT = 10_000
# That `tokenizers` encodes at once: more would only take memory.
_TEXTS_AT_ONCE = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitTokenizer:
    """Tokenises a unit: a function that can be sent to another process or machine.

    Attributes:
        serialized: a tokenizer.json; padding and truncation that it has stored are not applied.
        piece_length: tokens of the longest sequence; longer texts are cut in pieces.
        dtype: of the ids.
    """

    serialized: str
    piece_length: int
    dtype: str

    def __call__(self, texts: Sequence[str]) -> bytes:
        """A `.npz` file: `ids` [tokens] end to end, and `lengths` [sequences] int32."""
        backend = _backend(self.serialized)
        ids: list[int] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = list(texts[start : start + _TEXTS_AT_ONCE])
            for encoding in backend.encode_batch_fast(batch, add_special_tokens=False):
                found = encoding.ids
                ids += found
                whole, rest = divmod(len(found), self.piece_length)
                lengths += [self.piece_length] * whole + ([rest] if rest else [])
        file = io.BytesIO()
        np.savez(file, ids=np.asarray(ids, self.dtype), lengths=np.asarray(lengths, np.int32))
        return file.getvalue()


@lru_cache(maxsize=1)
def _backend(serialized: str) -> Tokenizer:
    backend = Tokenizer.from_str(serialized)
    backend.encode_special_tokens = True  # a typed [MASK] is text; not kept in the file
    # Left behind by whoever used the tokenizer last.
    backend.no_padding()
    backend.no_truncation()
    return backend
