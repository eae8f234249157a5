"""The recipes that come with the command: what they say, and that each can be run."""

import tomllib
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.config.schema import ABOUT, PretrainKeys
from malmoi.pretrain.config.settings import RECIPES, PretrainSettings
from malmoi.pretrain.plan import Checkpoint
from malmoi.settings import EXTENDS, as_toml, keys_of, read_recipe, recipe_names
from tests.malmoi.pretrain.conftest import config_of, plan_of

# What some need beside their name.
NEEDS: dict[str, dict[str, Any]] = {
    "frozen-generator": {"generator_from": "run"},
    "fast-electra": {"generator_from": "run"},
    "frozen-discriminator": {"init": "run"},
}


def test_the_default_lists_every_key_with_its_default() -> None:
    given = config_of(recipe="default")
    assert given.chosen == keys_of(PretrainKeys).keys()
    assert given.keys == PretrainKeys()
    assert set(filter(given.asks_for, given.chosen)) == {
        f"objective.{name}" for name in ("bag_weight", "correction_weight", "unigram_fraction")
    }
    written = (RECIPES / "default.toml").read_text(encoding="utf-8")
    assert written == as_toml(PretrainKeys, ABOUT), "python -m malmoi.pretrain.config.schema"


def test_the_default_says_of_every_key_where_it_comes_from() -> None:
    lines = (RECIPES / "default.toml").read_text(encoding="utf-8").splitlines()
    for before, line in pairwise(lines):
        if " = " in line and not line.startswith("#"):
            assert before.startswith("# "), line


def test_a_recipe_names_its_source_and_can_be_planned() -> None:
    for name in recipe_names(RECIPES):
        text = (RECIPES / f"{name}.toml").read_text(encoding="utf-8")
        source = text.split("\n\n")[0]
        assert source.startswith("# ") and any(
            word in source for word in ("20", "ours", "measured")
        )
        content = tomllib.loads(text)
        if name != "default":
            # Only what differs.
            base = read_recipe(content[EXTENDS], RECIPES)
            own = {
                f"{s}.{key}": v for s in content if s != EXTENDS for key, v in content[s].items()
            }
            assert own and all(base[key] != value for key, value in own.items())
        more = NEEDS.get(name, {})
        start = Checkpoint(
            preset="tiny", has_generator=False, sharing=None, learnt_with_generator=False
        )
        planned = plan_of(
            recipe=name, max_steps=10, checkpoint=start if "init" in more else None, **more
        )
        assert (planned.start.recipe, planned.start.reason) == (name, "as given")


def test_what_a_recipe_learns() -> None:
    for name, expected in (
        ("default", {"unigram_fraction": 0.3, "bag_weight": 5.0, "correction_weight": 5.0}),
        ("rtd", {}),
        ("electra", {"sampling": "gumbel"}),
        ("mlm", {"objective": "mlm"}),
        ("bert", {"objective": "mlm", "kept_fraction": 0.1, "random_fraction": 0.1}),
        ("electra-15", {"objective": "electra-15"}),
        ("replace-mlm", {"objective": "replace-mlm"}),
        ("all-tokens-mlm", {"objective": "all-tokens-mlm"}),
        ("two-stage", {"schedule": "two-stage"}),
        ("adversarial", {"schedule": "adversarial"}),
        ("frozen-generator", {"schedule": "frozen-generator"}),
        ("fast-electra", {"schedule": "frozen-generator", "first_temperature": 2.0}),
        ("spans", {"masking": "span"}),
        ("span-boundaries", {"masking": "span", "generator_head": "sbo"}),
        ("whole-words", {"masking": "word"}),
        ("rare-tokens", {"masking": "rare"}),
        ("noise", {"unigram_fraction": 1.0, "bag_weight": 5.0}),
        ("few-tokens", {"unigram_fraction": 1.0, "bag_weight": 5.0, "correction_weight": 5.0}),
        ("gdes", {}),
        ("one-encoder", {}),
        ("muon", {}),
    ):
        planned = plan_of(recipe=name, max_steps=10, **NEEDS.get(name, {}))
        assert planned.objective == Recipe(**expected)
        sharing = {"gdes": "gdes", "one-encoder": "all", "two-stage": "none"}
        alone = name in ("frozen-generator", "fast-electra")
        assert planned.networks.sharing == ("none" if alone else sharing.get(name, "instance"))
        assert planned.networks.generator_size == (
            1 if name in ("two-stage", "one-encoder") else 0.25
        )
        assert planned.optimizer.name == ("muon" if name == "muon" else "adamw")


def test_electra_is_trained_as_by_the_code_of_its_paper() -> None:
    """google-research/electra: configure_pretraining.py, model/optimization.py, modeling.py."""
    for preset, size in (("small", 1 / 4), ("base", 1 / 3)):
        planned = plan_of(recipe="electra", preset=preset, max_steps=1_000_000)
        optimizer, networks = planned.optimizer, planned.networks
        assert not optimizer.adam_bias_correction and optimizer.decay_from_start
        assert optimizer.warmup_fraction * 1_000_000 == 10_000
        assert (optimizer.weight_decay, optimizer.decay_all) == (0.01, False)
        assert optimizer.max_gradient_norm == 1
        assert (networks.dropout, networks.initializer_range) == (0.1, 0.02)
        assert (networks.initializer, networks.sharing) == ("truncated", "instance")
        assert networks.generator_size == pytest.approx(size)
        objective = planned.objective
        assert (objective.discriminator_weight, objective.mask_fraction) == (50, 0.15)
        assert (objective.kept_fraction, objective.bag_weight) == (0.15, 0)
    # Without the correction short runs diverge, so it is nobody else's.
    corrected = [name for name in recipe_names(RECIPES) if name != "electra"]
    for name in corrected:
        assert config_of(recipe=name, **NEEDS.get(name, {})).keys.optimizer.adam_bias_correction


def test_networks_of_one_size_need_no_size_said() -> None:
    for given in ({"sharing": "all"}, {"schedule": "two-stage"}, {"recipe": "two-stage"}):
        for preset in ("tiny", "base"):
            assert plan_of(preset=preset, max_steps=9, **given).networks.generator_size == 1


def test_the_flags_are_what_a_user_would_miss() -> None:
    """Everything else is a key of a recipe."""
    assert [item.name for item in fields(PretrainSettings)] == [
        *("corpus", "text_column", "skip_bad_rows", "tokenizer", "vocab_size", "max_length"),
        *("max_steps", "max_minutes", "max_tokens", "epochs"),
        *("preset", "init", "revision", "recipe", "set"),
        *("learning_rate", "tokens_per_batch", "precision", "seed", "device", "output", "resume"),
    ]
    assert len(fields(PretrainSettings)) <= 22
