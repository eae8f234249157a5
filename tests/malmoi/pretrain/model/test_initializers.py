"""First weights as the paper's code draws them, and a run with its settings."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from malmoi.pretrain.model.initializers import draw_as_papers_code
from malmoi.pretrain.model.networks import ElectraPair, PairShape, build_pair
from tests.malmoi.pretrain.conftest import SMALL, Command, Toy

DEVIATION = 0.02
# Of a normal distribution that is cut off at two standard deviations.
TRUNCATED = 0.8796 * DEVIATION


def test_weights_are_truncated_normal_but_where_the_code_names_no_initializer(
    pair: ElectraPair,
) -> None:
    torch.manual_seed(1)
    draw_as_papers_code(pair)
    glorot = {
        "discriminator.electra.embeddings_project",
        "generator.electra.embeddings_project",
        "discriminator.discriminator_predictions.dense_prediction",
    }
    seen = set()
    for name, module in pair.named_modules():
        if not isinstance(module, nn.Linear | nn.Embedding):
            continue
        weight = module.weight.detach()
        if name in glorot:
            seen.add(name)
            limit = math.sqrt(6 / sum(weight.shape))
            assert 0.9 * limit < weight.abs().max() <= limit
            assert weight.std() == pytest.approx(limit / math.sqrt(3), rel=0.25)
        else:
            assert 1.5 * DEVIATION < weight.abs().max() <= 2 * DEVIATION, name
            assert weight.std() == pytest.approx(TRUNCATED, rel=0.1), name
    # The generator of SMALL is 16 wide, its embeddings 32.
    assert seen == glorot
    for name, parameter in pair.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "LayerNorm" in name:
            assert bool((parameter == 1).all()), name


@pytest.mark.parametrize("sharing", ["none", "word", "instance", "gdes", "all"])
def test_what_is_shared_stays_shared(toy: Toy, sharing: str) -> None:
    size = 1.0 if sharing == "all" else 0.5
    pair = toy.pair(sharing=sharing, generator_size=size)
    before = {name: id(parameter) for name, parameter in pair.named_parameters()}
    draw_as_papers_code(pair)
    assert {name: id(parameter) for name, parameter in pair.named_parameters()} == before
    assert pair.generator is not None
    table = pair.generator.electra.embeddings.word_embeddings.weight
    assert pair.generator.generator_lm_head.weight is table
    theirs = pair.discriminator.electra.embeddings.word_embeddings.weight
    assert torch.equal(table, theirs) == (sharing != "none")


def test_a_network_as_wide_as_its_embeddings_has_no_projection(toy: Toy) -> None:
    torch.manual_seed(0)
    alike = SMALL.__class__(**vars(SMALL) | {"embedding_size": SMALL.hidden_size})
    pair = build_pair(alike, toy.tokenizer, shape=PairShape(with_generator=False))
    assert not hasattr(pair.discriminator.electra, "embeddings_project")
    draw_as_papers_code(pair)


def test_a_run_by_the_papers_settings_can_be_gone_on_with(
    pretrain_here: Command, tmp_path: Path
) -> None:
    code, _, errors = pretrain_here("--recipe", "electra", "--max-steps", "4")
    assert code == 0, errors
    plan = json.loads((tmp_path / "run" / "run.json").read_text())["plan"]
    assert plan["networks"]["initializer"] == "truncated"
    assert plan["optimizer"]["decay_from_start"] is True
    # What is new there is of new weights, and says nothing of those that are there.
    more = ["--recipe", "electra", "--init", "run", "--max-steps", "2", "--output", "more"]
    code, _, errors = pretrain_here(*more)
    assert code == 0, errors
    code, _, errors = pretrain_here(*more, "model.initializer=truncated")
    assert code == 2 and "--init has weights, so model.initializer has no effect" in errors
