"""Commands in documents can be typed: what they name is there, or an earlier one made it."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from malmoi.__main__ import main
from malmoi.text.public.catalog import find_source

ROOT = Path(__file__).parents[1]
READMES = ("README.md", "README.ko.md")
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]
    + [*(ROOT / "docs" / "reference").glob("*.md")]
)
DOCUMENTS = (*READMES, *PAGES)
# What a reader has, or an earlier page made, and an encoder of the Hub.
_READERS_OWN = re.compile(r"(.*/)?my-.*|PATH-.*|data/.*|runs/.*|beomi/.*")
# Flags that name what a command writes.
_WRITES = ("--output", "--work", "--rejects")
_FILE = re.compile(r".*\.(csv|tsv|txt|xlsx|jsonl|json|parquet|py|gz|zst|db)")


def commands_in(name: str) -> list[list[str]]:
    """The words of every command in the fenced blocks of a document, in their order."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found: list[list[str]] = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if language:
            continue
        for line in block.replace("\\\n", " ").split("\n"):
            for command in line.split("&&"):
                if words := shlex.split(command, comments=True):
                    found.append(words)
    known = ("make", "python", "streamlit", "torchrun", "malmoi")
    return [words for words in found if words[0] in known]


def made_by(words: list[str]) -> list[Path]:
    """Where a command writes, relative to the repository."""
    made = [Path(value) for flag, value in pairwise(words) if flag in _WRITES]
    if words[:2] == ["malmoi", "labels"]:
        made += map(Path, takewhile(lambda word: not word.startswith("-"), words[3:]))
    if words[:2] == ["malmoi", "fetch"]:
        source = find_source(words[2])
        made += [Path("data", source.name)]
        made += [Path("data", source.name, file.name) for file in source.files]
    return made


def paths_in(words: list[str]) -> list[Path]:
    """What a command names that looks like a file or folder, but for what it writes itself."""
    if words[0] == "make":
        return []
    written = made_by(words)
    values = [word for word in words[1:] if not re.search("^-|=|://", word)]
    paths = [Path(word) for word in values if "/" in word or _FILE.fullmatch(word)]
    own = [path for path in paths if _READERS_OWN.fullmatch(str(path))]
    return [path for path in paths if path not in written and path not in own]


@pytest.mark.parametrize("name", READMES)
def test_a_readme_has_the_commands_to_begin_with(name: str) -> None:
    begun = {tuple(words[:2]) for words in commands_in(name)}
    first = {("make", "app"), ("make", "demo"), ("python", "pretrain/run.py")}
    assert first | {("python", "finetune/kfold.py"), ("streamlit", "run")} <= begun


def test_every_path_in_a_command_exists_or_was_made_by_an_earlier_one() -> None:
    missing = []
    for name in DOCUMENTS:
        made: set[Path] = set()
        for words in commands_in(name):
            for path in paths_in(words):
                if path not in made and not (ROOT / path).exists():
                    missing.append(f"{name}: {path} in: {shlex.join(words)}")
            made |= set(made_by(words))
    assert not missing


def without_launcher(words: list[str]) -> list[str]:
    """`python ...` for a script that torchrun starts, and for the console command."""
    if words[0] == "malmoi":
        return ["python", "-m", *words]
    if words[0] != "torchrun":
        return words
    script = next(number for number, word in enumerate(words) if word.endswith(".py"))
    return ["python", *words[script:]]


def command_of(words: list[str]) -> tuple[str, ...]:
    """The words of `python ...` that name the command, without its arguments."""
    if words[1] != "-m":
        return tuple(words[1:2])
    if words[2] != "malmoi":
        return tuple(words[1:3])
    return tuple(words[1:5] if words[3] == "tokenizer" else words[1:4])


@cache
def help_of(command: tuple[str, ...]) -> str:
    scripts = {"pretrain/run.py": ("pretrain",), "finetune/kfold.py": ("kfold",)}
    words = command[2:] if command[:2] == ("-m", "malmoi") else scripts.get(command[0])
    if words is None:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
        done = [sys.executable, *command, "--help"]
        return subprocess.check_output(done, cwd=ROOT, env=environment, text=True)
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
    assert ended.value.code == 0
    return said.getvalue()


def test_every_flag_in_a_command_is_one_of_its_help() -> None:
    unknown = []
    everywhere = [(name, words) for name in DOCUMENTS for words in commands_in(name)]
    for name, words in ((name, without_launcher(words)) for name, words in everywhere):
        if words[0] != "python" or not any(word.startswith("--") for word in words):
            continue
        known = help_of(command_of(words))
        flags = [word for word in words[2:] if word.startswith("--")]
        for flag in flags:
            if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w.-])", known):
                unknown.append(f"{name}: {flag} in: {shlex.join(words)}")
    assert not unknown


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in DOCUMENTS:
        assert {words[1] for words in commands_in(name) if words[0] == "make"} <= targets, name
