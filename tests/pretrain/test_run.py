"""The command as its users meet it: runs, resumes, kills, bad input, full disk."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    ElectraForSequenceClassification,
)

import pretrain.run
from corpora.command_line import run_command
from pretrain.settings import PretrainSettings

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "pretrain" / "run.py"
FAST = ["--tokens-per-batch", "512", "--log-steps", "5", "--init", "random"]


def run(*flags: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *flags], cwd=cwd, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "comments.txt"
    parts = sorted((ROOT / "corpora" / "comments").glob("*.txt"))
    path.write_text("".join(p.read_text(encoding="utf-8") for p in parts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, corpus_file: Path) -> Path:
    """A whole run of 24 steps with the default warm start, uninterrupted."""
    folder = tmp_path_factory.mktemp("runs")
    flags = ["--corpus", str(corpus_file), "--max-steps", "24", "--output", str(folder / "run")]
    done = run(*flags, "--tokens-per-batch", "512", "--log-steps", "6", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_progress_and_record_say_what_was_done(finished: Path) -> None:
    record = json.loads((finished / "run.json").read_text())
    assert record["status"] == "finished"
    assert record["progress"]["step"] == 24
    assert record["progress"]["tokens"] > 24 * 300
    assert record["progress"]["flops"] > 0
    assert record["settings"]["init"] == "skip-gram"
    assert len(record["corpus_sha256"]) == 64
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [6, 12, 18, 24]
    assert rows[-1]["generator_loss"] < rows[0]["generator_loss"]
    assert list((finished / "tensorboard").glob("events*"))


def test_a_discriminator_that_learnt_nothing_is_said_aloud(finished: Path) -> None:
    record = json.loads((finished / "run.json").read_text())
    assert record["final_metrics"]["discriminator_recall"] < 0.01
    assert "only learnt that most tokens are original" in record["warnings"][-1]


def test_outputs_load_in_stock_classes_without_missing_keys(finished: Path) -> None:
    loaders = [
        (ElectraForPreTraining, "discriminator", set()),
        (ElectraForMaskedLM, "generator", set()),
    ]
    for loader, folder, allowed in loaders:
        _, info = loader.from_pretrained(finished / folder, output_loading_info=True)
        assert set(info["missing_keys"]) == allowed
        assert not info["unexpected_keys"] and not info["mismatched_keys"]
    _, info = AutoModel.from_pretrained(finished / "discriminator", output_loading_info=True)
    assert not info["missing_keys"]
    _, info = ElectraForSequenceClassification.from_pretrained(
        finished / "discriminator", num_labels=3, output_loading_info=True
    )
    assert all(key.startswith("classifier.") for key in info["missing_keys"])
    tokenizer = AutoTokenizer.from_pretrained(finished / "discriminator")
    model = ElectraForPreTraining.from_pretrained(finished / "discriminator")
    assert len(tokenizer) == model.config.vocab_size
    logits = model(**tokenizer("진짜 ㅋㅋㅋ 최고였다", return_tensors="pt")).logits
    assert torch.isfinite(logits).all()


def test_shared_embeddings_are_equal_in_both_outputs(finished: Path) -> None:
    tensors = [
        safetensors.torch.load_file(finished / name / "model.safetensors")
        for name in ("generator", "discriminator")
    ]
    for key in ("word_embeddings.weight", "position_embeddings.weight", "LayerNorm.weight"):
        first, second = (t[f"electra.embeddings.{key}"] for t in tensors)
        assert torch.equal(first, second)


def test_init_goes_on_from_a_run_with_its_tokenizer(
    finished: Path, corpus_file: Path, tmp_path: Path
) -> None:
    flags = ["--corpus", str(corpus_file), "--init", str(finished), "--max-steps", "0"]
    done = run(*flags, "--output", "next", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before, after = (
        safetensors.torch.load_file(path / "discriminator" / "model.safetensors")
        for path in (finished, tmp_path / "next")
    )
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert (tmp_path / "next" / "generator" / "tokenizer.json").read_bytes() == (
        finished / "generator" / "tokenizer.json"
    ).read_bytes()


def weights_of(directory: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(directory / "discriminator" / "model.safetensors")


def test_kill_and_resume_end_in_the_same_weights(corpus_file: Path, tmp_path: Path) -> None:
    common = [*FAST, "--corpus", str(corpus_file), "--max-steps", "40", "--save-steps", "6"]
    straight = run(*common, "--output", "straight", cwd=tmp_path)
    assert straight.returncode == 0, straight.stderr
    killed = subprocess.Popen(
        [sys.executable, str(SCRIPT), *common, "--output", "killed"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    state = tmp_path / "killed" / "state"
    deadline = time.monotonic() + 120
    while not (state / "step-00000012").is_dir() and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "discriminator").exists()
    assert json.loads((tmp_path / "killed" / "run.json").read_text())["status"] == "running"
    resumed = run(*common, "--output", "killed", "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed at step" in resumed.stdout
    expected, found = weights_of(tmp_path / "straight"), weights_of(tmp_path / "killed")
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    assert len(list(state.glob("step-*"))) == 2


def test_sigterm_saves_and_exits_0(corpus_file: Path, tmp_path: Path) -> None:
    flags = [*FAST, "--corpus", str(corpus_file), "--max-steps", "5000", "--output", "run"]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *flags], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("step 5 "):
            break
    process.send_signal(signal.SIGTERM)
    rest = process.stdout.read()
    assert process.wait(60) == 0
    assert "SIGTERM: saved at step" in rest
    assert any((tmp_path / "run" / "state").glob("step-*/progress.json"))


def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    corpus_file: Path, tmp_path: Path
) -> None:
    common = [*FAST, "--corpus", str(corpus_file), "--save-steps", "4", "--output", "run"]
    done = run(*common, "--max-steps", "10", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record_file = tmp_path / "run" / "run.json"
    record = json.loads(record_file.read_text())
    record_file.write_text(json.dumps(record | {"status": "running"}))
    newest = max((tmp_path / "run" / "state").glob("step-*")) / "weights.safetensors"
    blob = bytearray(newest.read_bytes())
    blob[-1] ^= 0xFF
    newest.write_bytes(blob)
    resumed = run(*common, "--max-steps", "12", "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "step-00000010 is damaged (checksum" in resumed.stdout
    assert "resumed at step 8" in resumed.stdout


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def empty_folder(path: Path) -> Path:
    path.mkdir()
    (path / "README.md").write_text("no data here")
    return path


BAD_CORPORA: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    "missing": (lambda d: d / "nowhere", ["nowhere"]),
    "empty": (lambda d: write(d / "e.txt", ""), ["e.txt", "empty"]),
    "folder": (lambda d: empty_folder(d / "folder"), ["folder"]),
    "binary": (lambda d: write(d / "b.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), ["b.txt"]),
    "kind": (lambda d: write(d / "p.pdf", "글"), ["p.pdf", ".csv"]),
    "column": (lambda d: write(d / "c.csv", "번호,평점\n1,5\n"), ["번호", "평점", "--text-column"]),
    "short": (lambda d: write(d / "s.txt", "네\n응\n"), ["none left of 2", "too-short"]),
}


@pytest.mark.parametrize("case", BAD_CORPORA)
def test_bad_corpus_is_one_line_exit_2_and_writes_nothing(case: str, tmp_path: Path) -> None:
    make, words = BAD_CORPORA[case]
    inputs = tmp_path / "in"
    inputs.mkdir()
    corpus = make(inputs)
    work = tmp_path / "work"
    work.mkdir()
    done = run("--corpus", str(corpus), "--max-steps", "1", cwd=work)
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    assert all(word in lines[0] for word in words), lines[0]
    assert not [p for p in work.rglob("*") if p.is_file()]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--max-steps", "1", "--max-minutes", "1"], "found both"),
        (["--mask-fraction", "15"], "--mask-fraction from 0.01 to 0.9, found 15"),
        (["--resume"], "expected an unfinished run under runs/pretrain"),
        (["--init", "no/such/run"], "no/such/run"),
        (["--tokenizer", "no/such/tokenizer"], "tokenizer.json"),
        (["--device", "tpu9"], "--device"),
    ],
)
def test_bad_flags_are_one_line_and_exit_2(
    flags: list[str], message: str, corpus_file: Path, tmp_path: Path
) -> None:
    done = run("--corpus", str(corpus_file), *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs" / "pretrain").exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="mounting a small disk needs root"
)
def test_full_disk_is_one_line_and_keeps_the_last_checkpoint(
    corpus_file: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        flags = ["--corpus", str(corpus_file), "--max-steps", "30", "--save-steps", "3"]
        done = run(*FAST, *flags, "--output", str(disk / "run"), cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        assert "the disk is full" in done.stderr and "Traceback" not in done.stderr
        assert not (disk / "run" / "discriminator").exists()
        kept = list((disk / "run" / "state").glob("step-*/progress.json"))
        assert kept
        assert not list((disk / "run" / "state").glob(".step*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_full_disk_while_saving_the_networks_leaves_no_half_model(
    corpus_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object
) -> None:
    def full(self: object, directory: Path, *args: object, **kwargs: object) -> None:
        Path(directory).mkdir(parents=True, exist_ok=True)
        (Path(directory) / "config.json").write_text("{}")
        # What the Rust half of safetensors raises: not an OSError.
        raise safetensors.SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        )

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ElectraForPreTraining, "save_pretrained", full)
    flags = [*FAST, "--corpus", str(corpus_file), "--max-steps", "2", "--output", "run"]
    monkeypatch.setattr(sys, "argv", ["run.py", *flags])
    assert run_command(PretrainSettings, pretrain.run.main, "") == 2
    assert not (tmp_path / "run" / "discriminator").exists()
    assert not list((tmp_path / "run").glob(".networks*"))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "running"
