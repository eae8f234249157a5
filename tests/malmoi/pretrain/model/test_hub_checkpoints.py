"""Checkpoints by their Hub id, from a server on this machine that speaks the Hub's protocol."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    ElectraConfig,
    ElectraForPreTraining,
)

from malmoi.errors import InputError
from malmoi.finetune.kfold import main as kfold
from malmoi.finetune.settings import KfoldSettings
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.hub import hub_directory
from malmoi.inference.classifier import Classifier
from malmoi.model_folders import encoder_source
from malmoi.pretrain.model.networks import load_pair
from malmoi.pretrain.model.starting_checkpoint import starting_directory
from tests.malmoi.finetune.conftest import make_tokenizer, separable
from tests.malmoi.hub_downloads import Files, Hub, commit_of, serving
from tests.malmoi.pretrain.conftest import Command

NAME = "owner/electra"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    constants = huggingface_hub.constants
    with serving(NAME) as hub:
        here = hub.address
        monkeypatch.setattr(constants, "ENDPOINT", here)
        address = constants.HUGGINGFACE_CO_URL_TEMPLATE
        address = address.replace("https://huggingface.co", here)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        starting_directory.cache_clear()
        yield hub


def checkpoint(folder: Path, seed: int = 0, shards: bool = False) -> Files:
    """The files of a small discriminator."""
    tokenizer = make_tokenizer()
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "embedding_size": 32, "intermediate_size": 64}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 128}
    model = ElectraForPreTraining(ElectraConfig(vocab_size=len(tokenizer), **sizes))
    model.save_pretrained(folder, max_shard_size="30KB" if shards else "1GB")
    tokenizer.save_pretrained(folder)
    assert (folder / "model.safetensors.index.json").is_file() == shards
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def pickled(files: Files) -> Files:
    kept = {name: data for name, data in files.items() if "safetensors" not in name}
    return kept | {"pytorch_model.bin": b"a pickle", "modeling.py": b"raise SystemExit"}


def test_shards_are_one_checkpoint_to_both_commands(
    hub: Hub, tmp_path: Path, pretrain_here: Command
) -> None:
    hub.branches["main"] = checkpoint(tmp_path / "theirs", shards=True)
    code, printed, errors = pretrain_here("--init", NAME, "--max-steps", "1")
    assert code == 0, errors + printed
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert len(record["init_sha256"]) == 64
    place = encoder_source(NAME)
    loaded = load_for_classification(place, ["가", "나"])
    theirs = load_pair(tmp_path / "theirs").discriminator
    for name, weights in theirs.electra.state_dict().items():
        assert torch.equal(loaded.electra.state_dict()[name], weights), name
    assert not list(Path(place).glob("*.py"))


def test_a_revision_is_taken_by_both_commands(
    hub: Hub, tmp_path: Path, pretrain_here: Command
) -> None:
    hub.branches["main"] = checkpoint(tmp_path / "main")
    hub.branches["refs/pr/7"] = checkpoint(tmp_path / "other", seed=1)
    flags = ["--init", NAME, "--revision", "refs/pr/7", "--max-steps", "0"]
    code, printed, errors = pretrain_here(*flags)
    assert code == 0, errors + printed
    started = load_pair(tmp_path / "run").discriminator
    wanted = load_pair(tmp_path / "other").discriminator
    for name, weights in wanted.state_dict().items():
        assert torch.equal(started.state_dict()[name], weights), name
    data = tmp_path / "data.csv"
    rows = "\n".join(f"{text},{label}" for text, label in separable())
    data.write_text(f"text,label\n{rows}\n", encoding="utf-8")
    run = {"data": data, "folds": 2, "epochs": 1, "device": "cpu", "output": tmp_path / "kfold"}
    keys = ("start.revision=refs/pr/7", "linear.enabled=false")
    kfold(KfoldSettings(model=NAME, set=keys, **run))  # type: ignore[arg-type]
    report = json.loads((tmp_path / "kfold" / "report.json").read_text(encoding="utf-8"))
    assert report["plan"]["encoder"]["model"] == f"{NAME}@{commit_of('refs/pr/7')}"


@pytest.mark.parametrize("branch", ["refs/pr/3", "converted"])
def test_pickled_weights_are_refused_with_the_branch_that_has_others(
    hub: Hub, tmp_path: Path, branch: str
) -> None:
    files = checkpoint(tmp_path / "theirs")
    hub.branches |= {"main": pickled(files), "refs/pr/2": pickled(files), branch: files}
    for flag, take in (("--init", starting_directory), ("--model", encoder_source)):
        with pytest.raises(InputError, match=f"add --revision {branch}$") as error:
            take(NAME)
        assert flag in ("--init", "--model") and "\n" not in str(error.value)
    assert (hub_directory(NAME, branch, "--init") / "model.safetensors").is_file()
    assert not list((tmp_path / "hub").rglob("*.bin"))


def test_pickled_weights_alone_are_refused_with_a_line_that_converts_them(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = checkpoint(tmp_path / "theirs")
    hub.branches["main"] = pickled(files)
    with pytest.raises(InputError, match=r"found pytorch_model\.bin alone") as error:
        encoder_source(NAME)
    assert f"from_pretrained('{NAME}')" in str(error.value)
    assert "AutoModelForPreTraining" in str(error.value)
    config = json.loads(files["config.json"]) | {"architectures": ["XForSequenceClassification"]}
    hub.branches["main"] = pickled(files | {"config.json": json.dumps(config).encode()})
    (tmp_path / "hub").rename(tmp_path / "hub before")
    with pytest.raises(InputError, match="AutoModelForSequenceClassification"):
        encoder_source(NAME)  # whose head is not to be lost
    # The same line on a folder, run as it is printed.
    folder = tmp_path / "downloaded"
    folder.mkdir()
    for name, data in files.items():
        if not name.endswith("safetensors"):
            (folder / name).write_bytes(data)
    model = ElectraForPreTraining.from_pretrained(tmp_path / "theirs")
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"found pytorch_model\.bin alone") as error:
        encoder_source(folder)
    command = str(error.value).partition("--model: ")[2]
    program, flag, code = shlex.split(command)
    assert (program, flag) == ("python", "-c")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert load_for_classification(encoder_source(tmp_path / "converted"), ["가", "나"])


def test_what_cannot_be_had_is_one_line(hub: Hub, tmp_path: Path) -> None:
    hub.branches["main"] = checkpoint(tmp_path / "theirs")
    for name, revision in (("owner/nothing", None), (NAME, "nowhere")):
        with pytest.raises(InputError, match=f"cannot get --model {name}") as error:
            encoder_source(name, revision)
        assert "\n" not in str(error.value)


def test_a_classifier_by_its_hub_id(hub: Hub, tmp_path: Path) -> None:
    hub.branches["main"] = checkpoint(tmp_path / "theirs")
    labels = {0: "가", 1: "나"}
    model = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "theirs", id2label=labels, label2id={v: k for k, v in labels.items()}
    )
    model.save_pretrained(tmp_path / "classifier")
    AutoTokenizer.from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "classifier")
    files = {path.name: path.read_bytes() for path in (tmp_path / "classifier").iterdir()}
    hub.branches["main"] = files
    classifier = Classifier.load(NAME)
    assert classifier.name == NAME
    assert classifier.predict(["꿈에서 하늘을 날았다"])[0].label in labels.values()
