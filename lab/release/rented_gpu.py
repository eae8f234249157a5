"""Half an hour on a rented GPU: pre-train an encoder, score it, and bring everything home.

At home, tokenize a corpus and pack what has to travel into one file:

    python pretrain/run.py --corpus runs/clean --preset small --max-steps 0
    python -m lab.release.rented_gpu pack --tokenized runs/cache/tokenized --tasks nsmc --data data

On the rented machine, which needs the repository, `pip install -e .` and that file, but no network:

    python -m lab.release.rented_gpu run

`run` works for `--minutes`, then stops in good order and says "not done: the same command goes on".
Repeat it until it says "done". It pre-trains, then scores the test files of the packed tasks with
`lab.benchmarks.quality.score`, each once for a seed. All that is worth keeping goes into
`--output`, in files of at most 15 MiB: record, losses and scores every few seconds, the state to go
on from at the end of each sitting, the weights (float16, stock folders in shards) when training is
done. If the machine is lost, put `--output` and the pack on another one, and the same command goes
on there.
"""

import hashlib
import io
import itertools
import json
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.files import directory_at_once, file_sha256, write_at_once

ROOT = Path(__file__).parents[2]
CONTENTS = "pack.json"
# What malmoi-medium learnt with, in 13 minutes of an H200 (lab/log; `rtd` was `electra` then).
FLAGS = (
    "--preset small --recipe rtd --tokens-per-batch 32768 --learning-rate 1e-3 "
    "--set objective.unigram_fraction=0.1 --set objective.bag_weight=5 "
    "--set objective.correction_weight=5 --set model.dropout=0.1 --set execution.save_steps=2000"
)
# What goes home while a run is under way.
RECORDS = ("run.json", "metrics.jsonl")
SECONDS_BETWEEN_COPIES = 5.0
MOST_MIB_OF_A_FILE = 15


@dataclass(kw_only=True)
class RentedGpuSettings:
    """What to do: `pack` at home, `run` on the rented machine."""

    step: tyro.conf.Positional[Literal["pack", "run"]]
    """pack: write the file that travels. run: train and score for so many minutes."""
    pack: Path = Path("gpu-pack.tar.xz")
    """The file that travels."""
    tokenized: Path = Path("runs/cache/tokenized")
    """pack: folder of a tokenized corpus, or one with a single such folder in it."""
    tasks: str = "nsmc"
    """pack: comma-separated tasks of lab/benchmarks/quality/score.py to score."""
    data: Path | None = None
    """pack: folder of public texts; by default that of MALMOI_DATA, else data."""
    most_mib: float = 64
    """pack: refuse a larger file, in MiB."""
    minutes: float = 9
    """run: length of this sitting."""
    tokens: float = 1e9
    """run: tokens that the encoder sees in all; an H200 reads some 900,000 a second."""
    flags: str = FLAGS
    """run: other flags of pretrain/run.py, given as --flags="--preset small …"."""
    seeds: int = 3
    """run: fine-tuning runs of each task; 0: no scores."""
    epochs: int = 3
    """run: passes over the training rows of a task."""
    learning_rate: float = 3e-4
    """run: of fine-tuning."""
    work: Path = Path("runs/rented")
    """run: folder of what is under way, on a fast disk."""
    output: Path = Path("gpu-results")
    """run: folder of what goes home; a new machine goes on from it."""

    def check(self) -> None:
        """Raise InputError for the first value out of bounds."""
        for flag, value, low in (
            ("most-mib", self.most_mib, 0.01),
            ("minutes", self.minutes, 0.01),
            ("tokens", self.tokens, 1),
            ("seeds", self.seeds, 0),
        ):
            if not low <= value < float("inf"):
                raise InputError(f"expected --{flag} of at least {low:g}, found {value:g}")


def main(settings: RentedGpuSettings) -> None:
    """Do the step."""
    settings.check()
    {"pack": pack, "run": run}[settings.step](settings)


