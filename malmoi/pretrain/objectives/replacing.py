"""Tokens drawn for the masked positions, from the generator or by frequency, and put in place.

Legend: b sequences of this process, L tokens, V vocabulary entries, N masked positions.
"""

import torch
from torch.nn import functional

from malmoi.pretrain.objectives.local_batch import LocalBatch

# Entries that are added up or compared at once. Vocabularies are padded to a multiple of it.
_BLOCK = 128


def sample_tokens(
    logits: torch.Tensor,
    originals: torch.Tensor,
    draws: torch.Tensor,
    *,
    temperature: float = 1.0,
    forbid_original: bool = False,
    gumbel: torch.Generator | None = None,
) -> torch.Tensor:
    """Draw one token a row from the softmax of `logits` / `temperature`.

    Inverting the cumulative distribution is the same distribution as Gumbel-max, with one
    uniform draw a row instead of V: on a CPU the V draws cost more than the generator itself.

    Args:
        logits: float32 [N, V].
        originals: int64 [N], the tokens that stood there.
        draws: float64 [N], uniform from 0 to 1.
        forbid_original: never draw what stood there.
        gumbel: draw by Gumbel-max with this source instead (`draws` is not read then).

    Returns:
        int64 [N].
    """
    scores = sampling_logits(
        logits, originals, temperature=temperature, forbid_original=forbid_original
    )
    if gumbel is not None:
        uniform = torch.rand(scores.shape, generator=gumbel, device=scores.device)
        # The least float above 0 keeps both logarithms finite.
        noise = -(-uniform.clamp(min=torch.finfo(torch.float32).tiny).log()).log()
        return (scores + noise).argmax(dim=-1)
    return _invert_cumulative(scores.softmax(dim=-1), draws)


def blockwise_argmax(logits: torch.Tensor) -> torch.Tensor:
    """`logits.argmax(dim=-1)`: float32 [N, V] -> int64 [N].

    First the block of entries, then the entry in it: on a CPU the largest value of a block is found
    several times as fast as its place (docs/performance.md).
    """
    if logits.shape[1] % _BLOCK:
        return logits.argmax(dim=-1)
    blocks = logits.unflatten(1, (-1, _BLOCK))  # [N, V / block, block]
    block = blocks.amax(dim=2).argmax(dim=1, keepdim=True)
    chosen = blocks.gather(1, block[:, :, None].expand(-1, 1, _BLOCK)).squeeze(1)
    return (block * _BLOCK + chosen.argmax(dim=1, keepdim=True)).squeeze(1)


def _invert_cumulative(probabilities: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """Where the draws lie in the cumulative distributions; never at a probability of 0.

    First the block of entries, then the entry in it: on a CPU that takes half as long as a running
    sum over all V of them (docs/performance.md).

    Args:
        probabilities: float32 [N, V].
        draws: float64 [N], uniform from 0 to 1.

    Returns:
        int64 [N].
    """
    if filling := -probabilities.shape[1] % _BLOCK:
        probabilities = functional.pad(probabilities, (0, filling))
    blocks = probabilities.unflatten(1, (-1, _BLOCK))  # [N, V / block, block]
    sums = blocks.sum(dim=2).double()
    upper = sums.cumsum(dim=1)
    # In double precision a draw below 1 stays below the total even after rounding.
    thresholds = draws[:, None] * upper[:, -1:] * (1 - 1e-7)
    block = torch.searchsorted(upper, thresholds, right=True).clamp(max=sums.shape[1] - 1)
    size = sums.gather(1, block)
    # Relative to the block's own total, its sum but for rounding; not below 0, where an entry
    # without any probability might lie.
    part = ((thresholds - (upper.gather(1, block) - size)) / size).clamp(min=0)
    chosen = blocks.gather(1, block[:, :, None].expand(-1, 1, _BLOCK)).squeeze(1).double()
    inner = chosen.cumsum(dim=1)
    found = torch.searchsorted(inner, part * inner[:, -1:] * (1 - 1e-7), right=True)
    return (block * _BLOCK + found.clamp(max=_BLOCK - 1)).squeeze(1)


def sampling_logits(
    logits: torch.Tensor, originals: torch.Tensor, *, temperature: float, forbid_original: bool
) -> torch.Tensor:
    """Logits of the distribution that `sample_tokens` draws from. [N, V], int64 [N] -> [N, V]."""
    scores = logits if temperature == 1.0 else logits / temperature
    return scores.scatter(1, originals[:, None], float("-inf")) if forbid_original else scores


def sample_unigram(
    noise: torch.Tensor, draws: torch.Tensor, forbidden: torch.Tensor | None = None
) -> torch.Tensor:
    """Draw entries by their flattened corpus frequency.

    Args:
        noise: float64 [V], cumulative distribution.
        draws: float64 [N], uniform from 0 to 1.
        forbidden: int64 [N], an entry for each draw that must not come out; None: all may.

    Returns:
        int64 [N].
    """
    if forbidden is not None:
        # The entry is cut out of the line from 0 to 1: what falls behind its begin, jumps over it.
        end = noise[forbidden]
        begin = torch.where(forbidden > 0, noise[forbidden - 1], 0.0)
        draws = draws * (1 - (end - begin))
        jumped = torch.maximum(draws + (end - begin), end)
        draws = torch.where(draws >= begin, jumped, draws)
    found = torch.searchsorted(noise, draws.contiguous(), right=True)
    return found.clamp(max=len(noise) - 1)


def replace_tokens(batch: LocalBatch, samples: torch.Tensor) -> torch.Tensor:
    """The texts with samples at the masked positions. int64 [N] -> int64 [b, L]."""
    flat = batch.input_ids.flatten()
    # The filling points at a [CLS] and writes it back.
    new = torch.where(batch.is_place, samples, flat[batch.places])
    return flat.scatter(0, batch.places, new).view_as(batch.input_ids)
