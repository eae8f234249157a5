"""An encoder that is not trained, by torch: see `malmoi.inference.linear.frozen_encoder`.

Legend: B texts in a batch, T tokens of the longest text in it, H hidden size.
"""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from malmoi.devices import choose_device, one_thread_after_fork
from malmoi.inference.batching import PaddedBatch
from malmoi.inference.description import ModelDescription
from malmoi.inference.engine import EngineName
from malmoi.inference.linear.frozen_encoder import MAX_LENGTH
from malmoi.inference.tokenizing import text_tokenizer
from malmoi.inference.torch_engine import TOKENS_IN_BATCH
from malmoi.messages import Phrase
from malmoi.transformers_models import (
    load_model,
    load_tokenizer,
    longest_input,
    save_model,
    takes_token_types,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TorchEncoder:
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
        self._takes_types = "token_type_ids" in signature(model.forward).parameters
        self.description = ModelDescription(
            labels=[],
            max_length=min(MAX_LENGTH, longest_input(model, tokenizer)),
            pad=int(tokenizer.pad_token_id),
            token_types=takes_token_types(model),
        )
        self.tokenizer = text_tokenizer(tokenizer, self.description)

    @classmethod
    def load(cls, folder: Path) -> TorchEncoder:
        """Load an encoder; a head that it has is left out.

        Raises:
            InputError: the folder has no model that can be loaded.
        """
        from transformers import AutoModel

        model, _ = load_model(AutoModel, folder, Phrase("the encoder"))
        return cls(model, load_tokenizer(folder))

    def save(self, folder: Path) -> None:
        """Save encoder and tokenizer, for `load`."""
        save_model(self._model, self._stock_tokenizer, folder)

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        """Float32 [B, 2 H]: [CLS], then the mean over tokens."""
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
        return found.float().cpu().numpy()
