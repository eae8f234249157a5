"""A loss or gradient that is no number, or grows beyond measure, becomes no checkpoint."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from malmoi.pretrain.engine.loop import Trainer
from malmoi.pretrain.engine.processes import Processes
from tests.malmoi.pretrain.conftest import Command, checkpoints


def test_a_loss_that_is_no_number_becomes_no_checkpoint(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Trainer.take_step

    def overflowing(self: Trainer, *args: object) -> object:
        if self.progress.step == 5:  # between two checkpoints
            with torch.no_grad():
                next(self.pair.discriminator.parameters()).fill_(float("inf"))
        return step(self, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "take_step", overflowing)
        code, _, errors = pretrain_here("--max-steps", "12", "execution.log_steps=100")
    assert code == 2 and errors.count("\n") == 1
    assert "the loss is no longer finite in steps 5 to 8 with learning rate" in errors
    assert "--resume and half the --learning-rate" in errors
    assert checkpoints(tmp_path / "run") == ["step-00000000", "step-00000004"]
    assert not (tmp_path / "run" / "discriminator").exists()
    assert pretrain_here("--max-steps", "12", "--learning-rate", "1e-4", "--resume")[0] == 0


@pytest.mark.parametrize("limit", ["1", "0"])
def test_a_gradient_that_is_no_number_becomes_no_checkpoint(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """The loss is that of the weights before the step, so it is finite still."""
    add_up = Processes.add_up_gradients
    steps = 0

    def overflowing(self: Processes, parameters: Iterable[torch.nn.Parameter]) -> None:
        nonlocal steps
        steps += 1
        parameters = list(parameters)
        if steps == 8:  # that of a checkpoint
            parameters[0].grad.view(-1)[0] = float("inf")
        add_up(self, parameters)

    with monkeypatch.context() as patched:
        patched.setattr(Processes, "add_up_gradients", overflowing)
        flags = [
            "--max-steps",
            "12",
            "execution.log_steps=100",
            f"optimizer.max_gradient_norm={limit}",
        ]
        code, _, errors = pretrain_here(*flags)
    assert code == 2 and errors.count("\n") == 1
    assert "the gradient is no longer finite in steps 5 to 8 with learning rate" in errors
    assert checkpoints(tmp_path / "run") == ["step-00000000", "step-00000004"]


@pytest.mark.parametrize("recipe", [[], ["objective.unigram_fraction=1", "objective.bag_weight=5"]])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_learning_rate_far_too_high_is_stopped(
    pretrain_here: Command, tmp_path: Path, optimizer: str, recipe: list[str]
) -> None:
    code, _, errors = pretrain_here(
        *["--max-steps", "40", "--learning-rate", "1", f"optimizer.name={optimizer}", *recipe]
    )
    assert code == 2 and errors.count("\n") == 1
    assert "the loss exploded" in errors and "with learning rate" in errors
    assert "at the start; go on from the last checkpoint with --resume and half" in errors
    assert ("optimizer.muon_learning_rate" in errors) == (optimizer == "muon")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "running"
    # Twenty steps are needed to be sure; none of them became what one goes on from.
    assert checkpoints(tmp_path / "run")[-1] <= "step-00000008"
