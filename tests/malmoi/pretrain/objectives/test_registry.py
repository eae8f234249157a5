"""Objectives, schedules and auxiliary losses by name, and what it takes to add one."""

from typing import get_args

import pytest

from malmoi.pretrain.config.objective import DISCRIMINATING, Objective, Recipe, Schedule
from malmoi.pretrain.objectives.registry import OBJECTIVES, SCHEDULES, resolve_recipe
from malmoi.pretrain.objectives.replaced_token_detection import ReplacedTokenDetection


def test_every_name_of_a_recipe_has_a_class() -> None:
    assert set(get_args(Objective)) == OBJECTIVES.keys()
    assert set(get_args(Schedule)) == SCHEDULES.keys()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_what_flags_are_checked_by_is_what_the_class_says(name: str) -> None:
    """`malmoi.pretrain.config` is read before torch is, so it says some of it once more."""
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
