"""Masking is random: its statistics are what can be asserted, beside what holds of every mask."""

import itertools
import math

import pytest
import torch

from malmoi.errors import InputError
from malmoi.pretrain.config.objective import Masking
from malmoi.pretrain.data.masking import (
    choose_masked,
    draw_span_lengths,
    mask_tokens,
    masked_places,
    rarity_weights,
    span_bounds,
    word_starts,
)

STRATEGIES: list[Masking] = ["token", "word", "span", "rare"]
CPU = torch.device("cpu")


def random_source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def choose(
    strategy: Masking, maskable: torch.Tensor, fraction: float, random: torch.Generator
) -> torch.Tensor:
    """With words of 2.2 tokens on average and uneven weights for the strategies that need them."""
    other = random_source(99)
    return choose_masked(
        maskable,
        fraction,
        random,
        strategy=strategy,
        starts_word=torch.rand(maskable.shape, generator=other) < 0.45,
        weights=torch.rand(maskable.shape, generator=other) + 0.01,
    )


def framed_rows(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """bool [B, width]: [CLS], `lengths` maskable tokens, [SEP] and padding."""
    columns = torch.arange(width)
    return (columns >= 1) & (columns <= lengths[:, None])


def words_of(maskable: torch.Tensor, starts_word: torch.Tensor) -> list[list[list[int]]]:
    """Columns of each word of each row, by plain loops."""
    rows = []
    for row, starts in zip(maskable.tolist(), starts_word.tolist(), strict=True):
        words: list[list[int]] = []
        for column, inside in enumerate(row):
            if inside and (starts[column] or column == 0 or not row[column - 1]):
                words.append([])
            if inside:
                words[-1].append(column)
        rows.append(words)
    return rows


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("fraction", [0.15, 0.3, 0.5, 1.0])
def test_no_mask_exceeds_its_budget_or_leaves_the_maskable(
    strategy: Masking, fraction: float
) -> None:
    lengths = torch.arange(600) % 63
    maskable = framed_rows(lengths, 64)
    maskable &= torch.rand(600, 64, generator=random_source(7)) < 0.9  # gaps
    lengths = maskable.sum(1)
    budgets = [min(max(1, round(fraction * n)), n) for n in lengths.tolist()]
    counts = choose(strategy, maskable, fraction, random_source()).sum(1)
    masked = choose(strategy, maskable, fraction, random_source())
    assert not (masked & ~maskable).any()
    assert torch.equal(masked.any(1), lengths > 0)
    if strategy == "word":
        assert (counts <= torch.tensor(budgets)).all()
    else:
        assert counts.tolist() == budgets


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("width", [1, 2, 3])
def test_rows_of_one_to_three_tokens(strategy: Masking, width: int) -> None:
    bits = list(itertools.product([False, True], repeat=width))
    for seed in range(20):
        maskable = torch.tensor(bits)
        masked = choose(strategy, maskable, 0.15, random_source(seed))
        assert not (masked & ~maskable).any()
        assert torch.equal(masked.sum(1), maskable.any(1).long())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("shortest", "longest"), [(10, 22), (20, 62), (100, 126)])
def test_mean_fraction_is_the_target(strategy: Masking, shortest: int, longest: int) -> None:
    lengths = shortest + torch.arange(4_000) % (longest - shortest + 1)
    maskable = framed_rows(lengths, longest + 2)
    masked = choose(strategy, maskable, 0.15, random_source())
    # Rounding gives 0.1500 to 0.1512; words add the budget that no word fits.
    assert masked.sum() / maskable.sum() == pytest.approx(0.15, rel=0.03)


@pytest.mark.parametrize("strategy", ["token", "span"])
@pytest.mark.parametrize("fraction", [0.15, 0.4])
def test_every_position_is_equally_likely(strategy: Masking, fraction: float) -> None:
    maskable = framed_rows(torch.full((20_000,), 20), 24)
    rates = choose_masked(maskable, fraction, random_source(), strategy=strategy).float().mean(0)
    assert rates[0] == 0
    assert (rates[21:] == 0).all()
    # Standard error of a position's rate is at most 0.0035.
    assert (rates[1:21] - fraction).abs().max() < 0.0175


