"""Layers that begin as copies of those below them while a run goes on."""

from dataclasses import replace

import safetensors.torch
import torch
from transformers import PreTrainedTokenizerFast

from malmoi.pretrain.config.stacking import mean_part, part_at
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.model.networks import build_pair
from malmoi.pretrain.model.stacking import run_part, stack
from tests.malmoi.pretrain.conftest import SMALL, Breaking, checkpoints, plan_of


def test_layers_that_stand_by_learn_nothing_and_begin_as_those_below(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    torch.manual_seed(0)
    pair = build_pair(replace(SMALL, num_layers=4), tokenizer)
    whole = pair.discriminator.electra.encoder.layer
    before = {name: value.clone() for name, value in pair.state_dict().items()}
    optimizers = Optimizers(pair, plan_of().optimizer)
    optimizers.set_rate(1e-3)
    run_part(pair, 0.5)
    ids = torch.randint(5, 4_000, (2, 16))

    def learn() -> None:
        for network in pair.networks().values():
            network(ids).logits.square().mean().backward()
        optimizers.step()

    learn()
    layers = pair.discriminator.electra.encoder.layer
    assert list(layers) == list(whole)[:2] and pair.state_dict().keys() == before.keys()
    for name, value in pair.state_dict().items():
        if "encoder.layer." in name:
            waits = name.split("encoder.layer.")[1][0] in "23"
            assert torch.equal(value, before[name]) == waits, name
    stack(pair, optimizers, 1.0)
    assert list(layers) == list(whole)
    for place in (2, 3):
        for below, above in zip(
            whole[place - 2].parameters(), whole[place].parameters(), strict=True
        ):
            assert torch.equal(below, above) and above.requires_grad
            old, new = (optimizers.adam.state[one] for one in (below, above))
            assert all(torch.equal(old[key], new[key]) for key in ("exp_avg", "exp_avg_sq"))
            assert old["exp_avg"].data_ptr() != new["exp_avg"].data_ptr()
    learn()
    assert not torch.equal(whole[0].output.dense.weight, whole[2].output.dense.weight)


def test_a_run_that_goes_on_for_longer_keeps_its_layers(break_off: Breaking) -> None:
    """Of 12 steps the tenth has all layers; of 40 it would have a quarter of them."""
    last = "discriminator.electra.encoder.layer.1.output.dense.weight"
    found = []
    for after, length in ((10, 12), (12, 40)):
        flags = ["--recipe", "stacked", "--max-steps", str(length), "execution.save_steps=2"]
        directory = break_off(after, *flags, *(["--resume"] if found else []))
        newest = directory / "state" / checkpoints(directory)[-1]
        found.append(safetensors.torch.load_file(newest / "weights.safetensors")[last])
    assert not torch.equal(found[0], found[1])


def test_a_run_has_all_layers_at_its_end_and_little_more_than_half_on_average() -> None:
    assert [part_at(fraction) for fraction in (0, 0.34, 0.35, 0.69, 0.7, 1)] == [
        *(0.25, 0.25, 0.5, 0.5, 1, 1)
    ]
    assert abs(mean_part() - 0.5625) < 1e-12 and mean_part(0) == 0
    assert abs(mean_part(0.5) - (0.35 * 0.25 + 0.15 * 0.5)) < 1e-12
