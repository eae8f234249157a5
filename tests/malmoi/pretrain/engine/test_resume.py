"""What `--resume` and a used output directory accept, and what they refuse."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

import malmoi.pretrain.run
import malmoi.pretrain.runner
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.pretrain.engine.checkpoint import TrainerState
from malmoi.pretrain.engine.loop import Trainer
from malmoi.pretrain.engine.monitor import Monitor
from malmoi.pretrain.engine.run_directory import new_directory
from tests.malmoi.pretrain.conftest import (
    Breaking,
    Command,
    checkpoints,
    metric_rows,
    unfinish,
    weights_of,
)


@pytest.fixture
def broken_off(break_off: Breaking) -> Path:
    """A run of 12 steps whose power went off after step 10, two steps past its checkpoint."""
    return break_off(10, "--max-steps", "12")


def metric_steps(directory: Path) -> list[float]:
    return [row["step"] for row in metric_rows(directory)]


def test_metrics_are_cut_back_to_the_checkpoint_and_written_once(
    pretrain_here: Command, broken_off: Path, cache: Path, named_too_early: list[str]
) -> None:
    """Over all that a power cut and another machine may leave."""
    assert metric_steps(broken_off) == [2, 4, 6, 8, 10]
    rows = broken_off / "metrics.jsonl"
    damaged = b'5\n{"tokens": 1}\n{"step": "\xb0\xa1"}\n{"step": 1, "generator_loss": 7}\n'
    rows.write_bytes(damaged + rows.read_bytes() + b'{"step": 12, "gener')
    state = broken_off / "state"
    shutil.copytree(state / "step-00000008", state / ".step-00000010.tmp")
    record = json.loads((broken_off / "run.json").read_text())
    record["plan"]["execution"]["threads"] += 1
    (broken_off / "run.json").write_text(json.dumps(record))
    # Paths may be written otherwise.
    other = os.path.relpath(cache / "tokenizer", broken_off.parent)
    code, output, errors = pretrain_here("--max-steps", "12", "--resume", "--tokenizer", other)
    assert code == 0 and "resumed at step 8" in output
    threads = record["plan"]["execution"]["threads"]
    assert f"{threads} threads" in errors
    assert metric_steps(broken_off) == [2, 4, 6, 8, 10, 12]
    assert checkpoints(broken_off) == ["step-00000008", "step-00000012"]
    assert named_too_early == []


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_refused_changes_nothing_and_the_run_goes_on(
    pretrain_here: Command, broken_off: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run than it was, another corpus, a length that it has passed, a damaged record."""
    monkeypatch.setattr(TrainerState, "clock", 60.0, raising=False)
    before = contents(broken_off)

    def refused(flags: str, *named: str) -> None:
        found = contents(broken_off)
        code, _, errors = pretrain_here(*flags.split())
        assert code == 2 and len(errors.strip().splitlines()) == 1, flags
        assert all(name in errors for name in named), errors
        assert contents(broken_off) == found, flags

    refused("--max-steps 12", "run", "--resume")
    for flags, named in (
        ("--seed 7", ("--seed 42", "--seed 7")),
        ("--max-length 64", ("--max-length 128", "--max-length 64")),
        ("objective.name=electra-15", ("objective.name=rtd", "objective.name=electra-15")),
        ("--recipe muon", ("optimizer.name=adamw", "optimizer.name=muon")),
        ("generator.head=sbo", ("generator.head=mlm", "generator.head=sbo")),
    ):
        refused(f"--max-steps 12 --resume {flags}", *named)
    for length in ("--max-steps 5", "--max-steps 0", "--max-tokens 600", "--max-minutes 0.01"):
        refused(f"--resume {length}", length, "--max-steps 12")
    refused("--resume length.max_flops=1e6", "length.max_flops", "--max-steps 12")
    with FileLock(broken_off / ".lock"):
        refused("--max-steps 12 --resume", "run")
    texts = corpus.read_bytes()
    corpus.write_bytes(texts + "\n어제 새로 올라온 댓글이라 그때는 없던 글입니다\n".encode())
    refused("--max-steps 12 --resume", "corpus_sha256")
    corpus.write_bytes(texts)
    path = broken_off / "run.json"
    record = path.read_bytes()
    path.write_text(json.dumps(json.loads(record) | {"version": 0}))
    refused("--max-steps 12 --resume", "version 1", "run.json")
    for damaged in ("{", "[]", '{"plan": {}}', '{"version": 1, "plan": {}}', None):
        path.unlink() if damaged is None else path.write_text(damaged)
        refused("--max-steps 12 --resume", "run.json")
        refused("--max-steps 12", "run")
    path.write_bytes(record)
    assert contents(broken_off) == before
    # Its checkpoint is that of step 8, and a length that it has just reached ends it.
    assert pretrain_here("--max-steps", "8", "--resume")[0] == 0
    assert json.loads(path.read_text())["progress"]["step"] == 8


