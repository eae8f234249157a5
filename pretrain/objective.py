"""Replaced-token detection (Clark et al. 2020): one step of the joint objective.

Shapes: B sequences, L tokens, N masked positions (filled up to a
multiple of 64), V vocabulary entries, H width.
Labels follow the paper's code and `ElectraForPreTraining`: 1 = replaced, 0 = original.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional

from pretrain.masking import choose_masked, mask_tokens
from pretrain.networks import ElectraPair


@dataclass(kw_only=True)
class Corruption:
    """What the generator made of a batch."""

    corrupted_ids: torch.Tensor
    """int64 [B, L]: the discriminator's input."""
    is_replaced: torch.Tensor
    """bool [B, L]: 1 where the token differs from the original."""
    generator_loss: torch.Tensor
    """Scalar, cross-entropy over the N masked positions."""
    num_masked: torch.Tensor
    """Scalar, N."""
    num_guessed: torch.Tensor
    """Scalar, masked positions where the generator's likeliest token is the original."""


@dataclass(kw_only=True)
class StepResult:
    """Losses and counts of one step, all tensors: reading them is left to the log interval."""

    loss: torch.Tensor
    generator_loss: torch.Tensor
    discriminator_loss: torch.Tensor
    counts: torch.Tensor
    """int64 [6]: masked, guessed, true positives, predicted replaced, replaced, real tokens."""


_PLACES_MULTIPLE = 64
COUNT_NAMES = ("masked", "guessed", "true_positive", "predicted_replaced", "replaced", "tokens")


def unreachable_tokens(special_ids: list[int], unused_ids: list[int], size: int) -> torch.Tensor:
    """float32 [V]: minus infinity at entries the generator must never propose, else 0.

    Special tokens never stand in text and `[unusedN]` pads the vocabulary: probability mass
    there would only be noise that the discriminator learns to spot at once.
    """
    bias = torch.zeros(size)
    bias[[*special_ids, *unused_ids]] = float("-inf")
    return bias


def corrupt(
    pair: ElectraPair,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None,
    maskable: torch.Tensor,
    *,
    mask_id: int,
    mask_fraction: float,
    token_bias: torch.Tensor,
    random: torch.Generator,
) -> Corruption:
    """Mask, let the generator guess, and put samples from its softmax in place.

    Logits are computed at the N masked positions only: at 15% that is most of the generator's
    cost saved. A sample that equals the original counts as original.

    Args:
        input_ids: int64 [B, L].
        attention_mask: int64 [B, L], or None when nothing is padded.
        maskable: bool [B, L], False at special tokens and padding.
        token_bias: float32 [V] from `unreachable_tokens`.
        random: source of masks and samples.
    """
    masked = choose_masked(maskable, mask_fraction, random)
    masked_ids = mask_tokens(input_ids, masked, mask_id, random)
    generator = pair.generator
    places, real = _padded_places(masked)
    hidden = generator.electra(masked_ids, attention_mask=attention_mask).last_hidden_state
    hidden = hidden.flatten(0, 1)[places]
    logits = generator.generator_lm_head(generator.generator_predictions(hidden))  # [N, V]
    targets = input_ids.flatten()[places]
    # The unknown token may be a target although it is never proposed: it takes no part.
    log_probabilities = functional.log_softmax(logits.float() + token_bias, dim=-1)
    token_losses = -log_probabilities.gather(1, targets[:, None]).squeeze(1)
    known = real & (token_bias[targets] == 0)
    generator_loss = torch.where(known, token_losses, 0.0).sum() / known.sum().clamp(min=1)
    with torch.no_grad():
        samples = _sample(log_probabilities, random)
        corrupted_ids = input_ids.flatten().scatter(0, places, torch.where(real, samples, targets))
        corrupted_ids = corrupted_ids.view_as(input_ids)
        guessed = (real & (log_probabilities.argmax(dim=-1) == targets)).sum()
    return Corruption(
        corrupted_ids=corrupted_ids,
        is_replaced=corrupted_ids != input_ids,
        generator_loss=generator_loss,
        num_masked=masked.sum(),
        num_guessed=guessed,
    )


def _padded_places(masked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Flat indices of the masked positions, filled up with index 0 to a multiple of 64.

    Index 0 is a [CLS], which is never masked. Without the filling nearly every step would have
    a number of its own, and memory would grow with the shapes seen.

    Returns:
        int64 [N] indices into [B x L], and bool [N], False at the filling.
    """
    places = masked.flatten().nonzero().squeeze(1)
    filling = -len(places) % _PLACES_MULTIPLE
    real = torch.ones(len(places), dtype=torch.bool, device=masked.device)
    return functional.pad(places, (0, filling)), functional.pad(real, (0, filling))


def _sample(log_probabilities: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Draw one token a row by inverting the cumulative distribution.

    The same distribution as Gumbel-max, with one uniform draw a row instead of V: on a CPU the
    V draws would cost more than the generator itself.

    Args:
        log_probabilities: float32 [N, V].

    Returns:
        int64 [N].
    """
    cumulative = log_probabilities.exp().cumsum(dim=-1)
    # In double precision a draw below 1 stays below the total even after rounding.
    draws = torch.rand(
        (len(cumulative), 1), generator=random, device=cumulative.device, dtype=torch.float64
    )
    thresholds = (draws * cumulative[:, -1:].double() * (1 - 1e-7)).float()
    return (
        torch.searchsorted(cumulative, thresholds, right=True)
        .squeeze(1)
        .clamp(max=cumulative.shape[1] - 1)
    )


def replaced_token_detection(
    pair: ElectraPair,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None,
    maskable: torch.Tensor,
    *,
    mask_id: int,
    mask_fraction: float,
    discriminator_weight: float,
    token_bias: torch.Tensor,
    random: torch.Generator,
) -> StepResult:
    """Losses of one batch: generator's + `discriminator_weight` x discriminator's.

    Nothing flows from the discriminator into the generator through the samples; the two meet in
    the shared embeddings. The discriminator's loss is the mean over all real tokens.
    """
    corruption = corrupt(
        pair,
        input_ids,
        attention_mask,
        maskable,
        mask_id=mask_id,
        mask_fraction=mask_fraction,
        token_bias=token_bias,
        random=random,
    )
    discriminator = pair.discriminator
    hidden = discriminator.electra(
        corruption.corrupted_ids, attention_mask=attention_mask
    ).last_hidden_state
    logits = discriminator.discriminator_predictions(hidden).float()  # [B, L]
    real = torch.ones_like(maskable) if attention_mask is None else attention_mask.bool()
    is_replaced = corruption.is_replaced
    losses = functional.binary_cross_entropy_with_logits(
        logits, is_replaced.float(), reduction="none"
    )
    discriminator_loss = (losses * real).sum() / real.sum()
    with torch.no_grad():
        predicted = (logits > 0) & real
        counts = torch.stack(
            [
                corruption.num_masked,
                corruption.num_guessed,
                (predicted & is_replaced).sum(),
                predicted.sum(),
                is_replaced.sum(),
                real.sum(),
            ]
        )
    return StepResult(
        loss=corruption.generator_loss + discriminator_weight * discriminator_loss,
        generator_loss=corruption.generator_loss.detach(),
        discriminator_loss=discriminator_loss.detach(),
        counts=counts,
    )
