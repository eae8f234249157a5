"""What a run learns from when nobody says it: a generator and a discriminator, noise at first."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.engine.monitor import Monitor
from malmoi.pretrain.plan import Checkpoint
from tests.malmoi.pretrain.conftest import CPU, GPU, Command, metric_rows, plan_of

# Of a flag given twice the last counts: takes back what the fixture fixes.
LEFT_OUT = ["--recipe", "None"]
DEFAULT = Recipe(unigram_fraction=0.3, bag_weight=5.0, correction_weight=5.0)


def test_every_run_trains_a_generator_and_a_discriminator() -> None:
    for given in (
        *({"max_tokens": tokens} for tokens in (1, 1e6, 20e6, 1e9)),
        {"max_flops": 1e15},
        {"max_steps": 0},
        {"max_minutes": 150},
        {"epochs": 3},
    ):
        for machine in (CPU, GPU):
            planned = plan_of(machine=machine, **given)
            assert planned.objective == DEFAULT and planned.objective.needs_generator
            assert (planned.start.recipe, planned.start.reason) == ("default", "the default")


def test_what_is_given_counts_more() -> None:
    for given, expected in (
        ({"unigram_fraction": 0.0}, (0.0, 5.0, 5.0)),
        ({"unigram_fraction": 1.0}, (1.0, 5.0, 5.0)),
        ({"bag_weight": 2.0}, (0.3, 2.0, 5.0)),
        ({"correction_weight": 0.0}, (0.3, 5.0, 0.0)),
        ({"generator_size": 0.5}, (0.3, 5.0, 5.0)),
        ({"sharing": "gdes"}, (0.3, 5.0, 5.0)),
        ({"sharing": "all"}, (0.3, 5.0, 5.0)),
        ({"masking": "word"}, (0.3, 5.0, 5.0)),
        ({"objective": "rtd"}, (0.3, 5.0, 5.0)),
        ({"recipe": "default"}, (0.3, 5.0, 5.0)),
        ({"recipe": "electra"}, (0.0, 0.0, 0.0)),
        ({"recipe": "rtd"}, (0.0, 0.0, 0.0)),
        ({"recipe": "noise"}, (1.0, 5.0, 0.0)),
        ({"recipe": "few-tokens"}, (1.0, 5.0, 5.0)),
    ):
        recipe = plan_of(max_tokens=1e6, **given).objective
        assert (recipe.unigram_fraction, recipe.bag_weight, recipe.correction_weight) == expected


def test_who_asks_for_another_task_gets_it_without_noise() -> None:
    for given in (
        {"objective": "mlm"},
        {"objective": "electra-15"},
        {"objective": "all-tokens-mlm"},
        {"schedule": "two-stage"},
        {"schedule": "adversarial"},
        {"schedule": "frozen-generator", "generator_from": Path("run")},
    ):
        planned = plan_of(max_tokens=1e6, **given)
        assert planned.objective == plan_of(max_tokens=1e6, recipe="rtd", **given).objective
        assert planned.start.recipe == "rtd" and planned.start.reason.startswith("for objective.")


def test_what_has_learnt_from_a_generator_goes_on_with_one() -> None:
    known = {"preset": "tiny", "has_generator": True, "sharing": "instance"}
    for learnt_with, expected in ((True, 0.0), (False, 0.3)):
        checkpoint = Checkpoint(**known, learnt_with_generator=learnt_with)
        planned = plan_of(init="run", max_steps=1, checkpoint=checkpoint)
        assert planned.objective.unigram_fraction == expected
        assert planned.objective.bag_weight == 5
        assert ("without noise" in planned.start.reason) == learnt_with
        for given in ({"unigram_fraction": 0.2}, {"recipe": "noise-first"}):
            asked = plan_of(init="run", max_steps=1, checkpoint=checkpoint, **given)
            assert asked.objective.unigram_fraction == given.get("unigram_fraction", 0.5)
        # Where none would be, nothing is said of it.
        other = plan_of(init="run", max_steps=1, checkpoint=checkpoint, objective="electra-15")
        assert other.start.reason == "for objective.name is given"


def test_a_run_without_a_recipe_writes_both_networks_and_shows_both_losses(
    pretrain_here: Command, tmp_path: Path
) -> None:
    code, output, errors = pretrain_here(*LEFT_OUT, "--max-steps", "8")
    assert code == 0, errors
    assert "recipe default, the default: replacements change from noise" in output
    line = next(line for line in output.splitlines() if line.startswith("step 8 "))
    assert "generator loss" in line and "discriminator loss" in line
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert not [name for name in record["given"] if name.startswith(("objective.", "recipe"))]
    assert list(record["networks"]) == ["discriminator", "generator"]
    for network in record["networks"]:
        assert (tmp_path / "run" / network / "model.safetensors").is_file()
    for row in metric_rows(Path("run")):
        assert all(row[f"{name}_loss"] > 0 for name in ("generator", "bag", "correction"))


def test_replacements_are_noise_at_first_and_the_generators_later(
    pretrain_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrained generator's samples are as rare as any, noise is what stands in the corpus."""
    shares: list[float] = []
    add = Monitor.add

    def look(self: Monitor, result: Any, **rest: Any) -> None:
        shares.append(rest["fraction"])
        add(self, result, **rest)

    monkeypatch.setattr(Monitor, "add", look)
    from malmoi.pretrain.objectives import step

    drawn: list[int] = []
    noise = step.sample_unigram

    def counted(*args: Any) -> torch.Tensor:
        drawn.append(len(shares))
        return noise(*args)

    monkeypatch.setattr(step, "sample_unigram", counted)
    assert pretrain_here(*LEFT_OUT, "--max-steps", "10")[0] == 0
    # Of ten steps the fourth begins when 30% are done.
    assert drawn == [0, 1, 2]


@pytest.mark.parametrize(
    ("first", "steps", "expected"),
    [
        (["--recipe", "rtd"], "8", 0.0),
        (["--recipe", "rtd"], "0", 0.3),
    ],
    ids=["a generator", "begun, not trained"],
)
def test_a_checkpoint_goes_on_as_it_was_trained(
    pretrain_here: Command, tmp_path: Path, first: list[str], steps: str, expected: float
) -> None:
    """Where it learnt from a generator's replacements, noise would be a step back."""

    def noise_of(name: str) -> float:
        record = json.loads((tmp_path / name / "run.json").read_text())
        assert (tmp_path / name / "generator").is_dir()
        return float(record["plan"]["objective"]["unigram_fraction"])

    assert pretrain_here(*first, "--max-steps", steps, "--output", "first")[0] == 0
    go_on = [*LEFT_OUT, "--init", "first", "--max-steps", "2"]
    code, _, errors = pretrain_here(*go_on)
    assert code == 0, errors
    assert noise_of("run") == expected
    # A checkpoint from elsewhere has no record: a generator beside it has been there for something.
    (tmp_path / "first" / "run.json").unlink()
    assert pretrain_here(*go_on, "--output", "no record")[0] == 0
    assert noise_of("no record") == (0.0 if Path("first/generator").is_dir() else 0.3)
