"""What a run learns from when nobody says it: its length decides (docs/log)."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import pretrain.plan
from pretrain.config.objective import Recipe
from pretrain.config.settings import CORRECTION_TOKENS, FEW_TOKENS
from pretrain.plan import Checkpoint, Machine
from tests.pretrain.conftest import CPU, GPU, Breaking, Command, metric_rows, plan_of, weights_of

# Of a flag given twice the last counts: takes back what the fixture fixes.
LEFT_OUT = ["--recipe", "None"]
MANY = str(FEW_TOKENS // 256 + 1)


def learnt(tokens: float, **given: Any) -> Recipe:
    return plan_of(max_tokens=tokens, **given).objective


def test_few_tokens_are_learnt_from_by_noise_a_bag_and_correction() -> None:
    for tokens in (1, 1_000, CORRECTION_TOKENS, CORRECTION_TOKENS + 1, FEW_TOKENS):
        recipe = learnt(tokens)
        assert (recipe.unigram_fraction, recipe.bag_weight) == (1.0, 5.0)
        assert recipe.correction_weight == (5 if tokens <= CORRECTION_TOKENS else 0)
        assert not recipe.needs_generator


@pytest.mark.parametrize(
    "given",
    [
        {"max_tokens": FEW_TOKENS + 1},
        # Comparisons at equal compute are of what is asked for; and --max-steps 0 writes what any
        # recipe may begin with.
        {"max_flops": 1e15},
        {"max_steps": 0},
        {"machine": GPU, "max_minutes": 1.5},
    ],
    ids=str,
)
def test_many_tokens_and_unknown_numbers_of_them_are_learnt_from_as_in_the_paper(
    given: dict[str, Any],
) -> None:
    planned = plan_of(**given)
    assert planned.objective == Recipe() and planned.start.recipe == "electra"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"unigram_fraction": 0.0}, (0.0, 0.0, 0.0)),
        ({"unigram_fraction": 0.5}, (0.5, 0.0, 0.0)),
        ({"unigram_fraction": 1.0}, (1.0, 0.0, 0.0)),
        ({"unigram_fraction": 0.0, "bag_weight": 2.0}, (0.0, 2.0, 0.0)),
        ({"unigram_fraction": 0.0, "correction_weight": 2.0}, (0.0, 0.0, 2.0)),
        ({"bag_weight": 2.0}, (1.0, 2.0, 5.0)),
        ({"bag_weight": 0.0}, (1.0, 0.0, 5.0)),
        ({"correction_weight": 0.0}, (1.0, 5.0, 0.0)),
        ({"recipe": "electra"}, (0.0, 0.0, 0.0)),
        ({"recipe": "noise"}, (1.0, 5.0, 0.0)),
        ({"recipe": "few-tokens"}, (1.0, 5.0, 5.0)),
    ],
)
def test_what_is_given_counts_more_than_the_length(
    given: dict[str, Any], expected: tuple[float, float, float]
) -> None:
    recipe = learnt(1e6, **given)
    assert (recipe.unigram_fraction, recipe.bag_weight, recipe.correction_weight) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"objective": "mlm"},
        {"objective": "electra-15"},
        {"objective": "all-tokens-mlm"},
        {"schedule": "two-stage", "generator_size": 1.0},
        {"schedule": "adversarial"},
        {"schedule": "frozen-generator", "generator_from": Path("run")},
        {"sharing": "gdes"},
        {"generator_size": 0.5},
        {"generator_layers": 2},
        {"temperature": 2.0},
        {"sampling": "gumbel"},
        {"kept_fraction": 0.1},
        {"discriminator_weight": 0.0},
        {"discriminator_weight": 10.0},
        {"weight_warmup": 0.5},
        {"sharing": "none"},
        {"first_temperature": 2.0},
        {"random_fraction": 0.1},
        {"masking": "span", "generator_head": "sbo"},
        # The defaults, given: the paper's values.
        {"generator_size": 0.25},
        {"discriminator_weight": 50.0},
        {"temperature": 1.0},
        {"objective": "rtd"},
        {"kept_fraction": 0.15},
    ],
    ids=str,
)
def test_who_asks_for_another_objective_or_a_generator_gets_it(given: dict[str, Any]) -> None:
    planned = plan_of(max_tokens=1e6, **given)
    assert planned.objective == plan_of(max_tokens=1e6, recipe="electra", **given).objective
    assert planned.objective.unigram_fraction == 0


@pytest.mark.parametrize("given", [{"masking": "word"}, {"forbid_original": True}], ids=str)
def test_what_goes_with_noise_does_not_keep_it_away(given: dict[str, Any]) -> None:
    assert learnt(1e6, **given).unigram_fraction == 1


@pytest.mark.parametrize(
    ("given", "machine", "expected"),
    [
        ({"epochs": 3}, CPU, "few-tokens"),
        ({"epochs": FEW_TOKENS // 1_000}, CPU, "noise"),
        ({"epochs": FEW_TOKENS // 1_000 + 1}, CPU, "electra"),
        ({"max_steps": 10, "tokens_per_batch": 512}, CPU, "few-tokens"),
        ({"max_steps": FEW_TOKENS // 512 + 1, "tokens_per_batch": 512}, CPU, "electra"),
        # Minutes are few tokens on a CPU and any number on a GPU.
        ({"max_minutes": 150}, CPU, "few-tokens"),
        ({"max_minutes": 1.5}, GPU, "electra"),
    ],
    ids=str,
)
def test_the_tokens_of_a_run_are_known_before_it(
    given: dict[str, Any], machine: Machine, expected: str
) -> None:
    """Of a corpus of 1,000 tokens."""
    assert plan_of(machine=machine, **given).start.recipe == expected


def test_what_has_learnt_from_a_generator_goes_on_with_one() -> None:
    known = {"preset": "tiny", "has_generator": True, "sharing": "instance"}
    for learnt_with, expected in ((True, "electra"), (False, "few-tokens")):
        checkpoint = Checkpoint(**known, learnt_with_generator=learnt_with)
        planned = plan_of(init="run", max_steps=1, checkpoint=checkpoint)
        assert planned.start.recipe == expected


def test_a_short_run_needs_no_flag_to_learn_something(
    pretrain_here: Command, tmp_path: Path
) -> None:
    code, output, errors = pretrain_here(*LEFT_OUT, "--max-steps", "8")
    assert code == 0, errors
    assert "recipe few-tokens, for the run sees at most 10 million tokens" in output
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    learnt = record["plan"]["objective"]
    assert (learnt["unigram_fraction"], learnt["bag_weight"]) == (1.0, 5.0)
    assert learnt["correction_weight"] == 5
    assert not [name for name in record["given"] if name.startswith("objective.")]
    assert list(record["networks"]) == ["discriminator"]
    assert not (tmp_path / "run" / "generator").exists()
    assert all(row["bag_loss"] > row["generator_loss"] == 0 for row in metric_rows(Path("run")))


def test_a_resumed_run_keeps_what_it_began_with(
    pretrain_here: Command, break_off: Breaking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even where it will be longer now, or another version of ours would decide otherwise."""
    flags = [*LEFT_OUT, "--max-steps", "8"]
    assert pretrain_here(*flags, "--output", "through")[0] == 0
    broken = break_off(6, *flags)
    monkeypatch.setattr(pretrain.plan, "FEW_TOKENS", 0)
    code, _, errors = pretrain_here(*flags, "--resume")
    assert code == 0, errors
    expected, found = weights_of(tmp_path / "through"), weights_of(broken)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_another_replacement_is_another_run(pretrain_here: Command, break_off: Breaking) -> None:
    break_off(6, *LEFT_OUT, "--max-steps", "8")
    for flags in (["--set", "objective.unigram_fraction=0", *LEFT_OUT], ["--recipe", "electra"]):
        code, _, errors = pretrain_here(*flags, "--max-steps", "8", "--resume")
        assert code == 2 and "found objective." in errors and "give the same" in errors
    # What was decided may be said.
    flags = ["--recipe", "few-tokens", "--set", "objective.unigram_fraction=1"]
    assert pretrain_here(*flags, "--max-steps", "8", "--resume")[0] == 0


