"""Objectives, schedules and auxiliary losses by name, and what it takes to add one."""

from pathlib import Path
from typing import get_args

import pytest
import torch
from transformers import ElectraConfig

from pretrain.config.objective import DISCRIMINATING, Objective, Recipe, Schedule
from pretrain.engine.monitor import Monitor
from pretrain.engine.processes import Processes
from pretrain.objectives.context import EncoderPass, TokenLosses
from pretrain.objectives.cost import matrix_shapes, paper_flops_per_token
from pretrain.objectives.encoder_objective import EncoderObjective, Product
from pretrain.objectives.registry import OBJECTIVES, SCHEDULES, resolve_recipe
from pretrain.objectives.replaced_token_detection import ReplacedTokenDetection
from pretrain.objectives.step import TrainingObjective
from pretrain.objectives.watched import guessing
from tests.pretrain.conftest import Toy


def test_every_name_of_a_recipe_has_a_class() -> None:
    assert set(get_args(Objective)) == OBJECTIVES.keys()
    assert set(get_args(Schedule)) == SCHEDULES.keys()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_what_flags_are_checked_by_is_what_the_class_says(name: str) -> None:
    """`pretrain.config` is read before torch is, so it says some of it once more."""
    for noise in (0.0, 0.5, 1.0):
        recipe = Recipe(objective=name, unigram_fraction=noise)  # type: ignore[arg-type]
        resolved = resolve_recipe(recipe)
        assert resolved.has_generator == recipe.needs_generator
    assert issubclass(OBJECTIVES[name], ReplacedTokenDetection) == (name in DISCRIMINATING)


def test_only_losses_with_a_weight_take_part() -> None:
    names = [each.name for each in resolve_recipe(Recipe(bag_weight=2.0)).auxiliaries]
    assert names == ["bag_loss"]
    recipe = Recipe(correction_weight=3.0, bag_weight=2.0, sentence_weight=1.0)
    weights = {each.name: each.weight for each in resolve_recipe(recipe).auxiliaries}
    assert weights == {"sentence_loss": 1.0, "bag_loss": 2.0, "correction_loss": 3.0}


class NormOfStates(EncoderObjective):
    """Of no use, but no other file has to know it."""

    watched = guessing("discriminator_loss")

    def token_losses(self, run: EncoderPass) -> TokenLosses:
        losses = run.states.float().pow(2).mean(dim=-1)
        return TokenLosses(losses=losses, scope=run.batch.real)

    def head_flops(self, config: ElectraConfig, masked: float) -> float:
        return 7.0

    def head_products(self, config: ElectraConfig, tokens: int, masked: int) -> list[Product]:
        return [(tokens, 3, 5)]

    def describe(self, row: dict[str, float]) -> str:
        return f"norm {row['discriminator_loss']:.1f}"


def test_a_new_objective_is_one_class(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It learns, is shown and costs what it says, beside a generator and an auxiliary loss."""
    recipe = Recipe(objective="norm", bag_weight=1.0)  # type: ignore[arg-type]
    monkeypatch.setitem(OBJECTIVES, "norm", NormOfStates)
    pair = toy.pair_for(recipe)
    objective = TrainingObjective(recipe=recipe, tables=toy.tables)
    result = objective(pair, toy.batch([[7], [12]]), torch.Generator().manual_seed(0))
    result.loss.backward()
    assert result.auxiliary.keys() == {"bag_loss"}
    # LayerNorm comes last, so that every state has a variance of about 1.
    assert 0.5 < float(result.discriminator_loss) < 2
    cpu = Processes(device=torch.device("cpu"))
    with Monitor(tmp_path, log_steps=1, first_step=0, recipe=recipe, processes=cpu) as monitor:
        monitor.add(
            result, step=1, tokens=20, flops=1.0, learning_rate=1e-3, fraction=0.1, left=9.0
        )
    assert f"  norm {float(result.discriminator_loss):.1f}  bag loss " in capsys.readouterr().out
    config = pair.discriminator.config
    norm, replace_mlm = (
        paper_flops_per_token(Recipe(objective=name), config, None, 20)  # type: ignore[arg-type]
        for name in ("norm", "replace-mlm")
    )
    lm_head = OBJECTIVES["replace-mlm"](Recipe()).head_flops(config, 0.15)
    assert replace_mlm - norm == pytest.approx(2 * (lm_head - 7))
    assert matrix_shapes(pair, recipe, 40, 6)[40, 3, 5] == 1
