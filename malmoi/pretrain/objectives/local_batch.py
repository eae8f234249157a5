"""The rows of a batch that this process works on, with their masks.

Legend: B sequences of the whole batch, b of them in this process, L tokens, N masked positions of
this process.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.nn import functional

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.data.batches import Batch
from malmoi.pretrain.data.masking import choose_masked, mask_tokens, masked_places
from malmoi.pretrain.objectives.vocabulary import VocabularyTables

# Without a multiple nearly every step would have a number of masked positions of its own, and on
# a CPU memory would grow with the shapes seen.
_PLACES_MULTIPLE = 64


@dataclass(kw_only=True)
class LocalBatch:
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
    """int64 [b, L]: number of the document within these rows, from 1; 0 at padding."""

    @cached_property
    def targets(self) -> torch.Tensor:
        """int64 [N]: the tokens that stood at `places`."""
        return self.input_ids.flatten()[self.places]

    def hidden(self, tables: VocabularyTables) -> torch.Tensor:
        """bool [N]: places that show [MASK] and whose token can be proposed.

        Of the others the generator may read the token, or read a wrong one: what it gets right
        there says little of what it can guess.
        """
        shows_mask = self.masked_ids.flatten()[self.places] == tables.mask_id
        return shows_mask & self.is_place & tables.may_stand(self.targets)


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
) -> LocalBatch:
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
    masked, masked_ids = _draw_masks(batch, recipe, tables, random, fraction)
    has_rows = rank < len(ids)
    rows = torch.arange(rank if has_rows else 0, len(ids), world_size, device=ids.device)
    places, is_place, draws = _draw_places(masked, fraction, random, rows, has_rows)
    real = batch.is_real[rows] & has_rows
    numbers = torch.arange(len(rows), device=rows.device)[:, None]
    documents = (numbers + 1) * real
    if batch.documents is not None:
        # Numbers start again in every row; at most one document to two tokens.
        documents = torch.where(real, batch.documents[rows] + numbers * real.shape[1], 0)
    return LocalBatch(
        input_ids=ids[rows],
        masked_ids=masked_ids[rows],
        masked=masked[rows] & has_rows,
        places=places,
        is_place=is_place,
        draws=draws[:, 0],
        noise_draws=draws[:, 1:],
        inputs=_network_inputs(batch, rows, mask_dtype),
        real=real,
        documents=documents,
    )


def _draw_masks(
    batch: Batch,
    recipe: Recipe,
    tables: VocabularyTables,
    random: torch.Generator,
    fraction: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Masks of the whole batch, bool [B, L], and the generator's input, int64 [B, L]."""
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
        # Some texts are left as they are. A row is one text, or its packed texts are numbered, at
        # most one to two tokens.
        numbered = batch.documents
        documents = torch.zeros_like(ids) if numbered is None else numbered
        chance = torch.rand(ids.shape, generator=random, device=ids.device)
        masked = masked & (chance.gather(1, documents) >= recipe.unchanged_fraction)
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
    return masked, masked_ids


def _draw_places(
    masked: torch.Tensor,
    fraction: float,
    random: torch.Generator,
    rows: torch.Tensor,
    has_rows: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Places of the masked positions in this process's rows, and the draws of each.

    Args:
        masked: bool [B, L].
        rows: int64 [b], this process's rows.
        has_rows: False where none of them is its own.

    Returns:
        `places`, `is_place` of a `LocalBatch`, and float64 [N, 3] uniform draws.
    """
    device = masked.device
    num_rows, width = masked.shape
    all_places, all_real = masked_places(masked, fraction)
    per_row = len(all_places) // num_rows
    all_draws = torch.rand(
        (num_rows, per_row, 3), generator=random, device=device, dtype=torch.float64
    )
    inside = all_places.view(num_rows, per_row)[rows] - rows[:, None] * width
    places = (torch.arange(len(rows), device=device)[:, None] * width + inside).flatten()
    is_place = all_real.view(num_rows, per_row)[rows].flatten() & has_rows
    draws = all_draws[rows].flatten(0, 1)
    if device.type == "cpu":
        # Reading the count is free here, and every filled-up place costs a row of V logits.
        kept = is_place.nonzero().squeeze(1)
        filling = -len(kept) % _PLACES_MULTIPLE
        places = functional.pad(places[kept], (0, filling))
        is_place = functional.pad(is_place[kept], (0, filling))
        draws = functional.pad(draws[kept], (0, 0, 0, filling))
    return places, is_place, draws


def _network_inputs(batch: Batch, rows: torch.Tensor, mask_dtype: torch.dtype) -> dict[str, Any]:
    """attention_mask and position_ids of the rows."""
    mask, on_cpu = batch.attention_mask, rows.device.type == "cpu"
    if mask is not None and mask.dim() == 2 and not on_cpu:
        # Given a mask of two dimensions, transformers asks the device whether it hides anything.
        mask = mask.bool()[:, None, None, :]
    inputs: dict[str, Any] = {"attention_mask": None if mask is None else mask[rows]}
    if batch.position_ids is not None:
        inputs["position_ids"] = batch.position_ids[rows]
    if batch.documents is not None and mask is not None and on_cpu:
        # transformers' plain attention adds the mask to the scores (`attention_for`).
        inputs["attention_mask"] = torch.where(mask[rows], 0.0, float("-inf")).to(mask_dtype)
    return inputs