def test_words_are_masked_whole_or_not_at_all() -> None:
    maskable = framed_rows(torch.arange(500) % 61, 64)
    starts_word = torch.rand(500, 64, generator=random_source(1)) < 0.45
    masked = choose_masked(
        maskable, 0.15, random_source(), strategy="word", starts_word=starts_word
    ).tolist()
    num_cut = 0
    for row, words in zip(masked, words_of(maskable, starts_word), strict=True):
        num_tokens = sum(map(len, words))
        budget = max(1, round(0.15 * num_tokens))
        cut = [word for word in words if 0 < sum(row[i] for i in word) < len(word)]
        if not words or min(map(len, words)) <= budget:
            assert not cut
            continue
        # Every word is too long: one of them gives its first tokens.
        num_cut += 1
        assert len(cut) == 1
        assert [row[i] for i in cut[0]] == [True] * budget + [False] * (len(cut[0]) - budget)
        assert sum(row) == budget
    assert num_cut > 0


def test_words_that_still_fit_fill_the_budget() -> None:
    # One word of 5 tokens and five of 1, budget 3: the long one never fits, the others always do.
    maskable = torch.ones(100, 10, dtype=torch.bool)
    starts_word = torch.tensor([True, False, False, False, False] + [True] * 5).expand(100, 10)
    masked = choose_masked(maskable, 0.3, random_source(), strategy="word", starts_word=starts_word)
    assert (masked.sum(1) == 3).all()
    assert not masked[:, :5].any()


def test_a_word_is_masked_first_as_often_as_another_of_any_length() -> None:
    # Words of 3 and 1 with budget 3: whichever comes first is masked, the other no longer fits or
    # is filled up with, so the long word is masked in half of the rows.
    maskable = torch.ones(10_000, 4, dtype=torch.bool)
    starts_word = torch.tensor([True, False, False, True]).expand(10_000, 4)
    masked = choose_masked(
        maskable, 0.75, random_source(), strategy="word", starts_word=starts_word
    )
    assert masked[:, 0].float().mean() == pytest.approx(0.5, abs=0.025)
    assert torch.equal(masked[:, 0], ~masked[:, 3])


def test_span_lengths_are_the_truncated_geometric_distribution() -> None:
    lengths = draw_span_lengths(torch.Size([100_000]), random_source(), CPU)
    assert (lengths.min().item(), lengths.max().item()) == (1, 10)
    expected = torch.tensor([0.2 * 0.8 ** (k - 1) for k in range(1, 11)])
    expected = expected / expected.sum() * len(lengths)
    observed = lengths.bincount(minlength=11)[1:]
    chi_square = ((observed - expected) ** 2 / expected).sum()
    assert chi_square < 27.9  # 99.9% of 9 degrees of freedom
    assert lengths.float().mean() == pytest.approx(3.8, abs=0.04)  # the paper's mean


def test_spans_of_a_long_row_have_the_lengths_drawn() -> None:
    # Little is masked, so that few spans touch; the last of a row is cut, so some are shorter.
    maskable = torch.ones(200, 2_000, dtype=torch.bool)
    masked = choose_masked(maskable, 0.05, random_source(), strategy="span")
    _, right, offset = span_bounds(masked)
    lengths = (right - torch.arange(2_000))[masked & (offset == 0)]
    expected = torch.tensor([0.2 * 0.8 ** (k - 1) for k in range(1, 11)])
    expected = expected / expected.sum()
    observed = lengths.bincount(minlength=11)[1:11] / len(lengths)
    assert (observed - expected).abs().max() < 0.02
    assert (lengths > 10).float().mean() < 0.05


