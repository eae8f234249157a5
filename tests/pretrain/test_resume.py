"""What `--resume` and a used output directory accept, and what they refuse."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from filelock import FileLock

import pretrain.run
from corpora.command_line import run_command
from pretrain import loop
from pretrain.networks import ElectraPair
from pretrain.settings import PretrainSettings

Pretrain = Callable[..., tuple[int, str, str]]


@pytest.fixture
def corpus(tmp_path: Path, comments: list[str]) -> Path:
    path = tmp_path / "comments.txt"
    path.write_text("\n".join(comments[:200]), encoding="utf-8")
    return path


@pytest.fixture
def pretrain_here(
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Pretrain:
    """The command in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    fixed = ["--corpus", str(corpus), "--init", "random", "--vocab-size", "1024"]
    fixed += ["--tokens-per-batch", "256", "--save-steps", "4", "--log-steps", "2"]

    def call(*flags: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["run.py", *fixed, "--output", "run", *flags])
        code = run_command(PretrainSettings, pretrain.run.main, "")
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def broken_off(pretrain_here: Pretrain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A run of 12 steps whose power went off after step 10, two steps past its checkpoint."""
    steps = 0
    step = loop.replaced_token_detection

    def until_ten(*args: object, **kwargs: object) -> object:
        nonlocal steps
        steps += 1
        if steps > 10:
            raise RuntimeError("power off")
        return step(*args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(loop, "replaced_token_detection", until_ten)
        with pytest.raises(RuntimeError, match="power off"):
            pretrain_here("--max-steps", "12")
    return tmp_path / "run"


def metric_steps(directory: Path) -> list[int]:
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


def test_metrics_are_cut_back_to_the_checkpoint_and_written_once(
    pretrain_here: Pretrain, broken_off: Path
) -> None:
    assert metric_steps(broken_off) == [2, 4, 6, 8, 10]
    with (broken_off / "metrics.jsonl").open("a") as file:
        file.write('{"step": 12, "gener')  # what a power cut leaves
    code, output, _ = pretrain_here("--max-steps", "12", "--resume")
    assert code == 0 and "resumed at step 8" in output
    assert metric_steps(broken_off) == [2, 4, 6, 8, 10, 12]


def test_resume_without_output_finds_the_newest_unfinished_run(
    pretrain_here: Pretrain, broken_off: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs" / "pretrain"
    runs.mkdir(parents=True)
    broken_off.rename(runs / "mine")
    argv = ["run.py", "--corpus", "comments.txt", "--init", "random", "--vocab-size", "1024"]
    argv += ["--tokens-per-batch", "256", "--max-steps", "9", "--resume"]
    monkeypatch.setattr(sys, "argv", argv)
    assert run_command(PretrainSettings, pretrain.run.main, "") == 0
    assert json.loads((runs / "mine" / "run.json").read_text())["progress"]["step"] == 9


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--seed", "7"], "it has --seed 42, found --seed 7; give the same flags"),
        (["--max-length", "64"], "it has --max-length 128, found --max-length 64"),
    ],
)
def test_other_flags_are_refused(
    pretrain_here: Pretrain, broken_off: Path, flags: list[str], expected: str
) -> None:
    code, _, errors = pretrain_here("--max-steps", "12", "--resume", *flags)
    assert code == 2 and expected in errors
    assert json.loads((broken_off / "run.json").read_text())["status"] == "running"


def test_a_corpus_that_has_changed_since_is_refused(
    pretrain_here: Pretrain, broken_off: Path, corpus: Path
) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write("\n어제 새로 올라온 댓글이라 그때는 없던 글입니다\n")
    code, _, errors = pretrain_here("--max-steps", "12", "--resume")
    assert code == 2
    assert "corpus_sha256" in errors and "the corpus has changed since" in errors
    assert metric_steps(broken_off)[-1] == 10


def test_a_run_at_work_is_left_alone(pretrain_here: Pretrain, broken_off: Path) -> None:
    before = sorted(broken_off.rglob("*"))
    with FileLock(broken_off / ".lock"):
        code, _, errors = pretrain_here("--max-steps", "12", "--resume")
    assert code == 2 and "found one at work in run" in errors
    assert sorted(broken_off.rglob("*")) == before


def test_a_used_directory_is_refused_without_resume(
    pretrain_here: Pretrain, broken_off: Path
) -> None:
    code, _, errors = pretrain_here("--max-steps", "12")
    assert code == 2 and "found run in use; go on with --resume" in errors
    assert metric_steps(broken_off)[-1] == 10


def test_a_complete_run_is_not_resumed(pretrain_here: Pretrain) -> None:
    assert pretrain_here("--max-steps", "2")[0] == 0
    code, _, errors = pretrain_here("--max-steps", "4", "--resume")
    assert code == 2 and "found run complete; go on from its weights with --init run" in errors


def test_a_file_as_output_is_one_line(pretrain_here: Pretrain, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    code, _, errors = pretrain_here("--max-steps", "2")
    assert code == 2 and errors == (
        "error: expected a directory for --output, found the file run\n"
    )
    assert (tmp_path / "run").read_text() == "mine"


def test_a_loss_that_is_no_number_becomes_no_checkpoint(
    pretrain_here: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = loop.replaced_token_detection
    calls = 0

    def overflowing(pair: ElectraPair, *args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 6:  # between two checkpoints
            with torch.no_grad():
                next(pair.discriminator.parameters()).fill_(float("inf"))
        return step(pair, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "replaced_token_detection", overflowing)
    code, _, errors = pretrain_here("--max-steps", "12", "--log-steps", "100")
    assert code == 2
    assert "the loss is no longer finite at step 8" in errors and "--resume and half" in errors
    saved = sorted(path.name for path in (tmp_path / "run" / "state").glob("step-*"))
    assert saved == ["step-00000000", "step-00000004"]
    assert not (tmp_path / "run" / "discriminator").exists()
