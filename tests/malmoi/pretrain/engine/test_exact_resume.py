"""A run that is broken off and resumed is the uninterrupted one, to the last bit."""

import hashlib
import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import malmoi.pretrain.runner
from malmoi.pretrain.engine import loop
from malmoi.pretrain.engine.monitor import Monitor
from malmoi.pretrain.objectives.step import TrainingObjective
from tests.malmoi.pretrain.conftest import Breaking, Command, checkpoints, metric_rows, weights_of

STEPS = ["--max-steps", "12"]
RECIPES = {
    "packed": ["batching.rows=packed", "--max-length", "64", "--tokens-per-batch", "512"],
    "dropout": ["model.dropout=0.1", "objective.sampling=gumbel", "masking.strategy=word"],
    "muon and average": ["optimizer.name=muon", "optimizer.average_fraction=0.7"],
    "two-stage": ["objective.schedule=two-stage", "generator.size=1", "objective.first_stage=0.5"],
    "noise at first": [
        "objective.unigram_fraction=0.8",
        "masking.last_fraction=0.3",
        "objective.bag_weight=2",
        "objective.correction_weight=2",
    ],
    "gdes": [
        "generator.sharing=gdes",
        "optimizer.adam_bias_correction=false",
        "objective.weight_warmup=0.5",
    ],
    # The generator goes from one layer to two before the eighth step, to four after it.
    "stacked": [
        *("model.stacked=true", "generator.layers=4"),
        *("optimizer.name=muon", "optimizer.average_fraction=0.2"),
    ],
    "spans": ["masking.strategy=span", "generator.head=sbo", "objective.replaced_spans=true"],
    "all tokens": ["objective.name=all-tokens-mlm"],
    "generator alone": [
        "objective.schedule=frozen-discriminator",
        "--init",
        "first",
        "optimizer.average_fraction=0.7",
    ],
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """By optimizer step: what its batch, its draws and its loss were, each time it was taken."""
    found: dict[int, list[str]] = {}
    step = loop.Trainer.take_step

    def spy(self: loop.Trainer, batch: Any, fraction: float) -> Any:
        rate, result = step(self, batch, fraction)
        seen = [batch.input_ids.numpy().tobytes(), self._random.get_state().numpy().tobytes()]
        seen += [torch.get_rng_state().numpy().tobytes(), result.counts.numpy().tobytes()]
        seen += [result.loss.detach().numpy().tobytes(), repr((rate, fraction)).encode()]
        digest = hashlib.sha256(b"".join(seen)).hexdigest()
        found.setdefault(self.progress.step, []).append(digest)
        return rate, result

    monkeypatch.setattr(loop.Trainer, "take_step", spy)
    return found


@pytest.mark.parametrize("recipe", RECIPES)
def test_batches_draws_and_weights_are_those_of_the_uninterrupted_run(
    recipe: str, pretrain_here: Command, break_off: Breaking, drawn: dict[int, list[str]]
) -> None:
    flags = [*STEPS, *RECIPES[recipe]]
    if "--init" in flags:
        assert pretrain_here("--max-steps", "0", "--output", "first")[0] == 0
    assert pretrain_here(*flags, "--output", "straight")[0] == 0
    directory = break_off(6, *flags)
    for after in (8, 11):
        break_off(after, *flags, "--resume")
    code, printed, _ = pretrain_here(*flags, "--resume")
    assert code == 0 and "resumed at step 8" in printed
    # Taken straight, before each break, and again after it.
    assert [len(drawn[step]) for step in range(12)] == [2, 2, 2, 2, 3, 3, 2, 2, 3, 3, 3, 2]
    assert all(len(set(digests)) == 1 for digests in drawn.values())
    straight = directory.parent / "straight"
    expected, found = weights_of(straight), weights_of(directory)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    for name in ("weights", "optimizer", "average"):
        file = Path("state") / "step-00000012" / f"{name}.safetensors"
        assert (straight / file).read_bytes() == (directory / file).read_bytes()


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize(
    "recipe",
    [
        [],
        ["objective.unigram_fraction=1", "objective.bag_weight=5"],
        # In fp32 torch adds up the gradient of [] in an order of chance, and boundaries repeat.
        [*RECIPES["spans"], "generator.size=1"],
    ],
    ids=["default", "noise", "spans"],
)
def test_two_threads_add_up_in_one_order(
    recipe: list[str],
    precision: str,
    pretrain_here: Command,
    break_off: Breaking,
    comments: list[str],
) -> None:
    """Batches so large that torch divides the work on one tensor."""
    Path("more.txt").write_text("\n".join(comments), encoding="utf-8")
    large = ["--corpus", "more.txt", "--tokens-per-batch", "8192", "execution.save_steps=2"]
    flags = ["--max-steps", "4", "--precision", precision, *large, *recipe]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert pretrain_here(*flags, "--output", "straight")[0] == 0
        directory = break_off(3, *flags)
        assert pretrain_here(*flags, "--resume")[0] == 0
    finally:
        torch.set_num_threads(before)
    expected, found = weights_of(directory.parent / "straight"), weights_of(directory)
    assert all(torch.equal(expected[key], found[key]) for key in expected)


@pytest.mark.parametrize("recipe", ["muon and average", "two-stage"])
def test_it_may_be_broken_off_at_any_step(
    recipe: str, pretrain_here: Command, break_off: Breaking
) -> None:
    flags = [*STEPS, *RECIPES[recipe], "execution.save_steps=1"]
    assert pretrain_here(*flags, "--output", "straight")[0] == 0
    directory = break_off(1, *flags)
    for after in range(2, 12):
        break_off(after, *flags, "--resume")
    assert pretrain_here(*flags, "--resume")[0] == 0
    expected, found = weights_of(directory.parent / "straight"), weights_of(directory)
    assert all(torch.equal(expected[key], found[key]) for key in expected)


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "Ctrl-C")]
)
def test_a_signal_saves_and_the_run_goes_on_the_same(
    pretrain_here: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    number: signal.Signals,
    name: str,
) -> None:
    assert pretrain_here(*STEPS, "--output", "straight")[0] == 0
    add = Monitor.add

    def terminated(self: Monitor, *args: Any, step: int, **rest: Any) -> None:
        add(self, *args, step=step, **rest)
        if step == 5:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patched:
        patched.setattr(Monitor, "add", terminated)
        code, printed, _ = pretrain_here(*STEPS)
    assert code == 128 + number and f"{name}: saved at step 5; go on with --resume" in printed
    assert checkpoints(tmp_path / "run") == ["step-00000004", "step-00000005"]
    assert not (tmp_path / "run" / "discriminator").exists()
    code, printed, _ = pretrain_here(*STEPS, "--resume")
    assert code == 0 and "resumed at step 5" in printed
    assert [row["step"] for row in metric_rows(tmp_path / "run")] == [2, 4, 6, 8, 10, 12]
    expected, found = weights_of(tmp_path / "straight"), weights_of(tmp_path / "run")
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_a_second_ctrl_c_stops_at_once(
    pretrain_here: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    call, calls = TrainingObjective.__call__, 0

    def interrupted(self: TrainingObjective, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 5:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return call(self, *args)

    monkeypatch.setattr(TrainingObjective, "__call__", interrupted)
    assert pretrain_here(*STEPS)[0] == 128 + signal.SIGINT
    assert calls == 5
    # That step is lost; the checkpoint before it is whole.
    assert checkpoints(tmp_path / "run") == ["step-00000000", "step-00000004"]


def test_a_checkpoint_is_written_by_the_clock_too(
    pretrain_here: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved: list[int] = []
    save = loop.save_state

    def noted(directory: Path, pair: Any, optimizers: Any, progress: Any, *rest: Any) -> Path:
        saved.append(progress.step)
        return save(directory, pair, optimizers, progress, *rest)

    monkeypatch.setattr(loop, "save_state", noted)
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_SAVES", 0.0)
    assert pretrain_here("--max-steps", "4", "execution.save_steps=100")[0] == 0
    assert saved == [1, 2, 3, 4]


def test_sigterm_in_the_last_step_loses_nothing(
    pretrain_here: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags = ["--max-steps", "4", "optimizer.average_fraction=0.5"]
    assert pretrain_here(*flags, "--output", "straight")[0] == 0
    call = TrainingObjective.__call__
    steps = 0

    def terminated(self: TrainingObjective, *args: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return call(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(TrainingObjective, "__call__", terminated)
        assert pretrain_here(*flags)[0] == 0
    assert steps == 4
    expected, found = weights_of(tmp_path / "straight"), weights_of(tmp_path / "run")
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_a_run_killed_at_random_is_the_same(pretrain_here: Command, tmp_path: Path) -> None:
    """As of the whole command and 50 kills lab/benchmarks/results/random_kills.json records it."""
    flags = ["--max-steps", "40", "execution.save_steps=2", "optimizer.average_fraction=0.2"]
    assert pretrain_here(*flags, "--output", "straight")[0] == 0
    draw, seen = random.Random(0), 0
    for _ in range(4):
        resume = ["--resume"] if seen else []
        # Forked: a process of its own that need not import torch again.
        context = multiprocessing.get_context("fork")
        process = context.Process(target=pretrain_here, args=(*flags, *resume))
        process.start()
        deadline = time.monotonic() + 300
        before = seen
        while seen < before + 4:
            assert process.is_alive() and time.monotonic() < deadline
            written = (tmp_path / "run" / "state").glob("step-*")
            seen = max([int(path.name[5:]) for path in written], default=0)
        time.sleep(draw.random() / 20)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert pretrain_here(*flags, "--resume")[0] == 0
    straight, killed = (
        {path.relative_to(run): path.read_bytes() for path in run.rglob("*.safetensors")}
        for run in (tmp_path / "straight", tmp_path / "run")
    )
    last = Path("state/step-00000040/optimizer.safetensors")
    assert last in straight and straight == {name: killed[name] for name in straight}


@pytest.mark.parametrize("moment", ["save_state", "_cost", "write_networks"])
def test_sigterm_after_the_last_step_waits_for_the_end(
    pretrain_here: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str
) -> None:
    place = loop if moment == "save_state" else malmoi.pretrain.runner
    work, signals = getattr(place, moment), []

    def terminated(*args: Any, **more: Any) -> Any:
        signals.append(os.kill(os.getpid(), signal.SIGTERM))
        return work(*args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(place, moment, terminated)
        assert pretrain_here("--max-steps", "3")[0] == 0
    assert len(signals) == 1
    assert checkpoints(tmp_path / "run")[-1] == "step-00000003"
    assert (tmp_path / "run" / "discriminator" / "model.safetensors").is_file()


def averaged(directory: Path) -> int:
    progress = json.loads((directory / "run.json").read_text())["progress"]
    return int(progress["averaged"])


def test_a_longer_run_averages_none_of_the_end_it_had_before(
    pretrain_here: Command, break_off: Breaking, tmp_path: Path
) -> None:
    flags = ["optimizer.average_fraction=0.5", "execution.save_steps=1"]
    directory = break_off(5, "--max-steps", "6", *flags)
    assert pretrain_here("--max-steps", "12", *flags, "--resume")[0] == 0
    assert averaged(directory) == 6
    break_off(5, "--max-steps", "6", *flags, output="within")
    longer = ["--max-steps", "8", *flags, "--output", "within", "--resume"]
    assert pretrain_here(*longer)[0] == 0
    assert averaged(tmp_path / "within") == 3  # steps 6 to 8; 4 and 5 belong to the other end
    # The same where all its steps were done, and only the networks were not written yet.
    straight = ["--max-steps", "6", *flags, "--output", "whole"]
    assert pretrain_here(*straight)[0] == 0
    assert averaged(tmp_path / "whole") == 3
    (newest,) = (tmp_path / "whole" / "state").glob("step-00000006")
    kept = safetensors.torch.load_file(newest / "weights.safetensors")
    mean = safetensors.torch.load_file(newest / "average.safetensors")
    assert any(not torch.equal(kept[name], mean[name]) for name in mean)
