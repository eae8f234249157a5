"""The generator that is released beside the encoder: trained after it, and again alone."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copy, copytree
from types import ModuleType
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForPreTraining

from malmoi.errors import InputError
from tests.release.conftest import CORPUS, REPORT, STEPS, Encoder, write_json


def test_a_generator_is_trained_after_the_encoder_and_again_for_the_released_one(
    small: ModuleType,
    cards: ModuleType,
    trained: Encoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    copytree(trained.cache, tmp_path / "runs")
    corpus = Path(copy(trained.corpus, tmp_path))
    sources: list[Any] = []
    monkeypatch.setattr(small, "_corpus", lambda _, *of: sources.append(of) or corpus)
    often = ["--tokens-per-batch", "512", "--set", "execution.log_steps=2"]
    monkeypatch.setattr(small, "GENERATOR", [*small.GENERATOR, *often])
    monkeypatch.setattr(small, "GENERATOR_SHARE", 2)
    settings = small.ReleaseSettings(work=tmp_path / "work", tokens=STEPS * 512)
    encoder = Path(copytree(trained.run, settings.work / "encoder"))
    assert not (encoder / "generator").exists()
    assert small._train_generator(corpus, encoder, settings, settings.tokens, 60)
    write_json(settings.work / "corpus" / "report.json", CORPUS)
    write_json(settings.work / "settings.json", {"reviews_sha256": "0", "sources": "kote"})
    for task in ("reviews", "memos"):
        write_json(settings.work / task / "report.json", REPORT)
    assert not small._train_generator(corpus, encoder, settings, 1, 0)  # no time is left
    monkeypatch.setattr(small, "pack_classifier", lambda run, folder: copytree(run, folder))
    monkeypatch.setattr(small, "scores_by_origin", lambda path: REPORT["by_origin"])
    settings.output = tmp_path / "output"
    small._release(settings)
    released = settings.output / "malmoi-small"
    ours, theirs = (
        AutoModelForPreTraining.from_pretrained(released),
        AutoModelForMaskedLM.from_pretrained(released / "generator"),
    )
    weights = [model.electra.embeddings.word_embeddings.weight for model in (ours, theirs)]
    assert torch.equal(*weights)
    card = (released / "README.md").read_text(encoding="utf-8")
    assert "| layers and width | 4, 256 | 4, 64 |" in card
    # Again, for the encoder as it was released, in half precision.
    before = (released / "model.safetensors").read_bytes()
    with pytest.raises(InputError, match="generator made with generator_encoder_sha256"):
        small.remake_generator(settings)
    settings.work = tmp_path / "again"
    settings.tokens *= 2
    (released / "corpus.json").rename(tmp_path / "corpus.json")
    with pytest.raises(InputError, match=r"expected .*corpus\.json, found none"):
        small.remake_generator(settings)
    (tmp_path / "corpus.json").rename(released / "corpus.json")
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["release.check"], "corpus_hash", lambda path: "another")
        with pytest.raises(InputError, match=r"found another \(another\); of other texts"):
            small.remake_generator(settings)
    # By default as long as the released encoder's, whatever a new one would see, on its texts.
    with monkeypatch.context() as patch:
        seen: list[float] = []
        patch.setattr(small, "_train_generator", lambda *arguments: seen.append(arguments[3]))
        small.remake_generator(replace(settings, tokens=None))
        assert seen == [STEPS * 512] and sources[-1] == (("chatbot", "kote", "korean_safety"),)
    assert not settings.work.exists()
    first = generator_losses(released)
    small.remake_generator(settings)
    record = json.loads((released / "generator" / "run.json").read_text(encoding="utf-8"))
    assert record["plan"]["length"]["amount"] == pytest.approx(4 * STEPS * 512)
    assert str(tmp_path) not in json.dumps(record)
    assert (released / "model.safetensors").read_bytes() == before
    # A new one: it begins as the first did.
    again = generator_losses(released)
    assert len(again) > len(first) and again[0] > first[-1]
    # An encoder that goes on from the released one has its generator go on, too.
    settings.work, settings.init = tmp_path / "further", released
    assert small._train_generator(corpus, released, settings, settings.tokens, 60)
    metrics = settings.work / "generator" / "metrics.jsonl"
    further = [json.loads(row)["generator_loss"] for row in metrics.read_text().splitlines()]
    # With so small a vocabulary 93 steps take 0.4 off; two new ones differ by less than 0.1.
    assert further[0] < again[0] - 0.25
    theirs = AutoModelForMaskedLM.from_pretrained(settings.work / "generator" / "generator")
    weights = [model.electra.embeddings.word_embeddings.weight for model in (ours, theirs)]
    assert torch.equal(*weights)
    assert {path.name for path in settings.output.iterdir()} == {
        f"malmoi-small{task}" for task in ("", "-reviews", "-memos")
    }


def generator_losses(released: Path) -> list[float]:
    rows = (released / "generator" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row)["generator_loss"] for row in rows]
