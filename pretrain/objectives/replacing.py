"""Masked positions, the generator's guesses there, and samples of them put in place.

Legend: B sequences of the whole batch, b of them in this process, L tokens, V vocabulary entries,
N masked positions of this process.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import PreTrainedTokenizerFast

from pretrain.config.objective import Recipe
from pretrain.data.batches import Batch
from pretrain.data.masking import (
    choose_masked,
    mask_tokens,
    masked_places,
    rarity_weights,
    span_bounds,
    word_starts,
)
from pretrain.model.networks import ElectraPair

# Mikolov et al. 2013, Section 2.2: the exponent that flattens noise drawn by frequency.
_NOISE_EXPONENT = 0.75
# Without a multiple nearly every step would have a number of masked positions of its own, and on
# a CPU memory would grow with the shapes seen.
_PLACES_MULTIPLE = 64
NUM_FREQUENCY_BINS = 5
# Entries that `_invert` adds up at once. Vocabularies are padded to a multiple of it.
_BLOCK = 128


@dataclass(frozen=True, kw_only=True)
class VocabularyTables:
    """What is known of every entry of the vocabulary; all tensors on the training device."""

    mask_id: int
    cls_id: int
    bias: torch.Tensor
    """float32 [V]: minus infinity at entries the generator must never propose, else 0. Special
    tokens never stand in text and `[unusedN]` pads the vocabulary: probability mass there would
    only be noise that the discriminator learns to spot at once."""
    starts_word: torch.Tensor
    """bool [V]."""
    rarity: torch.Tensor
    """float32 [V]: weights of `masking.strategy=rare`."""
    noise: torch.Tensor
    """float64 [V]: cumulative distribution of unigram noise."""
    proposable: torch.Tensor
    """int64 [R]: entries that may stand in text."""
    frequency_bin: torch.Tensor
    """int64 [V]: 0 for the commonest entries, which make up a fifth of the corpus, to 4."""
    surprisal: torch.Tensor
    """float32 [V], nats: the loss of guessing a token by how common it is in the corpus."""


def vocabulary_tables(
    tokenizer: PreTrainedTokenizerFast, size: int, counts: np.ndarray, device: torch.device
) -> VocabularyTables:
    """Tables for a tokenizer and the counts of its entries in the corpus.

    Args:
        size: entries of the networks' embeddings, at least those of the tokenizer.
        counts: int64 [at most `size`], how often each entry occurs.
    """
    vocabulary = tokenizer.get_vocab()
    unused = [index for token, index in vocabulary.items() if token.startswith("[unused")]
    bias = torch.zeros(size)
    bias[[*tokenizer.all_special_ids, *unused]] = float("-inf")
    bias[len(tokenizer) :] = float("-inf")
    starts = torch.zeros(size, dtype=torch.bool)
    table = word_starts(vocabulary)
    starts[: len(table)] = table
    found = torch.zeros(size, dtype=torch.float64)
    found[: len(counts)] = torch.from_numpy(counts.astype(np.float64))
    seen = torch.where(bias == 0, found, 0.0)
    share = seen / seen.sum().clamp(min=1)
    noise = torch.where(bias == 0, found.clamp(min=1) ** _NOISE_EXPONENT, 0.0).cumsum(0)
    order = seen.argsort(descending=True, stable=True)
    before = share[order].cumsum(0) - share[order]
    bins = torch.empty(size, dtype=torch.int64)
    bins[order] = (before * NUM_FREQUENCY_BINS).long().clamp(max=NUM_FREQUENCY_BINS - 1)
    return VocabularyTables(
        mask_id=int(tokenizer.mask_token_id),
        cls_id=int(tokenizer.cls_token_id),
        bias=bias.to(device),
        starts_word=starts.to(device),
        rarity=rarity_weights(found).to(device),
        noise=(noise / noise[-1]).to(device),
        proposable=(bias == 0).nonzero().squeeze(1).to(device),
        frequency_bin=bins.to(device),
        # One of no token of the corpus is guessed as if it came once.
        surprisal=-share.clamp(min=1 / float(seen.sum().clamp(min=1))).log().float().to(device),
    )


@dataclass(kw_only=True)
class Share:
    """The rows of a batch that this process works on, its masks drawn.

    Masks and draws are made for the whole batch in every process, so that they are the same
    however many processes there are.
    """

    input_ids: torch.Tensor
    """int64 [b, L]."""
    masked_ids: torch.Tensor
    """int64 [b, L], the generator's input."""
    masked: torch.Tensor
    """bool [b, L]."""
    places: torch.Tensor
    """int64 [N], flat indices into [b x L]; index 0, which is never masked, fills up."""
    is_place: torch.Tensor
    """bool [N], False at the filling."""
    draws: torch.Tensor
    """float64 [N], uniform: where in the distribution the sample lies."""
    noise_draws: torch.Tensor
    """float64 [N, 2], uniform: whether it is noise, and which."""
    inputs: dict[str, Any]
    """attention_mask and position_ids for the networks."""
    real: torch.Tensor
    """bool [b, L], False at padding."""
    documents: torch.Tensor
    """int64 [b, L]: number of the document within the share, from 1; 0 at padding."""


