"""A tiny classifier in place of a trained one, folders to work in, and the running app."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    ElectraConfig,
    ElectraForSequenceClassification,
    PreTrainedTokenizerFast,
)

from tests.app.servers import Server, serving

LABELS = ["긍정", "부정", "중립"]


def make_model(run: Path) -> Path:
    """Write a run with a random three-label model; returns the model's directory."""
    model_dir = run / "model"
    model_dir.mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    syllables = sorted(
        set("배송이빨라요좋다별로예요그냥저냥환불해주세음질영화재미있없었다가격추천")
    )
    pieces = special + syllables + [f"##{syllable}" for syllable in syllables]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(model_dir)
    torch.manual_seed(0)
    config = ElectraConfig(
        vocab_size=len(pieces),
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        id2label=dict(enumerate(LABELS)),
        label2id={label: place for place, label in enumerate(LABELS)},
    )
    ElectraForSequenceClassification(config).save_pretrained(model_dir)
    # The mark of a complete run.
    (run / "report.json").write_text("{}", encoding="utf-8")
    return model_dir


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory without settings of the machine's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MALMOI_HOME", ".")
    monkeypatch.delenv("MALMOI_DATABASE", raising=False)
    return tmp_path


@pytest.fixture
def trained_workplace(workplace: Path) -> Path:
    """A working directory with one fine-tuning run."""
    make_model(workplace / "runs" / "finetune" / "x")
    return workplace


@pytest.fixture
def server(workplace: Path) -> Iterator[Server]:
    """The running app, started in that directory."""
    with serving(workplace) as running:
        yield running


@pytest.fixture
def address(server: Server) -> str:
    """Of the running app."""
    return server.address
