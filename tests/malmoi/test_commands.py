"""Every command answers at once, in one line where something is wrong, with the right exit code."""

import importlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import pytest

from finetune.settings import KfoldSettings
from malmoi.__main__ import main
from malmoi.command_line import run_command, run_one_of
from malmoi.errors import InputError
from malmoi.flags import flag_names, parse_flags
from pretrain.config.settings import PretrainSettings

ROOT = Path(__file__).parents[2]
COMMANDS = (
    ["pretrain/run.py"],
    ["finetune/kfold.py"],
    *(["-m", "malmoi", name] for name in ("list", "fetch", "clean", "stats", "sample", "cache")),
    *(["-m", "malmoi", name] for name in ("predict", "serve")),
    *(["-m", "tokenizer", name] for name in ("train", "evaluate")),
)
# Each takes a third of a second to many to import.
SLOW = (
    *("torch", "transformers", "pandas", "sklearn", "scipy", "matplotlib", "kiwipiepy"),
    *("fastapi", "onnxruntime"),
)


def settings_of(command: list[str]) -> Any:
    """The class of a command's flags."""
    if command[0] != "-m":
        return PretrainSettings if command[0].startswith("pretrain") else KfoldSettings
    commands = importlib.import_module(f"{command[1]}.__main__").COMMANDS
    main = importlib.import_module(commands[command[2]][0]).main
    return next(iter(get_type_hints(main).values()))


def run(*command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, **more
    )


def imported(command: list[str]) -> tuple[int, str, set[str]]:
    """Exit code, what was printed, and the top-level modules that were imported meanwhile."""
    done = run("-X", "importtime", *command)
    lines = done.stderr.splitlines()
    names = {line.rsplit("|", 1)[1].strip() for line in lines if line.startswith("import time:")}
    said = "\n".join(line for line in lines if not line.startswith("import time:"))
    return done.returncode, done.stdout + said, names


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_imports_nothing_that_takes_long(command: list[str]) -> None:
    code, said, names = imported([*command, "--help"])
    assert code == 0 and "--help" in said
    assert not names & set(SLOW)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["pretrain/run.py", "--corpus", "nowhere"], "error: no such file or folder: nowhere"),
        (
            ["pretrain/run.py", "--corpus", "corpora/comments", "--init", "./nowhere"],
            "found ./nowhere and no nowhere/discriminator/config.json",
        ),
        (["pretrain/run.py", "--corpus", "corpora/comments", "--epochs", "0"], "--epochs of 1"),
        (
            ["pretrain/run.py", "--corpsu", "corpora/comments"],
            "error: expected a flag of this command, found --corpsu; did you mean --corpus?",
        ),
        (["finetune/kfold.py", "--labels", "a,b", "--data", "nowhere"], "folder: nowhere"),
        (["finetune/kfold.py", "--labels", "긍정,부정"], "no sample of the project has the labels"),
        (
            ["finetune/kfold.py", "--labels", "긍정,부정,중립", "--model", "runs/no/where"],
            "runs/no/where",
        ),
        (["finetune/kfold.py", "--flods", "3"], "--folds"),
        (["finetune/kfold.py", "--seed", "-1"], "--seed from 0"),
        (
            ["finetune/kfold.py", "--subword-dropout", "0.1"],
            "error: expected --set training.subword_dropout=0.1, found --subword-dropout 0.1",
        ),
        (["finetune/kfold.py", "--llm.model=x"], "error: expected --set llm.model=x, found"),
        (
            ["-m", "malmoi", "predict", "nowhere", "--model", "x", "--output", "y.csv"],
            "folder: nowhere",
        ),
        (
            ["-m", "malmoi", "predict", "corpora", "--model", "no/where/x", "--output", "y.csv"],
            "no model directory no/where/x",
        ),
        (["-m", "malmoi", "serve", "no/where/x"], "no model directory no/where/x"),
        (["-m", "malmoi", "serve", "malmoi-small", "--max-texts", "0"], "--max-texts above 0"),
        (["-m", "tokenizer", "train", "--corpus", "nowhere", "--output", "x"], "folder: nowhere"),
        (["-m", "tokenizer", "evaluate", "x", "--corpus", "nowhere"], "folder: nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_answered_before_anything_long_is_imported(
    flags: list[str], line: str
) -> None:
    code, said, names = imported(flags)
    assert code == 2 and line in said and "Traceback" not in said
    assert not names & set(SLOW)


