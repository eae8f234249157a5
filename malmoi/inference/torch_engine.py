"""Texts through a network of torch: the one place where anything is predicted.

Legend: n texts, B texts in a batch, K labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from malmoi.config import Precision
from malmoi.devices import autocast, convert_matrices, prefers_bf16
from malmoi.inference.batching import PaddedBatch, TokenizedTexts, batches_by_length
from malmoi.inference.engine import EngineName
from malmoi.inference.first_token import logits_of
from malmoi.inference.tasks import Task

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
        self.lengths = tokens.lengths
        self._offsets = tokens.offsets
        self._second = tokens.second_from
        self._pad = tokens.pad
        self._device = device
        self._flat = torch.from_numpy(tokens.flat).to(device)

    def batch(self, places: np.ndarray) -> dict[str, torch.Tensor]:
        """`input_ids` and `attention_mask` of B texts, of pairs `token_type_ids`: int64 [B, T].

        Args:
            places: int64 [B].
        """
        longest = int(self.lengths[places].max())
        columns = torch.arange(longest, device=self._device)
        mask = columns < self._moved(self.lengths[places])[:, None]
        where = self._moved(self._offsets[places])[:, None] + columns
        ids = (
            self._flat[where.clamp_(max=len(self._flat) - 1)].long().masked_fill_(~mask, self._pad)
        )
        inputs = {"input_ids": ids, "attention_mask": mask.long()}
        if self._second is not None:
            second = columns >= self._moved(self._second[places])[:, None]
            inputs["token_type_ids"] = (second & mask).long()
        return inputs

    def _moved(self, values: np.ndarray) -> torch.Tensor:
        moved = torch.from_numpy(values)
        if self._device.type == "cuda":
            return moved.pin_memory().to(self._device, non_blocking=True)
        return moved


def probabilities_by_length(
    model: PreTrainedModel,
    tokens: DeviceTokens,
    places: np.ndarray,
    task: Task,
    device: torch.device,
    *,
    temperature: float = 1.0,
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Predict batch by batch, short texts first.

    Args:
        model: in eval mode, on `device`.
        tokens: of all texts.
        places: int64 [n], which of them.
        task: says what becomes of the logits.
        device: where model and tokens are.
        temperature: divides the logits (Guo et al. 2017).

    Yields:
        Indices in `places`, B of them, and their probabilities, float32 [B, K]: they add up to 1
        for one label a text, each is between 0 and 1 by itself for `multi`, and is the predicted
        value, [B, 1], for a regression.
    """
    lengths = tokens.lengths[places].tolist()
    compute = logits_of(model)
    with torch.inference_mode(), autocast(device):
        for batch in batches_by_length(lengths, TOKENS_IN_BATCH[device.type]):
            logits = compute(**tokens.batch(places[batch])).float() / temperature
            if task == "multi":
                logits = logits.sigmoid()
            elif task != "pair-regression":
                logits = logits.softmax(dim=-1)
            yield batch, logits.cpu().numpy()


def predict_probabilities(
    model: PreTrainedModel,
    tokens: DeviceTokens,
    places: np.ndarray,
    task: Task,
    device: torch.device,
) -> np.ndarray:
    """Predict the texts at `places`, float32 [n, K]; see `probabilities_by_length`.

    The model is left in the mode it was in.
    """
    was_training = model.training
    model.eval()
    found = np.zeros((len(places), len(model.config.id2label or {})), dtype=np.float32)
    for batch, probabilities in probabilities_by_length(model, tokens, places, task, device):
        found[batch] = probabilities
    model.train(was_training)
    return found


class TorchEngine:
    """A stock classifier of transformers; see `malmoi.inference.engine.Engine`."""

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
        self._device = device
        model = model.eval().to(device)
        convert_matrices(model, device, self._precision)
        self._logits = logits_of(model)

    @property
    def place(self) -> str:
        """See `Engine`."""
        return self._device.type

    @property
    def tokens_in_batch(self) -> int:
        """See `Engine`."""
        return TOKENS_IN_BATCH[self._device.type]

    @property
    def batches_at_once(self) -> int:
        """One: torch computes each batch with all cores."""
        return 1

    def logits(self, batch: PaddedBatch) -> np.ndarray:
        """See `Engine`."""
        inputs = {
            "input_ids": batch.input_ids,
            "attention_mask": batch.attention_mask,
            "token_type_ids": batch.token_type_ids,
        }
        moved = {name: torch.from_numpy(ids).to(self._device) for name, ids in inputs.items()}
        with torch.inference_mode(), autocast(self._device, self._precision):
            found = self._logits(**moved)
        return found.float().cpu().numpy()
