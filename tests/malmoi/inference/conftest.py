"""The small models of the fine-tuning tests, and a cache of exports that tests share."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import ElectraForSequenceClassification

from malmoi import cache
from malmoi.inference.linear.cross_fitting import fit_linear
from malmoi.inference.linear.fitting import count_texts
from malmoi.inference.linear.stacking import Stack
from tests.malmoi.finetune.conftest import (
    LABELS,
    classifier_directory,
    encoder,
    make_tokenizer,
    separable,
)
from tests.malmoi.finetune.conftest import tiny_config as tiny

__all__ = ["classifier_directory", "encoder"]

MakeModel = Callable[..., Path]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of exports; making one takes seconds."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> None:
    monkeypatch.setattr(cache, "CACHE", shared_cache)


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """Save a classifier with random weights; keywords go into its configuration."""

    def make(name: str, **changes: object) -> Path:
        directory = tmp_path_factory.mktemp(name) / name
        tokenizer = make_tokenizer()
        names = {"id2label": dict(enumerate(LABELS)), "initializer_range": 0.3}
        torch.manual_seed(3)
        config = tiny(tokenizer, **(names | changes))
        ElectraForSequenceClassification(config).save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        return directory

    return make


@pytest.fixture(scope="session")
def several_labels_model(make_model: MakeModel) -> Path:
    """Any number of three labels, with thresholds."""
    return make_model(
        "several",
        problem_type="multi_label_classification",
        finetune_task="multi",
        thresholds=[0.3, 0.5, 0.9],
    )


@pytest.fixture(scope="session")
def pairs_model(make_model: MakeModel) -> Path:
    """One label of two texts."""
    return make_model("pairs", finetune_task="pair")


@pytest.fixture(scope="session")
def values_model(make_model: MakeModel) -> Path:
    """A value of two texts."""
    return make_model(
        "values",
        problem_type="regression",
        finetune_task="pair-regression",
        id2label={0: "score"},
    )


@pytest.fixture(scope="session")
def linear_model(make_model: MakeModel) -> Path:
    """An encoder that knows nothing, a linear part that knows the labels, and a temperature."""
    directory = make_model("with-linear")
    texts, labels = zip(*separable(), strict=True)
    part = fit_linear(
        count_texts(texts, morphemes=None),
        np.array([LABELS.index(label) for label in labels]),
        LABELS,
        Stack(weights={"encoder": 0.7, "characters": 2.0}),
        encoder="encoder",
    )
    part.save(directory)
    (directory / "calibration.json").write_text(json.dumps({"temperature": 2.5}))
    return directory
