"""A small tokenizer and pair that the pre-training tests share."""

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from pretrain.networks import ElectraPair, build_pair
from pretrain.settings import Preset
from tokenizer.training import train_tokenizer

SMALL = Preset(
    num_layers=2,
    hidden_size=64,
    num_heads=4,
    embedding_size=32,
    learning_rate=2e-3,
    tokens_per_batch=512,
)


@pytest.fixture(scope="session")
def tokenizer(comments: list[str]) -> PreTrainedTokenizerFast:
    return train_tokenizer(comments, vocab_size=4_096).tokenizer


@pytest.fixture
def pair(tokenizer: PreTrainedTokenizerFast) -> ElectraPair:
    torch.manual_seed(0)
    return build_pair(SMALL, tokenizer)
