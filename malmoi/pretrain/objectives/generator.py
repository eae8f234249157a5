"""What the generator says at the masked positions.

Legend: b sequences of this process, L tokens, V vocabulary entries, N masked positions.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

from malmoi.pretrain.data.masking import span_bounds
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives.local_batch import LocalBatch
from malmoi.pretrain.objectives.vocabulary import VocabularyTables


@dataclass(kw_only=True)
class MaskedPredictions:
    """What a masked-LM head says at the masked positions."""

    logits: torch.Tensor
    """float32 [N, V], minus infinity at what must never be proposed."""
    losses: torch.Tensor
    """float32 [N]: cross entropy with the token that stood there; 0 where it takes no part."""
    counted: torch.Tensor
    """bool [N]: real places whose token can be proposed. The unknown token may be a target
    although it is never proposed: it takes no part."""


def predict_masked(
    pair: ElectraPair, batch: LocalBatch, tables: VocabularyTables, *, span_boundary: bool
) -> list[MaskedPredictions]:
    """Run the generator and its head at the masked positions only.

    At 15% masked, that saves most of what the head over V entries costs.

    Returns:
        The masked-LM head's predictions, then, with `span_boundary`, the boundary head's.
    """
    generator = pair.generator
    assert generator is not None
    states = generator.electra(batch.masked_ids, **batch.inputs).last_hidden_state
    flat = states.flatten(0, 1)
    features = [generator.generator_predictions(flat[batch.places])]
    if span_boundary:
        features.append(_span_boundary_features(pair, batch, flat))
    return [
        masked_cross_entropy(
            generator.generator_lm_head(each), batch.targets, batch.is_place, tables
        )
        for each in features
    ]


def _span_boundary_features(
    pair: ElectraPair, batch: LocalBatch, flat: torch.Tensor
) -> torch.Tensor:
    """SpanBERT's features. `flat`: float [b x L, H], the generator's states -> float [N, E]."""
    assert pair.span_head is not None
    left, right, offsets = (t.flatten()[batch.places] for t in span_bounds(batch.masked))
    width = batch.masked.shape[1]
    row_begins = batch.places // width * width
    # Spans share boundaries, and threads add up the gradient of flat[...] in any order; that of
    # a lookup is added up in one. (At `places` all that repeats has a gradient of zero.)
    ends = [functional.embedding(row_begins + end, flat) for end in (left, right)]
    features: torch.Tensor = pair.span_head(ends[0], ends[1], offsets)
    return features


def masked_cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor, is_place: torch.Tensor, tables: VocabularyTables
) -> MaskedPredictions:
    """Cross entropy over the entries that may be proposed. [N, V], int64 [N]."""
    # In the place of the copy that bf16 logits need: N x V floats less, and a fifth of the time of
    # the cross entropy with its backward pass on a CPU (docs/performance.md).
    copied = logits.dtype != torch.float32
    reachable = logits.float().add_(tables.bias) if copied else logits + tables.bias
    counted = is_place & tables.may_stand(targets)
    losses = functional.cross_entropy(reachable, targets, reduction="none")
    return MaskedPredictions(
        logits=reachable, losses=torch.where(counted, losses, 0.0), counted=counted
    )
