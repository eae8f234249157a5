"""Skip-gram with negative sampling over the corpus's own word pieces, to start embeddings from.

With few tokens plain replaced-token detection learns nothing for a long time; about a minute of
skip-gram (Mikolov et al. 2013) puts words that are used alike near each other and everything
after it learns faster (docs/experiments.md).
"""

import io
import logging
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from corpora.atomic import write_at_once
from corpora.errors import InputError
from pretrain.networks import ElectraPair
from pretrain.tokenized import TokenizedCorpus

# Window, epochs and scale from the first look in docs/experiments.md (one seed).
WINDOW = 5
EPOCHS = 4
EMBEDDING_STD = 0.1
# Below about this many tokens four passes are too few; the count is an assumption.
_TOKENS_WANTED = 4_000_000
# More would take longer than it helps (assumption): every second, third, ... sequence is read.
_MAX_TOKENS = 40_000_000
_MIN_COUNT = 5
_TINY_CORPUS_TOKENS = 100_000


def warm_start_embeddings(
    pair: ElectraPair, corpus: TokenizedCorpus, *, seed: int, report: Callable[[str], None]
) -> int:
    """Replace the word embeddings of frequent word pieces by their skip-gram vectors.

    Args:
        pair: its word embeddings, [V, embedding_size], are changed in place; pieces
            seen fewer than 5 times keep their random start.
        report: gets a line of progress now and then.

    Returns:
        How many word pieces got a vector.
    """
    tables = pair.word_tables()
    ids, vectors = skip_gram_vectors(corpus, tables[0].shape[1], seed=seed, report=report)
    scaled = torch.from_numpy(vectors * (EMBEDDING_STD / vectors.std()))
    with torch.no_grad():
        for table in tables:
            table[torch.from_numpy(ids)] = scaled.to(table.device)
    return len(ids)


def skip_gram_vectors(
    corpus: TokenizedCorpus, width: int, *, seed: int, report: Callable[[str], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of frequent word pieces; those of an earlier call with the same inputs are read.

    Trained on all cores; with more than one the threads race, so two trainings from one seed are
    alike but not identical. They are kept beside the corpus, where other runs, and another
    machine that the folder is copied to, find them.

    Returns:
        int64 [N] ids and float32 [N, width] vectors.

    Raises:
        InputError: the kept vectors cannot be read.
    """
    kept = corpus.directory / f"skip-gram-{width}-{seed}.npz"
    if kept.is_file():
        report(f"skip-gram warm start: vectors of an earlier run, {kept}")
        return _read(kept, len(corpus.token_counts()))
    ids, vectors = _train(corpus, width, seed, report)
    if os.access(corpus.directory, os.W_OK):
        buffer = io.BytesIO()
        np.savez(buffer, ids=ids, vectors=vectors)
        own = kept.with_suffix(f".{os.getpid()}.npz")  # two runs may get here at once
        write_at_once(own, buffer.getvalue())
        own.replace(kept)
    return ids, vectors


def _read(kept: Path, size: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(kept, allow_pickle=False) as arrays:
            ids, vectors = arrays["ids"], arrays["vectors"]
        if len(ids) != len(vectors) or (len(ids) and not 0 <= ids.min() <= ids.max() < size):
            raise ValueError(f"expected vectors of ids below {size:,}, found others")
        return ids, vectors
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(
            f"cannot read the skip-gram vectors in {kept}: {error}; delete the file, and they are "
            "made again"
        ) from error


def _train(
    corpus: TokenizedCorpus, width: int, seed: int, report: Callable[[str], None]
) -> tuple[np.ndarray, np.ndarray]:
    # Here and not above: a machine that finds kept vectors needs no gensim.
    from gensim.models import Word2Vec
    from gensim.models.callbacks import CallbackAny2Vec

    epochs = int(min(40, max(EPOCHS, _TOKENS_WANTED // max(1, corpus.num_tokens))))

    class EpochProgress(CallbackAny2Vec):
        done = 0

        def on_epoch_end(self, model: Word2Vec) -> None:
            self.done += 1
            if self.done == epochs or self.done % max(1, epochs // 4) == 0:
                report(f"skip-gram warm start: pass {self.done} of {epochs}")

    logging.getLogger("gensim").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="malmoi-skip-gram-") as folder:
        sentences = Path(folder) / "ids.txt"
        _write_sentences(corpus, sentences)
        model = Word2Vec(
            corpus_file=str(sentences),
            vector_size=width,
            sg=1,
            negative=5,
            window=WINDOW,
            epochs=epochs,
            # In a handful of texts hardly a piece comes five times.
            min_count=_MIN_COUNT if corpus.num_tokens >= _TINY_CORPUS_TOKENS else 1,
            seed=seed,
            workers=os.cpu_count() or 1,
            callbacks=[EpochProgress()],
        )
    ids = np.array([int(word) for word in model.wv.index_to_key], dtype=np.int64)
    return ids, np.asarray(model.wv.vectors, dtype=np.float32)


def _write_sentences(corpus: TokenizedCorpus, path: Path) -> None:
    """One sequence a line, ids as words: the file form that gensim reads on all cores."""
    every = -(-corpus.num_tokens // _MAX_TOKENS)
    with path.open("w") as file:
        for start, end in zip(corpus.offsets[:-1:every], corpus.offsets[1::every], strict=True):
            file.write(" ".join(map(str, corpus.ids[start:end].tolist())) + "\n")
