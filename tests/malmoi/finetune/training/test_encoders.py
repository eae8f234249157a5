"""Finding an encoder, and accepting nothing but a whole one."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from malmoi.errors import InputError
from malmoi.finetune.run_texts import model_name
from malmoi.finetune.settings import StartKeys
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.finetune.training.starting_model import find_starting_model
from malmoi.model_folders import better_read, find_encoder
from tests.malmoi.finetune.conftest import LABELS


def add_run(root: Path, encoder: Path, name: str, status: str, age: int = 0) -> Path:
    run = root / "runs" / "pretrain" / name
    shutil.copytree(encoder, run / "discriminator")
    (run / "run.json").write_text(json.dumps({"status": status}))
    os.utime(run / "run.json", (1_000_000 - age, 1_000_000 - age))
    return run / "discriminator"


def same_encoder(one: PreTrainedModel, other: PreTrainedModel) -> bool:
    theirs = other.state_dict()
    return all(
        torch.equal(value, theirs[name])
        for name, value in one.state_dict().items()
        if name.startswith("electra.")
    )


def test_newest_finished_run(encoder: Path, tmp_path: Path) -> None:
    add_run(tmp_path, encoder, "running", "running")
    newest = add_run(tmp_path, encoder, "newest", "finished", age=1)
    add_run(tmp_path, encoder, "oldest", "finished", age=2)
    shutil.copytree(encoder, tmp_path / "checkpoints" / "released")
    assert find_encoder(tmp_path) == newest


def test_an_encoder_that_has_read_far_more_than_the_newest_is_named(
    encoder: Path, tmp_path: Path
) -> None:
    def tokens_of(folder: Path, tokens: float, init: str) -> None:
        record = {
            "status": "finished",
            "progress": {"tokens": tokens},
            "plan": {"start": {"init": init}},
        }
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")

    newest = add_run(tmp_path, encoder, "first-try", "finished")
    released = tmp_path / "checkpoints" / "released"
    shutil.copytree(encoder, released)
    tokens_of(newest.parent, 1e6, "word-vectors")
    assert better_read(newest, tmp_path) == ""  # nothing says what the released one has read
    tokens_of(released, 80e6, "random")
    assert "1,000,000 tokens" in (said := better_read(newest, tmp_path))
    assert "--model released" in said and "80,000,000" in said
    assert better_read(released, tmp_path) == ""
    tokens_of(newest.parent, 1e6, "checkpoints/released")  # it has all that the released one has
    assert better_read(newest, tmp_path) == ""
    tokens_of(newest.parent, 30e6, "random")
    assert better_read(newest, tmp_path) == ""


def test_a_run_of_no_steps_has_learnt_nothing(encoder: Path, tmp_path: Path) -> None:
    newest = add_run(tmp_path, encoder, "tokenized-only", "finished")
    older = add_run(tmp_path, encoder, "older", "finished", age=1)
    (newest.parent / "run.json").write_text(
        json.dumps({"status": "finished", "progress": {"step": 0}}), encoding="utf-8"
    )
    assert find_encoder(tmp_path) == older


def test_a_released_model_goes_by_its_folder_and_one_of_the_hub_by_its_commit(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    released = tmp_path / "checkpoints" / "malmoi-tiny"
    shutil.copytree(encoder, released)
    assert model_name("malmoi-tiny", str(released)) == str(released)
    assert model_name("owner/electra", "/cache/snapshots/0a1b") == "owner/electra@0a1b"


@pytest.mark.parametrize("inside", ["", "discriminator"])
def test_released_encoder(
    encoder: Path, classifier_directory: Path, tmp_path: Path, inside: str
) -> None:
    add_run(tmp_path, encoder, "running", "running")
    shutil.copytree(classifier_directory, tmp_path / "checkpoints" / "a-classifier")
    released = tmp_path / "checkpoints" / "malmoi" / inside
    shutil.copytree(encoder, released)
    assert find_encoder(tmp_path) == released


def test_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        find_encoder(tmp_path)
    assert "`python pretrain/run.py --corpus corpora/comments` first or give --model" in str(
        caught.value
    )


def test_only_the_head_is_new(encoder: Path) -> None:
    one = load_for_classification(encoder, LABELS, seed=1)
    other = load_for_classification(encoder, LABELS, seed=2)
    assert same_encoder(one, other)
    assert not torch.equal(one.classifier.out_proj.weight, other.classifier.out_proj.weight)
    assert one.config.id2label == dict(enumerate(LABELS))
    assert one.dtype == torch.float32


def test_a_whole_run_is_accepted(encoder: Path) -> None:
    one = load_for_classification(encoder.parent, LABELS)
    assert same_encoder(one, load_for_classification(encoder, LABELS))


def test_random_weights(encoder: Path) -> None:
    loaded = load_for_classification(encoder, LABELS)
    fresh = load_for_classification(encoder, LABELS, random_weights=True)
    assert not same_encoder(loaded, fresh)
    assert same_encoder(fresh, load_for_classification(encoder, LABELS, random_weights=True))


def test_classifier_of_another_number_of_labels(classifier_directory: Path) -> None:
    model = load_for_classification(classifier_directory, ["긍정", "부정"])
    assert model.classifier.out_proj.weight.shape[0] == 2


def test_half_an_encoder(encoder: Path, tmp_path: Path) -> None:
    half = Path(shutil.copytree(encoder, tmp_path / "half"))
    weights = load_file(half / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "encoder.layer.1." not in name}
    save_file(kept, half / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"not a whole encoder: 16 weights .*layer\.1\."):
        load_for_classification(half, LABELS)


def test_encoder_of_another_shape(encoder: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(encoder, tmp_path / "other"))
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "vocab_size": 999}))
    with pytest.raises(InputError, match=r"not a whole encoder: 1 weights .*word_embeddings"):
        load_for_classification(other, LABELS)


def test_directory_without_weights(encoder: Path, tmp_path: Path) -> None:
    bare = Path(shutil.copytree(encoder, tmp_path / "bare"))
    (bare / "model.safetensors").unlink()
    with pytest.raises(InputError, match="has no weights: expected model"):
        load_for_classification(bare, LABELS)


def test_the_number_of_texts_decides_which_released_encoder_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checkpoints").symlink_to(Path("checkpoints").resolve())
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    few, many = (find_starting_model(None, StartKeys(), texts) for texts in (5_000, 50_000))
    assert few.source.endswith("malmoi-medium") and "--model malmoi-small" in few.advice
    assert many.source.endswith("malmoi-small") and "--model malmoi-medium" in many.advice
    named = find_starting_model("malmoi-small", StartKeys(), 5_000)
    assert named.source.endswith("malmoi-small") and not named.advice
