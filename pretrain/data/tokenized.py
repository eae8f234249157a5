"""The corpus as token ids on disk.

A corpus is tokenised once into two memory-mapped arrays, in a folder named by a hash of
everything that shapes them; a run reads them without loading them. With its tokenizer and what is
known of its texts beside them, the folder is enough to train from on a machine without the texts.
"""

import hashlib
import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.text.corpus.clean_corpus import iter_clean_texts
from malmoi.text.corpus.clean_report import CleaningReport, report_path
from malmoi.tokenizer_folders import save_tokenizer, tokenizer_hash
from tokenizer.loading import load_pretraining_tokenizer
from tokenizer.sampling import iter_batches

FACTS_NAME = "corpus.json"
_LAYOUT = 4
_COUNT_BLOCK = 10_000_000


@dataclass(frozen=True, kw_only=True)
class TokenizedCorpus:
    """Token ids of all sequences end to end, without [CLS] and [SEP]."""

    ids: np.ndarray
    """uint16 or uint32 [tokens]."""
    offsets: np.ndarray
    """int64 [sequences + 1]: where each sequence begins; the last is the number of tokens."""
    directory: Path
    facts: dict[str, Any] = field(default_factory=dict)
    """`corpus_sha256` of the texts as they were read, `cleaning` with the counts of what was
    dropped, `max_length`."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """int64 [sequences], in tokens, [CLS] and [SEP] not counted."""
        return np.diff(self.offsets)

    def token_counts(self) -> np.ndarray:
        """int64 [highest id + 1]: how often each vocabulary entry occurs."""
        total = np.zeros(0, dtype=np.int64)
        # In blocks: the whole corpus as int64 might not fit into memory.
        for start in range(0, len(self.ids), _COUNT_BLOCK):
            counts = np.bincount(self.ids[start : start + _COUNT_BLOCK])
            if len(counts) > len(total):
                counts[: len(total)] += total
                total = counts
            else:
                total[: len(counts)] += counts
        return total

    @property
    def num_tokens(self) -> int:
        """Tokens in the corpus, [CLS] and [SEP] not counted."""
        return int(self.offsets[-1])


def tokenize_corpus(
    clean_directory: Path,
    tokenizer: PreTrainedTokenizerFast,
    *,
    corpus_sha256: str,
    max_length: int,
    cache: Path,
) -> TokenizedCorpus:
    """Tokenise a clean corpus, or open the arrays of an earlier call with the same inputs.

    Args:
        clean_directory: from `write_clean_corpus`; named by its own hash.
        corpus_sha256: of the texts before cleaning, see `clean_corpus.corpus_hash`.
        max_length: longest sequence, [CLS] and [SEP] included; longer texts are cut in pieces.
        cache: folder in which the arrays' folder is made.

    Raises:
        InputError: no text gave a single token.
    """
    key = json.dumps([clean_directory.name, tokenizer_hash(tokenizer), max_length, _LAYOUT])
    directory = cache / hashlib.sha256(key.encode()).hexdigest()[:16]
    if directory.is_dir():
        try:
            return open_tokenized(directory)[0]
        except InputError as error:
            print(f"warning: {error}; made again", file=sys.stderr, flush=True)
            shutil.rmtree(directory, ignore_errors=True)  # two runs may find it at once
    facts = {
        "corpus_sha256": corpus_sha256,
        "cleaning": json.loads(report_path(clean_directory).read_text(encoding="utf-8")),
        "max_length": max_length,
    }
    _write_arrays(clean_directory, tokenizer, facts, directory)
    return open_tokenized(directory)[0]


def is_tokenized(path: Path) -> bool:
    """Whether `path` is a folder that `tokenize_corpus` has written."""
    return (path / FACTS_NAME).is_file() and (path / "offsets.bin").is_file()


def open_tokenized(directory: Path) -> tuple[TokenizedCorpus, PreTrainedTokenizerFast]:
    """Open the arrays that `tokenize_corpus` has written, without keeping them in memory.

    They are read through once: a damaged number would be found much later, or never.

    Returns:
        The corpus, and the tokenizer whose ids they are.

    Raises:
        InputError: the folder is damaged.
    """
    tokenizer = load_pretraining_tokenizer(directory / "tokenizer")
    try:
        facts = json.loads((directory / FACTS_NAME).read_text(encoding="utf-8"))
        offsets = np.memmap(directory / "offsets.bin", dtype=np.int64, mode="r")
        ids = np.memmap(directory / "ids.bin", dtype=_id_type(tokenizer), mode="r")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the tokenized corpus in {directory}: {error}") from error
    try:
        CleaningReport.from_json(facts["cleaning"])
        _ = facts["corpus_sha256"]
        longest = facts["max_length"]
        if type(longest) is not int:
            raise TypeError(f"max_length {longest!r}")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"expected the facts of a tokenized corpus in {directory / FACTS_NAME}, found others "
            f"({type(error).__name__}: {error}); copy the folder again"
        ) from error
    if len(ids) != offsets[-1]:
        raise InputError(
            f"expected {offsets[-1]:,} tokens in {directory / 'ids.bin'}, found {len(ids):,}; the "
            "file is cut off or belongs to another folder: copy it again"
        )
    lengths = np.diff(offsets)
    # A single wrong one would ask for all of the memory.
    if offsets[0] != 0 or not len(lengths) or lengths.min() < 1 or lengths.max() > longest - 2:
        raise InputError(
            f"expected sequences of 1 to {longest - 2} tokens, one after the other, in "
            f"{directory / 'offsets.bin'}, found others; the file is damaged: copy it again"
        )
    blocks = range(0, len(ids), _COUNT_BLOCK)
    highest = max(int(ids[start : start + _COUNT_BLOCK].max()) for start in blocks)
    if highest >= len(tokenizer):
        raise InputError(
            f"expected ids below the {len(tokenizer):,} entries of its tokenizer in "
            f"{directory / 'ids.bin'}, found {highest:,}; the file is damaged: copy it again"
        )
    return TokenizedCorpus(ids=ids, offsets=offsets, directory=directory, facts=facts), tokenizer


def _id_type(tokenizer: PreTrainedTokenizerFast) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if len(tokenizer) <= 2**16 else np.uint32


def _write_arrays(
    clean_directory: Path,
    tokenizer: PreTrainedTokenizerFast,
    facts: dict[str, Any],
    directory: Path,
) -> None:
    piece_length = facts["max_length"] - 2
    dtype = _id_type(tokenizer)
    lengths: list[int] = []
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = True  # a typed [MASK] is text
    with directory_at_once(directory, shared=True) as scratch:
        with (scratch / "ids.bin").open("wb") as file:
            for texts in iter_batches(iter_clean_texts(clean_directory), 2_000):
                for encoding in backend.encode_batch_fast(texts, add_special_tokens=False):
                    ids = encoding.ids
                    for start in range(0, len(ids), piece_length):
                        piece = ids[start : start + piece_length]
                        file.write(np.asarray(piece, dtype=dtype).tobytes())
                        lengths.append(len(piece))
        if not lengths:
            raise InputError(f"expected texts with tokens in {clean_directory}, found none")
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # Not np.save: its error for a full disk has no error number.
        (scratch / "offsets.bin").write_bytes(offsets.tobytes())
        save_tokenizer(tokenizer, scratch / "tokenizer")
        (scratch / FACTS_NAME).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")