def pack(settings: RentedGpuSettings) -> None:
    """Write the tokenized corpus and the tasks' files into one compressed file.

    Raises:
        InputError: something is missing, or the file would be too large.
    """
    from lab.benchmarks.data import DataSettings
    from lab.benchmarks.quality.tasks import TASKS

    names = settings.tasks.split(",") if settings.tasks else []
    if unknown := [name for name in names if name not in TASKS]:
        raise InputError(f"expected --tasks of {', '.join(TASKS)}, found {unknown[0]}")
    corpus = _tokenized(settings.tokenized)
    folder = DataSettings(data=settings.data).folder
    files = {file: file.find(folder) for name in names for file in TASKS[name].needs}
    settings.pack.parent.mkdir(parents=True, exist_ok=True)
    scratch = settings.pack.with_name(f".{settings.pack.name}.tmp")
    try:
        with tarfile.open(scratch, "w:xz", preset=3) as archive:
            contents = json.dumps({"tasks": names}).encode()
            about = tarfile.TarInfo(CONTENTS)
            about.size = len(contents)
            archive.addfile(about, io.BytesIO(contents))
            archive.add(corpus, "tokenized")
            for file, path in files.items():
                archive.add(path, f"data/{file.source}/{path.name}")
        size = scratch.stat().st_size / 2**20
        if size > settings.most_mib:
            raise InputError(
                f"expected at most {settings.most_mib:g} MiB to travel, found {size:.1f}; leave "
                "tasks out by --tasks, tokenize fewer texts, or raise --most-mib"
            )
        scratch.rename(settings.pack)
    finally:
        scratch.unlink(missing_ok=True)
    print(f"{settings.pack}: {size:.1f} MiB, tasks {', '.join(names) or 'none'}")


def _tokenized(folder: Path) -> Path:
    """The only tokenized corpus in a folder."""
    found = sorted(path.parent for path in folder.rglob("offsets.bin"))
    if len(found) != 1:
        raise InputError(
            f"expected one tokenized corpus in {folder}, found {len(found)}; make one with "
            "pretrain/run.py --max-steps 0 and name its folder by --tokenized"
        )
    return found[0]


def run(settings: RentedGpuSettings) -> None:
    """One sitting: go on where the last one stopped.

    Raises:
        InputError: there is no such file, or a whole sitting brought nothing forward.
        SystemExit: training or scoring failed, with its code, and has said why.
    """
    end = time.monotonic() + 60 * settings.minutes
    packed = _unpacked(settings)
    tasks = json.loads((packed / CONTENTS).read_text(encoding="utf-8"))["tasks"]
    # Another setting, other folders: nothing stands in for anything else.
    key = f"{settings.flags} {settings.tokens}"
    folder = packed / hashlib.sha256(key.encode()).hexdigest()[:8]
    print(f"the run is {folder / 'encoder'}", flush=True)
    with _copying(folder, settings.output):
        done = _train(settings, packed, folder / "encoder", end)
        if done and tasks and settings.seeds:
            done = _score(settings, packed, folder, tasks, end)
    print(
        f"done: {settings.output} has weights, records and scores"
        if done
        else "not done: the same command goes on"
    )


def _unpacked(settings: RentedGpuSettings) -> Path:
    """The pack's content, in a folder that is named by its hash."""
    if not settings.pack.is_file():
        raise InputError(
            f"expected {settings.pack}, found none; make it at home with the step pack, or name "
            "it by --pack"
        )
    folder = settings.work / file_sha256(settings.pack)[:8]
    if not folder.is_dir():
        with directory_at_once(folder) as scratch, tarfile.open(settings.pack) as archive:
            archive.extractall(scratch, filter="data")
    return folder


def _train(settings: RentedGpuSettings, packed: Path, encoder: Path, end: float) -> bool:
    """Go on with pre-training until the sitting ends; whether it is finished."""
    from lab.release.sittings import is_finished, pretrain

    if not encoder.is_dir():
        _restore(settings.output / "state", encoder)
    if is_finished(encoder):
        return True
    minutes = (end - time.monotonic()) / 60
    flags = shlex.split(settings.flags)
    # As seen from the pack: the run's record must not name a place of this machine.
    corpus, run = Path("tokenized"), encoder.resolve()
    done = pretrain(corpus, run, settings.tokens, minutes, flags, folder=packed)
    states = sorted((encoder / "state").glob("step-*"))
    if not done and not states:
        raise InputError(
            f"expected a checkpoint after a sitting of {settings.minutes:g} minutes, found none "
            f"in {encoder}; give more --minutes"
        )
    if done:
        for network in ("discriminator", "generator"):
            if (encoder / network).is_dir():
                _bring_home(encoder / network, settings.output / network)
    else:
        _bring_state_home(encoder, states[-1], settings.output / "state")
    return done


