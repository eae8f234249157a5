"""What a killed process leaves behind is removed by the next one, and nothing else is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from malmoi import cache
from malmoi.commands.cache import CacheSettings, main
from malmoi.files import directory_at_once, remove_unfinished

# Makes a large result in `runs/made`, says so, and waits.
AT_WORK = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from malmoi.files import directory_at_once
from malmoi.command_line import run_command

@dataclass(kw_only=True)
class Settings:
    pass

def main(settings):
    with directory_at_once(Path("runs/made")) as scratch:
        (scratch / "part").write_bytes(bytes(1_000_000))
        print("at work", flush=True)
        time.sleep(600)

sys.exit(run_command(Settings, main, ""))
"""


@pytest.fixture
def at_work(tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", AT_WORK],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(cache.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    return process


def hidden(folder: Path) -> list[Path]:
    return list(folder.glob(".*"))


def test_what_a_kill_leaves_is_swept_by_the_next(
    at_work: subprocess.Popen[str], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    at_work.kill()
    at_work.communicate()
    assert len(hidden(runs)) == 2  # a folder and its lock
    with directory_at_once(runs / "another") as scratch:
        (scratch / "file").touch()
        assert len(hidden(runs)) == 2
    assert hidden(runs) == []
    assert [path.name for path in runs.iterdir()] == ["another"]


def test_who_is_still_at_work_is_left_alone(at_work: subprocess.Popen[str], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with directory_at_once(runs / "another"):
        pass
    assert remove_unfinished(runs) == 0
    assert len(list(runs.glob(".made-*/part"))) == 1
    at_work.kill()
    at_work.communicate()
    assert remove_unfinished(runs) == 1
    assert hidden(runs) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"]
)
def test_a_signal_cleans_up_and_is_one_line(
    at_work: subprocess.Popen[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    at_work.send_signal(number)
    _, errors = at_work.communicate()
    assert (at_work.returncode, errors) == (code, "stopped\n")
    assert not (tmp_path / "runs").exists()


MANY = """
import sys
from pathlib import Path
from malmoi.files import directory_at_once
for number in range(100):
    with directory_at_once(Path("runs") / f"{sys.argv[1]}-{number}") as scratch:
        (scratch / "file").touch()
"""


def test_processes_beside_each_other_leave_each_others_folders_alone(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(cache.__file__).parents[1])}
    processes = [
        subprocess.Popen([sys.executable, "-c", MANY, str(n)], cwd=tmp_path, env=environment)
        for n in range(4)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert len(list((tmp_path / "runs").glob("*-*/file"))) == 400
    assert hidden(tmp_path / "runs") == []


def test_hidden_folders_of_others_stay(tmp_path: Path) -> None:
    for name in (".config-abcdefgh", ".made-12345678"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    assert remove_unfinished(tmp_path) == 0
    assert len(hidden(tmp_path)) == 2


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of three entries of 1,000 bytes, `clean/0` used longest ago."""
    monkeypatch.chdir(tmp_path)
    folder = Path("runs/cache")
    for number, kind in enumerate(("clean", "tokenized", "clean")):
        entry = folder / kind / str(number)
        entry.mkdir(parents=True)
        (entry / "part").write_bytes(bytes(1_000))
        os.utime(entry, (number, number))
    return folder


def test_what_another_run_may_be_at_is_spared(filled: Path) -> None:
    cache.mark_used(filled / "clean" / "0")
    assert cache.bound(filled, max_bytes=0, spare_seconds=60.0) == 2_000
    assert names(filled) == ["clean/0"]


def names(folder: Path) -> list[str]:
    return sorted(str(entry.path.relative_to(folder)) for entry in cache.entries(folder))


def test_the_cache_is_bounded_and_keeps_what_was_used_last(filled: Path) -> None:
    assert cache.bound(filled, max_bytes=3_000) == 0
    assert cache.bound(filled, max_bytes=2_500) == 1_000
    assert names(filled) == ["clean/2", "tokenized/1"]
    cache.mark_used(filled / "tokenized" / "1")
    assert cache.bound(filled, max_bytes=1_000) == 1_000
    assert names(filled) == ["tokenized/1"]


def test_an_entry_in_use_is_never_removed(filled: Path) -> None:
    assert cache.bound(filled, keep=[filled / "clean" / "0"], max_bytes=0) == 2_000
    assert names(filled) == ["clean/0"]


def test_one_command_shows_and_removes_the_cache(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(CacheSettings())
    printed = capsys.readouterr().out
    assert all(str(filled / name) in printed for name in ("clean/0", "tokenized/1", "clean/2"))
    main(CacheSettings(clear=True))
    assert names(filled) == []
