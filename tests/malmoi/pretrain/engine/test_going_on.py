"""What `--init DIRECTORY` keeps of the networks it goes on from."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from malmoi.pretrain.engine.run_directory import known_sharing, learnt_with_generator
from malmoi.pretrain.model.networks import ElectraPair
from tests.malmoi.pretrain.conftest import Command, Toy

WORDS = "electra.embeddings.word_embeddings.weight"


def weights_in(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_two_stages_begin_with_the_encoder_that_they_go_on_from(pretrain_here: Command) -> None:
    """Both: the generator that is new, and the discriminator that will start from it again."""
    noise = ["objective.unigram_fraction=1", "--max-steps", "2"]
    assert pretrain_here(*noise, "--output", "first")[0] == 0
    flags = ["--init", "first", "objective.schedule=two-stage"]
    assert pretrain_here(*flags, "--max-steps", "0", "--output", "second")[0] == 0
    first = weights_in(Path("first/discriminator"))
    generator = weights_in(Path("second/generator"))
    shared = [key for key in first if key.startswith("electra.")]
    assert len(shared) > 20
    assert all(torch.equal(first[key], generator[key]) for key in shared)


def test_a_run_hands_out_the_length_that_it_was_trained_on(pretrain_here: Command) -> None:
    def handed_out(run: str) -> list[int]:
        files = sorted(Path(run).glob("*/tokenizer_config.json"))
        return [json.loads(file.read_text())["model_max_length"] for file in files]

    flags = ["objective.unigram_fraction=0", "--max-steps", "1"]
    assert pretrain_here(*flags, "--max-length", "64", "--output", "first")[0] == 0
    assert handed_out("first") == [64, 64]
    assert json.loads(Path("first/run.json").read_text())["plan"]["corpus"]["max_length"] == 64
    # What it goes on from was trained on longer rows, or on shorter ones.
    again = ["--init", "first", "--max-steps", "1"]
    assert pretrain_here(*again, "--max-length", "32", "--output", "shorter")[0] == 0
    assert set(handed_out("shorter")) == {64}
    assert pretrain_here(*again, "--max-length", "96", "--output", "longer")[0] == 0
    assert set(handed_out("longer")) == {96}


@pytest.mark.parametrize("sharing", ["none", "word", "gdes"])
def test_a_generator_keeps_its_own_embeddings_without_a_flag(
    pretrain_here: Command, sharing: str
) -> None:
    flags = [f"generator.sharing={sharing}", "--learning-rate", "1e-2"]
    assert pretrain_here(*flags, "--max-steps", "4", "--output", "first")[0] == 0
    assert pretrain_here("--init", "first", "--max-steps", "0", "--output", "second")[0] == 0
    record = json.loads(Path("second/run.json").read_text())
    assert record["plan"]["networks"]["sharing"] == sharing
    assert "generator.sharing" not in record["given"]
    for network in ("generator", "discriminator"):
        first, second = (weights_in(Path(run) / network) for run in ("first", "second"))
        assert all(torch.allclose(first[key], second[key], atol=1e-6) for key in first)
    if sharing != "word":
        apart = weights_in(Path("first/discriminator"))[WORDS]
        assert not torch.allclose(apart, weights_in(Path("first/generator"))[WORDS], atol=1e-4)
    # Copies of the networks without a record tell by themselves.
    for network in ("generator", "discriminator"):
        shutil.copytree(Path("first") / network, Path("copy") / network)
    assert known_sharing("copy") == ("none" if sharing == "gdes" else sharing)
    # A flag counts more.
    flags = ["--init", "first", "generator.sharing=instance", "--max-steps", "0"]
    assert pretrain_here(*flags, "--output", "third")[0] == 0
    record = json.loads(Path("third/run.json").read_text())
    assert record["plan"]["networks"]["sharing"] == "instance"


def test_a_run_killed_before_its_last_record_has_learnt_from_its_generator(
    pretrain_here: Command,
) -> None:
    assert pretrain_here("--max-steps", "2", "--output", "first")[0] == 0
    assert learnt_with_generator("first")
    path = Path("first/run.json")
    record = json.loads(path.read_text())
    del record["progress"]
    path.write_text(json.dumps(record | {"status": "running"}))
    assert learnt_with_generator("first")
    shutil.rmtree("first/generator")
    assert not learnt_with_generator("first")


@pytest.mark.parametrize("average", ["0", "0.01"])
def test_two_stages_that_end_in_the_first_say_so(pretrain_here: Command, average: str) -> None:
    flags = ["objective.schedule=two-stage", "generator.size=1", "objective.first_stage=0.99"]
    flags += ["--max-steps", "4", f"optimizer.average_fraction={average}"]
    code, output, errors = pretrain_here(*flags, "--output", "first")
    assert code == 0, errors
    assert "the run ended before its second stage began" in output
    (warning,) = json.loads(Path("first/run.json").read_text())["warnings"]
    assert "is a copy of the generator" in warning
    ours, theirs = (weights_in(Path("first") / one) for one in ("discriminator", "generator"))
    shared = [key for key in ours if key.startswith("electra.")]
    assert len(shared) > 20 and all(torch.equal(ours[key], theirs[key]) for key in shared)


def test_a_generator_with_tables_of_its_own_gets_no_discriminator_of_difference(
    pretrain_here: Command,
) -> None:
    """generator.sharing=gdes cannot go on with a frozen discriminator: then nothing is shared."""
    assert pretrain_here("generator.sharing=gdes", "--max-steps", "2", "--output", "first")[0] == 0
    flags = ["--init", "first", "objective.schedule=frozen-discriminator", "--max-steps", "2"]
    assert pretrain_here(*flags, "--output", "second")[0] == 0
    assert json.loads(Path("second/run.json").read_text())["plan"]["networks"]["sharing"] == "none"
    first, second = (weights_in(Path(run) / "discriminator") for run in ("first", "second"))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_frozen_generator_has_no_dropout(toy: Toy) -> None:
    pair: ElectraPair = toy.pair(sharing="none")
    pair.set_dropout(0.5)
    pair.freeze_generator()
    pair.train()
    batch = toy.batch([[12], [20]])
    assert pair.generator is not None and pair.discriminator.training
    with torch.no_grad():
        first, second = (pair.generator(batch.input_ids).logits for _ in range(2))
        other, another = (pair.discriminator(batch.input_ids).logits for _ in range(2))
    assert torch.equal(first, second) and not torch.equal(other, another)


def test_a_generator_with_more_entries_than_its_tokenizer_is_refused(
    pretrain_here: Command,
) -> None:
    assert pretrain_here("--max-steps", "0", "--output", "first")[0] == 0
    folder = Path("first/generator")
    weights, config = weights_in(folder), json.loads((folder / "config.json").read_text())
    config["vocab_size"] += 128
    for key in (WORDS, "generator_lm_head.bias"):
        if key in weights:
            more = torch.zeros(128, *weights[key].shape[1:])
            weights[key] = torch.cat([weights[key], more])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    flags = ["objective.schedule=frozen-generator", "generator.init=first", "--init", "random"]
    code, _, errors = pretrain_here(*flags, "--tokenizer", "None", "--output", "second")
    assert code == 2 and "as many entries as the discriminator has" in errors
    assert len(errors.splitlines()) == 1 and not Path("second").exists()
