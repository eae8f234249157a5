"""An ELECTRA classifier of ours is exported without torch, and answers as the stock model does."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from transformers import ElectraForSequenceClassification

from malmoi import cache
from malmoi.inference import processor
from malmoi.inference.classifier import Classifier
from malmoi.inference.electra_export import can_export
from malmoi.inference.onnx_exports import entry_path, find_exported
from malmoi.inference.stock import load_stock
from malmoi.inference.tokenizing import serialized_tokenizer
from malmoi.text.reading.records import iter_records
from malmoi.transformers_models import save_model, take_typed_tokens_as_text
from tests.malmoi.finetune.conftest import LABELS, make_tokenizer, separable, tiny_config

ROOT = Path(__file__).parents[3]
RELEASED = ROOT / "checkpoints" / "malmoi-medium-reviews"
# Runs `malmoi` and says at the end what was imported.
OBSERVED = """
import sys
from malmoi.__main__ import main
code = main(sys.argv[1:])
print({"torch", "transformers", "pandas"} & sys.modules.keys(), file=sys.stderr)
sys.exit(code)
"""

SaveModel = Callable[..., Path]


@pytest.fixture
def save_classifier(tmp_path: Path) -> SaveModel:
    """Save a classifier with random weights as k-fold does; keywords go into its configuration."""

    def save(name: str = "model", **changes: object) -> Path:
        tokenizer = make_tokenizer()
        take_typed_tokens_as_text(tokenizer)
        torch.manual_seed(3)
        named = {"id2label": dict(enumerate(LABELS)), "initializer_range": 0.3}
        config = tiny_config(tokenizer, **(named | changes))
        folder = tmp_path / name
        folder.mkdir()
        save_model(ElectraForSequenceClassification(config), tokenizer, folder)
        return folder

    return save


def probabilities(folder: Path, engine: str, texts: list[str]) -> np.ndarray:
    found = Classifier.load(folder, engine).predict(texts)
    return np.array([list(one.probabilities.values()) for one in found])


def test_the_first_answer_of_a_released_classifier_needs_no_torch(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").symlink_to(RELEASED.parent)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", OBSERVED, "predict", "-", f"--model={RELEASED.name}"]
            + ["--output=-"],
            input='{"text": "배송이 빨라요"}\n',
            cwd=tmp_path,
            env={**os.environ, "MALMOI_HOME": str(tmp_path), "MALMOI_ENGINE": "auto"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "set()\n")
        assert json.loads(done.stdout)["label"] == "긍정"
    (entry,) = (tmp_path / "runs" / "cache" / "onnx").iterdir()
    assert (entry / "int8.onnx").stat().st_size < 15_000_000
    for network in entry.glob("*.onnx"):
        onnx.checker.check_model(network, full_check=True)


def test_its_networks_agree_with_the_stock_model() -> None:
    stock = load_stock(RELEASED)
    texts = [record.text for record in iter_records(ROOT / "corpora" / "reviews")][::25]
    exact = probabilities(RELEASED, "torch-fp32", texts)
    assert np.abs(probabilities(RELEASED, "onnx-fp32", texts) - exact).max() < 1e-4
    quantized = probabilities(RELEASED, "onnx-int8", texts)
    assert np.mean(quantized.argmax(1) == exact.argmax(1)) >= 0.995
    assert np.abs(quantized - exact).max() < 0.1
    exported = find_exported(entry_path(RELEASED))
    assert exported is not None and exported.description == stock.description
    assert exported.tokenizer == serialized_tokenizer(stock.tokenizer)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_hidden_layers": 1, "id2label": {0: "꿈", 1: "일기"}},
        {"embedding_size": 32, "type_vocab_size": 1, "num_attention_heads": 4},
    ],
)
def test_any_size_and_number_of_labels(changes: dict, save_classifier: SaveModel) -> None:
    folder = save_classifier(**changes)
    assert can_export(folder)
    texts = [text for text, _ in separable()] + ["", "[SEP] 꿈 [MASK]", "꿈에서 날았다 " * 40]
    exact = probabilities(folder, "torch-fp32", texts)
    assert np.abs(probabilities(folder, "onnx-fp32", texts) - exact).max() < 1e-4
    assert np.abs(probabilities(folder, "onnx-int8", texts) - exact).max() < 0.15


def test_what_does_not_fit_is_left_to_torch(save_classifier: SaveModel) -> None:
    """Of another function, of weights that are not those of the configuration, of a tokenizer."""
    other = save_classifier("other", hidden_act="relu")
    assert not can_export(other)
    folder = save_classifier()
    for name, changes in (
        ("config.json", {"num_hidden_layers": 3}),
        ("config.json", {"num_attention_heads": 5}),
        ("config.json", {"vocab_size": None}),
        ("tokenizer_config.json", {"tokenizer_class": "ElectraTokenizer"}),
        ("tokenizer_config.json", {"split_special_tokens": False}),
    ):
        changed = shutil.copytree(folder, folder.parent / "changed")
        stated = json.loads((changed / name).read_text("utf-8"))
        (changed / name).write_text(json.dumps(stated | changes))
        assert not can_export(changed), changes
        shutil.rmtree(changed)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert not can_export(folder)


def test_nothing_has_to_be_kept(
    save_classifier: SaveModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MALMOI_ENGINE", "auto")
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")
    folder = save_classifier()
    found = Classifier.load(folder)
    assert found.engine == processor.suited_engine()
    assert (
        found.predict(["꿈"])[0].label == Classifier.load(folder, "torch").predict(["꿈"])[0].label
    )


def test_the_engine_by_what_the_processor_can_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processor.platform, "system", lambda: "Linux")
    monkeypatch.setattr(processor, "_FACTS", tmp_path / "cpuinfo")
    assert processor.suited_engine() == "onnx-fp32"
    for line, engine in (
        ("flags\t\t: fpu avx2 avx512f avx512bw", "onnx-fp32"),
        ("flags\t\t: fpu avx2 avx_vnni", "onnx-int8"),
        ("flags\t\t: avx512_vnni", "onnx-int8"),
        ("Features\t: fp asimd asimddp", "onnx-int8"),
    ):
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: avx_vnni?\n{line}\n")
        assert processor.suited_engine() == engine, line
