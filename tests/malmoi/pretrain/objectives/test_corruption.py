"""Distributions of masks, samples and noise."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.data.batches import Batch
from malmoi.pretrain.objectives.local_batch import mask_batch
from malmoi.pretrain.objectives.registry import resolve_recipe
from malmoi.pretrain.objectives.replacing import blockwise_argmax, sample_tokens, sample_unigram
from malmoi.pretrain.objectives.step import Moment, StepResult, TrainingObjective, mask_fraction_at
from malmoi.pretrain.objectives.vocabulary import vocabulary_tables
from tests.malmoi.pretrain.conftest import Toy

NUM_DRAWS = 40_000
PROBABILITIES = torch.tensor([0.5, 0.0, 0.25, 0.2, 0.05])


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uniform(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.rand(shape, generator=source(seed), dtype=torch.float64)


def fits(samples: torch.Tensor, probabilities: torch.Tensor) -> bool:
    """Chi-square at about one in 10,000 under the hypothesis, and nothing impossible drawn."""
    counts = torch.bincount(samples, minlength=len(probabilities)).double()
    possible = probabilities > 0
    expected = probabilities.double()[possible] / probabilities.double().sum() * len(samples)
    statistic = float(((counts[possible] - expected) ** 2 / expected).sum())
    freedom = int(possible.sum()) - 1
    # Wilson and Hilferty 1931: the cube root of chi-square over its mean is nearly normal.
    limit = freedom * (1 - 2 / (9 * freedom) + 3.72 * (2 / (9 * freedom)) ** 0.5) ** 3
    return not counts[~possible].any() and statistic < limit


@pytest.mark.parametrize("sampling", ["inverse", "gumbel"])
@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_samples_follow_the_softmax(temperature: float, forbid: bool, sampling: str) -> None:
    # Logits may be shifted by anything.
    logits = (PROBABILITIES.log() + 3).expand(NUM_DRAWS, 5)
    samples = sample_tokens(
        logits,
        torch.full((NUM_DRAWS,), 2),
        uniform(NUM_DRAWS),
        temperature=temperature,
        forbid_original=forbid,
        gumbel=source() if sampling == "gumbel" else None,
    )
    expected = PROBABILITIES ** (1 / temperature)
    if forbid:
        expected[2] = 0
    assert fits(samples, expected)
    assert not fits(samples, expected * torch.tensor([1.1, 1, 1, 1, 1]))


def test_draws_at_the_ends_give_possible_tokens() -> None:
    logits = torch.tensor([0.0, 0.5, 0.5, 0.0]).log().expand(2, 4)
    samples = sample_tokens(
        logits, torch.zeros(2, dtype=torch.int64), torch.tensor([0, 1 - 2**-53])
    )
    assert samples.tolist() == [1, 2]


@pytest.mark.parametrize("size", [300, 384, 1_000])
def test_a_draw_inverts_the_whole_distribution(size: int) -> None:
    """Over many entries too, which are added up by blocks; some have no probability at all."""
    logits = torch.randn((4_000, size), generator=source())
    logits[:, torch.rand(size, generator=source(1)) < 0.3] = float("-inf")
    logits[:, 128:256] = float("-inf")
    logits[:, [0, -1]] = float("-inf")
    draws = uniform(4_000)
    draws[:2] = torch.tensor([0, 1 - 2**-53])
    samples = sample_tokens(logits, torch.zeros(4_000, dtype=torch.int64), draws)
    assert bool((logits.gather(1, samples[:, None]) > float("-inf")).all())
    upper = logits.double().softmax(dim=1).cumsum(dim=1).gather(1, samples[:, None]).squeeze(1)
    below = upper - logits.double().softmax(dim=1).gather(1, samples[:, None]).squeeze(1)
    assert bool(((below - 1e-6 <= draws) & (draws <= upper + 1e-6)).all())


@pytest.mark.parametrize("size", [1, 128, 256, 1_000, 1_280])
def test_the_likeliest_entry_is_the_first_of_the_largest(size: int) -> None:
    # Rounded as bf16 rounds, so that there are ties.
    logits = (uniform(50, size) * 8).round()
    logits[0] = float("-inf")
    logits[1, : size // 2] = float("-inf")
    assert torch.equal(blockwise_argmax(logits), logits.argmax(dim=-1))


def test_noise_follows_flattened_counts(toy: Toy) -> None:
    noise = sample_unigram(toy.tables.noise, uniform(NUM_DRAWS))
    expected = torch.from_numpy(np.maximum(toy.counts, 1) ** 0.75)
    expected[toy.tables.bias != 0] = 0
    assert fits(noise, expected)
    assert not fits(noise, expected ** (1 / 0.75))


@pytest.mark.parametrize("forbidden", [6, 15, 25])
def test_forbidden_noise_leaves_the_others_as_likely_as_they_were(toy: Toy, forbidden: int) -> None:
    noise = sample_unigram(
        toy.tables.noise, uniform(NUM_DRAWS), torch.full((NUM_DRAWS,), forbidden)
    )
    expected = torch.from_numpy(np.maximum(toy.counts, 1) ** 0.75)
    expected[toy.tables.bias != 0] = 0
    expected[forbidden] = 0
    assert fits(noise, expected)


def test_special_and_padding_entries_are_never_proposed(toy: Toy) -> None:
    """Entries beyond the tokenizer, of a checkpoint whose table is longer, included."""
    tables = vocabulary_tables(toy.tokenizer, 32, toy.counts, torch.device("cpu"))
    allowed = set(range(6, 26))
    assert set(tables.proposable.tolist()) == allowed
    assert set((tables.bias == 0).nonzero().flatten().tolist()) == allowed
    assert set(sample_unigram(tables.noise, uniform(NUM_DRAWS)).tolist()) <= allowed
    assert tables.starts_word[6:26].tolist() == [True] * 12 + [False] * 8


def test_surprisal_and_frequency_bins(toy: Toy) -> None:
    total = toy.counts[6:].sum()
    found = toy.tables.surprisal[6 : len(toy.counts)].numpy()
    # What never came is as rare as what came once.
    assert found == pytest.approx(-np.log(toy.counts[6:].clip(min=1) / total), rel=1e-6)
    by_bin = [toy.counts[6:][toy.tables.frequency_bin[6:].numpy() == n] for n in range(5)]
    for commoner, rarer in itertools.pairwise(by_bin):
        assert commoner.min() >= rarer.max()
    # A fifth of the corpus each, but for the one entry that lies across the border.
    for group in by_bin:
        assert abs(group.sum() / total - 0.2) <= 2 * toy.counts[6:].max() / total


def test_frequency_bins_by_hand(toy: Toy) -> None:
    """An entry's bin is where in the corpus, commonest entries first, it begins."""
    counts = np.zeros(26, dtype=np.int64)
    counts[[9, 7, 20, 6, 25]] = [50, 29, 12, 5, 4]
    counts[:6] = 1_000  # what no text holds makes up no part of it
    bins = vocabulary_tables(toy.tokenizer, 26, counts, torch.device("cpu")).frequency_bin
    # They begin at 0, 50, 79, 91 and 96 of 100; the others were not seen.
    assert bins[[9, 7, 20, 6, 25]].tolist() == [0, 2, 3, 4, 4]
    assert set(bins[6:].tolist()) == {0, 2, 3, 4} and bins[8] == 4


