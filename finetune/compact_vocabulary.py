"""Train only the embeddings that a data set uses.

Of a vocabulary of 54,000 pieces a small data set uses a few thousand. The others get no gradient,
but the optimizer walks through all of them at every step. Without them the used ones get the very
same updates; the only difference is that unused ones are not shrunk by weight decay.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from finetune.batches import TokenizedTexts


class CompactVocabulary:
    """Which V' of the V rows of an embedding table are used, and how ids are renamed."""

    def __init__(self, tokens: TokenizedTexts) -> None:
        """All texts count, those held out too: their embeddings must be there to predict."""
        self._kept = np.union1d(np.unique(tokens.flat), [tokens.pad]).astype(np.int64)
        self._pad = int(np.searchsorted(self._kept, tokens.pad))

    def rename(self, tokens: TokenizedTexts) -> TokenizedTexts:
        """The same texts in ids from 0 to V' - 1."""
        flat = np.searchsorted(self._kept, tokens.flat).astype(np.int32)
        return replace(tokens, flat=flat, pad=self._pad)

    def shrink(self, model: PreTrainedModel) -> nn.Embedding:
        """Give `model`, on the CPU, a table of the used rows; returns its whole one."""
        whole = model.get_input_embeddings()
        assert isinstance(whole, nn.Embedding)
        rows = whole.weight.detach()[torch.from_numpy(self._kept)].clone()
        padding = None if whole.padding_idx is None else self._pad
        model.set_input_embeddings(
            nn.Embedding(len(rows), rows.shape[1], padding_idx=padding, _weight=rows)
        )
        return whole

    def restore(self, model: PreTrainedModel, whole: nn.Embedding) -> None:
        """Put the trained rows back into the `whole` table and that into `model`."""
        small = model.get_input_embeddings()
        assert isinstance(small, nn.Embedding)
        with torch.no_grad():
            whole.weight[torch.from_numpy(self._kept)] = small.weight.to(whole.weight.device)
        model.set_input_embeddings(whole)
