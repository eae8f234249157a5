"""The training loop: determinism, schedule, groups, batches; and the scores."""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from transformers import PreTrainedModel

from malmoi.errors import InputError
from malmoi.finetune.evaluation.scores import score
from malmoi.finetune.plan import TrainingPlan, plan_training
from malmoi.finetune.settings import TrainSettings
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.finetune.training.fit import (
    TrainingData,
    parameter_groups,
    shuffled_batches,
    steps_in,
    train,
    train_classifier,
)
from malmoi.inference.batching import tokenize_all
from malmoi.inference.torch_engine import DeviceTokens
from tests.malmoi.finetune.conftest import LABELS, make_tokenizer, separable

TEXTS = [text for text, _ in separable()]
IDS = [LABELS.index(label) for _, label in separable()]


@pytest.fixture(scope="module")
def untrained(encoder: Path) -> PreTrainedModel:
    return load_for_classification(encoder, LABELS)


def planned(hidden_size: int = 32, *, random_weights: bool = False, **given: Any) -> TrainingPlan:
    return plan_training(
        TrainSettings(**given),
        hidden_size=hidden_size,
        longest_input=64,
        texts=len(TEXTS),
        random_weights=random_weights,
    )


def trained(model: PreTrainedModel, seed: int = 42) -> dict[str, torch.Tensor]:
    copied = copy.deepcopy(model)
    own = TrainSettings(epochs=1, batch_size=16)
    train_classifier(copied, make_tokenizer(), TEXTS, IDS, own, seed=seed)
    assert all(value.dtype == torch.float32 for value in copied.parameters())
    assert not copied.training
    return copied.state_dict()


def test_the_seed_decides_everything(untrained: PreTrainedModel) -> None:
    first, second = trained(untrained, seed=7), trained(untrained, seed=7)
    other = trained(untrained, seed=8)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_progress_counts_every_step(untrained: PreTrainedModel) -> None:
    seen: list[tuple[int, int]] = []
    settings = TrainSettings(epochs=2, batch_size=20)
    model = copy.deepcopy(untrained)
    train_classifier(model, make_tokenizer(), TEXTS, IDS, settings, lambda *step: seen.append(step))
    assert seen == [(step, 8) for step in range(1, 9)]
    assert steps_in(len(TEXTS), planned(epochs=2, batch_size=20)) == 8


def test_a_diverging_loss_is_named(untrained: PreTrainedModel) -> None:
    broken = copy.deepcopy(untrained)
    with torch.no_grad():
        broken.classifier.out_proj.weight[0, 0] = float("nan")
    with pytest.raises(InputError) as caught:
        trained(broken)
    assert str(caught.value) == (
        "the loss became nan at step 1 of 4 with learning rate 0.0003; use a lower --learning-rate"
    )


def test_bad_settings() -> None:
    for changes, expected in (
        ({"epochs": 0}, "expected training.epochs of at least 1, found 0"),
        ({"learning_rate": 0.0}, "expected training.learning_rate above 0 and at most 1, found 0"),
        ({"layer_decay": 1.5}, "expected training.layer_decay above 0 and at most 1, found 1.5"),
        (
            {"learning_rate": float("nan")},
            "expected training.learning_rate above 0 and at most 1, found nan",
        ),
        (
            {"warmup_fraction": 1.0},
            "expected training.warmup_fraction from 0 to below 1, found 1",
        ),
        ({"weight_decay": -1.0}, "expected training.weight_decay of at least 0, found -1"),
        ({"batch_size": 0}, "expected training.batch_size of at least 1, found 0"),
        ({"max_length": 2}, "expected training.max_length of at least 3, found 2"),
        (
            {"subword_dropout": 1.0},
            "expected training.subword_dropout from 0 to below 1, found 1",
        ),
        ({"dropout": 1.0}, "expected training.dropout from 0 to below 1, found 1"),
    ):
        with pytest.raises(InputError) as caught:
            TrainSettings(**changes).check()  # type: ignore[arg-type]
        assert str(caught.value) == expected


def test_groups_by_depth_and_shape(untrained: PreTrainedModel) -> None:
    settings = planned(learning_rate=1.0, layer_decay=0.5, weight_decay=0.01)
    groups = parameter_groups(untrained, settings)
    where = {
        parameter: group
        for group in groups
        for parameter in group["params"]  # type: ignore[attr-defined]
    }
    assert len(where) == len(list(untrained.parameters()))
    rates = {name: where[value]["lr"] for name, value in untrained.named_parameters()}
    assert rates["classifier.out_proj.weight"] == 1.0
    assert rates["electra.encoder.layer.1.attention.self.query.weight"] == 0.5**2
    assert rates["electra.encoder.layer.0.attention.self.query.weight"] == 0.5**3
    assert rates["electra.embeddings.word_embeddings.weight"] == 0.5**4
    for name, value in untrained.named_parameters():
        decays = where[value]["weight_decay"] == 0.01
        assert decays != (name.endswith("bias") or "LayerNorm" in name), name


