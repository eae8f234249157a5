"""The command as its users meet it: what a run leaves behind, bad input, a full disk."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    ElectraForSequenceClassification,
)

import malmoi.pretrain.run
import malmoi.pretrain.runner
from malmoi.command_line import run_command
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.tokenizer.training import train_tokenizer
from malmoi.transformers_models import tokenizer_hash
from tests.malmoi.pretrain.conftest import Command, metric_rows, unfinish, weights_of

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "pretrain" / "run.py"
COMMENTS = ROOT / "corpora" / "comments"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run of 24 steps by the real command: default recipe, preset and warm start."""
    folder = tmp_path_factory.mktemp("runs")
    flags = ["--corpus", str(COMMENTS), "--max-steps", "24", "--output", "run", "--device", "cpu"]
    flags += ["--tokens-per-batch", "512"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *flags, "--set", "execution.log_steps=6"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder / "run"


def test_a_tokenizer_is_trained_once_for_a_corpus_and_size(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(finished.parent)

    def prepare(output: str, *flags: str) -> str:
        fixed = ["--corpus", str(COMMENTS), "--max-steps", "0", "--init", "random"]
        monkeypatch.setattr(sys, "argv", ["run.py", *fixed, "--output", output, *flags])
        assert run_command(PretrainSettings, malmoi.pretrain.run.main, "") == 0
        out, err = capsys.readouterr()
        assert ("warning: cannot read the tokenizer" in err) == (output == "damaged")
        return str(out)

    def hash_of(run: str) -> str:
        return tokenizer_hash(load_pretraining_tokenizer(f"{run}/discriminator"))

    assert "training a tokenizer" not in prepare("again")
    assert hash_of("again") == hash_of("run")
    assert "training a tokenizer" in prepare("smaller", "--vocab-size", "2048")
    assert len(load_pretraining_tokenizer("smaller/discriminator")) == 2048
    kept = list(Path("runs/cache/tokenizers").iterdir())
    assert len(kept) == 2 and not [path for path in kept if path.name[0] == "."]
    for damaged in kept:
        (damaged / "tokenizer.json").write_text("{")
    assert "training a tokenizer" in prepare("damaged")
    assert hash_of("damaged") == hash_of("run")
    assert "training a tokenizer" not in prepare("mended")


def test_progress_and_record_say_what_was_done(finished: Path) -> None:
    record = json.loads((finished / "run.json").read_text())
    assert record["status"] == "finished"
    assert record["progress"]["step"] == 24
    assert record["progress"]["tokens"] > 24 * 300
    assert record["progress"]["flops"] > 0
    cost = record["cost"]
    assert cost["paper_flops"] == record["progress"]["flops"]
    assert cost["model_flops_utilization"] > 0
    assert record["plan"]["start"]["init"] == "word-vectors"
    assert len(record["corpus_sha256"]) == 64
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [6, 12, 18, 24]
    assert rows[-1]["tokens_seen"] == record["progress"]["tokens"]
    assert rows[-1]["generator_loss"] < rows[0]["generator_loss"]
    assert list((finished / "tensorboard").glob("events*"))


def test_a_discriminator_that_learnt_nothing_is_said_aloud(
    pretrain_here: Command, tmp_path: Path
) -> None:
    """It calls every token original, and its rate is too low to change that."""
    assert pretrain_here("--max-steps", "0", "--output", "first")[0] == 0
    path = tmp_path / "first" / "discriminator" / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    weights["discriminator_predictions.dense_prediction.bias"] -= 20
    safetensors.torch.save_file(weights, path, metadata={"format": "pt"})
    flags = ["--init", "first", "--learning-rate", "1e-9", "--max-steps", "4"]
    code, printed, _ = pretrain_here(*flags)
    assert code == 0 and "only learnt that most tokens are original" in printed
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["final_metrics"]["discriminator_recall"] < 0.01
    assert "only learnt that most tokens are original" in record["warnings"][-1]


def test_outputs_load_in_stock_classes_without_missing_keys(finished: Path) -> None:
    loaders = [
        (ElectraForPreTraining, "discriminator", set()),
        (ElectraForMaskedLM, "generator", set()),
    ]
    for loader, folder, allowed in loaders:
        _, info = loader.from_pretrained(finished / folder, output_loading_info=True)
        assert set(info["missing_keys"]) == allowed
        assert not info["unexpected_keys"] and not info["mismatched_keys"]
    _, info = AutoModel.from_pretrained(finished / "discriminator", output_loading_info=True)
    assert not info["missing_keys"]
    _, info = ElectraForSequenceClassification.from_pretrained(
        finished / "discriminator", num_labels=3, output_loading_info=True
    )
    assert all(key.startswith("classifier.") for key in info["missing_keys"])
    tokenizer = AutoTokenizer.from_pretrained(finished / "discriminator")
    model = ElectraForPreTraining.from_pretrained(finished / "discriminator")
    assert len(tokenizer) == model.config.vocab_size
    logits = model(**tokenizer("진짜 ㅋㅋㅋ 최고였다", return_tensors="pt")).logits
    assert torch.isfinite(logits).all()


def test_init_goes_on_from_a_run_with_its_tokenizer(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--corpus", str(COMMENTS), "--init", str(finished), "--max-steps", "0"]
    monkeypatch.setattr(sys, "argv", ["run.py", *flags, "--output", "next", "--device", "cpu"])
    kept: list[torch.device] = []
    monkeypatch.setattr(malmoi.pretrain.runner, "keep_freed_memory", kept.append)
    assert run_command(PretrainSettings, malmoi.pretrain.run.main, "") == 0
    assert kept == [torch.device("cpu")]
    before, after = weights_of(finished), weights_of(tmp_path / "next")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert (tmp_path / "next" / "generator" / "tokenizer.json").read_bytes() == (
        finished / "generator" / "tokenizer.json"
    ).read_bytes()


@pytest.mark.parametrize(
    "flags",
    [
        ["--recipe", "mlm"],
        ["--recipe", "replace-mlm", "optimizer.name=muon"],
        ["--recipe", "adversarial"],
        ["--recipe", "two-stage"],
        ["--recipe", "gdes"],
        ["--recipe", "one-encoder"],
        ["objective.unigram_fraction=1"],
        ["--recipe", "few-tokens"],
        ["--recipe", "default"],
        ["--recipe", "electra"],
        ["--recipe", "stacked"],
    ],
    ids=" ".join,
)
def test_every_recipe_leaves_stock_networks(
    flags: list[str], pretrain_here: Command, tmp_path: Path
) -> None:
    code, _, errors = pretrain_here("--max-steps", "4", *flags)
    assert code == 0, errors
    folders = sorted(path.parent.name for path in (tmp_path / "run").glob("*/model.safetensors"))
    alone = "objective.unigram_fraction=1" in flags or "few-tokens" in flags
    assert folders == ["discriminator", *([] if alone else ["generator"])]
    for folder in folders:
        loader = ElectraForPreTraining if folder == "discriminator" else ElectraForMaskedLM
        model, info = loader.from_pretrained(tmp_path / "run" / folder, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"]
        assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_init_takes_the_name_of_a_released_model(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As --model of finetune/kfold.py does."""
    assert pretrain_here("--max-steps", "0", "--output", "first")[0] == 0
    released = tmp_path / "home" / "checkpoints" / "mine"
    released.parent.mkdir(parents=True)
    (tmp_path / "first").rename(released)
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path / "home"))
    code, _, errors = pretrain_here("--max-steps", "2", "--init", "mine")
    assert code == 0, errors
    # The record has the place, and --resume takes the name for it.
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["plan"]["start"]["init"] == str(released)
    unfinish(tmp_path / "run", before=2)
    assert pretrain_here("--max-steps", "2", "--init", "mine", "--resume")[0] == 0


def test_rows_longer_than_a_checkpoint_has_positions_are_refused_before_the_long_work(
    pretrain_here: Command, tmp_path: Path
) -> None:
    assert pretrain_here("--max-steps", "0", "--output", "first")[0] == 0
    for network in (ElectraForPreTraining, ElectraForMaskedLM):
        name = "generator" if network is ElectraForMaskedLM else "discriminator"
        folder = tmp_path / "first" / name
        model = network.from_pretrained(folder)
        model.electra.embeddings.position_embeddings.weight.data = (
            model.electra.embeddings.position_embeddings.weight.data[:66].clone()
        )
        model.config.max_position_embeddings = 66
        model.save_pretrained(folder)
    code, printed, errors = pretrain_here("--max-steps", "2", "--init", "first")
    assert code == 2 and "--max-length of at most 64" in errors and "found 128" in errors
    assert "cleaning" not in printed and not (tmp_path / "run").exists()
    assert pretrain_here("--max-steps", "2", "--init", "first", "--max-length", "64")[0] == 0
    flags = ["objective.schedule=frozen-generator", "generator.init=first", "--output", "other"]
    code, _, errors = pretrain_here("--max-steps", "2", *flags)
    assert code == 2 and "--max-length of at most 64" in errors


def test_a_frozen_generator_is_that_of_its_run(pretrain_here: Command, tmp_path: Path) -> None:
    assert pretrain_here("--max-steps", "2", "--output", "first")[0] == 0
    flags = ["objective.schedule=frozen-generator", "generator.init=first"]
    code, _, errors = pretrain_here("--max-steps", "3", *flags)
    assert code == 0, errors
    before, after = weights_of(tmp_path / "first"), weights_of(tmp_path / "run")
    names = [name for name in before if name.startswith("generator/")]
    assert all(torch.equal(before[name], after[name]) for name in names)
    changed = "discriminator/electra.encoder.layer.0.output.dense.weight"
    assert not torch.equal(before[changed], after[changed])


def test_a_discriminator_gets_a_generator_of_its_own_and_stays_as_it_is(
    pretrain_here: Command, tmp_path: Path
) -> None:
    assert (
        pretrain_here("--max-steps", "2", "objective.unigram_fraction=1", "--output", "first")[0]
        == 0
    )
    file = tmp_path / "first" / "discriminator" / "model.safetensors"
    with_signs = safetensors.torch.load_file(file)
    with_signs["electra.embeddings.word_embeddings.weight"][7, 0] = -0.0
    safetensors.torch.save_file(with_signs, file, metadata={"format": "pt"})
    before = weights_of(tmp_path / "first")
    flags = [
        "objective.schedule=frozen-discriminator",
        "--learning-rate",
        "5e-3",
        "--max-steps",
        "40",
    ]
    code, output, errors = pretrain_here(
        *flags, "optimizer.average_fraction=0.5", "--init", "first"
    )
    assert code == 0, errors
    after = weights_of(tmp_path / "run")
    assert not any(name.startswith("generator/") for name in before)
    # To the bit, a zero's sign included.
    assert all(before[n].numpy().tobytes() == after[n].numpy().tobytes() for n in before)
    # Only what learns is reported, and it does.
    assert "discriminator" not in output.split("pre-training:")[1].split("->")[0]
    losses = [row["generator_loss"] for row in metric_rows(tmp_path / "run")]
    assert sum(losses[-5:]) < sum(losses[:5])
    # From there both are gone on with.
    flags = ["--init", "run", "--max-steps", "0", "--output", "next"]
    assert pretrain_here(*flags)[0] == 0
    next_ = weights_of(tmp_path / "next")
    assert next_.keys() == after.keys()
    assert all(torch.equal(after[name], next_[name]) for name in after)


def test_a_frozen_generator_brings_its_tokenizer(
    pretrain_here: Command, tmp_path: Path, comments: list[str]
) -> None:
    """Its samples are ids: read by another tokenizer they would be other words."""
    other = tmp_path / "other"
    train_tokenizer(comments, vocab_size=2_048).save(other)
    assert pretrain_here("--max-steps", "1", "--output", "first", "--tokenizer", str(other))[0] == 0
    frozen = ["objective.schedule=frozen-generator", "generator.init=first", "--max-steps", "1"]
    code, output, errors = pretrain_here(*frozen)  # with the --tokenizer of the fixture
    assert code == 2 and errors.count("\n") == 1
    assert "expected --tokenizer with the tokenizer of the generator in first" in errors
    assert "cleaning" not in output and not (tmp_path / "run").exists()
    settings = PretrainSettings(
        corpus=tmp_path / "comments.txt",
        init="random",
        recipe="frozen-generator",
        set=(f"generator.init={tmp_path / 'first'}",),
        max_steps=1,
        tokens_per_batch=256,
        output=tmp_path / "run",
        device="cpu",
    )
    malmoi.pretrain.run.main(settings)
    hashes = [
        json.loads((tmp_path / name / "run.json").read_text())["tokenizer_hash"]
        for name in ("first", "run")
    ]
    assert hashes[0] == hashes[1]
    again = [*frozen, "--init", "first", "--tokenizer", "None"]
    code, _, errors = pretrain_here(*again, "--output", "again")
    assert code == 0, errors


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


BAD_CORPORA: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    "missing": (lambda d: d / "nowhere", ["nowhere"]),
    "column": (
        lambda d: write(d / "c.csv", "번호,평점\n1,5\n"),
        ["번호", "평점", "--set reading.no_header=true"],
    ),
    "short": (lambda d: write(d / "s.txt", "네\n응\n"), ["none left of 2", "too-short"]),
}


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command in this process, in an empty folder: (exit code, stdout, stderr)."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def call(*flags: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["run.py", *flags])
        code = run_command(PretrainSettings, malmoi.pretrain.run.main, "")
        out, err = capsys.readouterr()
        return code, out, err

    return call


def assert_refused(result: tuple[int, str, str], words: list[str]) -> None:
    """One line on stderr, exit code 2, and nothing in the working directory."""
    code, _, errors = result
    assert code == 2
    lines = errors.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    assert all(word in lines[0] for word in words), lines[0]
    assert not [path for path in Path().rglob("*") if path.is_file()]


@pytest.mark.parametrize("case", BAD_CORPORA)
def test_a_bad_corpus_is_one_line_and_writes_nothing(
    case: str, command: Command, tmp_path: Path
) -> None:
    make, words = BAD_CORPORA[case]
    inputs = tmp_path / "in"
    inputs.mkdir()
    assert_refused(command("--corpus", str(make(inputs)), "--max-steps", "1"), words)


def test_bad_flags_are_one_line_and_write_nothing(command: Command) -> None:
    """Those that only the command can see; what recipes contradict is in config/test_recipe.py."""
    for flags, named in {
        "--max-steps 1 --max-minutes 1": "--max-minutes",
        "--max-steps 1 --set length.max_flops=1e9": "length.max_flops",
        "--set masking.fraction=15": "masking.fraction",
        "--max-steps -1": "--max-steps",
        "--learning-rate 0": "--learning-rate",
        "--tokens-per-batch 64": "--tokens-per-batch",
        "--max-tokens inf": "--max-tokens",
        "--set objective.discriminator_weight=inf": "objective.discriminator_weight",
        "--init some/run --vocab-size 2048": "--init",
        "--resume": "runs/pretrain",
        "--resume --output no-run": "no-run",
        "--init no/such/run": "no/such/run",
        "--tokenizer no/such/tokenizer": "tokenizer.json",
        "--device tpu9": "--device",
        "--device cuda:99": "cuda:99",
        "--device cpu --set execution.compile=graphs": "execution.compile",
        "--set model.stacked=true --set execution.compile=on": "execution.compile",
        "--set generator.size=0.9": "0.9",
        "--recipe frozen-generator --set generator.init=no-run": "no-run/gen",
        "--recipe elektra": "electra",
        "--set objective.temprature=2": "objective.temperature",
        "--set temperature=2": "temperature=2",
        "--temperature 1.2": "--set objective.temperature=1.2",
        "--generator-from=run": "--set generator.init=run",
        "--forbid-original": "--set objective.forbid_original=true",
        "--no-adam-bias-correction --seed 1": "--set optimizer.adam_bias_correction=false",
    }.items():
        assert_refused(command("--corpus", str(COMMENTS), *flags.split()), [named])


def test_full_disk_while_saving_the_networks_leaves_no_half_model(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, directory: Path, *args: object, **kwargs: object) -> None:
        Path(directory).mkdir(parents=True, exist_ok=True)
        (Path(directory) / "config.json").write_text("{}")
        # What the Rust half of safetensors raises: not an OSError.
        raise safetensors.SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        )

    with monkeypatch.context() as patched:
        patched.setattr(ElectraForPreTraining, "save_pretrained", full)
        assert pretrain_here("--max-steps", "2")[0] == 2
    assert not (tmp_path / "run" / "discriminator").exists()
    assert not list((tmp_path / "run").glob(".networks*"))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "running"
    assert pretrain_here("--max-steps", "2", "--resume")[0] == 0
    assert (tmp_path / "run" / "discriminator" / "model.safetensors").is_file()
