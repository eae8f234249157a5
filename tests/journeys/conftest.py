"""Models of a few hundred weights, made once; flags, read once."""

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    ElectraConfig,
    ElectraForPreTraining,
    ElectraForSequenceClassification,
    PreTrainedTokenizerFast,
)

from malmoi import flags
from malmoi.inference import stock
from tests.journeys.strategies import SENTENCES
from tests.malmoi.finetune.conftest import make_tokenizer

# Names of labels as people choose them.
LABELS = ("긍정", "별로, 안 사요", "😀 그냥 그래요")


def _tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer(text for texts in SENTENCES.values() for text in texts)


def _config(tokenizer: PreTrainedTokenizerFast, **more: object) -> ElectraConfig:
    return ElectraConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        embedding_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.5,
        **more,
    )


# Of a command that was given before: to read its flags takes longer than most commands.
_read_once = cache(flags.parse_flags)


def _remembered(settings_class: type, *, arguments: list[str], **how: Any) -> Any:
    return copy.deepcopy(_read_once(settings_class, arguments=tuple(arguments), **how))


@pytest.fixture(scope="module", autouse=True)
def _commands_begin_fast() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flags, "parse_flags", _remembered)
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of one label a text."""
    folder = tmp_path_factory.mktemp("classifier") / "model"
    tokenizer = _tokenizer()
    torch.manual_seed(0)
    config = _config(
        tokenizer, id2label=dict(enumerate(LABELS)), label2id={n: i for i, n in enumerate(LABELS)}
    )
    ElectraForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True, scope="session")
def _it_is_loaded_once(classifier: Path) -> Iterator[None]:
    """By all commands of this process."""
    load, loaded = stock.load_stock, cache(stock.load_stock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stock, "load_stock", lambda at: (loaded if at == classifier else load)(at))
        yield


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder to fine-tune."""
    folder = tmp_path_factory.mktemp("encoder") / "discriminator"
    tokenizer = _tokenizer()
    torch.manual_seed(0)
    ElectraForPreTraining(_config(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
