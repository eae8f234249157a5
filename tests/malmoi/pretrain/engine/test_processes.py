"""Two processes do what one does, with the same command."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.data.batches import BatchPlan, FrameIds, make_batch
from malmoi.pretrain.data.tokenized import TokenizedCorpus
from malmoi.pretrain.engine.checkpoint import TrainerState
from malmoi.pretrain.engine.loop import Trainer
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.engine.processes import Processes
from malmoi.pretrain.model.networks import ElectraPair, PairShape, build_pair
from malmoi.pretrain.objectives.step import TrainingObjective
from malmoi.pretrain.objectives.vocabulary import vocabulary_tables
from tests.malmoi.pretrain.conftest import (
    SMALL,
    Toy,
    checkpoints,
    metric_rows,
    plan_of,
    unfinish,
    weights_of,
)
from tests.malmoi.pretrain.engine.in_processes import Scenario, perform

ROOT = Path(__file__).parents[4]
FLAGS = ["--corpus", "comments.txt", "--init", "random", "--tokenizer", "tokenizer"]
FLAGS += ["--max-steps", "10", "--device", "cpu", "--recipe", "rtd"]
FLAGS += ["--set", "execution.save_steps=4", "--set", "execution.log_steps=1"]
# Few enough that some batches have one row, and the second process none.
FLAGS += ["--tokens-per-batch", "192", "--max-length", "96"]
FLAGS += ["--set", "objective.bag_weight=2", "--set", "objective.correction_weight=2"]
# One pass over the corpus, which only the main process has read.
BY_LENGTH = [*FLAGS, "--recipe", "None", "--max-steps", "None", "--epochs", "1"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started_by(folder: Path, launcher: list[str], plan: list[Scenario], output: str) -> None:
    """Scenarios in two processes; what each saw goes to the folder `output`."""
    path = folder / output / "plan.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps([asdict(each) for each in plan]))
    script = str(ROOT / "tests" / "malmoi" / "pretrain" / "engine" / "in_processes.py")
    done = subprocess.run(
        [sys.executable, "-m", *launcher, script, str(path), output],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory,
    comments: list[str],
    tokenizer: PreTrainedTokenizerFast,
) -> Iterator[Path]:
    """Runs of one and of two processes, side by side."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "comments.txt").write_text("\n".join(comments[:200]), encoding="utf-8")
    tokenizer.save_pretrained(folder / "tokenizer")
    before = Path.cwd()
    os.chdir(folder)
    try:
        one = perform(Scenario(name="one", flags=[*FLAGS, "--output", "one"]))
        assert one["code"] == 0, one["stderr"]
        shutil.copytree("one", "begun by one")
        unfinish(folder / "begun by one", before=10)
        plan = [
            Scenario(name="two", flags=[*FLAGS, "--output", "two"]),
            Scenario(name="terminated", flags=[*FLAGS, "--output", "ended"], sigterm_at=5),
            Scenario(name="resumed", flags=[*FLAGS, "--output", "ended", "--resume"]),
            Scenario(name="taken over", flags=[*FLAGS, "--output", "begun by one", "--resume"]),
            Scenario(name="complete", flags=[*FLAGS, "--output", "two", "--resume"]),
            Scenario(name="flag", flags=[*FLAGS, "--output", "x", "--set", "generator.head=sbo"]),
            Scenario(name="by length", flags=[*BY_LENGTH, "--output", "by length"]),
            Scenario(name="full", flags=[*FLAGS, "--output", "full"], disk_full=True),
        ]
        for scenario in plan[1:]:
            scenario.port = free_port()
        launcher = ["torch.distributed.run", "--nproc-per-node", "2"]
        # By default all meet at one port of the machine.
        started_by(folder, [*launcher, "--master-port", str(free_port())], plan, ".")
        yield folder
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[dict[str, dict[str, Any]]]:
    """What each process saw, by scenario."""
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]


def assert_alike(first: Path, second: Path) -> None:
    expected, found = weights_of(first), weights_of(second)
    assert expected.keys() == found.keys()
    for key in expected:
        # Adam's first steps have the size of the rate whatever the gradient's: where a gradient
        # is nothing but rounding, weights may differ by it.
        close = torch.isclose(expected[key], found[key], rtol=1e-3, atol=1e-5)
        assert close.float().mean() > 0.99, key


