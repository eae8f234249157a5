"""An encoder that is not trained: what it makes of a text, for a linear model on top.

Legend: N texts, B texts in a batch, T tokens of the longest text in it, H hidden size, K labels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from malmoi.devices import choose_device, one_thread_after_fork
from malmoi.inference.batched_logits import logits_by_length
from malmoi.inference.batching import PaddedBatch
from malmoi.inference.description import ModelDescription
from malmoi.inference.engine import EngineName
from malmoi.inference.tokenizing import text_tokenizer
from malmoi.inference.torch_engine import TOKENS_IN_BATCH
from malmoi.messages import Phrase
from malmoi.model_folders import discriminator_folder
from malmoi.transformers_models import (
    load_model,
    load_tokenizer,
    longest_input,
    save_model,
    takes_token_types,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Tokens of a window, as fine-tuning has by default.
_MAX_LENGTH = 128


class FrozenEncoder:
    """An encoder without a head; an engine whose logits are [CLS] and the mean of all tokens.

    Safe to use from several threads.
    """

    name: EngineName = "torch-fp32"
    batches_at_once = 1

    def __init__(self, model: PreTrainedModel, tokenizer: Any) -> None:
        """Take over a model and its tokenizer."""
        self._device = choose_device()
        self.place = self._device.type
        self.tokens_in_batch = TOKENS_IN_BATCH[self._device.type]
        self._model, self._stock_tokenizer = model.eval().to(self._device), tokenizer
        self._head: torch.Tensor | None = None
        self._takes_types = "token_type_ids" in signature(model.forward).parameters
        self.description = ModelDescription(
            labels=[],
            max_length=min(_MAX_LENGTH, longest_input(model, tokenizer)),
            pad=int(tokenizer.pad_token_id),
            token_types=takes_token_types(model),
        )
        self.tokenizer = text_tokenizer(tokenizer, self.description)

    @classmethod
    def load(cls, folder: Path) -> FrozenEncoder:
        """Load an encoder, or a run of pre-training; a head that it has is left out.

        Raises:
            InputError: the folder has no model that can be loaded.
        """
        from transformers import AutoModel

        source = discriminator_folder(folder) if (folder / "discriminator").is_dir() else folder
        model, _ = load_model(AutoModel, source, Phrase("the encoder"))
        return cls(model, load_tokenizer(source))

    def save(self, folder: Path) -> None:
        """Save encoder and tokenizer, for `load`."""
        save_model(self._model, self._stock_tokenizer, folder)

    def with_head(self, weights: np.ndarray) -> FrozenEncoder:
        """The same encoder, whose logits are those of `weights`, float32 [2 H, K]."""
        found = copy(self)
        found._head = torch.from_numpy(weights.astype(np.float32)).to(self._device)
        return found

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        """Float32 [B, 2 H]: [CLS], then the mean over tokens; [B, K] once it has a head."""
        one_thread_after_fork(os.getpid())
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        if self._takes_types:
            inputs["token_type_ids"] = batch.token_type_ids
        given = {name: torch.from_numpy(values).to(self._device) for name, values in inputs.items()}
        with torch.inference_mode():
            hidden = self._model(**given).last_hidden_state  # [B, T, H]
            mask = given["attention_mask"][:, :, None].to(hidden.dtype)
            mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
            found = torch.cat([hidden[:, 0], mean], dim=1)
            if self._head is not None:
                found = found @ self._head
        return found.float().cpu().numpy()

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """[CLS] and mean of N clean texts, float32 [N, 2 H]."""
        tokens = self.tokenizer(texts)
        found: np.ndarray | None = None
        for places, rows in logits_by_length(self, tokens, range(len(texts))):
            if found is None:
                found = np.zeros((len(texts), rows.shape[1]), dtype=np.float32)
            found[places] = rows
        width = 2 * int(getattr(self._model.config, "hidden_size", 0))
        return np.zeros((0, width), dtype=np.float32) if found is None else found
