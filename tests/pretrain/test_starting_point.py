"""What --init takes: a checkpoint of the Hub, in its cache as a download leaves it."""

from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from transformers import AutoModelForPreTraining, ElectraConfig, ElectraForPreTraining

from pretrain.starting_point import starting_directory
from tests.pretrain.conftest import Breaking, Command
from tokenizer.training import load_tokenizer

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "영화", "##가", "재미", "##있", "ㅋㅋ"]


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    starting_directory.cache_clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def publish(hub_cache: Path) -> tuple[Path, ElectraForPreTraining]:
    """A discriminator as KcELECTRA and KoELECTRA are published: vocab.txt, no tokenizer.json."""
    revision = "0123456789abcdef0123456789abcdef01234567"
    repository = hub_cache / "models--owner--electra-small"
    snapshot = repository / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    (snapshot / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    (snapshot / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    torch.manual_seed(3)
    config = ElectraConfig(
        vocab_size=len(ENTRIES),
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    model = ElectraForPreTraining(config)
    model.save_pretrained(snapshot)
    return snapshot, model


def test_a_run_goes_on_from_a_published_checkpoint_by_its_hub_id(
    hub_cache: Path, pretrain_here: Command, break_off: Breaking, tmp_path: Path
) -> None:
    _, published = publish(hub_cache)
    flags = ["--init", "owner/electra-small"]
    assert pretrain_here(*flags, "--max-steps", "0", "--output", "start")[0] == 0
    start = AutoModelForPreTraining.from_pretrained(tmp_path / "start" / "discriminator")
    for name, weights in published.state_dict().items():
        assert torch.equal(start.state_dict()[name], weights), name
    tokenizer = load_tokenizer(tmp_path / "start" / "discriminator")
    assert tokenizer.tokenize("영화가 재미있 ㅋㅋ") == ["영화", "##가", "재미", "##있", "ㅋㅋ"]
    flags += ["--max-steps", "6"]
    break_off(5, *flags)
    code, printed, errors = pretrain_here(*flags, "--resume")
    assert code == 0, errors
    assert "resumed at step 4" in printed


def test_a_repository_without_safetensors_is_refused_with_the_file(
    hub_cache: Path, pretrain_here: Command, tmp_path: Path
) -> None:
    snapshot, _ = publish(hub_cache)
    (snapshot / "model.safetensors").rename(snapshot / "pytorch_model.bin")
    code, _, errors = pretrain_here("--init", "owner/electra-small", "--max-steps", "1")
    assert code == 2
    assert "expected model.safetensors in owner/electra-small on the Hugging Face Hub" in errors
    assert not (tmp_path / "run").exists()


def test_a_repository_that_cannot_be_had_is_one_line(
    pretrain_here: Command, tmp_path: Path
) -> None:
    code, _, errors = pretrain_here("--init", "owner/nothing", "--max-steps", "1")
    assert code == 2
    assert len(errors.splitlines()) == 1
    assert "cannot get --init owner/nothing from the Hugging Face Hub" in errors
    assert not (tmp_path / "run").exists()


def test_a_folder_here_is_never_asked_of_the_hub(tmp_path: Path) -> None:
    assert starting_directory(f"{tmp_path}/run") == tmp_path / "run"
    assert starting_directory("tests/none") == Path("tests/none")
    assert starting_directory("skip-gram") == Path("skip-gram")
