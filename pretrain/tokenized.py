"""The corpus as token ids on disk, and batches of like lengths drawn from it.

A corpus is tokenised once into two memory-mapped arrays, in a folder named by a hash of
everything that shapes them; a run reads them without loading them.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from corpora.atomic import directory_at_once
from corpora.clean_corpus import iter_clean_texts
from corpora.errors import InputError
from tokenizer.sampling import iter_batches
from tokenizer.training import tokenizer_hash

# Sequences are sorted by length within chunks of this many batches: nearly no padding, yet the
# order stays random from batch to batch.
_BATCHES_PER_CHUNK = 64
_WIDTH_MULTIPLE = 4


@dataclass(frozen=True, kw_only=True)
class TokenizedCorpus:
    """Token ids of all sequences end to end, without [CLS] and [SEP]."""

    ids: np.ndarray
    """uint16 or uint32 [tokens]."""
    offsets: np.ndarray
    """int64 [sequences + 1]: where each sequence begins; the last is the number of tokens."""
    directory: Path

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """int64 [sequences], in tokens, [CLS] and [SEP] not counted."""
        return np.diff(self.offsets)

    @property
    def num_tokens(self) -> int:
        """Tokens in the corpus, [CLS] and [SEP] not counted."""
        return int(self.offsets[-1])


def tokenize_corpus(
    clean_directory: Path,
    tokenizer: PreTrainedTokenizerFast,
    *,
    max_length: int,
    cache: Path,
    progress: Callable[[int], None] | None = None,
) -> TokenizedCorpus:
    """Tokenise a clean corpus, or open the arrays of an earlier call with the same inputs.

    Args:
        clean_directory: from `corpora.clean_corpus.write_clean_corpus`; named by its own hash.
        max_length: longest sequence, [CLS] and [SEP] included; longer texts are cut in pieces.
        cache: folder in which the arrays' folder is made.
        progress: called with the number of texts done.

    Raises:
        InputError: no text gave a single token.
    """
    key = json.dumps([clean_directory.name, tokenizer_hash(tokenizer), max_length, 2])
    directory = cache / hashlib.sha256(key.encode()).hexdigest()[:16]
    if not (directory / "offsets.bin").is_file():
        _write_arrays(clean_directory, tokenizer, max_length - 2, directory, progress)
    offsets = np.memmap(directory / "offsets.bin", dtype=np.int64, mode="r")
    dtype = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
    ids = np.memmap(directory / "ids.bin", dtype=dtype, mode="r")
    return TokenizedCorpus(ids=ids, offsets=offsets, directory=directory)


def _write_arrays(
    clean_directory: Path,
    tokenizer: PreTrainedTokenizerFast,
    piece_length: int,
    directory: Path,
    progress: Callable[[int], None] | None,
) -> None:
    dtype = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
    lengths: list[int] = []
    done = 0
    backend = tokenizer.backend_tokenizer
    with directory_at_once(directory, shared=True) as scratch:
        with (scratch / "ids.bin").open("wb") as file:
            for texts in iter_batches(iter_clean_texts(clean_directory), 2_000):
                for encoding in backend.encode_batch_fast(texts, add_special_tokens=False):
                    ids = encoding.ids
                    for start in range(0, len(ids), piece_length):
                        piece = ids[start : start + piece_length]
                        file.write(np.asarray(piece, dtype=dtype).tobytes())
                        lengths.append(len(piece))
                done += len(texts)
                if progress is not None:
                    progress(done)
        if not lengths:
            raise InputError(f"expected texts with tokens in {clean_directory}, found none")
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # Not np.save: its error for a full disk has no error number.
        (scratch / "offsets.bin").write_bytes(offsets.tobytes())


def plan_epoch(
    lengths: np.ndarray, tokens_per_batch: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Split one shuffled pass over the corpus into batches of like lengths.

    Args:
        lengths: int64 [sequences], tokens, [CLS] and [SEP] not counted.
        tokens_per_batch: upper bound of sequences x longest sequence in a batch.

    Returns:
        Indices of the sequences of each batch. The same arguments give the same plan, which is
        what lets a resumed run find its place.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    widths = padded_width(lengths[order])
    chunk_of = np.cumsum(widths) // (tokens_per_batch * _BATCHES_PER_CHUNK)
    batches: list[np.ndarray] = []
    for chunk in np.split(np.arange(len(order)), np.flatnonzero(np.diff(chunk_of)) + 1):
        # Longest first, so that the first sequence of a batch decides its width, and all but the
        # last batch of a chunk have one of a few shapes: every new shape costs memory and time.
        by_length = chunk[np.argsort(-widths[chunk], kind="stable")]
        start = 0
        while start < len(by_length):
            size = max(1, tokens_per_batch // int(widths[by_length[start]]))
            batches.append(order[by_length[start : start + size]])
            start += size
    return [batches[index] for index in random.permutation(len(batches))]


def padded_width(lengths: np.ndarray) -> np.ndarray:
    """Width of a batch whose longest sequence has `lengths` tokens: framed, a multiple of 4."""
    return -(-(lengths + 2) // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE


@dataclass(kw_only=True)
class Batch:
    """One batch on the training device."""

    input_ids: torch.Tensor
    """int64 [B, L], with [CLS], [SEP] and [PAD]."""
    attention_mask: torch.Tensor | None
    """int64 [B, L], or None when nothing is padded."""
    maskable: torch.Tensor
    """bool [B, L], False at [CLS], [SEP] and [PAD]."""


def make_batch(
    corpus: TokenizedCorpus,
    indices: np.ndarray,
    tokenizer: PreTrainedTokenizerFast,
    device: torch.device,
) -> Batch:
    """Read sequences from disk and frame them with [CLS], [SEP] and [PAD]."""
    starts, ends = corpus.offsets[indices], corpus.offsets[indices + 1]
    lengths = ends - starts
    width = int(padded_width(lengths.max()))
    input_ids = np.full((len(indices), width), tokenizer.pad_token_id, dtype=np.int64)
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        input_ids[row, 1 : 1 + end - start] = corpus.ids[start:end]
    input_ids[:, 0] = tokenizer.cls_token_id
    input_ids[np.arange(len(indices)), lengths + 1] = tokenizer.sep_token_id
    columns = np.arange(width)
    real = columns < lengths[:, None] + 2
    maskable = (columns >= 1) & (columns <= lengths[:, None])
    return Batch(
        input_ids=torch.from_numpy(input_ids).to(device),
        attention_mask=None if real.all() else torch.from_numpy(real.astype(np.int64)).to(device),
        maskable=torch.from_numpy(maskable).to(device),
    )


def iter_plans(
    lengths: np.ndarray, tokens_per_batch: int, seed: int, *, skip: int = 0
) -> Iterator[np.ndarray]:
    """Batches without end, epoch after epoch, the first `skip` left out."""
    epoch = 0
    while True:
        plan = plan_epoch(lengths, tokens_per_batch, seed, epoch)
        yield from plan[skip:]
        skip = max(0, skip - len(plan))
        epoch += 1
