"""A rented machine: what travels, sittings that end in time and go on, what comes home."""

import json
import shlex
import tarfile
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from lab.release import rented_gpu
from lab.release.rented_gpu import RentedGpuSettings
from malmoi.errors import InputError
from malmoi.flags import parse_flags
from malmoi.pretrain.config.run_plan import plan_from_json
from malmoi.pretrain.config.settings import PretrainSettings, read_config
from malmoi.pretrain.plan import Machine, plan
from tests.lab.release.conftest import Encoder

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
    path = Path(__file__).parents[3] / "checkpoints" / "malmoi-medium" / "run.json"
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
