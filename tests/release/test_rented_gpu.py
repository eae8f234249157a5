"""A rented machine: what travels, sittings that end in time and go on, what comes home."""

import json
import shlex
import subprocess
import tarfile
import time
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForPreTraining, AutoTokenizer

from malmoi.errors import InputError
from malmoi.flags import parse_flags
from pretrain.config.run_plan import plan_from_json
from pretrain.config.settings import PretrainSettings, read_config
from pretrain.plan import Machine, plan
from release import rented_gpu
from release.rented_gpu import RentedGpuSettings
from tests.release.conftest import STEPS, Encoder

ROWS = 24


@pytest.fixture
def home(trained: Encoder, tmp_path: Path) -> Path:
    """A folder with a tokenized corpus and NSMC's files."""
    copytree(trained.cache / "cache" / "tokenized", tmp_path / "tokenized")
    folder = tmp_path / "data" / "nsmc"
    folder.mkdir(parents=True)
    lines = [f"{n}\t{('정말 좋다', '너무 별로')[n % 2]} {n}\t{n % 2}" for n in range(ROWS)]
    for name in ("ratings_train.txt", "ratings_test.txt"):
        text = "id\tdocument\tlabel\n" + "\n".join(lines) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
    return tmp_path


def settings_in(home: Path, step: str, **more: Any) -> RentedGpuSettings:
    places = {
        "pack": home / "gpu-pack.tar.xz",
        "tokenized": home / "tokenized",
        "data": home / "data",
        "work": home / "work",
        "output": home / "results",
    }
    return RentedGpuSettings(step=step, **places | more)  # type: ignore[arg-type]


def test_the_flags_are_what_the_released_encoder_learnt_with() -> None:
    path = Path(__file__).parents[2] / "checkpoints" / "malmoi-medium" / "run.json"
    released = plan_from_json(json.loads(path.read_text())["plan"], path)
    flags = ["--corpus", "tokenized", *shlex.split(rented_gpu.FLAGS)]
    given = read_config(parse_flags(PretrainSettings, program=None, about="", arguments=flags))
    lengths = np.full(100, 8)
    gpu = Machine(device="cuda", prefers_bf16=True)
    planned = plan(given, lengths=lengths, checkpoint=None, machine=gpu)
    for part in ("networks", "objective", "optimizer", "batching"):
        assert getattr(planned, part) == getattr(released, part)


