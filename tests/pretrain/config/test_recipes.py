"""The recipes that come with the command: what they say, and that each can be run."""

import tomllib
from dataclasses import fields
from itertools import pairwise
from typing import Any

import pytest

from malmoi.config import EXTENDS, keys_of, read_recipe, recipe_names
from pretrain.config.checks import check
from pretrain.config.objective import Recipe
from pretrain.config.schema import PretrainKeys
from pretrain.config.settings import RECIPES, PretrainSettings
from pretrain.plan import Checkpoint
from tests.pretrain.conftest import config_of, plan_of

# What some need beside their name.
NEEDS: dict[str, dict[str, Any]] = {
    "frozen-generator": {"generator_from": "run"},
    "fast-electra": {"generator_from": "run"},
    "frozen-discriminator": {"init": "run"},
}


def test_electra_lists_every_key_with_its_default() -> None:
    given = config_of(recipe="electra")
    assert given.given.chosen == keys_of(PretrainKeys).keys()
    assert given.keys == PretrainKeys() and not given.asked


def test_electra_says_of_every_key_where_it_comes_from() -> None:
    lines = (RECIPES / "electra.toml").read_text(encoding="utf-8").splitlines()
    for before, line in pairwise(lines):
        if " = " in line and not line.startswith("#"):
            assert before.startswith("# "), line


@pytest.mark.parametrize("name", recipe_names(RECIPES))
def test_a_recipe_names_its_source_and_can_be_planned(name: str) -> None:
    text = (RECIPES / f"{name}.toml").read_text(encoding="utf-8")
    source = text.split("\n\n")[0]
    assert source.startswith("# ") and any(word in source for word in ("20", "ours", "measured"))
    content = tomllib.loads(text)
    if name != "electra":
        # Only what differs.
        base = read_recipe(content[EXTENDS], RECIPES)
        own = {f"{s}.{key}": v for s in content if s != EXTENDS for key, v in content[s].items()}
        assert own and all(base[key] != value for key, value in own.items())
    more = NEEDS.get(name, {})
    check(config_of(recipe=name, **more))
    start = Checkpoint(
        preset="tiny", has_generator=False, sharing=None, learnt_with_generator=False
    )
    planned = plan_of(
        recipe=name, max_steps=10, checkpoint=start if "init" in more else None, **more
    )
    assert (planned.start.recipe, planned.start.reason) == (name, "as given")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("electra", {}),
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
        (
            "few-tokens",
            {"unigram_fraction": 1.0, "bag_weight": 5.0, "correction_weight": 5.0},
        ),
        ("gdes", {}),
        ("one-encoder", {}),
        ("muon", {}),
    ],
)
def test_what_a_recipe_learns(name: str, expected: dict[str, Any]) -> None:
    planned = plan_of(recipe=name, max_steps=10, **NEEDS.get(name, {}))
    assert planned.objective == Recipe(**expected)
    sharing = {"gdes": "gdes", "one-encoder": "all", "two-stage": "none"}
    alone = name in ("frozen-generator", "fast-electra")
    assert planned.networks.sharing == ("none" if alone else sharing.get(name, "instance"))
    assert planned.networks.generator_size == (1 if name in ("two-stage", "one-encoder") else 0.25)
    assert planned.optimizer.name == ("muon" if name == "muon" else "adamw")


def test_the_flags_are_what_a_user_would_miss() -> None:
    """Everything else is a key of a recipe."""
    assert [item.name for item in fields(PretrainSettings)] == [
        *("corpus", "text_column", "skip_bad_rows", "tokenizer", "vocab_size", "max_length"),
        *("max_steps", "max_minutes", "max_tokens", "epochs"),
        *("preset", "init", "revision", "recipe", "set"),
        *("learning_rate", "tokens_per_batch", "precision", "seed", "device", "output", "resume"),
    ]
    assert len(fields(PretrainSettings)) <= 22
