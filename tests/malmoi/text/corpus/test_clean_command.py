"""`malmoi clean` as a user runs it: any number of workers, killed, resumed, misused."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from malmoi.command_line import run_command
from malmoi.commands import clean
from malmoi.text.cleaning.cleaner import CLEANER_VERSION, clean_text
from malmoi.text.corpus import clean_corpus, units

Clean = Callable[..., tuple[int, str, str]]

COMMENTS = Path(__file__).parents[4] / "corpora" / "comments"


def command(*flags: object) -> list[str]:
    return [sys.executable, "-m", "malmoi", "clean", *(str(flag) for flag in flags)]


def run(*flags: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*flags), capture_output=True, text=True, check=False)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, comments: list[str]) -> Path:
    """7 units of comments, half of them changed so that they are no duplicates."""
    path = tmp_path_factory.mktemp("large") / "comments.txt"
    with path.open("w", encoding="utf-8") as file:
        for number in range(65_000):
            comment = comments[number % len(comments)]
            file.write(f"{comment} {number}\n" if number % 2 else f"{comment}\n")
    return path


@pytest.fixture(scope="module")
def expected(large: Path) -> dict[str, bytes]:
    output = large.parent / "expected"
    done = run(large, "--output", output, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert list(output.parent.glob(".*")) == []
    return contents(output)


def test_several_workers_give_the_same_bytes(
    large: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    done = run(large, "--output", tmp_path / "c", "--workers", 3)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "c") == expected
    report = json.loads(expected["_report.json"])
    assert report["read"] == 65_000 and report["dropped"]["duplicate"] > 25_000
    assert done.stdout.endswith(f"cleaning {CLEANER_VERSION} -> {tmp_path / 'c'}\n")
    assert f"{report['kept']:,} of 65,000 texts kept" in done.stdout


def kill_after_units(number: int, *flags: object, work: Path) -> None:
    # A session of its own, so that its workers can be found afterwards.
    killed = subprocess.Popen(command(*flags), start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    while len(list(work.glob("units/*.npz"))) < number and time.monotonic() < deadline:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    # The workers notice that their parent is gone.
    while time.monotonic() < deadline:
        try:
            os.killpg(killed.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    pytest.fail("workers stayed behind")


def test_a_killed_run_goes_on_and_ends_in_the_same_bytes(
    large: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    output, work = tmp_path / "c", tmp_path / ".c.work"
    kill_after_units(3, large, "--output", output, "--workers", 2, work=work)
    assert not output.exists()
    finished = {path: path.stat().st_mtime_ns for path in work.glob("units/*.npz")}
    assert len(finished) >= 3
    last = max(finished)
    last.write_bytes(last.read_bytes()[:-9])  # as a power failure leaves it
    done = run(large, "--output", output, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert f"going on from {len(finished)} finished units" in done.stdout
    assert contents(output) == expected
    assert not work.exists()


@pytest.fixture
def clean_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Clean:
    """The command in this process, with units of 50 records: (exit code, stdout, stderr)."""
    monkeypatch.setattr(units, "RECORDS_PER_UNIT", 50)
    monkeypatch.setattr(clean, "RECORDS_PER_UNIT", 50)

    def call(*flags: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clean", "--workers", "1", *map(str, flags)])
        code = run_command(clean.CleanSettings, clean.main, clean.ABOUT)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def broken_off(
    clean_here: Clean, comments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A run stopped when its units were done, the first of them since replaced by the second."""
    corpus = tmp_path / "in.txt"
    corpus.write_text("\n".join(comments[:200]), encoding="utf-8")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(clean_corpus, "_find_keepers", stop)
        assert clean_here(corpus, "--output", tmp_path / "c")[0] == 130
    assert not (tmp_path / "c").exists()
    first, second = sorted((tmp_path / ".c.work" / "units").glob("*.npz"))[:2]
    first.write_bytes(second.read_bytes())
    return corpus


