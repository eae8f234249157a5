"""The optimizers against updates written out by hand."""

import math
from typing import Any

import pytest
import torch

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.config.run_plan import OptimizerPlan
from malmoi.pretrain.engine.optimizer import (
    Optimizers,
    WeightAverage,
    clip_gradients,
    learning_rate_at,
)
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives.step import TrainingObjective
from tests.malmoi.pretrain.conftest import Toy, plan_of

PEAK = 5e-4  # of preset tiny
RATES = [1e-3, 3e-3, 2e-3, 2e-3, 5e-4]


def settings(**flags: Any) -> OptimizerPlan:
    """Without bias correction, as in the paper's code, unless a flag says otherwise."""
    fixed = {"weight_decay": 0.1, "adam_bias_correction": False}
    return plan_of(**{**fixed, **flags}).optimizer


def give_gradients(pair: ElectraPair, seed: int, *, names: str = "") -> dict[str, torch.Tensor]:
    """Random gradients for the parameters whose name begins with `names`."""
    random = torch.Generator().manual_seed(seed)
    given = {}
    for name, parameter in pair.named_parameters():
        gradient = torch.randn(parameter.shape, generator=random) * 1e-3
        if name.startswith(names):
            parameter.grad = gradient
            given[name] = gradient.clone()
    return given


def is_plain(name: str, parameter: torch.Tensor) -> bool:
    return "LayerNorm" in name or name.endswith("bias")


def test_the_papers_rate_is_its_decay_times_its_warm_up() -> None:
    """create_optimizer of model/optimization.py, step by step."""
    steps, warmup = 1_000_000, 10_000
    paper = plan_of(recipe="electra", max_steps=steps).optimizer
    for step in (0, 1, 2_500, 9_999, 10_000, 10_001, 500_000, 999_999, 1_000_000):
        decayed = PEAK * (1 - step / steps)
        expected = decayed * min(1.0, step / warmup)
        assert learning_rate_at(step / steps, paper) == pytest.approx(expected, abs=1e-15)
    # Ours reaches its peak.
    ours = plan_of(max_steps=steps).optimizer
    assert learning_rate_at(ours.warmup_fraction, ours) == pytest.approx(PEAK)
    at_once = plan_of(recipe="electra", warmup_fraction=0.0, max_steps=9).optimizer
    assert learning_rate_at(0.0, at_once) == PEAK


@pytest.mark.parametrize("decay_all", [False, True])
def test_without_bias_correction_it_is_the_papers_adam(toy: Toy, decay_all: bool) -> None:
    """rate x (m / (sqrt(v) + 1e-6) + decay x weight); none for LayerNorm and biases."""
    pair = toy.pair(sharing="gdes", encoder_lm_head=True)
    optimizers = Optimizers(pair, settings(decay_all=decay_all))
    expected = {n: p.detach().double().clone() for n, p in pair.named_parameters()}
    first = {n: torch.zeros_like(w) for n, w in expected.items()}
    second = {n: torch.zeros_like(w) for n, w in expected.items()}
    plain = {n for n, p in pair.named_parameters() if is_plain(n, p)}
    for seed, rate in enumerate(RATES):
        for name, gradient in give_gradients(pair, seed).items():
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.999 * second[name] + 0.001 * gradient.double() ** 2
            decay = 0.1 if decay_all or name not in plain else 0.0
            update = first[name] / (second[name].sqrt() + 1e-6)
            expected[name] -= rate * (update + decay * expected[name])
        optimizers.set_rate(rate)
        optimizers.step()
    for name, parameter in pair.named_parameters():
        assert parameter.grad is None
        assert torch.allclose(parameter.double(), expected[name], rtol=1e-5, atol=1e-6), name


def test_with_bias_correction_it_is_torchs_adamw(toy: Toy) -> None:
    pair, other = toy.pair(), toy.pair()
    optimizers = Optimizers(pair, settings(adam_bias_correction=True))
    named = list(other.named_parameters())
    reference = torch.optim.AdamW(
        [
            {"params": [p for n, p in named if not is_plain(n, p)], "weight_decay": 0.1},
            {"params": [p for n, p in named if is_plain(n, p)], "weight_decay": 0.0},
        ],
        betas=(0.9, 0.999),
        eps=1e-6,
    )
    for seed, rate in enumerate(RATES):
        give_gradients(pair, seed)
        give_gradients(other, seed)
        optimizers.set_rate(rate)
        optimizers.step()
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
    for (name, a), (_, b) in zip(pair.named_parameters(), named, strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-7), name


def test_muon_takes_the_encoder_layers_matrices_and_nothing_else(toy: Toy) -> None:
    pair = toy.pair(sharing="instance", encoder_lm_head=True)
    optimizers = Optimizers(pair, settings(optimizer="muon", muon_learning_rate=1e-2))
    assert optimizers.muon is not None
    names = {id(p): n for n, p in pair.named_parameters()}
    taken = {names[id(p)] for group in optimizers.muon.param_groups for p in group["params"]}
    expected = {
        name
        for name, parameter in pair.named_parameters()
        if ".encoder.layer." in name and name.endswith("weight") and "LayerNorm" not in name
    }
    assert taken == expected and len(taken) == 2 * 2 * 6
    rest = {names[id(p)] for group in optimizers.adam.param_groups for p in group["params"]}
    assert rest == set(names.values()) - taken
    optimizers.set_rate(PEAK / 2)
    assert optimizers.muon.param_groups[0]["lr"] == pytest.approx(5e-3)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("corrects", [False, True])
