"""Pre-training by fewer operations: what is left out, and that nothing else is."""

import importlib

import torch
from transformers import ElectraConfig, ElectraModel


def test_an_encoder_that_drops_no_tokens_is_the_stock_one() -> None:
    fewer = importlib.import_module("lab.benchmarks.quality.fewer_operations")
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "embedding_size": 16, "num_attention_heads": 2}
    electra = ElectraModel(
        ElectraConfig(vocab_size=50, num_hidden_layers=3, intermediate_size=32, **shape),
    ).eval()
    electra.set_attn_implementation("eager")
    ids = torch.randint(5, 50, (2, 8))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    expected = electra(ids, attention_mask=mask).last_hidden_state
    stock = electra.encoder
    importance = torch.rand(2, 8).masked_fill(mask == 0, -1)
    for kept, same in ((1.0, True), (0.5, False)):
        electra.encoder = fewer.DroppingEncoder(stock, kept)
        electra.encoder.importance = importance
        found = electra(ids, attention_mask=mask).last_hidden_state
        assert torch.allclose(found[mask > 0], expected[mask > 0], atol=1e-5) == same


def test_layers_come_as_the_arm_says() -> None:
    fewer = importlib.import_module("lab.benchmarks.quality.fewer_operations")
    depths = [fewer.ARMS["stacked"].depth_at(done, 12) for done in (0.0, 0.34, 0.35, 0.7, 0.99)]
    assert depths == [3, 3, 6, 12, 12]
    assert fewer.ARMS["plain"].depth_at(0.0, 4) == 4
