"""What training makes small, by task.

Legend: B texts in a batch, K labels.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from malmoi.inference.tasks import Task, has_values

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def make_loss(
    task: Task,
    *,
    weights: torch.Tensor | None = None,
    focal_gamma: float = 0.0,
    label_smoothing: float = 0.0,
) -> Loss:
    """The loss of logits [B, K] float32 and targets, a mean over the batch.

    Targets are [B] int64 label ids, or [B, K] probabilities of a teacher where the loss is cross
    entropy; [B, K] 0 and 1 for `multi` (mean over labels as well); [B] float32 for
    values, whose loss is the squared error.

    Args:
        weights: [K], see `balanced_weights`.
        focal_gamma: how much easy texts count less, (1 - p)^gamma; 0 is cross entropy (Lin et al.
            2017, "Focal Loss for Dense Object Detection", section 3).
        label_smoothing: fraction of a target that is spread over all labels (Szegedy et al. 2016,
            "Rethinking the Inception Architecture", section 7).
    """
    if has_values(task):
        return lambda logits, targets: functional.mse_loss(logits[:, 0], targets)
    if task == "multi":
        return _binary(weights, focal_gamma, label_smoothing)
    if not focal_gamma:
        return lambda logits, targets: functional.cross_entropy(
            logits, targets, weight=weights, label_smoothing=label_smoothing
        )

    def focal(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        log_p = functional.log_softmax(logits, dim=-1).gather(1, targets[:, None])[:, 0]  # [B]
        losses = -((1 - log_p.exp()) ** focal_gamma) * log_p
        if weights is None:
            return losses.mean()
        own = weights[targets]
        return (losses * own).sum() / own.sum()

    return focal


def _binary(weights: torch.Tensor | None, focal_gamma: float, label_smoothing: float) -> Loss:
    def binary(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        soft = targets * (1 - label_smoothing) + label_smoothing / 2
        losses = functional.binary_cross_entropy_with_logits(
            logits, soft, pos_weight=weights, reduction="none"
        )
        if focal_gamma:
            right = torch.where(targets > 0, logits, -logits).sigmoid()
            losses = losses * (1 - right) ** focal_gamma
        return losses.mean()

    return binary


def balanced_weights(task: Task, targets: np.ndarray, labels: int) -> torch.Tensor:
    """Weights under which every label counts alike, [K] float32.

    One label a text: N / (K n), as scikit-learn's "balanced". Several: what a text with the label
    weighs against one without, (N - n) / n, the `pos_weight` of PyTorch. 1 where n is 0.

    Args:
        task: `single`, `pair` or `multi`.
        targets: of the texts trained on, [N] ids or [N, K].
        labels: K.
    """
    if task == "multi":
        counts = targets.sum(axis=0).astype(np.float64)
        weights = (len(targets) - counts) / np.maximum(counts, 1)
        weights[(counts == 0) | (counts == len(targets))] = 1
    else:
        counts = np.bincount(targets, minlength=labels).astype(np.float64)
        weights = len(targets) / (labels * np.maximum(counts, 1))
        weights[counts == 0] = 1
    return torch.tensor(weights, dtype=torch.float32)
