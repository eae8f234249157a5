"""Texts through a network of torch: the one place where anything is predicted.

Legend: n texts, B texts in a batch, K labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from malmoi.devices import autocast
from malmoi.inference.batching import DeviceTokens, batches_by_length
from malmoi.inference.tasks import Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Padded tokens in one batch. One measurement on 2 cores that other work shared (12 layers, hidden
# 256): 814, 777, 702, 563 texts/s at 1,024, 2,048, 4,096, 8,192. To be repeated on a quiet machine.
# Larger on a GPU, which would mostly wait for the next small batch.
TOKENS_IN_BATCH = {"cpu": 2048, "cuda": 32_768}


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
    with torch.inference_mode(), autocast(device):
        for batch in batches_by_length(lengths, TOKENS_IN_BATCH[device.type]):
            logits = model(**tokens.batch(places[batch])).logits.float() / temperature
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
