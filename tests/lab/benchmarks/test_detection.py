"""How well discriminators find replaced tokens: what is masked, counted and refused."""

import json
import math
from pathlib import Path

import pytest
import torch
from transformers import ElectraForMaskedLM, ElectraForPreTraining

from lab.benchmarks.quality.detection import DetectionSettings, _figures, main
from tests.malmoi.finetune.conftest import make_tokenizer, tiny_config


def test_figures_of_one_who_knows_and_of_one_who_says_the_base_rate() -> None:
    replaced = torch.arange(10_000) % 10 == 0
    knows = _figures(torch.where(replaced, 9.0, -9.0), replaced)
    assert knows["auc"] == knows["recall"] == 100
    assert knows["loss"] < 0.001 and knows["replaced"] == pytest.approx(10)
    base_rate = torch.full((10_000,), 0.1).logit()
    says_it = _figures(base_rate, replaced)
    assert says_it["auc"] == pytest.approx(50)
    assert says_it["loss"] == pytest.approx(says_it["base_rate_loss"], rel=1e-4)
    guesses = _figures(torch.randn(10_000, generator=torch.Generator().manual_seed(0)), replaced)
    assert guesses["recall"] == pytest.approx(5, abs=2)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A released encoder's folder, tiny and random."""
    tokenizer = make_tokenizer()
    folder = tmp_path / "pair"
    for place, kind in (
        (folder, ElectraForPreTraining),
        (folder / "generator", ElectraForMaskedLM),
    ):
        torch.manual_seed(0)
        kind(tiny_config(tokenizer)).save_pretrained(place)
        tokenizer.save_pretrained(place)
    return folder


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """A folder with NSMC's test file, of ten reviews."""
    lines = [f"{number}\t배우 연기가 정말 좋았던 영화 {number}\t1" for number in range(10)]
    (tmp_path / "nsmc").mkdir()
    text = "\n".join(["id\tdocument\tlabel", *lines]) + "\n"
    (tmp_path / "nsmc" / "ratings_test.txt").write_text(text, encoding="utf-8")
    return tmp_path


def test_one_that_says_the_same_of_every_token_finds_nothing(
    pair: Path, reviews: Path, tmp_path: Path
) -> None:
    output = tmp_path / "detection.json"
    network = ElectraForPreTraining.from_pretrained(pair)
    torch.nn.init.zeros_(network.discriminator_predictions.dense_prediction.weight)
    network.save_pretrained(pair)
    main(DetectionSettings(models=str(pair), data=reviews, output=output))
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert [row["way"] for row in rows] == ["own generator", "by frequency", "any entry"]
    for row in rows:
        assert row["mean"]["auc"] == pytest.approx(50)
        assert row["mean"]["loss"] == pytest.approx(math.log(2), abs=1e-3)
        assert 0 < row["mean"]["replaced"] < 25
