"""Trainings in several processes: stopped, or robbed of one of them, they leave nothing running."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.malmoi.finetune.conftest import WriteCsv, separable

ROOT = Path(__file__).parents[3]
EPOCHS = 400  # minutes: nothing is done before it is stopped

Start = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def start(encoder: Path, write_csv: WriteCsv, tmp_path: Path) -> Iterator[Start]:
    """Begin `kfold.py` in two processes, on few texts."""
    begun = []
    data = write_csv(separable())

    def begin() -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "finetune" / "kfold.py"), f"--data={data}"]
        command += [f"--model={encoder}", f"--epochs={EPOCHS}", "--folds=2", "--jobs=2"]
        process = subprocess.Popen(
            [*command, "--set=linear.enabled=false", "--output=run"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The two trainings, once both are at work, be it their imports."""
    for _ in range(1200):
        found = [
            child
            for child in psutil.Process(process.pid).children()
            if "multiprocessing.spawn" in " ".join(child.cmdline())
        ]
        if len(found) == 2 and all(child.cpu_times().user > 1 for child in found):
            return found
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.1)
    raise AssertionError("the processes did not start in two minutes")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_stopped_leaves_no_process(start: Start, number: int, code: int) -> None:
    process = start()
    children = workers(process)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # Ctrl-C reaches all of them
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    gone, alive = psutil.wait_procs(children, timeout=30)
    assert len(gone) == 2 and not alive


def test_where_a_process_is_killed_the_other_ends_too(start: Start, tmp_path: Path) -> None:
    process = start()
    children = workers(process)
    children[0].kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    (line,) = [line for line in errors.splitlines() if "was killed" in line]
    assert "--jobs 1" in line and "Traceback" not in errors
    assert not psutil.wait_procs(children, timeout=30)[1]
    assert not (tmp_path / "run").exists()
