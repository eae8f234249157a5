"""Every command answers at once, in one line where something is wrong, with the right exit code."""

import importlib
import json
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

from malmoi.__main__ import main
from malmoi.command_line import run_command, run_one_of
from malmoi.commands.registry import COMMANDS as COMMANDS_OF_MALMOI
from malmoi.commands.registry import TOKENIZER_COMMANDS
from malmoi.errors import InputError
from malmoi.finetune.settings import KfoldSettings
from malmoi.flags import flag_names, parse_flags
from malmoi.pretrain.config.settings import PretrainSettings

ROOT = Path(__file__).parents[2]
COMMANDS = (
    ["pretrain/run.py"],
    ["finetune/kfold.py"],
    *(["-m", "malmoi", name] for name in ("list", "fetch", "clean", "stats", "sample", "cache")),
    *(["-m", "malmoi", name] for name in ("predict", "serve")),
    *(["-m", "malmoi", "tokenizer", name] for name in ("train", "evaluate")),
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
    commands = {**COMMANDS_OF_MALMOI, **TOKENIZER_COMMANDS}
    main = importlib.import_module(commands[command[-1]][0]).main
    return next(iter(get_type_hints(main).values()))


# Runs commands one after another in one process. Of each: the exit code, what it said, and which of
# the slow modules are loaded after it.
RUNNER = """
import contextlib, io, json, runpy, sys
commands, slow = json.load(sys.stdin)
answers = []
for command in commands:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            if command[0] == "-m":
                sys.argv = command[1:]
                runpy.run_module(command[1], run_name="__main__", alter_sys=True)
            else:
                sys.argv = command
                runpy.run_path(command[0], run_name="__main__")
        except SystemExit as end:
            code = end.code
    answers.append([code, said.getvalue(), [name for name in slow if name in sys.modules]])
print(json.dumps(answers))
"""


def answers(*commands: list[str]) -> list[tuple[int, str]]:
    """Exit code and words of each command, none of which may load what takes long."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps([commands, SLOW]),
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = []
    for command, (code, said, loaded) in zip(commands, json.loads(done.stdout), strict=True):
        assert not loaded, command
        found.append((code, said))
    return found


def test_help_shows_every_flag_as_it_is_typed() -> None:
    found = answers(*([*command, "--help"] for command in COMMANDS))
    for command, (code, said) in zip(COMMANDS, found, strict=True):
        shown = re.findall(r"^[│ ] +(?:-h, )?(--[\w-]+)", said, re.MULTILINE)
        assert code == 0 and set(shown) == flag_names(settings_of(command)), command
        assert len(shown) == len(set(shown)), command


def test_a_mistake_is_answered_before_anything_long_is_imported() -> None:
    table = [
        ("pretrain/run.py --corpus nowhere", "nowhere"),
        (
            "pretrain/run.py --corpus corpora/comments --init ./nowhere",
            "found ./nowhere and no nowhere/discriminator/config.json",
        ),
        ("pretrain/run.py --corpus corpora/comments --epochs 0", "--epochs of at least 1"),
        ("pretrain/run.py --corpsu corpora/comments", "--corpsu; did you mean --corpus?"),
        ("finetune/kfold.py --labels a,b --data nowhere", "nowhere"),
        ("finetune/kfold.py --labels 긍정,부정", "긍정"),
        ("finetune/kfold.py --labels 긍정,부정,중립 --model runs/no/where", "runs/no/where"),
        ("finetune/kfold.py --flods 3", "--folds"),
        ("finetune/kfold.py --seed -1", "--seed from 0"),
        ("finetune/kfold.py --subword-dropout 0.1", "--set training.subword_dropout=0.1"),
        ("finetune/kfold.py --llm.model=x", "--set llm.model=x"),
        ("-m malmoi predict nowhere --model x --output y.csv", "nowhere"),
        ("-m malmoi predict corpora --model no/where/x --output y.csv", "no/where/x"),
        ("-m malmoi serve no/where/x", "no/where/x"),
        ("-m malmoi serve malmoi-small --max-texts 0", "--max-texts above 0"),
        ("-m malmoi tokenizer train --corpus nowhere --output x", "nowhere"),
        ("-m malmoi tokenizer evaluate x --corpus nowhere", "nowhere"),
    ]
    found = answers(*(command.split() for command, _ in table))
    for (command, fact), (code, said) in zip(table, found, strict=True):
        assert code == 2 and fact in said, (command, said)
        assert said.startswith("error: ") and said.count("\n") == 1, (command, said)


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


def test_a_mistyped_flag_has_its_hint_whatever_is_missing() -> None:
    for command, flags, found, meant in (
        ("-m malmoi predict", "reviews.csv --modle x", "--modle", "--model"),
        ("-m malmoi predict", "--txt_column=x", "--txt_column=x", "--text-column"),
        ("-m malmoi fetch", "--frmo x", "--frmo", "--from"),
        ("-m malmoi clean", "--no-fix-mojibak", "--no-fix-mojibak", "--no-fix-mojibake"),
        ("-m malmoi tokenizer train", "--ouptut x", "--ouptut", "--output"),
    ):
        with pytest.raises(InputError, match=rf"found {found}; did you mean {meant}\?"):
            settings = settings_of(command.split())
            parse_flags(settings, program="it", about="", arguments=flags.split())


def test_what_is_like_no_flag_or_behind_the_dashes_is_no_mistyped_one() -> None:
    explain = settings_of(["-m", "malmoi", "explain"])
    flags = ["--model", "x", "--", "--modle"]
    assert parse_flags(explain, program="it", about="", arguments=flags).text == "--modle"
    with pytest.raises(InputError, match="expected TEXT, found none"):
        parse_flags(explain, program="it", about="", arguments=["--고구마"])


def test_flags_that_cannot_be_read_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for command, *facts in (
        ("-m malmoi serve x --port 80a", "whole number", "--port", "80a"),
        ("-m malmoi serve x --port=80a", "whole number", "--port", "80a"),
        ("-m malmoi serve x --body-seconds=", "--body-seconds, found "),
        ("-m malmoi serve x --threads 2.5", "whole number", "--threads", "2.5"),
        ("-m malmoi serve x --engine foo", "--engine", "auto, fastest,", "foo"),
        ("-m malmoi serve", "--model", "none"),
        ("-m malmoi predict x --output y", "--model", "none"),
        ("-m malmoi doctor --json", "--json"),
        ("-m malmoi predict --고구마", "--model", "--output", "--고구마"),
        ("-m malmoi push a b c d", "c d"),
        ("-m malmoi fetch --from", "--from", "none"),
        ("-m malmoi labels fly", "ACTION", "list, export, import, backup", "fly"),
        ("pretrain/run.py", "--corpus", "none"),
        ("pretrain/run.py --corpus x --preset huge", "--preset", "base, small, tiny", "huge"),
        ("pretrain/run.py --corpus x --epochs many", "whole number", "--epochs", "many"),
        ("finetune/kfold.py --json", "--json"),
        ("finetune/kfold.py --folds", "--folds", "none"),
        ("finetune/kfold.py --batch_size x", "whole number", "--batch-size", "x"),
    ):
        words = command.split()
        if words[0] == "-m":
            assert main(words[2:]) == 2, command
            program = f"malmoi {words[2]}"
        else:
            settings, program = settings_of(words), words[0]
            done = run_command(settings, print, "", arguments=words[1:], program=program)
            assert done == 2, command
        out, said = capsys.readouterr()
        assert all(fact in said for fact in facts), (command, said)
        assert said.endswith(f"; see {program} --help\n"), (command, said)
        assert not out and said.startswith("error: ") and said.count("\n") == 1, (command, said)


def test_a_model_is_named_by_its_flag_or_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("serve --port=0", "export --output new", "push --private"):
        name, *flags = command.split()
        rest = ["kim/memos"] if name == "push" else []
        said = []
        for given in (["--model", "no/such"], ["no/such"]):
            assert main([name, *flags, *given, *rest]) == 2
            said.append(capsys.readouterr().err)
        assert said[0] == said[1] and said[0].count("\n") == 1, command


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


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (
        MemoryError("Unable to allocate 8.00 GiB for an array"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
    ):
        assert ended_by(error) == 2, error
        said = capsys.readouterr().err
        assert said.startswith("error: not enough memory") and said.count("\n") == 1, error


def test_other_faults_keep_their_traceback() -> None:
    faults = (Broken("x"), RuntimeError("x"), ImportError("no module y"), OSError(5, "I/O"))
    # A pipe to a process of ours, and not to a reader of what is printed.
    for error in (*faults, BrokenPipeError(32, "Broken pipe")):
        with pytest.raises(type(error)):
            ended_by(error)


def test_what_the_shell_does_to_a_command() -> None:
    """A limit in which torch cannot even be loaded, a closed output, a reader who left."""
    pretrain, kfold = "pretrain/run.py --corpus corpora/comments", "finetune/kfold.py"
    for line, codes, fact in (
        (f"ulimit -v 400000; exec {sys.executable} {pretrain}", {2}, "error: not enough memory"),
        (
            f"ulimit -v 400000; exec {sys.executable} {kfold} --labels 긍정,부정,중립",
            {2},
            "error: not enough memory",
        ),
        (f"{sys.executable} {pretrain} >&-", {2}, "standard output"),
        (f"set -o pipefail; {sys.executable} pretrain/run.py --help | head -n 1", {0, 141}, ""),
    ):
        done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode in codes, (line, done.stderr)
        assert fact in done.stderr and "Traceback" not in done.stderr, line


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