def run(toy: Toy, batch: Batch, recipe: Recipe, fraction: float, seed: int = 0) -> StepResult:
    pair = toy.pair(with_generator=recipe.needs_generator)
    objective = TrainingObjective(recipe=recipe, tables=toy.tables)
    with torch.no_grad():
        return objective(pair, batch, source(seed), Moment(fraction=fraction))


@pytest.mark.parametrize(("fraction", "share"), [(0.0, 1.0), (0.1, 0.75), (0.3, 0.25), (0.4, 0)])
def test_the_share_of_noise_falls_linearly(toy: Toy, fraction: float, share: float) -> None:
    recipe = Recipe(unigram_fraction=0.4)
    batch = toy.batch([[60]] * 200)
    objective = TrainingObjective(recipe=recipe, tables=toy.tables)
    masked = mask_batch(batch, recipe, toy.tables, source(), fraction=0.15)
    # A generator that only ever proposes entry 7, which is rare as noise.
    logits = torch.full((len(masked.places), 26), float("-inf"))
    logits[:, 7] = 0
    guesses = type("Sure", (), {"logits": logits})()
    samples = objective.sample_replacements(masked, [guesses], source(), fraction)[masked.is_place]
    by_noise = float(toy.tables.noise[7] - toy.tables.noise[6])
    expected = (1 - share) + share * by_noise
    assert float((samples == 7).float().mean()) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("sampling", ["inverse", "gumbel"])
@pytest.mark.parametrize("unigram_fraction", [0.0, 0.5, 1.0])
def test_forbidding_the_original_replaces_every_masked_token(
    toy: Toy, unigram_fraction: float, sampling: str
) -> None:
    recipe = Recipe(
        forbid_original=True,
        unigram_fraction=unigram_fraction,
        sampling=sampling,
        mask_fraction=0.5,
    )
    counts = run(toy, toy.batch([[60]] * 20), recipe, 0.25).counts
    assert counts[0] == counts[4] == 600
    allowed = Recipe(unigram_fraction=unigram_fraction, sampling=sampling, mask_fraction=0.5)
    counts = run(toy, toy.batch([[60]] * 20), allowed, 0.25).counts
    assert counts[4] < counts[0] == 600


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
def test_a_fifth_of_the_texts_is_left_as_it_is_where_texts_are_asked_about(
    toy: Toy, packed: bool
) -> None:
    """ELECTRA, "Negative Results"; otherwise nearly every text has something replaced."""
    batch = toy.batch([[30, 30, 30]] * 1_000 if packed else [[30]] * 3_000, packed=packed)

    def untouched(recipe: Recipe, world_size: int = 1) -> list[bool]:
        share = mask_batch(batch, recipe, toy.tables, source(), fraction=0.3, world_size=world_size)
        masked = torch.zeros(int(share.documents.max()) + 1, dtype=torch.bool)
        masked.index_put_((share.documents[share.masked],), torch.tensor(True))
        assert not share.masked.flatten()[share.places[~share.is_place]].any()
        assert len(share.places[share.is_place]) == int(share.masked.sum())
        return (~masked[share.documents[share.real].unique()]).tolist()

    asked = untouched(Recipe(sentence_weight=1.0))
    # A standard deviation is 22; of three packed texts of 30 none is without a mask by chance.
    assert len(asked) == 3_000 and 600 - 110 < sum(asked) < 600 + 110
    assert sum(untouched(Recipe(sentence_weight=1.0, unchanged_fraction=0.0))) == 0
    assert sum(untouched(Recipe())) == 0
    if not packed:
        assert untouched(Recipe(sentence_weight=1.0), world_size=2) == asked[::2]


