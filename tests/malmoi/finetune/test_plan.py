"""What a run of k-fold will do, decided before it begins."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from malmoi.errors import InputError
from malmoi.finetune.plan import DataPlan, Found, KfoldPlan, plan
from malmoi.finetune.run_config import read_config
from malmoi.finetune.settings import ABOUT_RECIPES, RECIPES, KfoldRecipe, KfoldSettings
from malmoi.settings import as_toml, keys_of, read_recipe, recipe_names
from malmoi.text.duplicates.near import DEFAULT_THRESHOLD

DATA = DataPlan(path="texts.csv", sha256="0" * 64, texts=100, task="single", labels=("가", "나"))
FOUND = Found(
    data=DATA,
    model="checkpoints/malmoi-small",
    keep_head=False,
    hidden_size=256,
    longest_input=512,
    parameters=7_000_000,
    device="cpu",
    threads=4,
    memory=16 * 2**30,
)


def planned(found: Found = FOUND, *, keys: tuple[str, ...] = (), **flags: Any) -> KfoldPlan:
    settings = KfoldSettings(labels="긍정,부정,중립", set=keys, **flags)
    return plan(read_config(settings), found)


def test_every_number_of_a_training_is_decided() -> None:
    for given, expected in (
        ({}, {"learning_rate": 3e-4, "layer_decay": 0.8, "epochs": 10, "max_length": 128}),
        ({"found": {"hidden_size": 768}}, {"learning_rate": 5e-5, "layer_decay": 1.0}),
        ({"keys": ("start.random_weights=true",)}, {"learning_rate": 3e-4, "layer_decay": 1.0}),
        ({"found": {"longest_input": 64}}, {"max_length": 64}),
        ({"keys": ("training.layer_decay=0.5",)}, {"layer_decay": 0.5}),
        ({"recipe": "few-texts"}, {"learning_rate": 5e-4, "layer_decay": 1.0, "epochs": 10}),
        # A flag holds before the recipe, also where it is the default.
        ({"recipe": "few-texts", "epochs": 3}, {"epochs": 3}),
        ({"found": {"data": replace(DATA, texts=20_000)}}, {"epochs": 10, "learning_rate": 3e-4}),
        ({"found": {"data": replace(DATA, texts=50_000)}}, {"epochs": 4}),
        ({"found": {"data": replace(DATA, texts=600_000)}}, {"epochs": 3}),
        ({"found": {"data": replace(DATA, texts=600_000)}, "epochs": 10}, {"epochs": 10}),
        ({}, {"dev_fraction": 0.0, "patience": 2}),
        ({"keys": ("training.early_stopping_fraction=0.2",)}, {"dev_fraction": 0.2}),
    ):
        found = replace(FOUND, **given.pop("found", {}))
        training = planned(found, **given).as_json()["training"]
        assert {name: training[name] for name in expected} == expected
        assert None not in training.values()


def test_several_labels_keep_texts_for_their_thresholds() -> None:
    settings = KfoldSettings(task="multi", data="texts.csv")
    several = replace(FOUND, data=replace(DATA, task="multi"))
    assert plan(read_config(settings), several).training.dev_fraction == 0.1


def test_as_many_trainings_at_once_as_the_machine_holds() -> None:
    for of_machine, flags, jobs in (
        ({}, {}, 3),  # four threads, and half the memory holds three
        ({"memory": 64 * 2**30}, {}, 4),
        ({"memory": 64 * 2**30, "threads": 16}, {}, 6),  # as many trainings as there are
        ({"memory": 4 * 2**30}, {}, 1),
        ({"parameters": 110_000_000}, {}, 1),
        ({"threads": 1}, {}, 1),
        ({"device": "cuda"}, {}, 1),
        ({"data": DATA}, {}, 1),  # seconds: no process starts as fast
        ({"data": DATA}, {"seeds": 4}, 3),
        ({}, {"jobs": 2}, 2),
        ({"device": "cuda"}, {"jobs": 2}, 2),
    ):
        found = replace(FOUND, **({"data": replace(DATA, texts=1000)} | of_machine))
        assert planned(found, **flags).execution.jobs == jobs


def test_folds_start_and_comparisons() -> None:
    found = planned(seeds=3, seed=7, folds=4, group_near_duplicates=True, jobs=2)
    assert found.folds.seeds == (7, 8, 9) and found.folds.folds == 4
    assert found.folds.near_duplicate_threshold == DEFAULT_THRESHOLD
    assert planned().folds.near_duplicate_threshold is None
    assert planned(replace(FOUND, keep_head=True)).encoder.head == "kept"
    asked = ("llm.model=m", "llm.input_dollars=0", "llm.output_dollars=0")
    assert planned(keys=asked, recipe="llm", baselines=True).compared.chat_model == "m"


def test_names_paths_and_processes_do_not_make_another_run() -> None:
    same = replace(FOUND, data=replace(DATA, path="moved.csv"), model="elsewhere")
    assert planned(same, jobs=3, baselines=True).deciding() == planned().deciding()
    assert planned(seed=1).deciding() != planned().deciding()
    assert planned(replace(FOUND, device="cuda")).deciding() != planned().deciding()
    assert json.loads(json.dumps(planned().as_json()))["data"]["labels"] == ["가", "나"]


def test_the_default_recipe_shows_every_key_with_its_default() -> None:
    assert read_recipe("default", RECIPES).keys() == keys_of(KfoldRecipe).keys()
    given = read_config(KfoldSettings(data="texts.csv", labels="가,나", recipe="default"))
    assert given.keys == KfoldRecipe()
    written = (RECIPES / "default.toml").read_text(encoding="utf-8")
    assert written == as_toml(KfoldRecipe, ABOUT_RECIPES), "python -m malmoi.finetune.settings"


def test_every_recipe_plans() -> None:
    for name in recipe_names(RECIPES):
        more: dict[str, Any] = {}
        if name == "llm":  # whose model and prices are to be filled in
            keys = ("llm.model=m", "llm.input_dollars=0", "llm.output_dollars=0")
            more = {"keys": keys, "baselines": True}
        assert (planned(recipe=name, **more) == planned()) == (name == "default")


def test_the_flags_of_k_fold() -> None:
    """Further settings are keys of recipes."""
    assert [item.name for item in fields(KfoldSettings)] == [
        *("labels", "data", "task", "text_column", "label_column", "pair_column", "test"),
        *("model", "epochs", "learning_rate", "batch_size", "max_length", "quick"),
        *("recipe", "set"),
        *("folds", "seeds", "rare", "group_near_duplicates", "baselines"),
        *("output", "jobs", "device", "seed"),
    ]


def test_one_value_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"--epochs and --set training\.epochs say the same"):
        planned(keys=("training.epochs=10",), epochs=10)