def test_spans_count_words_where_words_are_given() -> None:
    maskable = framed_rows(torch.full((400,), 60), 62)
    starts_word = (torch.arange(62) % 3 == 1).expand(400, 62)  # words of 3 tokens
    masked = choose_masked(maskable, 0.3, random_source(), strategy="span", starts_word=starts_word)
    per_word = masked[:, 1:61].view(400, 20, 3).sum(2)
    # The budget of 18 tokens is 6 words, so not even the last span is cut inside one.
    assert set(per_word.flatten().tolist()) == {0, 3}


def test_rare_tokens_by_weight_without_replacement() -> None:
    weights = [1.0, 1.0, 4.0, 4.0]  # two tokens, each twice
    expected = [0.0] * 4
    for first, second in itertools.permutations(range(4), 2):
        probability = weights[first] / 10 * weights[second] / (10 - weights[first])
        expected[first] += probability
        expected[second] += probability
    masked = choose_masked(
        torch.ones(40_000, 4, dtype=torch.bool),
        0.5,
        random_source(),
        strategy="rare",
        weights=torch.tensor(weights).expand(40_000, 4),
    )
    assert masked.float().mean(0).tolist() == pytest.approx(expected, abs=0.0125)


def test_rare_positions_of_weight_zero_come_last() -> None:
    masked = choose_masked(
        torch.ones(100, 4, dtype=torch.bool),
        0.75,
        random_source(),
        strategy="rare",
        weights=torch.tensor([0.0, 1e-6, 0.0, 1e-6]).expand(100, 4),
    )
    assert (masked.sum(1) == 3).all()
    assert masked[:, [1, 3]].all()


def test_rarity_weights() -> None:
    weights = rarity_weights(torch.tensor([0, 1, 4, 100, 10_000]))
    assert weights.dtype == torch.float32
    assert weights.sum() == pytest.approx(1)
    ratios = (weights / weights[1]).tolist()
    assert ratios == pytest.approx([1, 1, 0.5, 0.1, 0.01])


def test_strategies_ask_for_what_they_need() -> None:
    maskable = torch.ones(2, 5, dtype=torch.bool)
    with pytest.raises(
        InputError, match=r"^expected starts_word with strategy word, found none; give word"
    ):
        choose_masked(maskable, 0.15, random_source(), strategy="word")
    with pytest.raises(
        InputError, match=r"^expected weights with strategy rare, found none; give rar"
    ):
        choose_masked(maskable, 0.15, random_source(), strategy="rare")
    with pytest.raises(
        InputError, match=r"^expected strategy token, word, span or rare, found all$"
    ):
        choose_masked(maskable, 0.15, random_source(), strategy="all")  # type: ignore[arg-type]


def test_word_starts() -> None:
    for vocabulary, starting in (
        (
            {"[PAD]": 0, "[UNK]": 1, "학교": 2, "##에서": 3, "!": 4, "[unused0]": 5},
            ["[PAD]", "[UNK]", "학교", "!", "[unused0]"],
        ),
        (
            {"[CLS]": 0, "<0xEA>": 1, "▁학교": 2, "에서": 3, "▁": 4, "!": 5, "[unused0]": 6},
            ["[CLS]", "▁학교", "▁", "[unused0]"],
        ),
        (
            {"<s>": 0, "</s>": 1, "<unk>": 2, "▁학교": 3, "##": 4, "▁갔": 5, "[ㅋ]": 6},
            ["<s>", "</s>", "<unk>", "▁학교", "▁갔"],
        ),
        ({"가": 0, "나": 1}, ["가", "나"]),
        ({"나": 3}, ["나"]),
        ({}, []),
    ):
        table = word_starts(vocabulary)
        assert table.dtype == torch.bool
        assert [token for token, index in vocabulary.items() if table[index]] == starting
        assert table.sum() == len(starting)