def test_what_is_left_out_is_as_the_run_has_it(
    pretrain_here: Command, break_off: Breaking, tmp_path: Path
) -> None:
    flags = ["--max-steps", "12", "--seed", "7", "--recipe", "gdes", "--max-length", "64"]
    flags += ["--learning-rate", "1e-4"]
    assert pretrain_here(*flags, "--output", "straight")[0] == 0
    run = break_off(6, *flags)
    assert pretrain_here("--recipe", "None", "--resume")[0] == 0
    expected, found = weights_of(tmp_path / "straight"), weights_of(run)
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    plan = json.loads((run / "run.json").read_text())["plan"]
    assert plan["length"] == {"limit": "max_steps", "amount": 12, "epochs": None}
    assert plan["optimizer"]["learning_rate"] == 1e-4


def test_networks_that_a_run_began_with_have_to_be_there_still(
    pretrain_here: Command, break_off: Breaking
) -> None:
    """The Hub is not asked for them."""
    for size in ("0.5", "1"):
        flags = ["objective.unigram_fraction=0", f"generator.size={size}", "--max-steps", "2"]
        assert pretrain_here(*flags, "--output", f"of {size}")[0] == 0
    frozen = ["objective.schedule=frozen-generator", "generator.init=of 0.5", "--max-steps", "6"]
    break_off(5, *frozen)
    theirs = Path("of 0.5/generator").rename("aside")
    code, _, errors = pretrain_here(*frozen, "--resume")
    assert code == 2 and "found no of 0.5/generator/config.json" in errors
    Path("of 1/generator").rename(theirs.parent / "of 0.5" / "generator")
    code, _, errors = pretrain_here(*frozen, "--resume")
    assert code == 2 and "expected the networks that the run began with, found other" in errors


