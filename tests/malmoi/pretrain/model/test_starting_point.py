"""What --init takes from others: directories of another making, and Hub ids."""

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForPreTraining,
    AutoTokenizer,
    BertConfig,
    BertModel,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    PreTrainedTokenizerFast,
)

from malmoi.errors import InputError
from malmoi.files import file_sha256
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.pretrain.data.corpus import unknown_fraction
from malmoi.pretrain.data.tokenized import TokenizedCorpus
from malmoi.pretrain.model.starting_checkpoint import starting_directory
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.transformers_models import quiet_transformers
from tests.malmoi.pretrain.conftest import Breaking, Command

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "영화", "##가", "재미", "##있", "ㅋㅋ"]


def foreign(folder: Path, **config: Any) -> ElectraForPreTraining:
    """A discriminator as KcELECTRA and KoELECTRA are published: vocab.txt, no tokenizer.json."""
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    torch.manual_seed(3)
    # Half the inner width that the paper's networks have.
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    sizes |= {"vocab_size": len(ENTRIES), "embedding_size": 16, "num_attention_heads": 2}
    model = ElectraForPreTraining(ElectraConfig(**sizes | config))
    with quiet_transformers():
        model.save_pretrained(folder)
    return model


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    starting_directory.cache_clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def publish(hub_cache: Path) -> tuple[Path, ElectraForPreTraining]:
    """`owner/electra-small` of the Hub in its cache, as a download leaves it."""
    revision = "0123456789abcdef0123456789abcdef01234567"
    repository = hub_cache / "models--owner--electra-small"
    model = foreign(repository / "snapshots" / revision)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    return repository / "snapshots" / revision, model


def test_a_run_goes_on_from_a_published_checkpoint_by_its_hub_id(
    hub_cache: Path, pretrain_here: Command, break_off: Breaking, tmp_path: Path
) -> None:
    snapshot, published = publish(hub_cache)
    flags = ["--init", "owner/electra-small"]
    assert pretrain_here(*flags, "--max-steps", "0", "--output", "start")[0] == 0
    start = AutoModelForPreTraining.from_pretrained(tmp_path / "start" / "discriminator")
    for name, weights in published.state_dict().items():
        assert torch.equal(start.state_dict()[name], weights), name
    tokenizer = load_pretraining_tokenizer(tmp_path / "start" / "discriminator")
    assert tokenizer.tokenize("영화가 재미있 ㅋㅋ") == ["영화", "##가", "재미", "##있", "ㅋㅋ"]
    flags += ["--max-steps", "6"]
    break_off(5, *flags)
    code, printed, errors = pretrain_here(*flags, "--resume")
    assert code == 0, errors
    assert "resumed at step 4" in printed
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["init_sha256"] == file_sha256(snapshot / "model.safetensors")


def test_a_repository_without_safetensors_is_refused_with_the_file(
    hub_cache: Path, pretrain_here: Command, tmp_path: Path
) -> None:
    snapshot, _ = publish(hub_cache)
    (snapshot / "model.safetensors").rename(snapshot / "pytorch_model.bin")
    code, _, errors = pretrain_here("--init", "owner/electra-small", "--max-steps", "1")
    assert code == 2
    assert "expected model.safetensors in owner/electra-small on the Hugging Face Hub" in errors
    assert not (tmp_path / "run").exists()


def test_a_folder_here_is_never_asked_of_the_hub(tmp_path: Path) -> None:
    assert starting_directory(f"{tmp_path}/run") == tmp_path / "run"
    assert starting_directory("tests/none") == Path("tests/none")
    assert starting_directory("word-vectors") == Path("word-vectors")


@pytest.mark.parametrize(
    "flags",
    [
        ["objective.schedule=two-stage"],
        ["generator.sharing=all"],
        ["generator.size=0.5"],
    ],
)
def test_a_generator_is_as_wide_inside_as_the_checkpoint(
    pretrain_here: Command, tmp_path: Path, flags: list[str]
) -> None:
    foreign(tmp_path / "theirs")
    code, _, errors = pretrain_here("--init", "theirs", "--max-steps", "2", *flags)
    assert code == 0, errors
    made = ElectraForMaskedLM.from_pretrained(tmp_path / "run" / "generator")
    assert made.config.intermediate_size == 2 * made.config.hidden_size
    again = ["--init", "run", "--max-steps", "1", "--output", "next"]
    assert pretrain_here(*again, *flags)[0] == 0


def without(folder: Path, ending: str) -> None:
    path = folder / "model.safetensors"
    weights = {key: value for key, value in load_file(path).items() if not key.endswith(ending)}
    save_file(weights, path, metadata={"format": "pt"})


