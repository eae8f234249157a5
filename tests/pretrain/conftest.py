"""A small tokenizer and pair that the pre-training tests share, and the command in this process."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from transformers import PreTrainedTokenizerFast

import pretrain.run
from corpora.command_line import run_command
from pretrain.loop import Trainer
from pretrain.networks import ElectraPair, build_pair
from pretrain.settings import PRESETS, Preset, PretrainSettings
from tokenizer.training import train_tokenizer

SMALL = Preset(
    num_layers=2,
    hidden_size=64,
    num_heads=4,
    embedding_size=32,
    learning_rate=2e-3,
    tokens_per_batch=512,
)
Command = Callable[..., tuple[int, str, str]]
Breaking = Callable[..., Path]


@pytest.fixture(scope="session")
def tokenizer(comments: list[str]) -> PreTrainedTokenizerFast:
    return train_tokenizer(comments, vocab_size=4_096).tokenizer


@pytest.fixture
def pair(tokenizer: PreTrainedTokenizerFast) -> ElectraPair:
    torch.manual_seed(0)
    return build_pair(SMALL, tokenizer)


@pytest.fixture
def corpus(tmp_path: Path, comments: list[str]) -> Path:
    """200 comments in a file."""
    path = tmp_path / "comments.txt"
    path.write_text("\n".join(comments[:200]), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def pretrain_here(
    corpus: Path,
    cache: Path,
    tokenizer: PreTrainedTokenizerFast,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """The command in this process, with a tiny preset of two layers: (exit code, stdout, stderr).

    Its run is written to `run`, unless --output names another.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pretrain.run, "CACHE", cache)
    monkeypatch.setitem(PRESETS, "tiny", SMALL)
    if not (cache / "tokenizer").is_dir():
        tokenizer.save_pretrained(cache / "tokenizer")
    fixed = ["--corpus", str(corpus), "--init", "random", "--tokenizer", str(cache / "tokenizer")]
    fixed += ["--tokens-per-batch", "256", "--save-steps", "4", "--log-steps", "2"]
    fixed += ["--device", "cpu"]

    def call(*flags: str) -> tuple[int, str, str]:
        output = [] if "--output" in flags else ["--output", "run"]
        monkeypatch.setattr(sys, "argv", ["run.py", *fixed, *output, *flags])
        code = run_command(PretrainSettings, pretrain.run.main, "")
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def break_off(pretrain_here: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Breaking:
    """A run whose power goes off after so many steps: no checkpoint, no farewell."""

    def broken(after: int, *flags: str, output: str = "run") -> Path:
        step = Trainer._step

        def until(self: Trainer, *args: Any) -> Any:
            if self.progress.step >= after:
                raise RuntimeError("power off")
            return step(self, *args)

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "_step", until)
            with pytest.raises(RuntimeError, match="power off"):
                pretrain_here(*flags, "--output", output)
        return tmp_path / output

    return broken


def weights_of(directory: Path) -> dict[str, torch.Tensor]:
    """Both networks of a run as they are handed out."""
    return {
        f"{path.parent.name}/{name}": tensor
        for path in sorted(directory.glob("*/model.safetensors"))
        for name, tensor in safetensors.torch.load_file(path).items()
    }


def checkpoints(directory: Path) -> list[str]:
    """Names of what lies in a run's state beside the tokenizer, hidden ones included."""
    names = [path.name for path in (directory / "state").iterdir()]
    return sorted(name for name in names if name != "tokenizer")


def unfinish(directory: Path, *, before: int) -> None:
    """Turn a complete run into one that was killed after the checkpoint before `before`."""
    record = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps(record | {"status": "running"}))
    for path in (directory / "state").glob("step-*"):
        if int(path.name.removeprefix("step-")) >= before:
            shutil.rmtree(path)


def metric_rows(directory: Path) -> list[dict[str, float]]:
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