def test_losses_and_counts_are_those_of_one_process(folder: Path) -> None:
    expected, found = metric_rows(folder / "one"), metric_rows(folder / "two")
    assert len(expected) == len(found) == 10
    for one, two in zip(expected, found, strict=True):
        timing = {"tokens_per_second"}
        names = one.keys() - timing
        assert {n: one[n] for n in names} == pytest.approx({n: two[n] for n in names}, rel=1e-4)
    records = [json.loads((folder / n / "run.json").read_text()) for n in ("one", "two")]
    assert [record["plan"]["execution"]["processes"] for record in records] == [1, 2]
    for key in ("step", "tokens", "flops"):
        assert records[0]["progress"][key] == records[1]["progress"][key]
    # Of every process's own rows, added up. More than one's, for each pads its places to a multiple
    # of 64; twice the main process's would be 1.6 times, for it has the odd row.
    operations = [record["cost"]["hardware_flops"] for record in records]
    assert operations[0] < operations[1] < 1.5 * operations[0]
    assert_alike(folder / "one", folder / "two")


def test_every_process_ends_with_the_same_weights(ranks: list[dict[str, dict[str, Any]]]) -> None:
    for name in ("two", "resumed", "taken over"):
        first, second = (rank[name]["weights"] for rank in ranks)
        assert first is not None and first == second


def test_all_processes_learn_what_the_first_decides(
    folder: Path, ranks: list[dict[str, dict[str, Any]]]
) -> None:
    """Of the length of a run, which only the process that has read the corpus knows."""
    assert [rank["by length"]["code"] for rank in ranks] == [0, 0]
    record = json.loads((folder / "by length" / "run.json").read_text())
    assert record["plan"]["start"]["recipe"] == "default" and "recipe" not in record["given"]
    length = record["plan"]["length"]
    assert length["epochs"] == 1 and record["progress"]["step"] == length["amount"]
    assert ranks[0]["by length"]["weights"] == ranks[1]["by length"]["weights"]


def test_accelerate_launch_is_torchrun(folder: Path) -> None:
    """On a machine without a GPU too; its --cpu starts one process, unless MPI starts more."""
    launcher = ["accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    launcher += ["--main_process_port", str(free_port())]
    plan = [Scenario(name="launched", flags=[*FLAGS, "--output", "launched"])]
    started_by(folder, launcher, plan, "by accelerate")
    seen = [
        json.loads((folder / "by accelerate" / f"rank-{rank}.json").read_text())["launched"]
        for rank in range(2)
    ]
    assert "x 2 processes" in seen[0]["stdout"] and seen[1]["stdout"] == ""
    expected, found = weights_of(folder / "two"), weights_of(folder / "launched")
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_only_one_process_prints_and_writes(
    folder: Path, ranks: list[dict[str, dict[str, Any]]]
) -> None:
    main, other = (rank["two"] for rank in ranks)
    assert main["stdout"].count("step 10 ") == 1 and "x 2 processes" in main["stdout"]
    assert other["stdout"] == ""
    assert checkpoints(folder / "two") == ["step-00000008", "step-00000010"]
    assert len(list((folder / "two" / "tensorboard").glob("events*"))) == 1


def test_sigterm_to_one_of_them_saves_and_ends_all(
    folder: Path, ranks: list[dict[str, dict[str, Any]]]
) -> None:
    assert [rank["terminated"]["code"] for rank in ranks] == [143, 143]
    assert "SIGTERM: saved at step 5" in ranks[0]["terminated"]["stdout"]
    assert "resumed at step 5" in ranks[0]["resumed"]["stdout"]
    expected, found = weights_of(folder / "two"), weights_of(folder / "ended")
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_a_stopped_torchrun_does_not_end_as_if_it_were_done(folder: Path) -> None:
    """Each process ends with 143 after its checkpoint; what torchrun makes of that is not 0."""
    flags = [*FLAGS, "--max-steps", "100000", "--output", "stopped"]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", str(free_port()), str(ROOT / "pretrain" / "run.py"), *flags]
    with (folder / "stopped.log").open("w") as log:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        started = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        until = time.monotonic() + 300
        while "step 2 " not in (folder / "stopped.log").read_text():
            assert started.poll() is None and time.monotonic() < until
            time.sleep(0.2)
        started.terminate()
        code = started.wait(timeout=60)
    assert code != 0
    assert "SIGTERM: saved at step" in (folder / "stopped.log").read_text()
    assert json.loads((folder / "stopped" / "run.json").read_text())["status"] == "running"


def test_two_go_on_with_a_run_of_one(folder: Path, ranks: list[dict[str, dict[str, Any]]]) -> None:
    assert "resumed at step 8" in ranks[0]["taken over"]["stdout"]
    assert_alike(folder / "one", folder / "begun by one")


def test_one_goes_on_with_a_run_of_two(folder: Path) -> None:
    shutil.copytree(folder / "two", folder / "begun by two")
    unfinish(folder / "begun by two", before=10)
    flags = [*FLAGS, "--output", "begun by two", "--resume"]
    seen = perform(Scenario(name="one", flags=flags))
    assert seen["code"] == 0 and "resumed at step 8" in seen["stdout"]
    assert_alike(folder / "two", folder / "begun by two")


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ("complete", "expected an unfinished run to resume, found two complete"),
        ("flag", "generator.head=sbo has no effect"),
        ("full", "the disk is full while writing state"),
    ],
)
def test_an_error_ends_all_and_is_said_once(
    ranks: list[dict[str, dict[str, Any]]], scenario: str, message: str
) -> None:
    main, other = (rank[scenario] for rank in ranks)
    assert (main["code"], other["code"]) == (2, 2)
    assert main["stderr"].startswith("error: ") and main["stderr"].count("\n") == 1
    assert message in main["stderr"]
    assert other["stderr"] == ""


