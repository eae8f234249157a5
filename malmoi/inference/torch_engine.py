"""Probabilities of tokenised texts, for held-out folds and for early stopping.

Legend: n texts, K labels.
"""

import numpy as np
import torch
from transformers import PreTrainedModel

from malmoi.devices import autocast
from malmoi.inference.batching import DeviceTokens, batches_by_length
from malmoi.inference.tasks import Task

# As in `classifier`; larger on a GPU, which would mostly wait for the next small batch.
_TOKENS_IN_BATCH = {"cpu": 2048, "cuda": 32_768}


def predict_probabilities(
    model: PreTrainedModel,
    tokens: DeviceTokens,
    places: np.ndarray,
    task: Task,
    device: torch.device,
) -> np.ndarray:
    """Predict the texts at `places`, float32 [n, K]: they add up to 1 for one label a text.

    Each between 0 and 1 by itself for `multi`; the predicted value, [n, 1], for a regression. The
    model is left in the mode it was in.
    """
    was_training = model.training
    model.eval()
    found = np.zeros((len(places), len(model.config.id2label or {})), dtype=np.float32)
    lengths = tokens.lengths[places].tolist()
    with torch.inference_mode(), autocast(device):
        for batch in batches_by_length(lengths, _TOKENS_IN_BATCH[device.type]):
            logits = model(**tokens.batch(places[batch])).logits.float()
            if task == "multi":
                logits = logits.sigmoid()
            elif task != "pair-regression":
                logits = logits.softmax(dim=-1)
            found[batch] = logits.cpu().numpy()
    model.train(was_training)
    return found
