"""The two networks before they have learnt anything."""

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from pretrain.networks import build_pair
from pretrain.settings import PRESETS


@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_cls_sees_the_text_from_the_start(
    preset: str, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    """Untrained [CLS] vectors of different texts differ as much as those of a base encoder.

    With weights as small as base's, narrow encoders give nearly the same [CLS] for every text,
    and a classifier of few examples never leaves chance.
    """

    def spread(name: str) -> float:
        torch.manual_seed(0)
        network = build_pair(PRESETS[name], tokenizer).discriminator.eval()
        batch = tokenizer(comments[:32], padding=True, return_tensors="pt")
        with torch.no_grad():
            cls = network.electra(**batch).last_hidden_state[:, 0]  # [B, hidden_size]
        return float(cls.std(0).mean() / cls.pow(2).mean().sqrt())

    assert spread(preset) > 0.9 * spread("base")
