"""Masking is random: its statistics are what can be asserted."""

import pytest
import torch

from pretrain.masking import choose_masked, mask_tokens


def random_source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("fraction", [0.15, 0.3, 0.5])
def test_share_of_each_sequence_is_the_fraction_rounded(fraction: float) -> None:
    maskable = torch.zeros(200, 64, dtype=torch.bool)
    for row in range(200):
        maskable[row, 1 : 1 + row % 62] = True
    masked = choose_masked(maskable, fraction, random_source())
    lengths = maskable.sum(1)
    expected = (lengths * fraction).round().clamp(min=1).minimum(lengths)
    assert torch.equal(masked.sum(1), expected)
    assert not (masked & ~maskable).any()


def test_every_position_is_equally_likely() -> None:
    maskable = torch.ones(20_000, 20, dtype=torch.bool)
    rates = choose_masked(maskable, 0.15, random_source()).float().mean(0)
    # 3 of 20 a row; standard error of a position's rate is 0.0025.
    assert (rates - 0.15).abs().max() < 0.0125


def test_masked_positions_are_85_percent_mask_and_the_rest_unchanged() -> None:
    input_ids = torch.randint(5, 4_000, (400, 50))
    masked = choose_masked(torch.ones(400, 50, dtype=torch.bool), 0.3, random_source(1))
    out = mask_tokens(input_ids, masked, 4, random_source(2))
    assert torch.equal(out[~masked], input_ids[~masked])
    became_mask = out[masked] == 4
    assert torch.equal(out[masked][~became_mask], input_ids[masked][~became_mask])
    assert became_mask.float().mean().item() == pytest.approx(0.85, abs=0.02)


def test_same_seed_same_masks_and_another_seed_others() -> None:
    maskable = torch.ones(8, 30, dtype=torch.bool)
    first, again = (choose_masked(maskable, 0.15, random_source(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, choose_masked(maskable, 0.15, random_source(4)))