@pytest.mark.parametrize("masking", ["token", "word", "span", "rare"])
def test_places_are_the_masked_positions_whoever_works_on_them(toy: Toy, masking: str) -> None:
    """Two processes have the masks and draws that one has, and every place just once."""
    batch = toy.batch([[12], [5], [30], [1], [17]])
    recipe = Recipe(masking=masking)
    parts = [
        mask_batch(batch, recipe, toy.tables, source(), fraction=0.3, rank=rank, world_size=size)
        for rank, size in [(0, 1), (0, 2), (1, 2)]
    ]
    found: list[dict[tuple[int, int], float]] = []
    for share, rows in zip(parts, (range(5), (0, 2, 4), (1, 3)), strict=True):
        width = share.masked.shape[1]
        places = share.places[share.is_place].tolist()
        draws = share.draws[share.is_place].tolist()
        found.append({(rows[p // width], p % width): d for p, d in zip(places, draws, strict=True)})
        expected = {(rows[r], c) for r, c in share.masked.nonzero().tolist()}
        assert set(found[-1]) == expected and len(places) == len(expected)
        assert not share.masked.flatten()[share.places[~share.is_place]].any()
    assert found[0] == found[1] | found[2]


@pytest.mark.parametrize("masking", ["word", "span"])
def test_words_and_spans_of_words_are_hidden_whole(toy: Toy, masking: str) -> None:
    """SpanBERT, section 3.1; every token of an even id begins a word here, half of them."""
    tables = replace(toy.tables, starts_word=torch.arange(26) % 2 == 0)
    batch = toy.batch([[60]] * 200)
    recipe = Recipe(masking=masking, kept_fraction=0.5)
    share = mask_batch(batch, recipe, tables, source(), fraction=0.15)
    inside = ~tables.starts_word[batch.input_ids] & batch.maskable
    inside[:, 1] = False  # the first token of a text begins a word whatever it is
    cut = (share.masked[:, 1:] != share.masked[:, :-1]) & inside[:, 1:]
    # The last span of a row is cut at the budget, and rarely a word that is longer than it.
    assert int(cut.sum(1).max()) <= 1
    if masking == "span":
        hidden = (share.masked_ids == tables.mask_id) & share.masked
        together = share.masked[:, 1:] & share.masked[:, :-1]
        assert (hidden[:, 1:] == hidden[:, :-1])[together].all()
        assert 0.3 < float(hidden.sum() / share.masked.sum()) < 0.7


def test_gumbel_noise_differs_between_processes_and_repeats_with_the_seed(toy: Toy) -> None:
    """Both processes have the same text: alike noise would give alike samples."""
    recipe = Recipe(sampling="gumbel", mask_fraction=0.5)
    batch = toy.batch([[60], [60]])
    share = mask_batch(batch, recipe, toy.tables, source(), fraction=0.5, world_size=2)
    logits = torch.zeros(len(share.places), 26) + toy.tables.bias
    guesses = type("Unsure", (), {"logits": logits})()
    first, second, again = (
        objective.sample_replacements(share, [guesses], source(5), 0.0)[share.is_place]
        for objective in (
            TrainingObjective(recipe=recipe, tables=toy.tables, rank=rank, world_size=2)
            for rank in (0, 1, 1)
        )
    )
    assert float((first == second).float().mean()) < 0.3
    assert torch.equal(second, again)


def test_fractions_and_temperature_over_the_run() -> None:
    recipe = Recipe(mask_fraction=0.15, last_mask_fraction=0.35, first_temperature=3.0)
    assert [mask_fraction_at(recipe, f) for f in (0, 0.5, 1, 1.2)] == [0.15, 0.25, 0.35, 0.35]

    def temperature_at(recipe: Recipe, fraction: float) -> float:
        return resolve_recipe(recipe).schedule.temperature_at(fraction)

    assert temperature_at(recipe, 0) == 3
    assert [temperature_at(recipe, f) - 1 for f in (0.1, 0.2)] == pytest.approx([1, 0.5])
    assert mask_fraction_at(Recipe(mask_fraction=0.123), 0.7) == 0.123
    assert temperature_at(Recipe(temperature=0.7), 0.7) == 0.7
    later = replace(recipe, schedule="two-stage", first_stage=0.4)  # the first draws no samples
    assert [temperature_at(later, f) for f in (0, 0.4, 0.5)] == pytest.approx([3, 3, 2])