def test_token_types_that_were_not_saved_and_positions_that_were_not_stated(
    pretrain_here: Command, tmp_path: Path
) -> None:
    theirs = foreign(tmp_path / "theirs", max_position_embeddings=136)
    config = tmp_path / "theirs" / "config.json"
    stated = json.loads(config.read_text(encoding="utf-8"))
    del stated["max_position_embeddings"], stated["type_vocab_size"]
    config.write_text(json.dumps(stated), encoding="utf-8")
    without(tmp_path / "theirs", "token_type_embeddings.weight")
    code, _, errors = pretrain_here("--init", "theirs", "--max-steps", "0", "--output", "start")
    assert code == 0, errors
    start = AutoModelForPreTraining.from_pretrained(tmp_path / "start" / "discriminator")
    assert start.config.max_position_embeddings == 136
    made = start.electra.embeddings
    assert torch.equal(
        made.word_embeddings.weight, theirs.electra.embeddings.word_embeddings.weight
    )
    assert not made.token_type_embeddings.weight.any()
    # The same network in k-fold.
    classifier = load_for_classification(tmp_path / "theirs", ["가", "나"])
    assert classifier.config.max_position_embeddings == 136
    assert not classifier.electra.embeddings.token_type_embeddings.weight.any()
    without(tmp_path / "theirs", "position_embeddings.weight")
    with pytest.raises(InputError, match=r"position_embeddings\.weight"):
        load_for_classification(tmp_path / "theirs", ["가", "나"])


def truncate(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def leave_pointer(folder: Path) -> None:
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    (folder / "vocab.txt").write_text(text)


def lower_case(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')


def save_bert(folder: Path) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    BertModel(BertConfig(num_attention_heads=2, vocab_size=10, **sizes)).save_pretrained(folder)


def save_generator(folder: Path) -> None:
    ElectraForMaskedLM(ElectraConfig.from_pretrained(folder)).save_pretrained(folder)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (save_bert, "expected an ELECTRA discriminator (ElectraForPreTraining) in theirs, found "),
        (save_generator, "theirs, found ElectraForMaskedLM of type electra; of a published pair"),
        (truncate, "cannot read the weights in theirs/model.safetensors: "),
        (leave_pointer, "missing [PAD], [UNK], [CLS], [SEP], [MASK]"),
        (lower_case, "found one at theirs that takes apart those of 4 of its own 4 Hangul entries"),
    ],
)
def test_what_cannot_be_gone_on_with_is_told_before_the_corpus_is_read(
    pretrain_here: Command, tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    foreign(tmp_path / "theirs")
    with quiet_transformers():
        spoil(tmp_path / "theirs")
    code, printed, errors = pretrain_here("--init", "theirs", "--max-steps", "1")
    assert code == 2
    assert message in errors and len(errors.splitlines()) == 1
    assert printed == ""
    assert not (tmp_path / "run").exists()


def test_weights_that_are_no_numbers_are_not_gone_on_with(
    pretrain_here: Command, tmp_path: Path
) -> None:
    foreign(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    weights = load_file(path)
    name = "electra.encoder.layer.1.output.dense.bias"
    weights[name][3] = float("nan")
    save_file(weights, path, metadata={"format": "pt"})
    code, _, errors = pretrain_here("--init", "theirs", "--max-steps", "1")
    assert code == 2
    assert f"expected finite weights in theirs, found NaN or infinity in {name}" in errors
    assert not (tmp_path / "run").exists()


def test_the_tokenizer_stays_of_the_class_that_others_load(
    pretrain_here: Command, tmp_path: Path
) -> None:
    """BERT's gives `token_type_ids`, which a tokenizer of no class does not."""
    foreign(tmp_path / "theirs")
    before = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    before.save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").unlink(missing_ok=True)
    assert (tmp_path / "theirs" / "tokenizer.json").is_file()
    assert pretrain_here("--init", "theirs", "--max-steps", "0")[0] == 0
    after = AutoTokenizer.from_pretrained(tmp_path / "run" / "discriminator")
    assert type(after) is type(before)
    assert dict(after("영화가", "재미있")) == dict(before("영화가", "재미있"))


def test_a_vocabulary_of_another_kind_of_text_is_told_and_recorded(
    pretrain_here: Command, tmp_path: Path
) -> None:
    """Of the sample comments these ten entries know next to nothing."""
    foreign(tmp_path / "theirs")
    code, _, errors = pretrain_here("--init", "theirs", "--max-steps", "0")
    assert code == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    share = record["unknown_fraction"]
    assert share > 0.5
    assert f"warning: {share:.0%} of the corpus's tokens are [UNK]" in errors
    shutil.rmtree(tmp_path / "run")
    _, _, errors = pretrain_here("--max-steps", "0")
    assert "[UNK]" not in errors


def test_unknown_words_are_counted_without_the_role_of_one(
    tokenizer: PreTrainedTokenizerFast, capsys: pytest.CaptureFixture[str]
) -> None:
    unnamed = copy.deepcopy(tokenizer)
    unnamed.unk_token = None
    number = tokenizer.get_vocab()["[UNK]"]
    ids = np.array([number, 9, 8, 7], dtype=np.uint16)
    corpus = TokenizedCorpus(ids=ids, offsets=np.array([0, 1, 4]), directory=Path())
    assert unknown_fraction(corpus, unnamed) == 0.25
    assert "warning: 25% of the corpus's tokens" in capsys.readouterr().err
    few = replace(corpus, ids=np.full(40, 9, dtype=np.uint16), offsets=np.array([0, 40]))
    assert unknown_fraction(few, tokenizer) == 0
    assert capsys.readouterr().err == ""
