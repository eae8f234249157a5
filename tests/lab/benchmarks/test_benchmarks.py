"""What benchmarks keep: results and runs of one setting never stand in for another's."""

import hashlib
import importlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lab.benchmarks.result_files import write_result
from malmoi.errors import InputError
from malmoi.pretrain.config.run_config import read_config
from malmoi.pretrain.config.settings import PretrainSettings

ROOT = Path(__file__).parents[3]


def test_a_result_is_a_text_file_whose_last_line_ends(tmp_path: Path) -> None:
    write_result(tmp_path / "out.json", {"글": 1})
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == '{\n "글": 1\n}\n'
    kept = sorted((ROOT / "lab" / "benchmarks" / "results").rglob("*.json"))
    assert kept and not [one.name for one in kept if not one.read_bytes().endswith(b"\n")]


@pytest.fixture(scope="module")
def downstream() -> ModuleType:
    """lab/benchmarks/quality/downstream.py."""
    return importlib.import_module("lab.benchmarks.quality.downstream")


def test_results_go_on_with_their_own_setting_only(downstream: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first = downstream.Results(path, preset="tiny", flops=1.4e14, tokenizer=None)
    first.add({"arm": "a", "score": 1.0})
    again = downstream.Results(path, preset="tiny", flops=1.4e14, tokenizer=None)
    (row,) = again.of(arm="a")
    assert row["score"] == 1.0
    assert row["threads"] >= 1 and isinstance(row["bf16"], bool) and row["torch"]
    with pytest.raises(InputError, match=r"results with preset small in .*, found some with tiny"):
        downstream.Results(path, preset="small", flops=1.4e14)
    with pytest.raises(InputError, match="name another file of results"):
        downstream.Results(path, preset="tiny", flops=2e16)
    # A reader that names no setting loses none of it.
    downstream.Results(path).add({"arm": "b"})
    assert json.loads(path.read_text())["setting"]["flops"] == 1.4e14


def test_damaged_results_are_one_line(downstream: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"setting": {}, "runs": [')
    with pytest.raises(InputError, match=r"results\.json: expected results as JSON, found damage"):
        downstream.Results(path)
    assert path.read_text() == '{"setting": {}, "runs": ['
    for found in ("{}", "[]", '{"runs": 1}'):
        path.write_text(found)
        with pytest.raises(InputError, match="expected results with their runs, found none"):
            downstream.Results(path)


def test_the_recorded_results_can_be_gone_on_with(downstream: ModuleType) -> None:
    sizes: dict[str, object] = {"train_size": 20_000, "dev_size": 20_000}
    pretrained = sizes | {"epochs": 3, "corpus": "reviews_rated.tsv.gz", "preset": "tiny"}
    settings: dict[str, dict[str, object]] = {
        "quality": {},
        "token_budget": pretrained | {"tokenizer": None},
    }
    for name, setting in settings.items():
        path = ROOT / "lab" / "benchmarks" / "results" / f"{name}.json"
        assert downstream.Results(path, **setting).rows, name


def test_scores_belong_to_weights_and_are_of_one_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quality = importlib.import_module("lab.benchmarks.quality.score")
    rows = quality.Rows(texts=[f"글 {n}" for n in range(20)], targets=np.arange(20) % 3)
    task = {
        "hate": replace(
            quality.TASKS["hate"], train=lambda data: rows, test=lambda data: rows, needs=()
        )
    }
    monkeypatch.setattr(quality, "TASKS", task)
    # The higher the rate, the better.
    monkeypatch.setattr(
        quality, "_fit", lambda *given, **rest: {"macro_f1": 1e5 * given[3]["learning_rate"]}
    )
    encoder, output = tmp_path / "mine", tmp_path / "quality.json"
    encoder.mkdir()
    (encoder / "config.json").write_text('{"model_type": "electra"}')
    (encoder / "model.safetensors").write_bytes(b"weights")

    def measure(rates: str, **flags: Any) -> list[tuple[Any, ...]]:
        settings = quality.QualitySettings(
            model=str(encoder), tasks="hate", seeds=2, learning_rates=rates, output=output, **flags
        )
        quality.main(settings)
        found = json.loads(output.read_text())["runs"]
        return [(row["part"], row["seed"], row.get("weights_sha256", "")[:4]) for row in found]

    ours = hashlib.sha256(b"weights").hexdigest()[:4]
    of_ours = [("dev", 0, ours), ("dev", 0, ours), ("test", 0, ours), ("test", 1, ours)]
    assert measure("1e-4,3e-4") == of_ours
    assert "recorded before" not in capsys.readouterr().out
    assert measure("1e-4,3e-4") == measure("3e-4") == of_ours  # nothing is left to do
    # One setting for one mean, and no second choice once the test file was scored.
    assert measure("1e-4") == measure("1e-4,5e-4") == of_ours
    settled = json.loads(output.read_text())["runs"]
    output.write_text(json.dumps({"setting": {}, "runs": settled[:3]}))
    capsys.readouterr()
    assert measure("1e-4,5e-4") == of_ours
    assert "(1 recorded before in quality.json)" in capsys.readouterr().out
    assert json.loads(output.read_text())["runs"][3]["learning_rate"] == 3e-4
    (encoder / "model.safetensors").write_bytes(b"others")
    theirs = hashlib.sha256(b"others").hexdigest()[:4]
    assert measure("1e-4")[4:] == [("test", 0, theirs), ("test", 1, theirs)]
    assert measure("1e-4", random_weights=True)[6:] == [("test", 0, ""), ("test", 1, "")]
    assert json.loads(output.read_text())["runs"][6]["layer_decay"] == 1
    # Of another shape they are others.
    (encoder / "config.json").write_text('{"model_type": "electra", "num_hidden_layers": 2}')
    assert measure("1e-4", random_weights=True)[8:] == [("test", 0, ""), ("test", 1, "")]
    assert json.loads(output.read_text())["runs"][8]["shape"].startswith("2 x ")


@pytest.fixture
def commands(downstream: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been run."""
    started: list[list[str]] = []

    def run(command: list[str], **rest: object) -> subprocess.CompletedProcess[bytes]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return started


def write_run(folder: Path, status: str, **flags: Any) -> None:
    settings = PretrainSettings(corpus=Path("texts.txt"), **flags)
    record = {"status": status, "given": read_config(settings).as_json()}
    (folder / "state").mkdir(parents=True)
    (folder / "discriminator").mkdir()
    (folder / "run.json").write_text(json.dumps(record))


def test_a_pretraining_run_is_made_once_and_gone_on_with(
    downstream: ModuleType, commands: list[list[str]], tmp_path: Path
) -> None:
    def once() -> list[str]:
        commands.clear()
        flags = ["--preset", "tiny", "--max-tokens", 2_000]
        try:
            downstream.pretrain_once(tmp_path / "run", flags, corpus=Path("texts.txt"))
        except InputError as error:
            # Nothing has been run here; a run that SIGTERM ended looks the same, and has no score.
            assert "found it stopped; the same command goes on" in str(error)
            return commands[0][2:]
        assert not commands
        return []

    assert once()[:2] == ["--corpus", "texts.txt"]
    # Killed while the networks lay there but before the record said so, and before a checkpoint.
    write_run(tmp_path / "run", "running", preset="tiny", max_tokens=2e3)
    assert once() and "--resume" not in once()
    (tmp_path / "run" / "state" / "step-00000200").mkdir()
    assert once()[-1] == "--resume"
    record = json.loads((tmp_path / "run" / "run.json").read_text()) | {"status": "finished"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    assert once() == []


def test_a_run_of_other_flags_is_not_taken(
    downstream: ModuleType, commands: list[list[str]], tmp_path: Path
) -> None:
    asked = ["--preset", "tiny", "--max-tokens", 2_000]
    for status in ("running", "finished"):
        for flag, other in (("preset", "small"), ("max_tokens", 9e3), ("seed", 1)):
            run = tmp_path / f"{status} {flag}"
            write_run(run, status, **{"preset": "tiny", "max_tokens": 2e3} | {flag: other})
            with pytest.raises(InputError, match=f"--{flag.replace('_', '-')} {other}"):
                downstream.pretrain_once(run, asked, corpus=Path("texts.txt"))
    assert not commands