@dataclass(kw_only=True)
class Base:
    HELP_GROUPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "first": ("number", "path"),
        "second": ("word",),
    }
    path: Path
    """Where the
    thing is."""
    word: str | None = None
    """A word."""


@dataclass(kw_only=True)
class Flags(Base):
    number: int = 3
    """How many."""
    rare: bool = False
    """For experts."""


def help_of(capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        parse_flags(Flags, program="it", about="About it.", arguments=["--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_help_is_in_groups_and_what_must_be_given_comes_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = help_of(capsys).split("About it.")[1]
    found = re.findall(r"(first|second|expert) options|(--path|--word|--number|--rare)", printed)
    order = [group or flag for group, flag in found]
    assert order == ["first", "--path", "--number", "second", "--word", "expert", "--rare"]


def test_help_is_wrapped_by_the_terminal_and_not_by_the_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "Where the thing is." in help_of(capsys)


def test_flags_become_the_settings() -> None:
    parse = ["--path", "x", "--word", "y", "--rare"]
    found = parse_flags(Flags, program="it", about="", arguments=parse)
    assert found == Flags(path=Path("x"), word="y", rare=True)


@pytest.mark.parametrize("settings", [PretrainSettings, KfoldSettings])
def test_every_flag_is_shown_once(settings: type, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_flags(settings, program="it", about="", arguments=["--help"])
    printed = capsys.readouterr().out
    flags = re.findall(r"^[│ ] {1,2}(--[\w.-]+)", printed, re.MULTILINE)
    assert len(flags) == len(set(flags)) >= 20


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_flags_of_a_command_are_known_as_they_are_typed(command: list[str]) -> None:
    done = run(*command, "--help", env={**os.environ, "COLUMNS": "200"})
    shown = set(re.findall(r"^[│ ] +(?:-h, )?(--[\w-]+)", done.stdout, re.MULTILINE))
    assert shown == flag_names(settings_of(command))


@pytest.mark.parametrize(
    ("command", "flags", "found", "meant"),
    [
        (["-m", "malmoi", "predict"], ["reviews.csv", "--modle", "x"], "--modle", "--model"),
        (["-m", "malmoi", "predict"], ["--txt_column=x"], "--txt_column=x", "--text-column"),
        (["-m", "malmoi", "fetch"], ["--frmo", "x"], "--frmo", "--from"),
        (["-m", "malmoi", "clean"], ["--no-fix-mojibak"], "--no-fix-mojibak", "--no-fix-mojibake"),
        (["-m", "tokenizer", "train"], ["--ouptut", "x"], "--ouptut", "--output"),
    ],
)
def test_a_mistyped_flag_has_its_hint_whatever_is_missing(
    command: list[str], flags: list[str], found: str, meant: str
) -> None:
    with pytest.raises(InputError, match=rf"found {found}; did you mean {meant}\?"):
        parse_flags(settings_of(command), program="it", about="", arguments=flags)


def test_what_is_like_no_flag_or_behind_the_dashes_is_no_mistyped_one() -> None:
    explain = settings_of(["-m", "malmoi", "explain"])
    flags = ["--model", "x", "--", "--modle"]
    assert parse_flags(explain, program="it", about="", arguments=flags).text == "--modle"
    with pytest.raises(InputError, match="expected TEXT, found none"):
        parse_flags(explain, program="it", about="", arguments=["--고구마"])


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("-m malmoi serve x --port 80a", "expected a whole number for --port, found 80a"),
        ("-m malmoi serve x --port=80a", "expected a whole number for --port, found 80a"),
        ("-m malmoi serve x --body-seconds=", "expected a number for --body-seconds, found "),
        ("-m malmoi serve x --threads 2.5", "expected a whole number for --threads, found 2.5"),
        ("-m malmoi serve x --engine foo", "--engine of auto, torch,"),
        ("-m malmoi serve", "expected MODEL, found none"),
        ("-m malmoi predict x --output y", "expected --model, found none"),
        ("-m malmoi doctor --json", "expected a flag of this command, found --json"),
        (
            "-m malmoi predict --고구마",
            "expected --model and --output, found neither, but --고구마",
        ),
        ("-m malmoi push a b c d", "expected nothing more, found c d"),
        ("-m malmoi fetch --from", "expected a value after --from, found none"),
        ("-m malmoi labels fly", "expected ACTION of list, export, import, backup, found fly"),
        ("pretrain/run.py", "expected --corpus, found none"),
        ("pretrain/run.py --corpus x --preset huge", "--preset of base, small, tiny, found huge"),
        ("pretrain/run.py --corpus x --epochs many", "a whole number for --epochs, found many"),
        ("finetune/kfold.py --json", "expected a flag of this command, found --json"),
        ("finetune/kfold.py --folds", "expected a value after --folds, found none"),
        ("finetune/kfold.py --batch_size x", "a whole number for --batch-size, found x"),
    ],
)
def test_flags_that_cannot_be_read_are_one_line(
    command: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.split()
    if words[0] == "-m":
        assert main(words[2:]) == 2
        program = f"malmoi {words[2]}"
    else:
        settings, program = settings_of(words), words[0]
        done = run_command(settings, print, "", arguments=words[1:], program=program)
        assert done == 2
    out, said = capsys.readouterr()
    assert line in said and said.endswith(f"; see {program} --help\n")
    assert not out and said.startswith("error: ") and said.count("\n") == 1


def test_where_tyro_has_no_hook_its_box_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr("tyro._errors.on_parse_error")
    with pytest.raises(SystemExit) as ended:
        main(["serve", "x", "--port", "80a"])
    assert ended.value.code == 2 and "--port" in capsys.readouterr().err


class Broken(Exception):
    """What no command expects."""


def ended_by(error: BaseException) -> int:
    def fail(settings: Flags) -> None:
        raise error

    return run_command(Flags, fail, "", arguments=["--path", "x"])


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8.00 GiB for an array"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_too_little_memory_is_one_line(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_by(error) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: not enough memory") and said.count("\n") == 1


def test_other_faults_keep_their_traceback() -> None:
    faults = (Broken("x"), RuntimeError("x"), ImportError("no module y"), OSError(5, "I/O"))
    # A pipe to a process of ours, and not to a reader of what is printed.
    for error in (*faults, BrokenPipeError(32, "Broken pipe")):
        with pytest.raises(type(error)):
            ended_by(error)


@pytest.mark.parametrize(
    "command",
    ["pretrain/run.py --corpus corpora/comments", "finetune/kfold.py --labels 긍정,부정,중립"],
)
def test_a_limit_on_memory_is_one_line(command: str) -> None:
    """A real limit, in which torch cannot even be loaded."""
    line = f"ulimit -v 400000; exec {sys.executable} {command}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: not enough memory")
    assert "Traceback" not in done.stderr


def test_a_closed_standard_output_is_one_line() -> None:
    line = f"{sys.executable} pretrain/run.py --corpus corpora/comments >&-"
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "standard output" in done.stderr and "Traceback" not in done.stderr


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    line = f"set -o pipefail; {sys.executable} pretrain/run.py --help | head -n 1"
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr and done.returncode in (0, 141)


def test_ctrl_c_while_a_command_is_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("malmoi.command_line.importlib.import_module", interrupted)
    assert run_one_of("it", {"do": ("somewhere", "about")}, ["do"]) == 130
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_a_running_command(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """While it cleans with several workers: they end with it, and nothing is left half-written."""
    with (tmp_path / "slow.txt").open("w", encoding="utf-8") as file:
        for n in range(600_000):
            file.write(f"{n}번째 댓글입니다 ㅋㅋㅋㅋ 재미있네요!! 010-1234-{n % 10_000:04d}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "malmoi", "clean", "slow.txt", "--output", "out", "--workers", "2"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".out*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code and errors == "stopped\n"
    assert not (tmp_path / "out").exists()