def mask_batch(
    batch: Batch,
    recipe: Recipe,
    tables: VocabularyTables,
    random: torch.Generator,
    *,
    fraction: float,
    rank: int = 0,
    world_size: int = 1,
    mask_dtype: torch.dtype = torch.float32,
) -> Share:
    """Draw masks for the whole batch and keep this process's rows, every `world_size`-th.

    Where there are more processes than rows, those left over get the first row with all of it
    taken for padding: they go along, and nothing of it counts.

    Args:
        fraction: of each row's tokens that is masked: of a text's, or of packed texts' together,
            where a short one may have none.
        random: source of masks and draws, on the batch's device, the same in every process.
        mask_dtype: number format of an additive attention mask, best that of the scores.
    """
    ids = batch.input_ids
    masked = choose_masked(
        batch.maskable,
        fraction,
        random,
        strategy=recipe.masking,
        starts_word=tables.starts_word[ids] if recipe.masking in ("word", "span") else None,
        weights=tables.rarity[ids] if recipe.masking == "rare" else None,
    )
    if recipe.sentence_weight > 0:
        masked = masked & ~_unchanged(batch, recipe.unchanged_fraction, random)
    masked_ids = mask_tokens(
        ids,
        masked,
        tables.mask_id,
        random,
        kept_fraction=recipe.kept_fraction,
        random_fraction=recipe.random_fraction,
        random_ids=tables.proposable,
        by_run=recipe.masking == "span",
    )
    num_rows, width = ids.shape
    all_places, all_real = masked_places(masked, fraction)
    per_row = len(all_places) // num_rows
    draws = torch.rand(
        (num_rows, per_row, 3), generator=random, device=ids.device, dtype=torch.float64
    )
    has_rows = rank < num_rows
    rows = torch.arange(rank if has_rows else 0, num_rows, world_size, device=ids.device)
    inside = all_places.view(num_rows, per_row)[rows] - rows[:, None] * width
    places = (torch.arange(len(rows), device=ids.device)[:, None] * width + inside).flatten()
    is_place = all_real.view(num_rows, per_row)[rows].flatten() & has_rows
    own_draws = draws[rows].flatten(0, 1)
    if ids.device.type == "cpu":
        # Reading the count is free here, and every filled-up place costs a row of V logits.
        kept = is_place.nonzero().squeeze(1)
        filling = -len(kept) % _PLACES_MULTIPLE
        places = functional.pad(places[kept], (0, filling))
        is_place = functional.pad(is_place[kept], (0, filling))
        own_draws = functional.pad(own_draws[kept], (0, 0, 0, filling))
    mask = batch.attention_mask
    if mask is not None and mask.dim() == 2 and ids.device.type != "cpu":
        # Of a mask with two dimensions transformers asks the device whether it hides anything.
        mask = mask.bool()[:, None, None, :]
    inputs: dict[str, Any] = {"attention_mask": None if mask is None else mask[rows]}
    real = batch.is_real[rows] & has_rows
    if batch.position_ids is not None:
        inputs["position_ids"] = batch.position_ids[rows]
    if batch.documents is not None:
        if ids.device.type == "cpu" and mask is not None:
            # transformers' plain attention adds the mask to the scores (`attention_for`).
            inputs["attention_mask"] = torch.where(mask[rows], 0.0, float("-inf")).to(mask_dtype)
        documents = batch.documents[rows]
        # Numbers start again in every row; at most one document to two tokens.
        offsets = torch.arange(len(rows), device=ids.device)[:, None] * width
        documents = torch.where(real, documents + offsets, 0)
    else:
        documents = torch.arange(1, len(rows) + 1, device=ids.device)[:, None] * real
    return Share(
        input_ids=ids[rows],
        masked_ids=masked_ids[rows],
        masked=masked[rows] & has_rows,
        places=places,
        is_place=is_place,
        draws=own_draws[:, 0],
        noise_draws=own_draws[:, 1:],
        inputs=inputs,
        real=real,
        documents=documents,
    )


