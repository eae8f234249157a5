"""What the monitor says aloud, when, and that a resumed run remembers it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.engine import monitor as monitor_module
from malmoi.pretrain.engine.monitor import Monitor
from malmoi.pretrain.engine.processes import Processes
from malmoi.pretrain.objectives.context import COUNT_NAMES
from malmoi.pretrain.objectives.step import StepResult
from tests.malmoi.pretrain.conftest import Breaking, Command

UNIGRAM_LOSS = 6.0


def result(
    generator: float = 5.0,
    discriminator: float = 0.3,
    *,
    hidden: float | None = None,
    guessed: int = 50,
    found: int = 50,
    replaced: int = 100,
    correction: float = 0.0,
) -> StepResult:
    counts = dict.fromkeys(COUNT_NAMES, 0) | {
        "masked": 150,
        "guessed": guessed,
        "hidden": 125,
        "commonest": 5,
        "true_positive": found,
        "predicted_replaced": 2 * found,
        "replaced": replaced,
        "tokens": 1_000,
    }
    return StepResult(
        loss=torch.tensor(generator + 50 * discriminator),
        auxiliary={"bag_loss": torch.tensor(0.0), "correction_loss": torch.tensor(correction)},
        generator_loss=torch.tensor(generator),
        discriminator_loss=torch.tensor(discriminator),
        counts=torch.tensor(list(counts.values())),
        hidden_losses=125 * torch.tensor([generator if hidden is None else hidden, UNIGRAM_LOSS]),
        binned_loss=torch.ones(2, 5),
    )


def watching(directory: Path, **more: Any) -> Monitor:
    """A monitor that reports every step, unless `more` says otherwise."""
    given = {"log_steps": 1, "first_step": 0, "recipe": Recipe()} | more
    cpu = Processes(device=torch.device("cpu"))
    return Monitor(directory, processes=cpu, **given)


def show(
    monitor: Monitor, each: StepResult, *, step: int, fraction: float, left: float = 60.0
) -> None:
    """One step of 1,000 tokens."""
    so_far = {"tokens": 1_000 * step, "flops": 2e6 * step}
    monitor.add(each, step=step, learning_rate=1e-3, fraction=fraction, left=left, **so_far)


def watch(
    directory: Path,
    results: list[StepResult],
    *,
    first_step: int = 0,
    warnings: list[str] | None = None,
    recipe: Recipe | None = None,
    left: float = 60.0,
    log_steps: int = 1,
) -> Monitor:
    """Show results of a run of 1,000 steps, one every hundred steps."""
    with watching(
        directory,
        log_steps=100 * log_steps if log_steps > 1 else 1,
        first_step=first_step,
        recipe=recipe or Recipe(),
        warnings=warnings,
    ) as monitor:
        for number, each in enumerate(results, 1):
            step = first_step + 100 * number
            show(monitor, each, step=step, fraction=step / 1_000, left=left)
    return monitor


def test_rates_are_those_of_all_steps_since_the_last_row(tmp_path: Path) -> None:
    with watching(tmp_path, log_steps=2) as monitor:
        for step, each in enumerate([result(6.0, found=40), result(4.0, found=60)], 1):
            show(monitor, each, step=step, fraction=0.1)
    (row,) = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert (row["step"], row["tokens_seen"], row["paper_flops"]) == (2, 2_000, 4e6)
    assert row["generator_loss"] == pytest.approx(5.0)
    assert row["discriminator_recall"] == pytest.approx(100 / 200)
    assert row["discriminator_precision"] == pytest.approx(100 / 200)
    assert row["replaced_fraction"] == pytest.approx(200 / 2_000)
    assert row["generator_accuracy"] == pytest.approx(50 / 125)
    assert row["unigram_loss"] == pytest.approx(UNIGRAM_LOSS)
    assert row["unigram_accuracy"] == pytest.approx(5 / 125)


def test_no_generator_has_no_loss_of_a_generator(tmp_path: Path) -> None:
    for name, recipe, has_figures in (
        ("noise", NOISE, False),
        ("mlm", Recipe(objective="mlm"), True),
        ("frozen", Recipe(schedule="frozen-generator"), True),
    ):
        (tmp_path / name).mkdir()
        row = watch(tmp_path / name, [result()], recipe=recipe).last
        found = {"generator_loss", "generator_hidden_loss", "generator_accuracy"} <= row.keys()
        assert found == ("unigram_loss" in row) == has_figures
        assert has_figures or not [key for key in row if key.startswith("generator")]
        # Rows with and without are read again by a run that goes on.
        more = watch(tmp_path / name, [result()], recipe=recipe, first_step=100)
        assert more.last["step"] == 200


OF_ENCODER = {
    *("discriminator_loss", "discriminator_precision", "discriminator_recall"),
    *("replaced_fraction", "bag_loss", "correction_loss", "encoder_accuracy"),
}
DETECTION = {
    *("discriminator_loss", "discriminator_precision", "discriminator_recall"),
    "replaced_fraction",
}


@pytest.mark.parametrize(
    ("flags", "first", "last"),
    [
        ("--recipe bert", {"encoder_accuracy"}, {"encoder_accuracy"}),
        ("--recipe electra", DETECTION, DETECTION),
        ("--recipe default", OF_ENCODER, OF_ENCODER),
        ("--recipe two-stage", set(), DETECTION),
        (
            "--recipe two-stage objective.correction_weight=1",
            set(),
            DETECTION | {"correction_loss", "encoder_accuracy"},
        ),
        (
            "--recipe replace-mlm",
            {"discriminator_loss", "encoder_accuracy"},
            {"discriminator_loss", "encoder_accuracy"},
        ),
    ],
)
def test_what_a_recipe_or_stage_has_not_is_in_no_row(
    pretrain_here: Command, break_off: Breaking, flags: str, first: set[str], last: set[str]
) -> None:
    """And the rows are read again by a run that goes on."""
    directory = break_off(7, "--max-steps", "8", *flags.split())
    code, printed, errors = pretrain_here("--max-steps", "8", *flags.split(), "--resume")
    assert code == 0, errors
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [2, 4, 6, 8]
    assert (rows[0].keys() & OF_ENCODER, rows[-1].keys() & OF_ENCODER) == (first, last)
    final = json.loads((directory / "run.json").read_text())["final_metrics"]
    assert final == rows[-1]
    assert ("discriminator loss" in printed) == (last >= DETECTION)


def test_no_loss_at_tokens_of_some_frequency_is_not_a_loss_of_zero(tmp_path: Path) -> None:
    alone = replace(result(), binned_loss=torch.zeros(2, 5), trains_discriminator=False)
    binned = torch.tensor([[3.0, 1.0, 0.0, 0.0, 2.0], [6.0, 1.0, 2.0, 0.0, 4.0]])
    with watching(tmp_path) as monitor:
        show(monitor, alone, step=1, fraction=0.1)
        show(monitor, replace(result(), binned_loss=binned), step=2, fraction=0.2)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    found = [
        {name[-1]: loss for name, loss in row.items() if name.startswith("loss_by_frequency")}
        for row in rows
    ]
    assert found == [{}, {"1": 0.5, "2": 1.0, "3": 0.0, "5": 0.5}]


def test_tensorboard_has_every_number_of_the_rows_and_at_the_end_the_cost(tmp_path: Path) -> None:
    with watching(tmp_path) as monitor:
        for number, loss in enumerate((6.0, 4.0), 1):
            show(monitor, result(loss), step=100 * number, fraction=number / 2)
        monitor.add_cost({"model_flops_utilization": 0.6, "parameters": 5_000})
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    names = {*rows[0]} - {"step"} | {"cost/model_flops_utilization", "cost/parameters"}
    assert set(board.Tags()["scalars"]) == names
    for name in names - {"cost/model_flops_utilization", "cost/parameters"}:
        events = board.Scalars(name)
        assert [event.step for event in events] == [100, 200]
        assert [event.value for event in events] == pytest.approx([row[name] for row in rows])
    assert [(e.step, e.value) for e in board.Scalars("cost/parameters")] == [(200, 5_000)]


def test_a_resumed_run_keeps_its_points_on_tensorboard(tmp_path: Path) -> None:
    """Also that of the step of the checkpoint, which is not taken again; but none after it."""
    watch(tmp_path, [result()] * 4)
    watch(tmp_path, [result()] * 2, first_step=300)
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [e.step for e in board.Scalars("generator_loss")] == [100, 200, 300, 400, 500]


def test_a_generator_no_better_than_word_frequencies_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (warning,) = watch(tmp_path, [result(generator=6.4)] * 10).warnings
    assert warning.startswith(
        "step 500: the generator has stalled: where [MASK] stands its loss is"
    )
    assert "6.40 and 40.0%" in warning and "the 6.00 and 4.0%" in warning
    assert "--learning-rate" in warning
    assert f"warning: {warning}" in capsys.readouterr().out


def test_what_a_generator_guesses_is_asked_where_mask_stands(tmp_path: Path) -> None:
    for each, stalls in (
        # Tokens that were kept are no loss, and hide that the others are not guessed.
        (result(generator=5.5, hidden=6.4), True),
        (result(generator=5.5, hidden=5.9), False),
        # Always the commonest token, or never a right one.
        (result(guessed=5), True),
        (result(guessed=0), True),
        (result(guessed=6), False),
    ):
        assert bool(watch(tmp_path, [each] * 10).warnings) == stalls


def test_a_generator_that_is_worse_for_a_moment_has_not_stalled(tmp_path: Path) -> None:
    now_and_then = [result(), result(), result(generator=6.4), result(generator=6.4)] * 5
    assert watch(tmp_path, now_and_then[:10]).warnings == []


def test_recall_at_zero_is_said_in_time_and_again_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, last = watch(tmp_path, [result(found=0)] * 10).warnings
    assert first.startswith("step 100: discriminator recall of replaced tokens is 0.000")
    assert last.startswith("step 1,000: discriminator recall of replaced tokens is 0.000")
    # What a loss looks like that has learnt how many tokens are replaced, and nothing else.
    trivial = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    assert f"about {trivial:.2f}" in first
    assert "only learnt that most tokens are original" in capsys.readouterr().out
    assert first.endswith("or replacements that are easier to find (--recipe noise)")


def test_nothing_found_while_the_rate_still_rises_is_no_warning(tmp_path: Path) -> None:
    monitor = watching(tmp_path, log_steps=100)
    for step in range(1, 501):
        show(monitor, result(found=0), step=step, fraction=step / 10_000)
    assert monitor.warnings == []


def test_of_a_row_far_above_the_start_no_checkpoint_is_wanted(tmp_path: Path) -> None:
    monitor = watching(tmp_path)
    assert not monitor.rises()
    for step in range(1, 31):
        show(monitor, result(), step=step, fraction=0.5)
    assert not monitor.rises()
    show(monitor, result(generator=7.1), step=31, fraction=0.5)
    # One row is no explosion yet.
    assert monitor.rises() and not monitor.exploded()
    show(monitor, result(), step=32, fraction=0.5)
    assert not monitor.rises()


def test_no_recall_is_missed_while_nothing_is_replaced(tmp_path: Path) -> None:
    """The first of two stages."""
    assert watch(tmp_path, [result(found=0, replaced=0)] * 10).warnings == []


def test_two_nats_above_the_start_is_an_explosion(tmp_path: Path) -> None:
    for worse, named in (
        ([result(generator=7.1)] * 20, "7.10 for guessing a token, 5.00 at the start"),
        ([result(generator=6.9)] * 20, ""),
        ([result(discriminator=2.7)] * 20, ""),
        # Of small batches one may be harder than the first by as much.
        ([result(generator=7.1), result(generator=5.0)] * 10, ""),
    ):
        assert watch(tmp_path, [*[result()] * 20, *worse]).exploded() == named


def test_the_start_is_more_than_its_first_batch(tmp_path: Path) -> None:
    start = [result(generator=loss) for loss in (3.0, 5.0, 5.1)]
    assert watch(tmp_path, [*start, *[result(generator=6.9)] * 20]).exploded() == ""


def test_an_explosion_within_the_first_steps_is_seen(tmp_path: Path) -> None:
    """Rows of the explosion itself are no start to hold later ones against."""
    rising = [result(generator=loss) for loss in (5.0, 5.0, 9.0, *[12.0] * 17)]
    assert watch(tmp_path, rising[:19]).exploded() == ""
    (again := tmp_path / "again").mkdir()
    assert watch(again, rising).exploded().endswith("5.00 at the start")


def test_rows_count_by_their_steps(tmp_path: Path) -> None:
    """Those of a run resumed with another execution.log_steps differ."""
    with watching(tmp_path, log_steps=15) as monitor:
        for step in range(1, 16):
            show(monitor, result(generator=5.0), step=step, fraction=0.1)
    with watching(tmp_path, log_steps=5, first_step=15) as monitor:
        for step in range(16, 31):
            show(monitor, result(generator=8.0), step=step, fraction=0.1)
        assert monitor.exploded() == ""
        for step in range(31, 36):
            show(monitor, result(generator=12.0), step=step, fraction=0.1)
        assert monitor.exploded().startswith("9.00 for guessing a token, 5.00")
        # The oldest row leaves where the others cover twenty steps.
        for step in range(36, 41):
            show(monitor, result(generator=12.0), step=step, fraction=0.1)
        assert monitor.exploded().startswith("10.00 for guessing")


NOISE = Recipe(unigram_fraction=1.0)
# Rows come with every step here, and twenty are looked at together.
STEADY = [result(generator=0.0, discriminator=0.6)] * 20


def test_without_a_generator_that_learns_to_guess_the_other_loss_is_watched(tmp_path: Path) -> None:
    for recipe, what in (
        (NOISE, "for telling original from replaced tokens"),
        (Recipe(schedule="frozen-generator"), "for telling original from replaced tokens"),
        (Recipe(schedule="adversarial"), "for telling original from replaced tokens"),
        (Recipe(objective="replace-mlm", unigram_fraction=1.0), "for guessing a token"),
    ):
        worse = [result(generator=0.0, discriminator=2.7)] * 20
        monitor = watch(tmp_path, [*STEADY, *worse], recipe=recipe)
        assert monitor.exploded() == f"2.70 {what}, 0.60 at the start"


def test_where_a_discriminator_only_corrects_that_is_watched(tmp_path: Path) -> None:
    recipe = Recipe(unigram_fraction=1.0, discriminator_weight=0.0, correction_weight=5.0)
    # Its own head is not trained, so what that finds is no news.
    steady, worse = (result(0.0, 9.0, found=0, correction=loss) for loss in (8.0, 10.5))
    for name in ("steady", "worse"):
        (tmp_path / name).mkdir()
    monitor = watch(tmp_path / "steady", [steady] * 20, recipe=recipe)
    assert monitor.exploded() == "" and monitor.warnings == []
    monitor = watch(tmp_path / "worse", [steady] * 20 + [worse] * 20, recipe=recipe)
    assert monitor.exploded() == "10.50 for guessing a token, 8.00 at the start"


def test_a_generator_that_learns_alone_is_watched(tmp_path: Path) -> None:
    alone = Recipe(schedule="frozen-discriminator")
    first, worse = (
        replace(result(generator=loss, discriminator=0.0), trains_discriminator=False)
        for loss in (6.0, 9.0)
    )
    assert watch(tmp_path, [first] * 20, recipe=alone).exploded() == ""
    monitor = watch(tmp_path, [first] * 20 + [worse] * 20, recipe=alone)
    assert monitor.exploded() == "9.00 for guessing a token, 6.00 at the start"


def test_a_discriminator_may_jump_and_come_back(tmp_path: Path) -> None:
    jump = [result(generator=0.0, discriminator=5.0)] * 5
    assert watch(tmp_path, [*STEADY, *jump], recipe=NOISE).exploded() == ""


def test_the_second_of_two_stages_is_held_against_its_own_start(tmp_path: Path) -> None:
    recipe = Recipe(schedule="two-stage", objective="replace-mlm")
    first = replace(result(discriminator=0.0), trains_discriminator=False)
    second, worse = result(discriminator=9.0), result(discriminator=11.1)
    assert watch(tmp_path, [first] * 3 + [second] * 30, recipe=recipe).exploded() == ""
    monitor = watch(tmp_path, [worse] * 20, recipe=recipe, first_step=3_300)
    assert monitor.exploded() == "11.10 for guessing a token, 9.00 at the start"


def test_a_row_where_two_stages_meet_has_the_loss_of_the_steps_that_have_one(
    tmp_path: Path,
) -> None:
    first = replace(result(discriminator=0.0), trains_discriminator=False)
    second = result(discriminator=0.6, correction=7.0)
    monitor = watch(tmp_path, [first, first, first, second], log_steps=4)
    assert monitor.last["discriminator_loss"] == pytest.approx(0.6)
    assert monitor.last["correction_loss"] == pytest.approx(7.0)
    assert monitor.last["generator_loss"] == pytest.approx(5.0)


def test_the_start_is_remembered_over_a_break(tmp_path: Path) -> None:
    watch(tmp_path, [result()] * 20)
    assert watch(tmp_path, [], first_step=2_000).exploded() == ""
    after = watch(tmp_path, [result(generator=7.1)] * 20, first_step=2_000)
    assert after.exploded() == "7.10 for guessing a token, 5.00 at the start"


def test_a_generator_that_learns_to_mislead_does_not_explode(tmp_path: Path) -> None:
    adversarial = Recipe(schedule="adversarial")
    rising = [result(), result(generator=12.0)]
    assert watch(tmp_path, rising, recipe=adversarial).exploded() == ""


def test_a_resumed_run_records_the_warnings_of_all_its_sittings(
    pretrain_here: Command, break_off: Breaking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_module, "_FIRST_WARNING_STEP", 4)
    flags = ["--max-steps", "12", "--learning-rate", "1e-9"]
    directory = break_off(10, *flags)
    code, printed, _ = pretrain_here(*flags, "--resume")
    assert code == 0
    warnings = json.loads((directory / "run.json").read_text())["warnings"]
    (stalled,) = [warning for warning in warnings if "stalled" in warning]
    # Found before the checkpoint at step 8, so not said again.
    assert stalled.startswith("step 6: the generator has stalled")
    assert stalled not in printed.split("resumed at step 8")[1]