@pytest.mark.parametrize("objective", ["rtd", "mlm"])
def test_a_process_without_a_row_adds_nothing(
    objective: Any, tokenizer: PreTrainedTokenizerFast, pair: ElectraPair
) -> None:
    """A batch of one long text leaves the second process none."""
    ids = np.arange(300, 320, dtype=np.uint16)
    corpus = TokenizedCorpus(ids=ids, offsets=np.array([0, len(ids)]), directory=Path())
    plan = BatchPlan(indices=np.array([0]), row_sizes=np.array([1]), width=24, packed=False)
    cpu = torch.device("cpu")
    batch = make_batch(corpus, plan, FrameIds.of(tokenizer))
    if objective == "mlm":
        pair = build_pair(SMALL, tokenizer, shape=PairShape(encoder_lm_head=True))
    tables = vocabulary_tables(
        tokenizer, pair.discriminator.config.vocab_size, corpus.token_counts(), cpu
    )
    step = TrainingObjective(
        recipe=Recipe(objective=objective), tables=tables, rank=1, world_size=2
    )
    result = step(pair, batch, torch.Generator().manual_seed(0))
    result.loss.backward()
    assert result.loss == 0 and result.counts.sum() == 0
    assert all(p.grad is None or not p.grad.any() for p in pair.parameters())


def test_every_process_drops_out_units_of_its_own(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process draws as it always has; of several, none as another does in a near step."""
    monkeypatch.setattr(Processes, "add_up", lambda self, tensor: tensor)
    monkeypatch.setattr(Processes, "add_up_gradients", lambda self, parameters: None)
    monkeypatch.setattr(Processes, "from_main", lambda self, value: value)
    planned = plan_of(recipe="rtd", max_steps=100, dropout=0.5)

    def seed_of(rank: int, world_size: int, step: int) -> int:
        pair = toy.pair()
        processes = Processes(device=torch.device("cpu"), rank=rank, world_size=world_size)
        recipe = planned.objective
        trainer = Trainer(
            pair,
            Optimizers(pair, planned.optimizer),
            TrainingObjective(recipe=recipe, tables=toy.tables, rank=rank, world_size=world_size),
            planned,
            processes,
            TrainerState(step=step),
            flops_per_token=1.0,
        )
        trainer.take_step(toy.batch([[9], [7], [5]]), step / 100)
        return torch.initial_seed()

    alone = [seed_of(0, 1, step) for step in range(3)]
    assert alone == [42 * 1_000_003 + step for step in range(3)]
    first = [seed_of(0, 3, step) for step in range(3)]
    others = [seed_of(rank, 3, step) for rank in (1, 2) for step in range(3)]
    assert first == alone
    # A generator of a CPU reads 32 bits of a seed.
    assert len({seed % 2**32 for seed in [*first, *others]}) == 9
