"""Tokenised texts through an engine, texts of like length together."""

from collections.abc import Iterator, Sequence

import numpy as np

from malmoi.inference.batching import TokenizedTexts, batches_by_length, padded
from malmoi.inference.engine import Engine
from malmoi.inference.working_ahead import worked_ahead


def logits_by_length(
    engine: Engine, tokens: TokenizedTexts, places: Sequence[int]
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Compute batch by batch, short texts first.

    Args:
        engine: computes as many batches side by side as it can.
        tokens: of all texts.
        places: which of them.

    Yields:
        Indices in `places`, B of them, and their logits, float32 [B, K].
    """
    chosen = np.asarray(places, dtype=np.int64)
    lengths = tokens.lengths[chosen].tolist()

    def compute(batch: list[int]) -> tuple[list[int], np.ndarray]:
        return batch, engine.logits(padded(tokens, chosen[batch]))

    batches = batches_by_length(lengths, engine.tokens_in_batch)
    if engine.batches_at_once == 1:
        yield from map(compute, batches)
    else:
        yield from worked_ahead(compute, batches, engine.batches_at_once)
