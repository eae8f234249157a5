"""Which tokens the generator has to guess. Shapes: [B, L] = sequences, tokens."""

import torch

# ELECTRA's own masking (Clark et al. 2020; its code): a masked position becomes [MASK] in 85% of
# cases and keeps its token otherwise; unlike BERT it never becomes a random token.
KEPT_FRACTION = 0.15


def choose_masked(
    maskable: torch.Tensor, fraction: float, generator: torch.Generator
) -> torch.Tensor:
    """Draw `fraction` of each sequence's maskable positions, without replacement.

    Args:
        maskable: bool [B, L]; False at [CLS], [SEP] and padding.
        fraction: of each sequence's maskable tokens; rounded, at least one a sequence.
        generator: source of the random draws, on the same device.

    Returns:
        bool [B, L], True at the positions to guess.
    """
    scores = torch.rand(maskable.shape, generator=generator, device=maskable.device)
    scores = scores.masked_fill(~maskable, 2.0)
    ranks = scores.argsort(dim=1).argsort(dim=1)
    counts = maskable.sum(dim=1)
    wanted = (counts * fraction).round().clamp(min=1).minimum(counts)
    return ranks < wanted[:, None]


def mask_tokens(
    input_ids: torch.Tensor, masked: torch.Tensor, mask_id: int, generator: torch.Generator
) -> torch.Tensor:
    """Replace 85% of the masked positions by [MASK], keep the other 15% as they are.

    Args:
        input_ids: int64 [B, L].
        masked: bool [B, L] from `choose_masked`.

    Returns:
        int64 [B, L], the generator's input.
    """
    draws = torch.rand(input_ids.shape, generator=generator, device=input_ids.device)
    return input_ids.masked_fill(masked & (draws >= KEPT_FRACTION), mask_id)
