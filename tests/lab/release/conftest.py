"""The recipe of the released checkpoints with stand-ins for what takes hours."""

import gzip
import hashlib
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from tests.malmoi.finetune.conftest import classifier_directory, encoder
from tests.malmoi.pretrain.conftest import plan_of as pretrain_plan

__all__ = ["classifier_directory", "encoder"]

ROOT = Path(__file__).parents[3]
STEPS = 20
NAMES = {"reviews": "malmoi-medium-reviews", "memos": "malmoi-small-memos"}
RATED = [f"{n}\t1\t20180101\t{n % 10 + 1}\t영화 감상 {n} 번째\n" for n in range(300)]


def plan_of(**given: Any) -> dict[str, Any]:
    """A plan of 50 million tokens with seed 7 as run.json has it, of flags and of keys."""
    start = given.pop("init", "random")
    planned = pretrain_plan(
        **{"recipe": "noise", "seed": 7, "max_tokens": 5e7, "init": "random"} | given
    ).as_json()
    planned["start"]["init"] = start  # what a test goes on from need not be there
    planned["execution"]["threads"] = 2
    return planned


RECORD: dict[str, Any] = {
    "plan": plan_of(init="skip-gram"),
    "networks": {
        "discriminator": {"parameters": 7_420_161, "num_hidden_layers": 4, "hidden_size": 256}
    },
    "vocab_size": 32_000,
    "progress": {"tokens": 49_999_999, "step": 12_345, "seconds": 7_200},
    "device": "cpu",
}
CORPUS = {
    "sources": {
        "ChatbotData.csv": {"kept": 14_455},
        "val.tsv": {"kept": 4_919},
        "petitions_2": {"kept": 3},
        "kosbi_test.json": {"kept": 4},
        "square_topic.json": {"kept": 5},
    }
}
REPORT = {
    "folds": [{"macro_f1": 0.8}, {"macro_f1": 0.82}],
    "calibration": {"ece_before": 0.1083, "ece_after": 0.0337},
    "seconds": 600.0,
    "data": {"per_label": {"꿈": 500, "오류": 501}},
    "by_origin": {"rated": {"texts": 1000, "macro_f1": 0.7}},
}


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """lab/release/making.py: what lab/release/make.py does."""
    return importlib.import_module("lab.release.making")


@pytest.fixture(scope="session")
def small_recipe() -> list[str]:
    """A recipe of seconds."""
    recipe = ["--init", "random", "--vocab-size", "2000", "--tokens-per-batch", "512"]
    recipe += ["--recipe", "few-tokens"]
    return [
        *recipe,
        "--set",
        "objective.bag_weight=5",
        "--set",
        f"execution.log_steps={STEPS // 2}",
    ]


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A run of a little more than `STEPS` steps by the small recipe.

    Attributes:
        corpus: what it was trained on.
        run: its folder; to be copied, not changed.
        cache: `runs` of the working directory, with its tokenizer and tokens.
    """

    corpus: Path
    run: Path
    cache: Path


@pytest.fixture(scope="session")
def trained(
    small_recipe: list[str], comments: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Encoder:
    """Trained once for all tests that go on from it."""
    folder = tmp_path_factory.mktemp("trained")
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(comments[:400]) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        pretrain = importlib.import_module("lab.release.sittings").pretrain
        assert pretrain(corpus, folder / "encoder", STEPS * 512, 60, small_recipe)
    return Encoder(corpus=corpus, run=folder / "encoder", cache=folder / "runs")


@pytest.fixture
def cards(release: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """lab/release/cards.py, with nothing measured yet."""
    monkeypatch.setattr(
        sys.modules["lab.release.scores_table"], "QUALITY", tmp_path / "quality.json"
    )
    return sys.modules["lab.release.cards"]


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_weights(folder: Path, weights: bytes = b"weights") -> str:
    """Files that are taken for an encoder where nothing loads it; the SHA-256 of its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"model_type": "electra", "num_hidden_layers": 12}')
    content = safetensors.numpy.save({"weights": np.frombuffer(weights, dtype=np.uint8)})
    (folder / "model.safetensors").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def write_reviews(folder: Path, lines: Sequence[str], header: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join([header or "id\tmovie_id\tdate\trating\tdocument\n", *lines])
    # Without the time in gzip's header, so that the same reviews have the same hash a second later.
    data = gzip.compress(text.encode(), mtime=0)
    (folder / "reviews_rated.tsv.gz").write_bytes(data)
    return folder


def write_records(output: Path) -> Path:
    """A folder with the records of a release."""
    write_json(output / "malmoi-small" / "run.json", RECORD)
    write_json(output / "malmoi-small" / "corpus.json", CORPUS)
    write_weights(output / "malmoi-small")
    for name in NAMES.values():
        write_json(output / name / "report.json", REPORT)
    return output


def written_reviews() -> dict[str, str]:
    """The project's own, by lab/release/review_texts.py, which `release` has loaded."""
    texts: dict[str, str] = sys.modules["lab.release.review_texts"].written_reviews()
    return texts


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """What `write_records` writes."""
    return write_records(tmp_path / "checkpoints")


@pytest.fixture
def small(
    release: ModuleType, small_recipe: list[str], monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    """lab/release/making.py with a recipe of seconds."""
    monkeypatch.setattr(release, "RECIPE", small_recipe)
    return release
