"""Tokenised texts through a network, rows of like length together, windows averaged.

The one way from tokens to logits: of every engine, of k-fold and of what measures them.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from malmoi.inference.batching import TokenizedTexts, batches_by_length, padded
from malmoi.inference.engine import Engine
from malmoi.inference.working_ahead import worked_ahead

# Rows, int64 [B], to their logits, float32 [B, K].
Compute = Callable[[np.ndarray], np.ndarray]


def logits_by_length(
    engine: Engine, tokens: TokenizedTexts, places: Sequence[int]
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Compute some of the texts batch by batch, short ones first.

    Yields:
        Indices in `places`, n of them, and their logits, float32 [n, K].
    """
    return computed_by_length(
        lambda rows: engine.logits(padded(tokens, rows)),
        tokens,
        np.asarray(places, dtype=np.int64),
        tokens_in_batch=engine.tokens_in_batch,
        batches_at_once=engine.batches_at_once,
    )


def computed_by_length(
    compute: Compute,
    tokens: TokenizedTexts,
    places: np.ndarray,
    *,
    tokens_in_batch: int,
    batches_at_once: int = 1,
) -> Iterator[tuple[list[int], np.ndarray]]:
    """The same of whatever computes rows.

    Args:
        places: int64 [n], which of the texts.
        tokens_in_batch: most tokens of a batch, padding included.
        batches_at_once: threads that compute.
    """
    rows, text = tokens.rows_of(places)
    lengths = tokens.lengths[rows].tolist()

    def batch_of(batch: list[int]) -> tuple[list[int], np.ndarray]:
        return batch, compute(rows[batch])

    batches = batches_by_length(lengths, tokens_in_batch)
    if batches_at_once == 1:
        found: Iterator[tuple[list[int], np.ndarray]] = map(batch_of, batches)
    else:
        found = worked_ahead(batch_of, batches, batches_at_once)
    return found if tokens.windows is None else _averaged(found, text, len(places))


def _averaged(
    computed: Iterator[tuple[list[int], np.ndarray]], text: np.ndarray, texts: int
) -> Iterator[tuple[list[int], np.ndarray]]:
    """The mean of each text's windows, as soon as the last one is there.

    Args:
        computed: indices of rows, B of them, with their logits, [B, K].
        text: int64 [r], of each row its text.
        texts: how many there are.
    """
    counts = np.bincount(text, minlength=texts)
    missing, sums = counts.copy(), np.zeros((0, 0), dtype=np.float32)
    for batch, logits in computed:
        if not len(sums):
            sums = np.zeros((texts, logits.shape[1]), dtype=np.float32)
        np.add.at(sums, text[batch], logits)
        np.subtract.at(missing, text[batch], 1)
        touched = np.unique(text[batch])
        whole = touched[missing[touched] == 0]
        if len(whole):
            yield whole.tolist(), sums[whole] / counts[whole, None].astype(np.float32)