def test_early_stopping_keeps_the_best_epoch(untrained: PreTrainedModel) -> None:
    targets = np.array(IDS)
    tokens = tokenize_all(make_tokenizer(), TEXTS, 64)
    data = TrainingData(
        task="single", labels=LABELS, tokens=tokens, targets=targets, strata=targets
    )
    settings = planned(
        epochs=8, batch_size=8, learning_rate=3e-3, early_stopping_fraction=0.25, patience=1
    )
    model = copy.deepcopy(untrained)
    steps: list[int] = []
    found = train(model, data, np.arange(63), settings, lambda done, total: steps.append(done))
    assert found.dev_texts == pytest.approx(63 / 4, abs=3)
    assert found.epochs in (8, found.best_epoch + 1)
    assert len(steps) == found.epochs * math.ceil((63 - found.dev_texts) / 8)


@pytest.mark.parametrize("patience", [1, 3, TrainSettings.patience])
def test_of_epochs_that_score_alike_the_first_is_kept(
    untrained: PreTrainedModel, patience: int
) -> None:
    """A rate that moves weights but no prediction, so no epoch is better than the first."""
    targets = np.array(IDS)
    tokens = tokenize_all(make_tokenizer(), TEXTS, 64)
    data = TrainingData(
        task="single", labels=LABELS, tokens=tokens, targets=targets, strata=targets
    )
    settings = planned(
        epochs=8, learning_rate=1e-7, early_stopping_fraction=0.25, patience=patience
    )
    model = copy.deepcopy(untrained)
    after_step: list[torch.Tensor] = []

    def keep(done: int, total: int) -> None:
        after_step.append(model.classifier.out_proj.weight.detach().clone())

    found = train(model, data, np.arange(63), settings, keep)
    assert (found.best_epoch, found.epochs) == (1, 1 + patience)
    end_of_first = len(after_step) // found.epochs - 1
    assert torch.equal(model.classifier.out_proj.weight, after_step[end_of_first])
    assert not torch.equal(after_step[-1], after_step[end_of_first])


def test_pairs_are_told_apart() -> None:
    tokenizer = make_tokenizer()
    tokens = tokenize_all(tokenizer, ["꿈", "일기 일기"], 6, pairs=["일정 꿈", "꿈꿈꿈꿈꿈"])
    assert tokens.lengths.tolist() == [6, 6]
    assert tokens.cut == sum(
        len(tokenizer(*pair).input_ids) > 6
        for pair in [("꿈", "일정 꿈"), ("일기 일기", "꿈꿈꿈꿈꿈")]
    )
    batch = DeviceTokens(tokens, torch.device("cpu")).batch(np.array([0, 1]))
    stock = tokenizer(
        ["꿈", "일기 일기"],
        ["일정 꿈", "꿈꿈꿈꿈꿈"],
        truncation=True,
        max_length=6,
        padding=True,
        return_tensors="pt",
        return_token_type_ids=True,
    )
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        assert torch.equal(batch[name], stock[name]), name


def test_batches_of_all_tokens_are_those_of_the_tokenizer() -> None:
    tokenizer = make_tokenizer()
    tokens = tokenize_all(tokenizer, ["", *TEXTS, "꿈 " * 500], 64).beginnings()
    assert tokens.cut == 1
    places = np.array([5, 0, 64, 3])
    batch = DeviceTokens(tokens, torch.device("cpu")).batch(places)
    texts = [["", *TEXTS, "꿈 " * 500][place] for place in places]
    stock = tokenizer(
        texts,
        truncation=True,
        max_length=64,
        padding=True,
        return_tensors="pt",
        return_token_type_ids=False,
    )
    assert batch.keys() == stock.keys()
    assert all(torch.equal(batch[name], stock[name]) for name in stock)


def test_shuffled_batches() -> None:
    lengths = [1 + index % 50 for index in range(1_000)]
    generator = torch.Generator().manual_seed(0)
    first = list(shuffled_batches(lengths, 16, generator))
    second = list(shuffled_batches(lengths, 16, generator))
    assert sorted(place for batch in first for place in batch) == list(range(1_000))
    assert first != second
    padded = sum(len(batch) * max(lengths[place] for place in batch) for batch in first)
    assert padded < 1.2 * sum(lengths)


def test_scores_against_scikit_learn() -> None:
    expected, predicted = [0, 0, 1, 1, 2, 2, 2], [0, 1, 1, 1, 2, 0, 2]
    scores = score(expected, predicted, LABELS)
    assert scores["macro_f1"] == pytest.approx(f1_score(expected, predicted, average="macro"))
    assert scores["weighted_f1"] == pytest.approx(f1_score(expected, predicted, average="weighted"))
    assert scores["accuracy"] == pytest.approx(5 / 7)
    assert scores["confusion"] == [[1, 1, 0], [0, 2, 0], [1, 0, 2]]
    assert scores["labels"]["일정"]["support"] == 3


def test_a_label_never_predicted_counts_as_zero() -> None:
    scores = score([0, 1, 2], [0, 0, 0], LABELS)
    assert scores["labels"]["일기"]["f1"] == 0.0
    assert scores["macro_f1"] == pytest.approx(0.5 / 3)