def _bring_state_home(encoder: Path, state: Path, target: Path) -> None:
    """What the next sitting needs, as one archive in parts; the state before it goes then."""
    folder = target / f"{encoder.parent.name}-{state.name}"
    if folder.is_dir():
        return
    with directory_at_once(folder) as scratch, tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for path in (*(encoder / name for name in RECORDS), state, state.parent / "tokenizer"):
                if path.exists():
                    archive.add(path, str(path.relative_to(encoder)))
        file.seek(0)
        for number in itertools.count():
            if not (part := file.read(MOST_MIB_OF_A_FILE * 2**20)):
                break
            (scratch / f"{number:04}").write_bytes(part)
    for older in target.glob(f"{encoder.parent.name}-step-*"):
        if older != folder:
            shutil.rmtree(older)


def _restore(home: Path, encoder: Path) -> None:
    """Put the newest state of this run that came home in its place, if there is one."""
    found = sorted(home.glob(f"{encoder.parent.name}-step-*"))
    if not found:
        return
    with directory_at_once(encoder) as scratch, tempfile.TemporaryFile() as file:
        for part in sorted(found[-1].iterdir()):
            file.write(part.read_bytes())
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            archive.extractall(scratch, filter="data")


def _bring_home(network: Path, target: Path) -> None:
    """A stock folder of the network, in float16 and in small files."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoModelForPreTraining

    kind = AutoModelForMaskedLM if network.name == "generator" else AutoModelForPreTraining
    model = kind.from_pretrained(network, dtype=torch.float16)
    shutil.rmtree(target, ignore_errors=True)
    with directory_at_once(target) as scratch:
        model.save_pretrained(scratch, max_shard_size=f"{MOST_MIB_OF_A_FILE}MB")
        for path in network.glob("tokenizer*"):
            shutil.copyfile(path, scratch / path.name)


def _score(
    settings: RentedGpuSettings, packed: Path, folder: Path, tasks: list[str], end: float
) -> bool:
    """Go on with the scores until the sitting ends; whether all are there.

    A fine-tuning that the end interrupts is done again: so a sitting must be longer than one.
    """
    from lab.release.sittings import leave_with

    results = folder / "quality.json"
    whole_sitting = end - time.monotonic() > 0.9 * 60 * settings.minutes
    before = _rows(results)
    command: list[Any] = [sys.executable, "-m", "lab.benchmarks.quality.score", "--name", "rented"]
    command += ["--model", (folder / "encoder").resolve(), "--tasks", ",".join(tasks)]
    command += ["--data", (packed / "data").resolve(), "--output", results.resolve()]
    command += ["--seeds", settings.seeds, "--epochs", settings.epochs]
    command += ["--learning-rates", settings.learning_rate]
    process = subprocess.Popen([*map(str, command)], cwd=ROOT)
    try:
        leave_with(process.wait(max(0.0, end - time.monotonic())))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.wait()
        if whole_sitting and _rows(results) == before:
            raise InputError(
                f"expected a score within a sitting of {settings.minutes:g} minutes, found none; "
                "give more --minutes, or fewer --epochs"
            ) from None
        return False
    return True


def _rows(results: Path) -> int:
    if not results.is_file():
        return 0
    return len(json.loads(results.read_text(encoding="utf-8"))["runs"])


@contextmanager
def _copying(folder: Path, output: Path) -> Iterator[None]:
    """Copy records and scores home every few seconds, and once more at the end."""
    sources = [*(folder / "encoder" / name for name in RECORDS), folder / "quality.json"]

    def copy() -> None:
        for source in sources:
            if source.is_file():
                write_at_once(output / source.name, source.read_bytes())

    over = threading.Event()

    def go_on() -> None:
        while not over.wait(SECONDS_BETWEEN_COPIES):
            copy()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        copy()


if __name__ == "__main__":
    about = "Pre-train and score on a rented GPU, in sittings; `pack` at home, `run` there."
    sys.exit(run_command(RentedGpuSettings, main, about))
