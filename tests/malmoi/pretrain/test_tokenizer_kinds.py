"""Other kinds of tokenizers than WordPiece go through pre-training."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer, ElectraForPreTraining

import malmoi.pretrain.run
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.tokenizer.kinds import ModelKind
from malmoi.tokenizer.training import train_tokenizer

COMMENTS = Path(__file__).parents[3] / "corpora" / "comments"


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_two_steps_with_each_kind(
    kind: ModelKind, comments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = train_tokenizer(comments, model=kind, vocab_size=2_048)
    made = tmp_path / "tokenizer"
    made.mkdir()
    trained.save(made)
    monkeypatch.chdir(tmp_path)
    malmoi.pretrain.run.main(
        PretrainSettings(
            corpus=COMMENTS,
            tokenizer=made,
            init="random",
            max_steps=2,
            tokens_per_batch=512,
            output=tmp_path / "run",
        )
    )
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["status"], record["progress"]["step"]) == ("finished", 2)
    discriminator = tmp_path / "run" / "discriminator"
    model = ElectraForPreTraining.from_pretrained(discriminator)
    assert model.config.vocab_size == len(trained.tokenizer)
    loaded = AutoTokenizer.from_pretrained(discriminator)
    assert loaded("재밌어요 뷁").input_ids == trained.tokenizer("재밌어요 뷁").input_ids
