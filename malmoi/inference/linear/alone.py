"""A linear classifier without a fine-tuned encoder, opened as any other one.

Legend: N texts, B texts in a batch, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from malmoi.inference.batching import PaddedBatch, TokenizedTexts
from malmoi.inference.description import ModelDescription
from malmoi.inference.engine import Engineless
from malmoi.inference.engine_choice import Opened
from malmoi.inference.linear.linear_part import LinearPart

if TYPE_CHECKING:
    from malmoi.inference.linear.frozen_encoder import FrozenEncoder

# The frozen encoder, in the folder of a classifier that reads its numbers.
ENCODER = "encoder"


class NoEngine:
    """Stands for an encoder where there is none: it adds nothing."""

    name: Engineless = "linear"
    place = "cpu"
    tokens_in_batch = 4096
    batches_at_once = 1

    def __init__(self, labels: int) -> None:
        """Say nothing of K labels."""
        self._labels = labels

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        """Zeros, float32 [B, K]."""
        return np.zeros((len(batch.input_ids), self._labels), dtype=np.float32)


class NoTokenizer:
    """One token for every text, for it is read as it is; see `TextTokenizer`."""

    uninformative_ids: Sequence[int] = (0,)

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenizedTexts:
        count = len(texts)
        return TokenizedTexts(
            flat=np.zeros(count, dtype=np.int32),
            offsets=np.arange(count + 1, dtype=np.int64),
            second_from=None,
            pad=0,
            was_cut=np.zeros(count, dtype=bool),
        )


def open_alone(
    part: LinearPart, folder: Path | None = None, *, encoder: FrozenEncoder | None = None
) -> Opened:
    """What `malmoi.inference.engine_choice.open_classifier` gives, of a linear classifier.

    Args:
        part: the classifier.
        folder: has its frozen encoder, if it reads one.
        encoder: that encoder, where it is in memory.

    Raises:
        InputError: the encoder is missing or damaged; torch, which some need, is not installed.
    """
    if part.head is not None:
        if encoder is None:
            from malmoi.inference.linear.frozen_encoder import FrozenEncoder

            # What an older version fitted, it fitted on the numbers of fp32.
            exact = part.analyser == "kiwi"
            encoder = FrozenEncoder.load((folder or Path()) / ENCODER, exact=exact)
        engine = encoder.with_head(part.head)
        description = replace(encoder.description, labels=part.labels)
        return Opened(engine=engine, tokenizer=encoder.tokenizer, description=description)
    description = ModelDescription(labels=part.labels, max_length=0, pad=0)
    return Opened(
        engine=NoEngine(len(part.labels)), tokenizer=NoTokenizer(), description=description
    )
