"""What the parts of an objective are given: the run's constants, and one pass of the encoder.

Legend: b sequences of this process, L tokens, H width.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives.local_batch import LocalBatch
from malmoi.pretrain.objectives.vocabulary import VocabularyTables

COUNT_NAMES = (
    "masked",
    "guessed",
    "true_positive",
    "predicted_replaced",
    "replaced",
    "tokens",
    "encoder_places",
    "encoder_guessed",
    "hidden",
    "commonest",
)
Counts = dict[str, torch.Tensor]
"""Names of `COUNT_NAMES` and int64 [] each; what is not there is 0."""


def _identity(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """What all steps of a run have in common."""

    recipe: Recipe
    tables: VocabularyTables
    rank: int = 0
    world_size: int = 1
    add_up: Callable[[torch.Tensor], torch.Tensor] = _identity
    """Sum of a tensor over the processes, so that means are those of the whole batch."""
    mask_dtype: torch.dtype = torch.float32
    """Number format of the attention scores."""

    def total(self, mask: torch.Tensor) -> torch.Tensor:
        """How often a mask is True in all processes. bool [...] -> int64 []."""
        return self.add_up(mask.sum())

    def mean_over(self, losses: torch.Tensor, scope: torch.Tensor) -> torch.Tensor:
        """Mean of this process's part. `losses`: float [...], 0 outside `scope`; bool [...]."""
        return losses.sum() / self.total(scope).clamp(min=1)

    def mean_weights(self, scope: torch.Tensor, batch: LocalBatch) -> torch.Tensor:
        """float32 [b, L] that make a sum the mean over `scope`: of tokens, or of texts' means."""
        if self.recipe.loss_mean == "tokens":
            return scope.float() / self.total(scope).clamp(min=1)
        sizes = scope.new_zeros(batch.input_ids.numel() + 1, dtype=torch.float32)
        sizes = sizes.scatter_add(0, batch.documents.flatten(), scope.flatten().float())
        # Document 0 is the padding.
        number = self.total(sizes[1:] > 0).clamp(min=1)
        per_token = scope.float() / sizes[batch.documents].clamp(min=1)
        return per_token / number


@dataclass(frozen=True, kw_only=True)
class EncoderPass:
    """What the discriminator's encoder made of a batch."""

    context: StepContext
    pair: ElectraPair
    batch: LocalBatch
    input_ids: torch.Tensor
    """int64 [b, L]: what it read."""
    states: torch.Tensor
    """float [b, L, H]: its last hidden states."""
    counts: Counts = field(default_factory=dict)
    """Filled in by whoever counts."""


@dataclass(frozen=True, kw_only=True)
class TokenLosses:
    """An objective's losses at tokens."""

    losses: torch.Tensor
    """float32 [b, L]; outside `scope` anything finite."""
    scope: torch.Tensor
    """bool [b, L], True where they count."""
    detection_logits: torch.Tensor | None = None
    """float32 [b, L], above 0 for "replaced", where the discriminator's own head took part."""