def test_restored_optimizers_go_on_bit_for_bit(toy: Toy, optimizer: str, corrects: bool) -> None:
    flags = {"optimizer": optimizer, "adam_bias_correction": corrects}
    pair, other = toy.pair(seed=0), toy.pair(seed=1)
    optimizers = Optimizers(pair, settings(**flags))
    for seed in range(3):
        give_gradients(pair, seed)
        optimizers.set_rate(RATES[seed])
        optimizers.step()
    state = {key: value.clone() for key, value in optimizers.state(pair).items()}
    with torch.no_grad():
        for mine, theirs in zip(other.parameters(), pair.parameters(), strict=True):
            mine.copy_(theirs)
    restored = Optimizers(other, settings(**flags))
    restored.restore(other, state)
    for seed in range(3, 5):
        for network, both in ((pair, optimizers), (other, restored)):
            give_gradients(network, seed)
            both.set_rate(RATES[seed])
            both.step()
    for (name, a), b in zip(pair.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b), name
    after, again = optimizers.state(pair), restored.state(other)
    assert after.keys() == again.keys() and all(torch.equal(after[k], again[k]) for k in after)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_network_that_begins_late_steps_as_if_the_run_began_then(
    toy: Toy, optimizer: str, resumed: bool
) -> None:
    def late(first_steps: int) -> ElectraPair:
        pair = toy.pair(sharing="none", generator_size=1)
        optimizers = Optimizers(pair, settings(optimizer=optimizer))
        for seed in range(first_steps):
            give_gradients(pair, seed, names="generator")
            optimizers.set_rate(1e-3)
            optimizers.step()
        if resumed:
            state = {key: value.clone() for key, value in optimizers.state(pair).items()}
            optimizers = Optimizers(pair, settings(optimizer=optimizer))
            optimizers.restore(pair, state)
        pair.freeze_generator()
        for seed in (7, 8):
            give_gradients(pair, seed, names="discriminator")
            optimizers.set_rate(1e-3)
            optimizers.step()
        return pair

    untouched = toy.pair(sharing="none", generator_size=1)
    after_none, after_four = late(0), late(4)
    for (name, a), b, start in zip(
        after_none.discriminator.named_parameters(),
        after_four.discriminator.parameters(),
        untouched.discriminator.parameters(),
        strict=True,
    ):
        assert torch.equal(a, b), name
        assert not torch.equal(a, start), name


def test_a_head_without_use_does_not_hold_up_its_group(toy: Toy) -> None:
    """With one encoder, replace-mlm leaves the discriminator's head, first of its group, alone."""
    pair = toy.pair(sharing="all", generator_size=1, encoder_lm_head=True)
    recipe = Recipe(objective="replace-mlm")
    optimizers = Optimizers(pair, settings(weight_decay=0.0))
    objective = TrainingObjective(recipe=recipe, tables=toy.tables)
    weight = pair.lm_predictions.dense.weight  # shares its group with the head
    expected = weight.detach().clone()
    first, second = torch.zeros_like(expected), torch.zeros_like(expected)
    for seed in range(4):
        random = torch.Generator().manual_seed(seed)
        objective(pair, toy.batch([[20], [9]]), random).loss.backward()
        first = 0.9 * first + 0.1 * weight.grad
        second = 0.999 * second + 0.001 * weight.grad**2
        expected -= 1e-3 * first / (second.sqrt() + 1e-6)
        optimizers.set_rate(1e-3)
        optimizers.step()
        if seed == 1:  # and a resumed run goes on likewise
            state = {key: value.clone() for key, value in optimizers.state(pair).items()}
            optimizers = Optimizers(pair, settings(weight_decay=0.0))
            optimizers.restore(pair, state)
    assert torch.allclose(weight, expected, rtol=1e-4, atol=1e-6)


def test_the_average_is_the_mean_of_the_weights_it_was_given(toy: Toy) -> None:
    pair, average = toy.pair(), WeightAverage()
    average.put_into(pair)  # nothing yet, so nothing changes
    seen = []
    for _ in range(3):
        with torch.no_grad():
            for parameter in pair.parameters():
                parameter.add_(torch.randn_like(parameter))
        seen.append([p.detach().clone() for p in pair.parameters()])
        average.add(pair)
    average.put_into(pair)
    for parameter, *values in zip(pair.parameters(), *seen, strict=True):
        assert torch.allclose(parameter, torch.stack(values).mean(0), atol=1e-6)


@pytest.mark.parametrize("limit", [0.0, 0.5, 1e9])
def test_gradients_are_scaled_down_to_the_limit_and_never_up(toy: Toy, limit: float) -> None:
    pair = toy.pair()
    before = give_gradients(pair, 0)
    norm = math.sqrt(sum(float(g.double().pow(2).sum()) for g in before.values()))
    scale = min(1.0, limit / norm) if limit else 1.0
    assert float(clip_gradients(pair.parameters(), limit)) == pytest.approx(norm, rel=1e-4)
    for name, parameter in pair.named_parameters():
        assert torch.allclose(parameter.grad, before[name] * scale, rtol=1e-4)