def _unchanged(batch: Batch, fraction: float, random: torch.Generator) -> torch.Tensor:
    """Draw the texts that are left as they are. -> bool [B, L]"""
    num_rows, width = batch.input_ids.shape
    draws = torch.rand((num_rows, width), generator=random, device=batch.input_ids.device)
    # A row is one text, or its packed texts are numbered, at most one to two tokens.
    documents = torch.zeros_like(batch.input_ids) if batch.documents is None else batch.documents
    return draws.gather(1, documents) < fraction


@dataclass(kw_only=True)
class Guesses:
    """What the generator says at the masked positions."""

    logits: torch.Tensor
    """float32 [N, V], minus infinity at what must never be proposed."""
    losses: torch.Tensor
    """float32 [N]: cross entropy with the token that stood there; 0 where it takes no part."""
    counted: torch.Tensor
    """bool [N]: real places whose token can be proposed. The unknown token may be a target
    although it is never proposed: it takes no part."""


def guess(
    pair: ElectraPair, share: Share, tables: VocabularyTables, *, span_boundary: bool
) -> list[Guesses]:
    """Run the generator and its head at the masked positions only.

    At 15% masked, that saves most of what the head over V entries costs.

    Returns:
        The masked-LM head's guesses, then, with `span_boundary`, the boundary head's.
    """
    generator = pair.generator
    assert generator is not None
    states = generator.electra(share.masked_ids, **share.inputs).last_hidden_state
    flat = states.flatten(0, 1)
    targets = share.input_ids.flatten()[share.places]
    made = [generator.generator_predictions(flat[share.places])]
    if span_boundary:
        assert pair.span_head is not None
        left, right, offsets = (t.flatten()[share.places] for t in span_bounds(share.masked))
        width = share.masked.shape[1]
        row_begins = share.places // width * width
        # Spans share boundaries, and threads add up the gradient of flat[...] in any order; that of
        # a lookup is added up in one. (At `places` all that repeats has a gradient of zero.)
        ends = [functional.embedding(row_begins + end, flat) for end in (left, right)]
        made.append(pair.span_head(ends[0], ends[1], offsets))
    return [
        cross_entropies(generator.generator_lm_head(features), targets, share.is_place, tables)
        for features in made
    ]


def cross_entropies(
    logits: torch.Tensor, targets: torch.Tensor, is_place: torch.Tensor, tables: VocabularyTables
) -> Guesses:
    """Cross entropy over the entries that may be proposed. [N, V], int64 [N] -> `Guesses`."""
    # In the place of the copy that bf16 logits need: N x V floats less, and a fifth of the time of
    # the cross entropy with its backward pass on a CPU (docs/performance.md).
    copied = logits.dtype != torch.float32
    reachable = logits.float().add_(tables.bias) if copied else logits + tables.bias
    counted = is_place & (tables.bias[targets] == 0)
    losses = functional.cross_entropy(reachable, targets, reduction="none")
    return Guesses(logits=reachable, losses=torch.where(counted, losses, 0.0), counted=counted)


def draw_samples(
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
    return _invert(scores.softmax(dim=-1), draws)


def likeliest(logits: torch.Tensor) -> torch.Tensor:
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


def _invert(probabilities: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
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
    # Of the block's own total, which is its sum but for rounding; not below 0, where an entry
    # without any probability might lie.
    part = ((thresholds - (upper.gather(1, block) - size)) / size).clamp(min=0)
    chosen = blocks.gather(1, block[:, :, None].expand(-1, 1, _BLOCK)).squeeze(1).double()
    inner = chosen.cumsum(dim=1)
    found = torch.searchsorted(inner, part * inner[:, -1:] * (1 - 1e-7), right=True)
    return (block * _BLOCK + found.clamp(max=_BLOCK - 1)).squeeze(1)


def sampling_logits(
    logits: torch.Tensor, originals: torch.Tensor, *, temperature: float, forbid_original: bool
) -> torch.Tensor:
    """Logits of the distribution that `draw_samples` draws from. [N, V], int64 [N] -> [N, V]."""
    scores = logits if temperature == 1.0 else logits / temperature
    return scores.scatter(1, originals[:, None], float("-inf")) if forbid_original else scores


def draw_noise(
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


def put_in_place(share: Share, samples: torch.Tensor) -> torch.Tensor:
    """The texts with samples at the masked positions. int64 [N] -> int64 [b, L]."""
    flat = share.input_ids.flatten()
    # The filling points at a [CLS] and writes it back.
    new = torch.where(share.is_place, samples, flat[share.places])
    return flat.scatter(0, share.places, new).view_as(share.input_ids)