def first_text(output: Path) -> str:
    return str(pq.read_table(output / "part-00000.parquet")["text"][0].as_py())


def test_finished_units_are_used(
    broken_off: Path, clean_here: Clean, comments: list[str], tmp_path: Path
) -> None:
    code, out, _ = clean_here(broken_off, "--output", tmp_path / "c")
    assert code == 0 and "going on from 4 finished units" in out
    assert clean_text(first_text(tmp_path / "c")) in {clean_text(text) for text in comments[50:100]}


@pytest.mark.parametrize(
    "flags",
    [
        ["--min-characters", 3],
        ["--near-duplicates"],
        ["--correct-spacing"],
        ["--rejects"],
        ["--skip-bad-rows"],
        ["changed"],
    ],
)
def test_units_of_other_settings_or_inputs_are_not_used(
    broken_off: Path, clean_here: Clean, comments: list[str], tmp_path: Path, flags: list[object]
) -> None:
    if flags == ["changed"]:
        broken_off.write_text("\n".join(comments[:201]), encoding="utf-8")
        flags = []
    if flags == ["--rejects"]:
        flags.append(tmp_path / "rejects.csv")
    code, out, _ = clean_here(broken_off, "--output", tmp_path / "c", *flags)
    assert code == 0 and "going on" not in out
    of_first_unit = {"".join(clean_text(text).split()) for text in comments[:50]}
    assert "".join(first_text(tmp_path / "c").split()) in of_first_unit