def test_what_one_sitting_was_given_the_next_one_keeps(
    pretrain_here: Command,
    break_off: Breaking,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As after the advice to go on with half the rate, and another power cut."""
    run = break_off(5, "--max-steps", "12")
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "take_step", _power_off)
        with pytest.raises(RuntimeError, match="power off"):
            pretrain_here("--max-tokens", "1500", "--learning-rate", "1e-4", "--resume")
    changed = "resuming run with --max-tokens 1500 (was --max-steps 12)"
    assert changed in capsys.readouterr().out
    code, output, _ = pretrain_here("--resume")
    assert code == 0 and "resuming" not in output
    record = json.loads((run / "run.json").read_text())
    assert record["plan"]["optimizer"]["learning_rate"] == 1e-4
    assert record["plan"]["length"]["limit"] == "max_tokens"
    assert 1500 <= record["progress"]["tokens"] < 1500 + 256


def _power_off(*_: object) -> None:
    raise RuntimeError("power off")


def test_of_a_sweep_the_run_with_the_same_rate_goes_on(
    pretrain_here: Command, break_off: Breaking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs" / "pretrain"
    for number, rate in enumerate(["1e-4", "1e-3", None]):
        flags = ["--learning-rate", rate] if rate else []
        break_off(5, "--max-steps", "12", *flags, output=f"runs/pretrain/{rate}")
        os.utime(runs / str(rate) / "run.json", (number, number))
    fixed = sys.argv[: sys.argv.index("--output")]
    # Without a rate the newest.
    for flags in ([], ["--learning-rate", "1e-4"], ["--learning-rate", "1e-3"]):
        monkeypatch.setattr(sys, "argv", [*fixed, "--max-steps", "12", "--resume", *flags])
        assert run_command(PretrainSettings, malmoi.pretrain.run.main, "") == 0
        record = json.loads((runs / (flags[1] if flags else "None") / "run.json").read_text())
        assert record["status"] == "finished", flags


def test_the_clock_stands_still_while_networks_are_compiled(
    pretrain_here: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With --max-minutes it says the learning rate: compiling would use up the warm-up."""
    for name, compiled in (("plain", False), ("compiled", True)):
        monkeypatch.setattr(
            malmoi.pretrain.runner, "compile_networks", lambda *_, said=compiled: said
        )
        assert pretrain_here("--max-steps", "8", "--output", name)[0] == 0
    plain, compiled = (
        json.loads((tmp_path / name / "run.json").read_text())["progress"]
        for name in ("plain", "compiled")
    )
    assert plain["seconds"] > 0 == plain["compiling_seconds"]
    # Its first five steps; the clock runs on after them.
    assert 0 < compiled["compiling_seconds"] < compiled["seconds"]


def test_a_run_keeps_its_batching_on_another_device(
    pretrain_here: Command, broken_off: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert pretrain_here("--max-steps", "12", "--output", "straight")[0] == 0
    before = json.loads((broken_off / "run.json").read_text())
    with monkeypatch.context() as patched:
        patched.setattr(malmoi.pretrain.plan, "plan_rows", lambda config, machine: "packed")
        assert pretrain_here("--max-steps", "12", "--resume")[0] == 0
        assert pretrain_here("--max-steps", "1", "--output", "packed")[0] == 0
    after = json.loads((broken_off / "run.json").read_text())
    assert after["plan"] == before["plan"] and "batching.rows" not in after["given"]
    anew = json.loads((tmp_path / "packed" / "run.json").read_text())["plan"]["batching"]
    assert anew["rows"] == "packed" and after["plan"]["batching"]["rows"] == "length"
    expected, found = weights_of(tmp_path / "straight"), weights_of(broken_off)
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_a_run_keeps_its_number_format_on_another_cpu(
    pretrain_here: Command, broken_off: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert pretrain_here("--max-steps", "12", "--output", "straight")[0] == 0
    precision = json.loads((broken_off / "run.json").read_text())["plan"]["networks"]["precision"]
    other = "fp32" if precision == "bf16" else "bf16"
    monkeypatch.setattr(malmoi.pretrain.runner, "prefers_bf16", lambda device: other == "bf16")
    code, _, errors = pretrain_here("--max-steps", "12", "--resume", "--precision", other)
    assert code == 2 and f"it has --precision {precision}, found --precision {other}" in errors
    code, out, _ = pretrain_here("--max-steps", "12", "--resume")
    assert code == 0 and f"cpu {precision}" in out
    plan = json.loads((broken_off / "run.json").read_text())["plan"]
    assert plan["networks"]["precision"] == precision
    expected, found = weights_of(tmp_path / "straight"), weights_of(broken_off)
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    # A new one takes what is faster there.
    assert f"cpu {other}" in pretrain_here("--output", "new", "--max-steps", "1")[1]


def test_a_complete_run_is_not_resumed(pretrain_here: Command) -> None:
    assert pretrain_here("--max-steps", "2")[0] == 0
    code, _, errors = pretrain_here("--max-steps", "4", "--resume")
    assert code == 2 and "found run complete; go on from its weights with --init run" in errors
    code, _, errors = pretrain_here("--max-steps", "4")
    assert code == 2 and "complete run in run; name another, and to go on from its" in errors


def test_a_file_as_output_is_one_line(pretrain_here: Command, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    code, _, errors = pretrain_here("--max-steps", "2")
    assert code == 2 and "--output" in errors and errors.endswith("run\n")
    assert (tmp_path / "run").read_text() == "mine"
    code, printed, errors = pretrain_here("--max-steps", "2", "--output", "run/deep/in")
    assert code == 2 and "--output" in errors and errors.endswith("run\n")
    assert printed == ""  # before the corpus was read
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    code, printed, errors = pretrain_here("--max-steps", "2", "--output", "link")
    assert code == 2 and printed == ""
    assert "--output" in errors and errors.endswith("link\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user for a moment")
def test_a_closed_folder_is_told_before_the_corpus_is_read() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        output = folder / "some" / "run"
        os.seteuid(65534)
        try:
            with pytest.raises(InputError, match=f"found {folder} closed to this user"):
                new_directory(output, Path("none"), "tiny")
        finally:
            os.seteuid(0)
        assert new_directory(output, Path("none"), "tiny") == folder / "some" / "run"


def cut_weights(checkpoint: Path) -> None:
    blob = (checkpoint / "weights.safetensors").read_bytes()
    (checkpoint / "weights.safetensors").write_bytes(blob[: len(blob) // 2])


def flip_byte(checkpoint: Path) -> None:
    blob = bytearray((checkpoint / "optimizer.safetensors").read_bytes())
    blob[-1] ^= 0xFF
    (checkpoint / "optimizer.safetensors").write_bytes(blob)


def lose_average(checkpoint: Path) -> None:
    (checkpoint / "average.safetensors").unlink()


def lose_checksum(checkpoint: Path) -> None:
    record = json.loads((checkpoint / "progress.json").read_text())
    del record["sha256"]["average"]
    (checkpoint / "progress.json").write_text(json.dumps(record))


def change_step(checkpoint: Path) -> None:
    text = (checkpoint / "progress.json").read_text()
    (checkpoint / "progress.json").write_text(text.replace('"step": 8', '"step": 9'))


def write_garbage(checkpoint: Path) -> None:
    (checkpoint / "progress.json").write_bytes(b"\x00\xff\x80{")


def write_list(checkpoint: Path) -> None:
    (checkpoint / "progress.json").write_text("[]")


DAMAGE: list[tuple[Callable[[Path], None], str]] = [
    (cut_weights, "checksum of weights.safetensors"),
    (flip_byte, "checksum of optimizer.safetensors"),
    (lose_average, "average.safetensors"),
    (lose_checksum, "progress.json is incomplete"),
    (change_step, "checksum of progress.json"),
    (write_garbage, "damaged"),
    (write_list, "progress.json is incomplete"),
]


def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    pretrain_here: Command, broken_off: Path, tmp_path: Path
) -> None:
    pristine = tmp_path / "pristine"
    shutil.copytree(broken_off, pristine)
    for damage, reason in DAMAGE:
        shutil.rmtree(broken_off)
        shutil.copytree(pristine, broken_off)
        damage(broken_off / "state" / "step-00000008")
        code, output, _ = pretrain_here("--max-steps", "12", "--resume", "--device", "cpu")
        assert code == 0, damage
        line = next(line for line in output.split("\n") if "damaged" in line)
        assert "step-00000008 is damaged" in line and reason in line
        assert "resumed at step 4" in output
        # It does not take the place of a whole one among the last two.
        expected = ["damaged-step-00000008", "step-00000008", "step-00000012"]
        assert checkpoints(broken_off) == expected


def test_without_a_whole_checkpoint_it_is_one_line_and_nothing_moves(
    pretrain_here: Command, broken_off: Path
) -> None:
    flip_byte(broken_off / "state" / "step-00000008")
    cut_weights(broken_off / "state" / "step-00000004")
    code, output, errors = pretrain_here("--max-steps", "12", "--resume")
    assert code == 2 and errors.count("\n") == 1
    assert "found none that is whole; start again without --resume" in errors
    assert output.count("is damaged") == 2
    assert checkpoints(broken_off) == ["step-00000004", "step-00000008"]


def test_a_run_killed_before_its_first_checkpoint_starts_again(
    pretrain_here: Command, broken_off: Path
) -> None:
    (broken_off / "state" / "step-00000008").rename(broken_off / "state" / ".step-00000000.tmp")
    shutil.rmtree(broken_off / "state" / "step-00000004")
    code, _, errors = pretrain_here("--max-steps", "2", "--resume")
    assert code == 2 and "found no checkpoint in run; run without --resume" in errors
    assert pretrain_here("--max-steps", "2")[0] == 0
    assert checkpoints(broken_off) == ["step-00000000", "step-00000002"]


def test_a_full_disk_keeps_the_checkpoint_before(
    pretrain_here: Command, broken_off: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (broken_off / "state" / "step-00000008" / "weights.safetensors").read_bytes()
    write_bytes = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "optimizer.safetensors":
            write_bytes(self, data[:100])
            raise OSError(28, "No space left on device", str(self))
        return write_bytes(self, data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        code, _, errors = pretrain_here("--max-steps", "16", "--resume")
    assert code == 2 and errors.startswith("error: the disk is full")
    assert errors.endswith("free some space and go on with --resume\n")
    assert checkpoints(broken_off) == ["step-00000004", "step-00000008"]
    after = (broken_off / "state" / "step-00000008" / "weights.safetensors").read_bytes()
    assert before == after


def test_a_run_that_began_meanwhile_in_the_same_directory_is_kept(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command twice: the second has looked before the first wrote anything."""
    prepare = malmoi.pretrain.runner.prepare_corpus

    def overtaken(*args: object) -> object:
        monkeypatch.setattr(malmoi.pretrain.runner, "prepare_corpus", prepare)
        assert pretrain_here("--max-steps", "2")[0] == 0
        return prepare(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(malmoi.pretrain.runner, "prepare_corpus", overtaken)
    code, _, errors = pretrain_here("--max-steps", "3")
    assert code == 2 and "complete run in run; name another" in errors
    assert checkpoints(tmp_path / "run") == ["step-00000000", "step-00000002"]
    assert (tmp_path / "run" / "discriminator").is_dir()


def test_a_last_report_that_takes_longer_than_the_minutes_is_saved_all_the_same(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Monitor.add

    def slow(self: Monitor, *args: Any, **more: Any) -> None:
        add(self, *args, **more)
        time.sleep(0.8)

    monkeypatch.setattr(Monitor, "add", slow)
    assert pretrain_here("--max-minutes", "0.02", "execution.save_steps=1000")[0] == 0
    done = json.loads((tmp_path / "run" / "run.json").read_text())["progress"]["step"]
    assert checkpoints(tmp_path / "run") == ["step-00000000", f"step-{done:08d}"]
    assert metric_steps(tmp_path / "run")[-1] == done


def test_what_was_put_into_a_new_directory_meanwhile_is_no_reason_to_stop(
    pretrain_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `--output .` has the cache of tokenized corpora below it."""
    prepare = malmoi.pretrain.runner.prepare_corpus

    def noted(*args: object) -> object:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "notes.txt").write_text("mine")
        return prepare(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(malmoi.pretrain.runner, "prepare_corpus", noted)
    assert pretrain_here("--max-steps", "1")[0] == 0
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_epochs_that_the_run_has_passed_are_refused(
    pretrain_here: Command, break_off: Breaking
) -> None:
    larger = ["--tokens-per-batch", "2048"]
    run = break_off(9, "--epochs", "9", *larger)
    code, _, errors = pretrain_here("--epochs", "1", "--resume", *larger)
    assert code == 2 and "--epochs 1" in errors
    assert json.loads((run / "run.json").read_text())["status"] == "running"


def test_a_run_killed_after_its_last_step_is_finished_by_its_own_length(
    pretrain_here: Command, tmp_path: Path
) -> None:
    """The last batch takes it beyond so many tokens."""
    flags = ["--max-tokens", "1500"]
    assert pretrain_here(*flags)[0] == 0
    unfinish(tmp_path / "run", before=1_000)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["progress"]["tokens"] > 1500
    assert pretrain_here(*flags, "--resume")[0] == 0
