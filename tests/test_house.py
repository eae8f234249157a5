"""The house: floors below rooms, names that do not collide, code of a readable size."""

import ast
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Rooms of the package above the library, and which of them each may import beside it. The app
# starts training as a process.
ROOMS = {
    "tokenizer": set(),
    "pretrain": {"tokenizer"},
    "finetune": set(),
    "app": set(),
}
# Floors of the library, the lowest first; what is not named here is the ground floor.
FLOORS = ("", "text", "labels", "inference", "analysis", "publishing", "serving", "commands")
PRODUCT = sorted((ROOT / "malmoi").rglob("*.py"))
# The commands of a clone, a few lines each.
SCRIPTS = [path for room in ROOMS for path in (ROOT / room).glob("*.py")]
MODULES = [*PRODUCT, *SCRIPTS, *(ROOT / "lab").rglob("*.py")]
TAKEN_NAMES = (sys.stdlib_module_names | set(packages_distributions())) - {"malmoi"}
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_FLAGS = 610, 70, 24


def name_of(path: Path) -> str:
    """`malmoi.text.record` for malmoi/text/record.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, *, at_once: bool = False) -> set[str]:
    """Dotted names that a file imports; `at_once`: only those that its own import needs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def room_of(name: str) -> str:
    """`pretrain` for malmoi.pretrain.run."""
    return name.split(".")[1] if name.startswith("malmoi.") else ""


def test_a_room_imports_only_from_below() -> None:
    wrong = {}
    for path in PRODUCT:
        if path == ROOT / "malmoi" / "__init__.py":
            continue  # the front door names every room, and imports when it is asked
        room = room_of(name_of(path))
        found = imports(path)
        others = {room_of(name) for name in found} & ROOMS.keys()
        above = others - {room, *ROOMS.get(room, set())}
        above |= {name for name in found if name.split(".")[0] in ("lab", "tests")}
        if above:
            wrong[name_of(path)] = above
    assert not wrong


def test_a_floor_of_the_library_imports_nothing_from_above() -> None:
    def floor(name: str) -> int:
        part = room_of(name)
        return FLOORS.index(part) if part in FLOORS else 0

    wrong = {}
    for path in PRODUCT:
        if path.name in ("__main__.py", "__init__.py") and path.parent.name == "malmoi":
            continue  # the front door names every floor, and imports when it is asked
        if room_of(name_of(path)) in ROOMS:
            continue
        own = [name for name in imports(path) if name.startswith("malmoi.")]
        if above := {name for name in own if floor(name) > floor(name_of(path))}:
            wrong[name_of(path)] = above
    assert not wrong


def test_no_two_modules_need_each_other() -> None:
    known = {name_of(path): path for path in MODULES}
    needs = {
        name: imports(path, at_once=True) & known.keys() - {name} for name, path in known.items()
    }
    done: set[str] = set()

    def follow(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way, name))
        if name not in done:
            for other in needs[name]:
                follow(other, (*way, name))
            done.add(name)

    for name in needs:
        follow(name, ())


def test_no_module_has_the_name_of_a_dependency() -> None:
    """A script's own folder is first on sys.path: such a name breaks imports far away."""
    # malmoi.sklearn is where its users look for it; nothing in that folder is run as a script.
    others = [path for path in PRODUCT if name_of(path) != "malmoi.sklearn"]
    stems = {path.stem: name_of(path) for path in others if path.stem != "__init__"}
    assert not [name for stem, name in stems.items() if stem in TAKEN_NAMES]


def test_no_module_patches_the_import_path() -> None:
    patching = "sys.path" + "."
    assert not [p for p in MODULES if patching in p.read_text(encoding="utf-8")]


def test_what_the_package_reads_is_installed_with_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    globs = project["tool"]["setuptools"]["package-data"]["malmoi"]
    package = ROOT / "malmoi"
    read = [p for p in package.rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")]
    installed = {path for pattern in globs for path in package.glob(pattern)}
    assert {p.relative_to(package) for p in read if p not in installed} == set()
    assert package / "py.typed" in installed


def test_data_and_models_lie_without_code() -> None:
    assert not [*(ROOT / "corpora").rglob("*.py"), *(ROOT / "checkpoints").rglob("*.py")]


def test_files_and_functions_are_of_a_readable_size() -> None:
    tests = sorted((ROOT / "tests").rglob("*.py"))
    long = [p for p in [*MODULES, *tests] if p.read_text("utf-8").count("\n") > MOST_LINES]
    assert not long
    functions = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MOST_LINES_OF_A_FUNCTION
    ]
    assert not functions


def test_no_two_public_classes_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_what_users_run_names_no_place_of_the_developers() -> None:
    place = "../" + "shared"
    texts = [*MODULES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "Makefile"]
    assert not [path for path in texts if place in path.read_text(encoding="utf-8")]


def test_known_faults_can_still_be_put_in() -> None:
    """Else `make faults` says nothing of them; it takes too long to be part of this."""
    faults = tomllib.loads((ROOT / "tests" / "faults.toml").read_text(encoding="utf-8"))["fault"]
    places = {fault["name"]: (ROOT / fault["file"]).read_text(encoding="utf-8") for fault in faults}
    stale = [one["name"] for one in faults if places[one["name"]].count(one["old"]) != 1]
    assert faults and stale == []


def test_every_sample_corpus_has_a_data_card() -> None:
    for folder in ("comments", "reviews", "memos"):
        card = (ROOT / "corpora" / folder / "README.md").read_text(encoding="utf-8")
        assert "CC0" in card