def test_shares_of_mask_kept_and_random() -> None:
    for settings, kept, random_share in (
        ({"kept_fraction": 0.15}, 0.15, 0.0),
        ({"kept_fraction": 0.1, "random_fraction": 0.1}, 0.1, 0.1),
    ):
        input_ids = torch.randint(5, 4_000, (400, 250), generator=random_source(5))
        masked = torch.rand(400, 250, generator=random_source(1)) < 0.5
        random_ids = torch.arange(5_000, 5_010)
        out = mask_tokens(input_ids, masked, 4, random_source(2), random_ids=random_ids, **settings)
        assert torch.equal(out[~masked], input_ids[~masked])
        became = out[masked]
        is_random = torch.isin(became, random_ids)
        # Standard error of a share of 50,000 is at most 0.0018.
        assert (became == 4).float().mean() == pytest.approx(1 - kept - random_share, abs=0.008)
        assert (became == input_ids[masked]).float().mean() == pytest.approx(kept, abs=0.008)
        assert is_random.float().mean() == pytest.approx(random_share, abs=0.008)
        assert ((became == 4) | (became == input_ids[masked]) | is_random).all()
        if random_share:
            shares = (became[is_random] - 5_000).bincount() / is_random.sum()
            assert (shares - 0.1).abs().max() < 0.02


def test_a_span_is_hidden_kept_or_random_as_a_whole() -> None:
    input_ids = torch.randint(5, 4_000, (400, 250), generator=random_source(5))
    masked = choose_masked(
        framed_rows(torch.full((400,), 248), 250), 0.2, random_source(), strategy="span"
    )
    out = mask_tokens(
        *(input_ids, masked, 4, random_source(2)),
        kept_fraction=0.3,
        random_fraction=0.2,
        random_ids=torch.arange(5_000, 5_010),
        by_run=True,
    )
    assert torch.equal(out[~masked], input_ids[~masked])
    kind = torch.where(out == 4, 1, torch.where(out >= 5_000, 2, 0))
    inside = masked[:, 1:] & masked[:, :-1]
    assert (kind[:, 1:] == kind[:, :-1])[inside].all() and inside.sum() > 5_000
    begins = masked & ~masked.roll(1, dims=1)
    shares = kind[begins].bincount() / begins.sum()
    # Of 4,000 runs or so.
    assert shares.tolist() == pytest.approx([0.3, 0.5, 0.2], abs=0.03)


def test_impossible_shares_are_refused() -> None:
    input_ids = torch.ones(1, 4, dtype=torch.int64)
    masked = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(InputError, match=r"together at most 1, found 0.6 and 0.5$"):
        mask_tokens(input_ids, masked, 4, random_source(), kept_fraction=0.6, random_fraction=0.5)
    with pytest.raises(
        InputError, match=r"^expected random_ids with random_fraction 0.1, found none$"
    ):
        mask_tokens(input_ids, masked, 4, random_source(), kept_fraction=0.15, random_fraction=0.1)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("fraction", [0.1, 0.15, 0.3, 0.5])
def test_places_hold_every_mask_in_order(strategy: Masking, fraction: float) -> None:
    for width in (3, 12, 30, 64):
        maskable = framed_rows(torch.arange(100) % (width - 1), width)
        masked = choose(strategy, maskable, fraction, random_source())
        places, real = masked_places(masked, fraction)
        per_row = len(places) // 100
        assert per_row == max(1, math.ceil(round(fraction * width, 6)))
        assert torch.equal(places[real], masked.flatten().nonzero().squeeze(1))
        rows = torch.arange(100).repeat_interleave(per_row)
        assert torch.equal(places[~real], rows[~real] * width)
        # The real ones come first.
        assert torch.equal(real.view(100, per_row).sum(1), masked.sum(1))
        assert (real.view(100, per_row).int().diff(dim=1) <= 0).all()


def test_span_bounds() -> None:
    masked = torch.tensor(
        [[0, 1, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 1, 1, 1]]
    ).bool()
    left, right, offset = span_bounds(masked)
    assert left.tolist() == [[0, 0, 0, 3, 3, 5, 6], [0, 1, 2, 3, 4, 5, 6], [-1, -1, 2, 3, 3, 3, 3]]
    assert right.tolist() == [[0, 3, 3, 3, 5, 5, 6], [0, 1, 2, 3, 4, 5, 6], [2, 2, 2, 3, 7, 7, 7]]
    assert offset.tolist() == [[0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 1, 2]]
