"""The corpus as token ids on disk.

A corpus is tokenised once into two memory-mapped arrays, in a folder named by a hash of
everything that shapes them; a run reads them without loading them. With its tokenizer and what is
known of its texts beside them, the folder is enough to train from on a machine without the texts.
"""

import hashlib
import io
import json
import shutil
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.pretrain.data.unit_tokenizer import TEXTS_IN_UNIT, UnitTokenizer
from malmoi.progress import shown_progress
from malmoi.text.corpus.clean_corpus import iter_clean_texts
from malmoi.text.corpus.clean_report import CleaningReport, report_path
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.tokenizer.sampling import iter_batches
from malmoi.transformers_models import save_tokenizer, tokenizer_hash
from malmoi.work_folder import work_folder, worth_keeping
from malmoi.workers.engines import Engine, keep_results

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
    engine: Engine = "local",
) -> TokenizedCorpus:
    """Tokenise a clean corpus, or open the arrays of an earlier call with the same inputs.

    Args:
        clean_directory: from `write_clean_corpus`; named by its own hash.
        corpus_sha256: of the texts before cleaning, see `clean_corpus.corpus_hash`.
        max_length: longest sequence, [CLS] and [SEP] included; longer texts are cut in pieces.
        cache: folder in which the arrays' folder is made.
        engine: "local", or "ray" for a cluster; the arrays are the same. What a cluster has
            finished is kept beside them until all is done.

    Raises:
        InputError: no text gave a single token; or as `map_in_order`.
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
    _write_arrays(clean_directory, tokenizer, facts, directory, engine)
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
        raise InputError(
            "cannot read the tokenized corpus in {directory}: {error}",
            directory=directory,
            error=error,
        ) from error
    try:
        CleaningReport.from_json(facts["cleaning"])
        _ = facts["corpus_sha256"]
        longest = facts["max_length"]
        if type(longest) is not int:
            raise TypeError(f"max_length {longest!r}")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "expected the facts of a tokenized corpus in {file}, found others ({kind}: {error}); "
            "copy the folder again",
            file=directory / FACTS_NAME,
            kind=type(error).__name__,
            error=error,
        ) from error
    if len(ids) != offsets[-1]:
        raise InputError(
            "expected {expected:,} tokens in {file}, found {found:,}; the file is cut off or "
            "belongs to another folder: copy it again",
            expected=offsets[-1],
            file=directory / "ids.bin",
            found=len(ids),
        )
    lengths = np.diff(offsets)
    # A single wrong one would ask for all of the memory.
    if offsets[0] != 0 or not len(lengths) or lengths.min() < 1 or lengths.max() > longest - 2:
        raise InputError(
            "expected sequences of 1 to {longest} tokens, one after the other, in {file}, found "
            "others; the file is damaged: copy it again",
            longest=longest - 2,
            file=directory / "offsets.bin",
        )
    blocks = range(0, len(ids), _COUNT_BLOCK)
    highest = max(int(ids[start : start + _COUNT_BLOCK].max()) for start in blocks)
    if highest >= len(tokenizer):
        raise InputError(
            "expected ids below the {entries:,} entries of its tokenizer in {file}, found "
            "{highest:,}; the file is damaged: copy it again",
            entries=len(tokenizer),
            file=directory / "ids.bin",
            highest=highest,
        )
    return TokenizedCorpus(ids=ids, offsets=offsets, directory=directory, facts=facts), tokenizer


def _id_type(tokenizer: PreTrainedTokenizerFast) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if len(tokenizer) <= 2**16 else np.uint32


def _write_arrays(
    clean_directory: Path,
    tokenizer: PreTrainedTokenizerFast,
    facts: dict[str, Any],
    directory: Path,
    engine: Engine,
) -> None:
    work = UnitTokenizer(
        serialized=tokenizer.backend_tokenizer.to_str(),
        piece_length=facts["max_length"] - 2,
        dtype=np.dtype(_id_type(tokenizer)).name,
    )
    units = iter_batches(iter_clean_texts(clean_directory), TEXTS_IN_UNIT)
    with ExitStack() as stack:
        if engine == "local":
            results: Iterable[bytes] = map(work, units)
        else:
            # The folder's name says what the units are made of.
            kept = stack.enter_context(work_folder(directory, {"texts": TEXTS_IN_UNIT}))
            stack.enter_context(worth_keeping())
            sized = ((len(texts), texts) for texts in units)
            progress = stack.enter_context(shown_progress())
            paths = keep_results(
                work,
                sized,
                kept,
                engine=engine,
                on_done=lambda done: progress("tokenizing", done, facts["cleaning"].get("kept")),
            )
            results = (path.read_bytes() for path in paths)
        scratch = stack.enter_context(directory_at_once(directory, shared=True))
        lengths = [np.zeros(0, dtype=np.int32)]
        with (scratch / "ids.bin").open("wb") as file:
            for result in results:
                with np.load(io.BytesIO(result)) as arrays:
                    file.write(arrays["ids"].tobytes())
                    lengths.append(arrays["lengths"])
        _write_rest(np.concatenate(lengths), tokenizer, facts, scratch, clean_directory)


def _write_rest(
    lengths: np.ndarray,
    tokenizer: PreTrainedTokenizerFast,
    facts: dict[str, Any],
    scratch: Path,
    clean_directory: Path,
) -> None:
    """Everything but the ids; `lengths` [sequences] in tokens."""
    if not len(lengths):
        raise InputError(
            "expected texts with tokens in {clean_directory}, found none",
            clean_directory=clean_directory,
        )
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    # Not np.save: its error for a full disk has no error number.
    (scratch / "offsets.bin").write_bytes(offsets.tobytes())
    save_tokenizer(tokenizer, scratch / "tokenizer")
    (scratch / FACTS_NAME).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")
