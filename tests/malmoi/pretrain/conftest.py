"""A small tokenizer and pair that the pre-training tests share, and the command in this process."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerFast

import malmoi.pretrain.data.corpus
import malmoi.pretrain.run
from malmoi.command_line import run_command
from malmoi.pretrain.config.defaults import PRESETS, Preset
from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.config.run_config import RunConfig, read_config
from malmoi.pretrain.config.run_plan import RunPlan
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.pretrain.data.batches import Batch
from malmoi.pretrain.engine.loop import Trainer
from malmoi.pretrain.model.networks import ElectraPair, PairShape, build_pair
from malmoi.pretrain.objectives.registry import resolve_recipe
from malmoi.pretrain.objectives.vocabulary import VocabularyTables, vocabulary_tables
from malmoi.pretrain.plan import Checkpoint, Machine, plan
from malmoi.tokenizer.training import train_tokenizer

SMALL = Preset(
    num_layers=2,
    hidden_size=64,
    num_heads=4,
    embedding_size=32,
    learning_rate=2e-3,
    tokens_per_batch=512,
)
_is_key = re.compile(r"\w+\.\w+=").match
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

    It begins with random weights, trains a generator too (recipe rtd) and is written to `run`,
    unless --init, --recipe and --output say otherwise; a key that is set here may be set again.
    A word such as `objective.name=mlm` is a key of --set.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(malmoi.pretrain.data.corpus, "CACHE", cache)
    monkeypatch.setitem(PRESETS, "tiny", SMALL)
    if not (cache / "tokenizer").is_dir():
        tokenizer.save_pretrained(cache / "tokenizer")
    anew = ["--init", "random", "--tokenizer", str(cache / "tokenizer")]
    fixed = ["--corpus", str(corpus), "--tokens-per-batch", "256", "--device", "cpu"]
    fixed += ["--recipe", "rtd"]

    def call(*flags: str) -> tuple[int, str, str]:
        output = [] if "--output" in flags else ["--output", "run"]
        start = [] if "--init" in flags else anew
        often = keys_unless(flags, save_steps=4, log_steps=2)
        words = [word for flag in flags for word in (("--set", flag) if _is_key(flag) else (flag,))]
        monkeypatch.setattr(sys, "argv", ["run.py", *fixed, *start, *output, *often, *words])
        code = run_command(PretrainSettings, malmoi.pretrain.run.main, "")
        out, err = capsys.readouterr()
        return code, out, err

    return call


def keys_unless(flags: Sequence[str], **execution: int) -> list[str]:
    """These keys of [execution] as flags, but for those that `flags` set."""
    keys = {f"execution.{name}": value for name, value in execution.items()}
    given = {flag.partition("=")[0] for flag in flags}
    return [word for key, n in keys.items() if key not in given for word in ("--set", f"{key}={n}")]


def config_of(**given: Any) -> RunConfig:
    """What a command is given, by flags and by keys as they could be called: `temperature=2`."""
    flags = {item.name for item in fields(PretrainSettings)}
    assignments = tuple(
        f"{PretrainSettings.KEYS[name]}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in given.items()
        if name not in flags
    )
    named = {name: value for name, value in given.items() if name in flags}
    return read_config(PretrainSettings(**{"corpus": Path("-"), "set": assignments} | named))


CPU = Machine(device="cpu", prefers_bf16=False)
GPU = Machine(device="cuda", prefers_bf16=True)


def plan_of(
    *,
    machine: Machine = CPU,
    checkpoint: Checkpoint | None = None,
    tokens: int = 1_000,
    **given: Any,
) -> RunPlan:
    """The plan of a run on a corpus of so many tokens, [CLS] and [SEP] counted, in texts of ten."""
    lengths = np.full(tokens // 10, 8)
    return plan(config_of(**given), lengths=lengths, checkpoint=checkpoint, machine=machine)


@pytest.fixture
def break_off(pretrain_here: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Breaking:
    """A run whose power goes off after so many steps: no checkpoint, no farewell."""

    def broken(after: int, *flags: str, output: str = "run") -> Path:
        step = Trainer.take_step

        def until(self: Trainer, *args: Any) -> Any:
            if self.progress.step >= after:
                raise RuntimeError("power off")
            return step(self, *args)

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "take_step", until)
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


# Wide enough first weights that the networks' outputs differ from token to token.
TOY = Preset(
    num_layers=2,
    hidden_size=32,
    num_heads=4,
    embedding_size=16,
    learning_rate=2e-3,
    tokens_per_batch=512,
    initializer_range=0.2,
)
TOY_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"]
TOY_WORDS = [*"가나다라마바사아자차카타", *(f"##{c}" for c in "고노도로모보소오")]


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A vocabulary of 26 entries, so that whole distributions are cheap to write out."""

    tokenizer: PreTrainedTokenizerFast
    tables: VocabularyTables
    counts: np.ndarray
    """int64 [V]."""

    def pair(self, *, seed: int = 0, **shape: Any) -> ElectraPair:
        """An untrained pair; `shape` as in `PairShape`."""
        torch.manual_seed(seed)
        pair = build_pair(TOY, self.tokenizer, shape=PairShape(**shape))
        pair.set_attention("eager")
        return pair

    def pair_for(self, recipe: Recipe, sharing: str = "instance") -> ElectraPair:
        """An untrained pair with all that a recipe needs, its biases not zero."""
        size = 1.0 if sharing == "all" else 0.5
        shape = resolve_recipe(recipe).pair_shape(
            sharing=sharing,  # type: ignore[arg-type]
            generator_size=size,
            generator_layers=None,
        )
        pair = self.pair(**vars(shape))
        for name, parameter in pair.named_parameters():
            if name.endswith(("bias", "delta")):  # zero at the start, so mistakes would not show
                torch.nn.init.normal_(parameter, std=0.1)
        return pair

    def batch(self, rows: list[list[int]], *, packed: bool = False, seed: int = 0) -> Batch:
        """Random texts, framed. `rows`: the tokens of each text, row by row; padded by 3.

        One token in ten is unknown.
        """
        random = np.random.default_rng(seed)
        width = max(sum(size + 2 for size in row) for row in rows) + 3
        ids, documents, positions = np.zeros((3, len(rows), width), dtype=np.int64)
        for row, sizes in enumerate(rows):
            begin = 0
            for number, size in enumerate(sizes):
                words = random.integers(len(TOY_SPECIAL), len(self.tokenizer), size)
                words[random.random(size) < 0.1] = self.tokenizer.unk_token_id
                part = slice(begin, begin + size + 2)
                ids[row, part] = [self.tokenizer.cls_token_id, *words, self.tokenizer.sep_token_id]
                documents[row, part] = number + 1
                positions[row, part] = np.arange(size + 2)
                begin += size + 2
        framing = [self.tokenizer.cls_token_id, self.tokenizer.sep_token_id]
        real = documents > 0
        return Batch(
            input_ids=torch.from_numpy(ids),
            maskable=torch.from_numpy(real & ~np.isin(ids, framing)),
            is_real=torch.from_numpy(real),
            position_ids=torch.from_numpy(positions) if packed else None,
            documents=torch.from_numpy(documents) if packed else None,
            num_tokens=int(real.sum()),
        )


@pytest.fixture(scope="session")
def toy() -> Toy:
    vocabulary = {token: index for index, token in enumerate([*TOY_SPECIAL, *TOY_WORDS])}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordPiece(vocabulary, unk_token="[UNK]")),
        **{f"{token.strip('[]').lower()}_token": token for token in TOY_SPECIAL[:5]},
    )
    counts = np.random.default_rng(1).integers(0, 200, len(vocabulary))
    tables = vocabulary_tables(tokenizer, len(vocabulary), counts, torch.device("cpu"))
    return Toy(tokenizer=tokenizer, tables=tables, counts=counts)
