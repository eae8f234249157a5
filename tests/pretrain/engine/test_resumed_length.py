"""Another length beside `--resume`: refused where the run has passed it."""

import json
from pathlib import Path

import pytest

from pretrain.engine.checkpoint import TrainerState
from tests.pretrain.conftest import Breaking, Command, metric_rows, unfinish


@pytest.fixture
def broken_off(break_off: Breaking) -> Path:
    """A run of 12 steps whose power went off after step 10, two steps past its checkpoint."""
    return break_off(10, "--max-steps", "12")


@pytest.mark.parametrize(
    ("length", "found"),
    [
        ("--max-steps 5", "8 steps or more, where the run is, found --max-steps 5"),
        ("--max-steps 0", "found --max-steps 0"),
        ("--max-tokens 600", "tokens or more, where the run is, found --max-tokens 600"),
        ("--max-minutes 0.01", "minutes or more, where the run is, found --max-minutes 0.01"),
        ("--set length.max_flops=1e6", "operations or more, where the run is, found length.max"),
    ],
)
def test_a_length_that_the_run_has_passed_is_refused_and_changes_nothing(
    pretrain_here: Command,
    broken_off: Path,
    length: str,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that it ended could never be resumed."""
    monkeypatch.setattr(TrainerState, "clock", 60.0, raising=False)
    before = {path: path.read_bytes() for path in broken_off.rglob("*") if path.is_file()}
    code, _, errors = pretrain_here(*length.split(), "--resume")
    assert code == 2 and found in errors and "--max-steps 12" in errors
    assert len(errors.strip().splitlines()) == 1
    assert before == {path: path.read_bytes() for path in broken_off.rglob("*") if path.is_file()}
    assert pretrain_here("--resume")[0] == 0
    assert metric_rows(broken_off)[-1]["step"] == 12


def test_epochs_that_the_run_has_passed_are_refused(
    pretrain_here: Command, break_off: Breaking
) -> None:
    larger = ["--tokens-per-batch", "2048"]
    run = break_off(9, "--epochs", "9", *larger)
    code, _, errors = pretrain_here("--epochs", "1", "--resume", *larger)
    assert code == 2 and "8 steps or more, where the run is, found --epochs 1, whi" in errors
    assert json.loads((run / "run.json").read_text())["status"] == "running"


def test_a_length_that_the_run_has_just_reached_ends_it(
    pretrain_here: Command, broken_off: Path
) -> None:
    assert pretrain_here("--max-steps", "8", "--resume")[0] == 0
    assert json.loads((broken_off / "run.json").read_text())["progress"]["step"] == 8


def test_a_run_killed_after_its_last_step_is_finished_by_its_own_length(
    pretrain_here: Command, tmp_path: Path
) -> None:
    """The last batch takes it beyond so many tokens."""
    flags = ["--max-tokens", "1500"]
    assert pretrain_here(*flags)[0] == 0
    unfinish(tmp_path / "run", before=1_000)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["progress"]["tokens"] > 1500
    assert pretrain_here(*flags, "--resume")[0] == 0
