"""Vectors of the corpus's own word pieces, from counts of which occur together, as a warm start.

With few tokens plain replaced-token detection learns nothing for a long time; vectors that put
words that are used alike near each other make everything after it learn faster
(lab/log). They are the largest singular vectors of the matrix of positive pointwise
mutual information (PMI): what skip-gram with negative sampling approximates (Levy and Goldberg
2014, "Neural Word Embedding as Implicit Matrix Factorization"), but counted, so that the same
texts give the same vectors on any number of threads. Details: Levy, Goldberg and Dagan 2015,
"Improving Distributional Similarity with Lessons Learned from Word Embeddings",
https://aclanthology.org/Q15-1016.
"""

import io
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from threadpoolctl import threadpool_limits

from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.pretrain.data.tokenized import TokenizedCorpus
from malmoi.pretrain.model.networks import ElectraPair

# As in word2vec a neighbour d places away counts (WINDOW - d + 1) / WINDOW.
WINDOW = 5
# The paper's section 6: smoothed counts of contexts, half of the singular values' weight, and no
# shift of the PMI, which is better for singular vectors.
CONTEXT_SMOOTHING = 0.75
SINGULAR_VALUE_POWER = 0.5
# Scale from the first look in lab/log (one seed).
EMBEDDING_STD = 0.1
# More would take longer than it helps (assumption): every second, third, ... sequence is read.
_MAX_TOKENS = 40_000_000
_MIN_COUNT = 5
_TINY_CORPUS_TOKENS = 100_000
# Bounds the memory of one step of counting: about 150 bytes a token.
_BLOCK_TOKENS = 2_000_000
_POWER_ITERATIONS = 4
_SEED = 0


def warm_start_embeddings(
    pair: ElectraPair, corpus: TokenizedCorpus, *, report: Callable[[str], None]
) -> int:
    """Replace the word embeddings of frequent word pieces by their vectors.

    Args:
        pair: its word embeddings, [V, embedding_size], are changed in place; pieces
            seen fewer than 5 times keep their random start.
        report: gets a line of progress now and then.

    Returns:
        How many word pieces got a vector.
    """
    tables = pair.word_tables()
    ids, vectors = word_vectors(corpus, tables[0].shape[1], report=report)
    scaled = torch.from_numpy(vectors * (EMBEDDING_STD / max(float(vectors.std()), 1e-12)))
    with torch.no_grad():
        for table in tables:
            table[torch.from_numpy(ids)] = scaled.to(table.device)
    return len(ids)


def word_vectors(
    corpus: TokenizedCorpus, width: int, *, report: Callable[[str], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of frequent word pieces; those of an earlier call with the same inputs are read.

    There is no chance in them. They are kept beside the corpus, where other runs, and another
    machine that the folder is copied to, find them.

    Returns:
        int64 [N] ids and float32 [N, width] vectors.

    Raises:
        InputError: the kept vectors cannot be read.
    """
    kept = corpus.directory / f"word-vectors-{width}.npz"
    if kept.is_file():
        report(f"word vectors of an earlier run, {kept}")
        return _read(kept, len(corpus.token_counts()))
    report("counting which word pieces occur together, for their vectors")
    counts = corpus.token_counts()
    # In a handful of texts hardly a piece comes five times.
    least = _MIN_COUNT if corpus.num_tokens >= _TINY_CORPUS_TOKENS else 1
    ids = np.flatnonzero(counts >= least)
    vectors = _singular_vectors(_positive_pmi(_occurring_together(corpus, ids)), width)
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
            "cannot read the word vectors in {kept}: {error}; delete the file, and they are made "
            "again",
            kept=kept,
            error=error,
        ) from error


def _occurring_together(corpus: TokenizedCorpus, ids: np.ndarray) -> sp.csr_array:
    """How often pieces stand near each other, float32 [N, N], symmetric, nearer ones counting more.

    Pieces that are not in `ids` are left out before distances are taken, as in word2vec.
    """
    places = np.full(int(corpus.ids.max(initial=0)) + 1, -1, dtype=np.int32)
    places[ids] = np.arange(len(ids), dtype=np.int32)
    shape = (len(ids), len(ids))
    total = sp.csr_array(shape, dtype=np.float32)
    for pieces, sequences in _blocks(corpus):
        pieces = places[pieces]
        sequences, pieces = sequences[pieces >= 0], pieces[pieces >= 0]
        rows, columns, weights = [], [], []
        for distance in range(1, WINDOW + 1):
            same_text = sequences[distance:] == sequences[:-distance]
            rows.append(pieces[:-distance][same_text])
            columns.append(pieces[distance:][same_text])
            weight = (WINDOW - distance + 1) / WINDOW
            weights.append(np.full(len(rows[-1]), weight, dtype=np.float32))
        where = (np.concatenate(rows), np.concatenate(columns))
        total = total + sp.coo_array((np.concatenate(weights), where), shape=shape).tocsr()
    return sp.csr_array(total + total.T)


def _blocks(corpus: TokenizedCorpus) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids of some sequences, int [tokens], and the sequence of each, int32 [tokens]."""
    every = -(-corpus.num_tokens // _MAX_TOKENS)
    offsets = corpus.offsets
    first = 0
    while first < len(corpus):
        end = int(np.searchsorted(offsets, offsets[first] + _BLOCK_TOKENS, side="right")) - 1
        end = max(first + 1, end)  # a sequence longer than a block is one
        pieces = np.asarray(corpus.ids[offsets[first] : offsets[end]])
        lengths = np.diff(offsets[first : end + 1])
        sequences = np.repeat(np.arange(first, end, dtype=np.int32), lengths)
        taken = sequences % every == 0
        yield pieces[taken], sequences[taken]
        first = end


def _positive_pmi(together: sp.csr_array) -> sp.csr_array:
    """log p(w, c) / (p(w) p(c)) where that is positive; `together` is changed in place."""
    occurs = np.asarray(together.sum(axis=1), dtype=np.float64)
    context = occurs**CONTEXT_SMOOTHING
    context /= context.sum() or 1.0
    with np.errstate(divide="ignore"):  # of a piece that is never near another
        log_occurs, log_context = np.log(occurs), np.log(context)
    for row in range(together.shape[0]):
        one = slice(together.indptr[row], together.indptr[row + 1])
        pmi = np.log(together.data[one]) - log_occurs[row] - log_context[together.indices[one]]
        together.data[one] = np.maximum(pmi, 0)
    together.eliminate_zeros()
    return together


def _singular_vectors(matrix: sp.csr_array, width: int) -> np.ndarray:
    """float32 [N, width]: left singular vectors, weighted; zeros beyond the matrix's own rank."""
    # Here and not above: half a second that a run with other weights can do without.
    from sklearn.utils.extmath import randomized_svd

    vectors = np.zeros((matrix.shape[0], width), dtype=np.float32)
    components = min(width, *matrix.shape)
    # On more threads sums are taken in another order, and vectors would differ in their last bits.
    with threadpool_limits(1):
        left, values, _ = randomized_svd(
            matrix, n_components=components, n_iter=_POWER_ITERATIONS, random_state=_SEED
        )
    vectors[:, :components] = left * values**SINGULAR_VALUE_POWER
    return vectors
