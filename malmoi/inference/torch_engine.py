"""Texts through a network of torch: the one place where anything is predicted.

Legend: n texts, B rows (texts, or windows of long ones) in a batch, K labels.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import torch

from malmoi.devices import (
    autocast,
    convert_matrices,
    one_thread_after_fork,
    prefers_bf16,
)
from malmoi.inference.batched_logits import computed_by_length
from malmoi.inference.batching import PaddedBatch, TokenizedTexts
from malmoi.inference.engine import EngineName
from malmoi.inference.first_token import logits_of
from malmoi.inference.tasks import Task, has_values
from malmoi.settings import Precision

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Padded tokens in one batch. One measurement on 2 cores that other work shared (12 layers, hidden
# 256): 814, 777, 702, 563 texts/s at 1,024, 2,048, 4,096, 8,192. To be repeated on a quiet machine.
# Larger on a GPU, which would mostly wait for the next small batch.
TOKENS_IN_BATCH = {"cpu": 2048, "cuda": 32_768}


class DeviceTokens:
    """All tokens on the device, from which batches are gathered without waiting for the host."""

    def __init__(self, tokens: TokenizedTexts, device: torch.device) -> None:
        """Copy `tokens` to `device`; it may be where the arrays are already."""
        self.tokens = tokens
        self.lengths = tokens.lengths
        self._device = device
        self._flat = torch.from_numpy(tokens.flat).to(device)

    def batch(self, rows: np.ndarray) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask` of B rows, of pairs `token_type_ids`: int64 [B, T].

        Args:
            rows: int64 [B].
        """
        longest = int(self.lengths[rows].max())
        columns = torch.arange(longest, device=self._device)
        mask = columns < self._moved(self.lengths[rows])[:, None]
        where = self._moved(self.tokens.offsets[rows])[:, None] + columns
        found = self._flat[where.clamp_(max=len(self._flat) - 1)].long()
        ids = found.masked_fill_(~mask, self.tokens.pad)
        inputs = {"input_ids": ids, "attention_mask": mask.long()}
        if self.tokens.second_from is not None:
            second = columns >= self._moved(self.tokens.second_from[rows])[:, None]
            inputs["token_type_ids"] = (second & mask).long()
        return inputs

    def _moved(self, values: np.ndarray) -> torch.Tensor:
        moved = torch.from_numpy(values)
        if self._device.type == "cuda":
            return moved.pin_memory().to(self._device, non_blocking=True)
        return moved


def predict_probabilities(
    model: PreTrainedModel,
    tokens: DeviceTokens,
    places: np.ndarray,
    task: Task,
    device: torch.device,
) -> np.ndarray:
    """Predict the texts at `places`, long ones in windows; the model is left in its mode.

    Args:
        model: on `device`, as the tokens are.
        places: int64 [n], which of the texts.

    Returns:
        float32 [n, K]: probabilities that add up to 1 for one label a text, each between 0 and 1
        by itself for `multi`; the predicted value, [n, 1], for a regression.
    """
    was_training = model.training
    model.eval()
    found = np.zeros((len(places), len(model.config.id2label or {})), dtype=np.float32)
    network = logits_of(model)

    def compute(rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = network(**tokens.batch(rows)).float().cpu().numpy()
        return logits

    with torch.inference_mode(), autocast(device):
        for batch, logits in computed_by_length(
            compute, tokens.tokens, places, tokens_in_batch=TOKENS_IN_BATCH[device.type]
        ):
            found[batch] = from_logits(logits, task)
    model.train(was_training)
    return found


def from_logits(logits: np.ndarray, task: Task) -> np.ndarray:
    """Probabilities, or values, of n texts, float32 [n, K]."""
    if task == "multi":
        return torch.from_numpy(logits).sigmoid().numpy()
    if has_values(task):
        return logits
    return torch.from_numpy(logits).softmax(dim=-1).numpy()


class TorchEngine:
    """A stock classifier of transformers; see `malmoi.inference.engine.Engine`."""

    batches_at_once = 1  # torch computes each batch with all cores

    def __init__(
        self, model: PreTrainedModel, device: torch.device, name: EngineName | None = None
    ) -> None:
        """Take over `model`: it is moved to the device and prepared for inference only.

        Args:
            name: the number format of matrix products; by default the one that is faster on most
                machines like this.
        """
        bf16 = prefers_bf16(device) if name is None else name == "torch-bf16"
        self.name: EngineName = "torch-bf16" if bf16 else "torch-fp32"
        self._precision: Precision = "bf16" if bf16 else "fp32"
        self._device, self.place = device, device.type
        self.tokens_in_batch = TOKENS_IN_BATCH[device.type]
        model = model.eval().to(device)
        convert_matrices(model, device, self._precision)
        self._logits = logits_of(model)

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        one_thread_after_fork(os.getpid())
        inputs = {
            "input_ids": batch.input_ids,
            "attention_mask": batch.attention_mask,
            "token_type_ids": batch.token_type_ids,
        }
        moved = {name: torch.from_numpy(ids).to(self._device) for name, ids in inputs.items()}
        with torch.inference_mode(), autocast(self._device, self._precision):
            found = self._logits(**moved)
        return found.float().cpu().numpy()