def test_a_longer_resumed_run_is_no_other_run(pretrain_here: Command, break_off: Breaking) -> None:
    broken = break_off(6, *LEFT_OUT, "--max-steps", "8")
    break_off(10, *LEFT_OUT, "--max-steps", MANY, "--resume")
    assert metric_rows(broken)[-1]["step"] == 10
    record = json.loads((broken / "run.json").read_text())
    assert record["plan"]["objective"]["unigram_fraction"] == 1


@pytest.mark.parametrize(
    ("first", "steps", "expected"),
    [
        (["--recipe", "electra"], "8", 0.0),
        (["--recipe", "electra"], "0", 1.0),
        (["--recipe", "noise"], "8", 1.0),
        (["--recipe", "mlm"], "8", 1.0),
    ],
    ids=["a generator", "begun, not trained", "noise", "masked LM"],
)
def test_a_checkpoint_goes_on_as_it_was_trained(
    pretrain_here: Command, tmp_path: Path, first: list[str], steps: str, expected: float
) -> None:
    """Where it learnt from a generator's replacements, noise would be a step back."""
    assert pretrain_here(*first, "--max-steps", steps, "--output", "first")[0] == 0
    go_on = [*LEFT_OUT, "--init", "first", "--max-steps", "2"]
    assert pretrain_here(*go_on)[0] == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["plan"]["objective"]["unigram_fraction"] == expected
    # A checkpoint from elsewhere has no record: a generator beside it has been there for something.
    (tmp_path / "first" / "run.json").unlink()
    assert pretrain_here(*go_on, "--output", "no record")[0] == 0
    record = json.loads((tmp_path / "no record" / "run.json").read_text())
    alone = 0.0 if Path("first/generator").is_dir() else 1.0
    assert record["plan"]["objective"]["unigram_fraction"] == alone


def test_the_line_about_noise_is_said_only_of_a_default(pretrain_here: Command) -> None:
    for recipe in ("noise", "electra"):
        output = pretrain_here("--max-steps", "1", "--recipe", recipe)[1]
        assert f"recipe {recipe}, as given" in output and "by word frequency" not in output
        Path("run").rename(f"run-{recipe}")
