"""The house: rooms in a row, names that do not collide, files of a readable size."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("malmoi", "tokenizer", "pretrain", "finetune", "app")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).glob("**/*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_from_rooms_to_its_left(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    to_the_right = set(ROOMS[ROOMS.index(room) + 1 :])
    assert not imported(path) & to_the_right
    assert not imported(path) & {"tests", "benchmarks"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_has_the_name_of_a_dependency(path: Path) -> None:
    """A script's own folder is first on sys.path: such a name breaks imports far away."""
    taken = (sys.stdlib_module_names | set(packages_distributions())) - set(ROOMS)
    assert path.stem == "__init__" or path.stem not in taken


def test_no_module_patches_the_import_path() -> None:
    patching = "sys.path" + "."
    assert not [p for p in MODULES if patching in p.read_text(encoding="utf-8")]


def test_files_stay_under_600_lines() -> None:
    others = [(ROOT / name).glob("**/*.py") for name in ("tests", "benchmarks", "checkpoints")]
    paths = [*MODULES, *chain.from_iterable(others)]
    long = [p for p in paths if len(p.read_text(encoding="utf-8").split("\n")) > 600]
    assert not long


def test_every_sample_corpus_has_a_data_card() -> None:
    for folder in ("comments", "reviews", "memos"):
        card = (ROOT / "corpora" / folder / "README.md").read_text(encoding="utf-8")
        assert "CC0" in card


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_paths_named_in_the_readme_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    rooms = "malmoi|corpora|tokenizer|pretrain|finetune|app|docs|benchmarks|checkpoints|tests"
    named = set(re.findall(rf"(?<![\w/])(?:{rooms})/[-\w/.]*\w", text))
    assert len(named) >= 5
    assert not [path for path in named if not (ROOT / path).exists()]