@pytest.mark.parametrize("name", ["rejects.jsonl", "rejects.csv", "deep/rejects"])
def test_rejects_say_why_and_where(
    clean_here: Clean, tmp_path: Path, name: str, named_too_early: list[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("이 텍스트는 남아 있습니다\n짧다\n", encoding="utf-8")
    (folder / "b.csv").write_text(
        'id,text\n7,"이 텍스트는  남아\n있습니다"\n8,\n', encoding="utf-8"
    )
    rejects = tmp_path / name
    code, out, _ = clean_here(folder, "--output", tmp_path / "c", "--rejects", rejects)
    assert code == 0 and "1 of 4 texts kept" in out
    assert named_too_early == []
    report = json.loads((tmp_path / "c" / "_report.json").read_text("utf-8"))
    assert [Path(one["source"]).name for one in report["reading"]["files"]] == ["a.txt", "b.csv"]
    if rejects.suffix == ".jsonl":
        rows = [json.loads(line) for line in rejects.read_text(encoding="utf-8").splitlines()]
    elif rejects.suffix == ".csv":
        with rejects.open(encoding="utf-8-sig", newline="") as file:
            rows = [{k: v or None for k, v in row.items()} for row in csv.DictReader(file)]
    else:
        rows = pq.read_table(rejects / "part-00000.parquet").to_pylist()
    assert [(r["id"], r["source"], r["reason"], r["text"] or "", r["kept_id"]) for r in rows] == [
        ("a.txt:2", "a.txt", "too-short", "짧다", None),
        ("8", "b.csv", "empty", "", None),
        ("7", "b.csv", "duplicate", "이 텍스트는 남아 있습니다", "a.txt:1"),
    ]


def test_inputs_with_files_of_one_name_keep_apart(clean_here: Clean, tmp_path: Path) -> None:
    for year in ("2019", "2020"):
        (tmp_path / year).mkdir()
        text = f"{year}년에 남은 텍스트입니다"
        (tmp_path / year / "a.txt").write_text(text, encoding="utf-8")
    output = tmp_path / "c"
    assert clean_here(tmp_path / "2019", tmp_path / "2020", "--output", output)[0] == 0
    sources = [str(tmp_path / year / "a.txt") for year in ("2019", "2020")]
    rows = pq.read_table(output / "part-00000.parquet").to_pylist()
    assert [row["source"] for row in rows] == sources
    assert list(json.loads((output / "_report.json").read_text())["sources"]) == sources


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["{in}", "--output", "{in}"], "expected a new directory for --output, found"),
        (["{in}/no.txt", "--output", "{c}"], "no such file or folder"),
        (["--output", "{c}"], "expected files or folders to clean, found none"),
        (["{in}", "{in}/a.txt", "--output", "{c}"], "expected different inputs, found"),
        (["{in}", "--output", "{c}", "--workers", "0"], "--workers of at least 1, found 0"),
        (["{in}", "--output", "{c}", "--rejects", "{in}/a.txt"], "expected a new file or folder"),
        (["{in}", "--output", "{c}", "--rejects", "{c}/r.csv"], "expected --rejects outside"),
        (["{in}", "--output", "{c}", "--rejects", "{c}.xlsx"], "expected a .jsonl or .csv file"),
        (["{in}", "--output", "{c}", "--near-threshold", "80"], "threshold from 0.7 to 1"),
        (["{in}", "--output", "{c}", "--min-characters", "0"], "min_characters must be at least 1"),
        (["{in}", "--output", "{c}", "--text-column", "x"], "b.csv: no text column"),
        (["{in}", "--output", "{in}/a.txt/c"], "cannot use"),
        ([f"{{in}}/{'가' * 120}", "--output", "{c}"], "File name too long"),
        (["{in}", "--output", "{c}/clean", "--rejects", "{c}"], "--output outside --rejects"),
    ],
)
def test_misuse_is_one_line_and_leaves_nothing(
    clean_here: Clean, tmp_path: Path, flags: list[str], message: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("이 텍스트는 남아 있습니다", encoding="utf-8")
    (folder / "b.csv").write_text("text\n이것도 남아 있는 글이다\n", encoding="utf-8")
    places = {"in": folder, "c": tmp_path / "deep" / "c"}
    code, _, err = clean_here(*(flag.format(**places) for flag in flags))
    assert code == 2
    assert message in err and err.count("\n") == 1 and err.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.csv"]


def test_two_runs_into_one_output_do_not_meet(clean_here: Clean, tmp_path: Path) -> None:
    (tmp_path / ".c.work").mkdir()
    with FileLock(tmp_path / ".c.work" / ".lock"):
        code, _, err = clean_here(COMMENTS, "--output", tmp_path / "c")
    assert code == 2 and "found one at work on" in err


@pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="mounting a small disk needs root"
)
@pytest.mark.parametrize("what", ["output", "rejects"])
def test_full_disk_is_one_line_and_nothing_half_written(
    large: Path, expected: dict[str, bytes], tmp_path: Path, what: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = "2m" if what == "output" else "1m"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        output = disk / "c" if what == "output" else tmp_path / "c"
        flags = [large, "--output", output, "--workers", 2]
        if what == "rejects":
            flags += ["--rejects", disk / "rejects.jsonl"]
        done = run(*flags)
        assert done.returncode == 2
        assert done.stderr.startswith("error: the disk is full"), done.stderr
        assert done.stderr.count("\n") == 1
        assert not output.exists() and not list(tmp_path.rglob(".tmp-*"))
        assert not list(disk.glob("*rejects*"))
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        again = run(*flags)
        assert again.returncode == 0 and "going on from" in again.stdout, again.stderr
        assert contents(output) == expected
        assert not list(output.parent.glob(".c*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="mounting a small disk needs root"
)
def test_a_read_only_disk_is_one_line(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        done = run(COMMENTS, "--output", disk / "c")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1 and "Read-only file system" in done.stderr
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_while_near_duplicates_are_sought_is_one_line(
    clean_here: Clean, comments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name.startswith("band-"):
            raise OSError(28, "No space left on device")
        return write(self, data)

    source = tmp_path / "a.txt"
    source.write_text("\n".join(comments[:99]), encoding="utf-8")
    flags = [source, "--output", tmp_path / "c", "--near-duplicates"]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        code, _, error = clean_here(*flags)
    assert code == 2 and error.startswith("error: the disk is full") and error.count("\n") == 1
    assert clean_here(*flags)[0] == 0
