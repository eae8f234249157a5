"""What a run learns from when no flag says it: its length decides (docs/experiments.md)."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from pretrain.config.objective import Recipe
from pretrain.config.settings import CORRECTION_TOKENS, FEW_TOKENS, PretrainSettings
from pretrain.engine.loop import planned_tokens
from tests.pretrain.conftest import Breaking, Command, metric_rows, weights_of

CPU, GPU = torch.device("cpu"), torch.device("cuda")
# Of a flag given twice the last counts: takes back what the fixture fixes.
LEFT_OUT = ["--unigram-fraction", "None"]


def decided(planned: float | None, **flags: Any) -> Recipe:
    return PretrainSettings(corpus=Path("-"), **flags).for_tokens(planned).recipe()


def test_few_tokens_are_learnt_from_by_noise_a_bag_and_correction() -> None:
    for planned in (0, 1_000, CORRECTION_TOKENS, CORRECTION_TOKENS + 1, FEW_TOKENS):
        recipe = decided(planned)
        assert (recipe.unigram_fraction, recipe.bag_weight) == (1.0, 5.0)
        assert recipe.correction_weight == (5 if planned <= CORRECTION_TOKENS else 0)
        assert not recipe.needs_generator


@pytest.mark.parametrize("planned", [FEW_TOKENS + 1, None])
def test_many_tokens_and_unknown_numbers_of_them_are_learnt_from_as_in_the_paper(
    planned: float | None,
) -> None:
    assert decided(planned) == Recipe()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"unigram_fraction": 0.0}, (0.0, 0.0, 0.0)),
        ({"unigram_fraction": 0.5}, (0.5, 0.0, 0.0)),
        ({"unigram_fraction": 1.0}, (1.0, 0.0, 0.0)),
        ({"unigram_fraction": 0.0, "bag_weight": 2.0}, (0.0, 2.0, 0.0)),
        ({"unigram_fraction": 0.0, "correction_weight": 2.0}, (0.0, 0.0, 2.0)),
        ({"bag_weight": 2.0}, (1.0, 2.0, 5.0)),
        ({"bag_weight": 0.0}, (1.0, 0.0, 5.0)),
        ({"correction_weight": 0.0}, (1.0, 5.0, 0.0)),
    ],
)
def test_a_flag_counts_more_than_the_length(
    flags: dict[str, float], expected: tuple[float, float, float]
) -> None:
    recipe = decided(1e6, **flags)
    assert (recipe.unigram_fraction, recipe.bag_weight, recipe.correction_weight) == expected


@pytest.mark.parametrize(
    "flags",
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
    ],
    ids=str,
)
def test_who_asks_for_another_objective_or_a_generator_gets_it(flags: dict[str, Any]) -> None:
    settings = PretrainSettings(corpus=Path("-"), **flags)
    settings.check()
    assert settings.for_tokens(1e6).recipe() == settings.recipe()
    assert settings.recipe().unigram_fraction == 0


@pytest.mark.parametrize("flags", [{"masking": "word"}, {"forbid_original": True}], ids=str)
def test_what_goes_with_noise_does_not_keep_it_away(flags: dict[str, Any]) -> None:
    assert decided(1e6, **flags).unigram_fraction == 1


def test_the_tokens_of_a_run_are_known_before_it() -> None:
    def planned(device: torch.device = CPU, **flags: Any) -> float | None:
        return planned_tokens(PretrainSettings(corpus=Path("-"), **flags), 1_000, device)

    assert planned(epochs=3) == 3_000
    assert planned(max_tokens=5e6) == 5e6
    assert planned(max_steps=10, tokens_per_batch=512) == 5_120
    # Minutes are few tokens on a CPU and any number on a GPU.
    assert planned(max_minutes=150) == 0
    assert planned(GPU, max_minutes=1.5) is None
    # Comparisons at equal compute are of what the flags say; and --max-steps 0 writes what any
    # recipe may begin with.
    assert planned(max_flops=1e15) is None
    assert planned(max_steps=0) is None


def test_a_short_run_needs_no_flag_to_learn_something(
    pretrain_here: Command, tmp_path: Path
) -> None:
    code, output, errors = pretrain_here(*LEFT_OUT, "--max-steps", "8")
    assert code == 0, errors
    assert "replacements: noise by word frequency" in output
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["unigram_fraction"], record["bag_weight"]) == (1.0, 5.0)
    assert record["correction_weight"] == 5
    assert record["settings"]["unigram_fraction"] is None
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
    monkeypatch.setattr("pretrain.config.settings.FEW_TOKENS", 0)
    code, _, errors = pretrain_here(*flags, "--resume")
    assert code == 0, errors
    expected, found = weights_of(tmp_path / "through"), weights_of(broken)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_a_run_by_an_earlier_version_goes_on(
    pretrain_here: Command, break_off: Breaking, tmp_path: Path
) -> None:
    """Its flags were numbers, and its record had no other place for them."""
    as_in_paper = ["--unigram-fraction", "0", "--max-steps", "8"]
    assert pretrain_here(*as_in_paper, "--output", "through")[0] == 0
    broken = break_off(6, *as_in_paper)
    record = json.loads((broken / "run.json").read_text())
    record["settings"] |= {"unigram_fraction": 0.0, "bag_weight": 0.0}
    # Nor did its settings have --correction-weight.
    del record["unigram_fraction"], record["bag_weight"], record["correction_weight"]
    del record["settings"]["correction_weight"]
    (broken / "run.json").write_text(json.dumps(record))
    code, _, errors = pretrain_here(*LEFT_OUT, "--max-steps", "8", "--resume")
    assert code == 0, errors
    expected, found = weights_of(tmp_path / "through"), weights_of(broken)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_another_replacement_is_another_run(pretrain_here: Command, break_off: Breaking) -> None:
    break_off(6, *LEFT_OUT, "--max-steps", "8")
    code, _, errors = pretrain_here("--unigram-fraction", "0", "--max-steps", "8", "--resume")
    assert code == 2 and "found --unigram-fraction 0.0; give the same flags" in errors
    # What was decided may be said.
    assert pretrain_here("--unigram-fraction", "1", "--max-steps", "8", "--resume")[0] == 0


def test_a_longer_resumed_run_is_no_other_run(pretrain_here: Command, break_off: Breaking) -> None:
    broken = break_off(6, *LEFT_OUT, "--max-steps", "8")
    many = str(FEW_TOKENS // 256 + 1)
    break_off(10, *LEFT_OUT, "--max-steps", many, "--resume")
    assert metric_rows(broken)[-1]["step"] == 10
    assert json.loads((broken / "run.json").read_text())["unigram_fraction"] == 1


@pytest.mark.parametrize(
    ("first", "steps", "expected"),
    [
        (["--unigram-fraction", "0"], "8", 0.0),
        (["--unigram-fraction", "0"], "0", 1.0),
        (["--unigram-fraction", "1"], "8", 1.0),
        (["--objective", "mlm"], "8", 1.0),
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
    assert record["unigram_fraction"] == expected
    # A checkpoint from elsewhere has no record: a generator beside it has been there for something.
    (tmp_path / "first" / "run.json").unlink()
    assert pretrain_here(*go_on, "--output", "no record")[0] == 0
    record = json.loads((tmp_path / "no record" / "run.json").read_text())
    assert record["unigram_fraction"] == (0.0 if Path("first/generator").is_dir() else 1.0)


def test_the_line_about_noise_is_said_only_of_a_default(pretrain_here: Command) -> None:
    for flags in (["--unigram-fraction", "1"], ["--unigram-fraction", "0"]):
        assert "replacements:" not in pretrain_here("--max-steps", "1", *flags)[1]
        Path("run").rename(f"run-{flags[1]}")