def test_a_pack_has_corpus_and_tasks_and_is_not_too_large(home: Path) -> None:
    settings = settings_in(home, "pack")
    rented_gpu.main(settings)
    with tarfile.open(settings.pack) as archive:
        names = archive.getnames()
    assert {"pack.json", "data/nsmc/ratings_train.txt", "data/nsmc/ratings_test.txt"} < {*names}
    assert "tokenized/ids.bin" in names and "tokenized/tokenizer/tokenizer.json" in names
    before = settings.pack.read_bytes()
    with pytest.raises(InputError, match=r"at most 0\.01 MiB to travel, found .*; leave tasks"):
        rented_gpu.main(settings_in(home, "pack", most_mib=0.01))
    assert settings.pack.read_bytes() == before
    assert not list(home.glob(".gpu-pack*"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"tasks": "nsmc,films"}, "expected --tasks of .*, found films"),
        ({"tasks": "kote"}, r"expected val\.tsv below .*, found none; malmoi fetch kote"),
        ({"tokenized": Path("nowhere")}, "expected one tokenized corpus in nowhere, found 0"),
        ({"minutes": 0}, r"--minutes of at least 0\.01, found 0"),
    ],
)
def test_what_cannot_be_packed_is_one_line(home: Path, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rented_gpu.main(settings_in(home, "pack", **flags))
    assert not (home / "gpu-pack.tar.xz").exists()


def test_a_run_without_its_pack_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected .*gpu-pack\.tar\.xz, found none; make it"):
        rented_gpu.main(settings_in(tmp_path, "run"))
    assert not any(tmp_path.iterdir())


def test_sittings_end_in_time_go_on_and_bring_everything_home(
    home: Path,
    small_recipe: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rented_gpu.main(settings_in(home, "pack"))
    recipe = [*small_recipe]
    del recipe[recipe.index("--vocab-size") : recipe.index("--vocab-size") + 2]
    monkeypatch.setattr(rented_gpu, "SECONDS_BETWEEN_COPIES", 0.2)
    monkeypatch.setattr(rented_gpu, "MOST_MIB_OF_A_FILE", 4)
    how: dict[str, Any] = {
        "flags": " ".join([*recipe, "--preset tiny --device cpu"]),
        "tokens": STEPS * 512,
        "seeds": 1,
        "epochs": 1,
    }
    results = home / "results"
    # A sitting that ends before there is a checkpoint brings nothing forward, and says so.
    with pytest.raises(InputError, match=r"after a sitting of 0\.01 minutes, found none"):
        rented_gpu.main(settings_in(home, "run", minutes=0.01, **how))
    # One that ends while it trains goes on with the next, on another machine too.
    long = how | {"tokens": 500 * STEPS * 512}
    steps = []
    for work in ("work", "another machine"):
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", sitting_of(results / "metrics.jsonl", len(steps)))
            rented_gpu.main(settings_in(home, "run", minutes=9, work=home / work, **long))
        assert "not done: the same command goes on" in capsys.readouterr().out
        assert json.loads((results / "run.json").read_text())["status"] != "finished"
        (state,) = (results / "state").iterdir()
        steps.append(int(state.name.rpartition("-")[2]))
        assert len(list(state.iterdir())) > 1 and not (results / "discriminator").exists()
        assert all(part.stat().st_size <= 4 * 2**20 for part in state.iterdir())
    assert 0 < steps[0] < steps[1]
    rows = [json.loads(line) for line in (results / "metrics.jsonl").read_text().splitlines()]
    logged = [row["step"] for row in rows]
    assert logged == sorted(set(logged)) and logged[0] < steps[0] < logged[-1]
    # Training and scores in one sitting; another one has nothing left to train.
    for seeds in (1, 0):
        rented_gpu.main(settings_in(home, "run", minutes=9, **how | {"seeds": seeds}))
        assert "\ndone: " in capsys.readouterr().out
    assert json.loads((results / "run.json").read_text())["status"] == "finished"
    (row,) = json.loads((results / "quality.json").read_text())["runs"]
    assert row["encoder"] == "rented" and row["task"] == "nsmc" and row["part"] == "test"
    weights = sorted((results / "discriminator").glob("*.safetensors"))
    assert len(weights) > 1
    model, report = AutoModelForPreTraining.from_pretrained(
        results / "discriminator", dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(results / "discriminator")
    assert len(tokenizer) == model.config.vocab_size


def sitting_of(metrics: Path, before: int) -> type[subprocess.Popen[bytes]]:
    """A process whose minutes are over when more losses have come home than there were."""
    lines = _lines(metrics) if before else 0

    class Sitting(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            if timeout is not None:
                while self.poll() is None and _lines(metrics) < lines + 2:
                    time.sleep(0.05)
                if self.poll() is None:
                    raise subprocess.TimeoutExpired(self.args, timeout)
            return super().wait()

    return Sitting


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n") if path.is_file() else 0


def test_a_sitting_too_short_for_one_score_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = subprocess.Popen

    def sleeping(command: list[str], **rest: Any) -> subprocess.Popen[bytes]:
        return slow(["sleep", "60"], **rest)

    monkeypatch.setattr(subprocess, "Popen", sleeping)
    settings = settings_in(home, "run", minutes=0.01)
    with pytest.raises(InputError, match=r"a score within a sitting of 0\.01 minutes, found none"):
        rented_gpu._score(settings, home, home, ["nsmc"], time.monotonic() + 0.6)
    # One that had less than a whole sitting goes on with the next.
    assert not rented_gpu._score(settings, home, home, ["nsmc"], time.monotonic() + 0.1)
