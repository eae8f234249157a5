"""The sentences of the code, and `make messages`: the catalogue gets those that are new in it.

What is new stands in malmoi/messages/ko.po with an empty line to fill; what nobody says any more
goes. tests/test_messages.py is red until both agree.
"""

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

import jinja2
from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po

from tests.test_house import PRODUCT, imports, name_of

ROOT = Path(__file__).parents[1]
KOREAN = ROOT / "malmoi/messages/ko.po"
# What takes a sentence first, beside the errors: other rooms have functions called say.
CALLS = {"Phrase": ("malmoi",), "say": ("malmoi/app", "malmoi/analysis")}
# The pages of these have sentences, too.
TEMPLATES = "malmoi/analysis/templates"
ERRORS = {
    "AccessError",
    "EmptySourceError",
    "InputError",
    "LostWorkerError",
    "OutdatedOrderError",
    "UndecodedError",
    "UnexpectedError",
    "UnfinishedError",
}
# Modules of training whose errors are about what the app never gives it: flags, baselines, arrays.
SAID_TO_COMMANDS = {
    f"malmoi.finetune.{part}" for part in ("baselines", "evaluation", "run_config", "settings")
}


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A place in the code where a sentence stands; `is_said`: on a page, not by an error."""

    path: str
    line: int
    text: str
    facts: Set[str]
    is_said: bool


def sentences() -> Iterator[Sentence]:
    """All that can reach the app; not those of variables, which are marked where they are set."""
    for path in modules_of_the_app():
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            called, said = node.func.id, node.args[0]
            room = ("malmoi",) if called in ERRORS else CALLS.get(called, ("nowhere",))
            if name.startswith(room) and isinstance(said, ast.Constant):
                yield Sentence(
                    path=name,
                    line=node.lineno,
                    text=said.value,
                    facts={str(keyword.arg) for keyword in node.keywords} - {"place"},
                    is_said=called == "say",
                )
    yield from sentences_of_templates()


def sentences_of_templates() -> Iterator[Sentence]:
    """What templates say."""
    for path in sorted((ROOT / TEMPLATES).glob("*.html")):
        parsed = jinja2.Environment().parse(path.read_text(encoding="utf-8"))
        for call in parsed.find_all(jinja2.nodes.Call):
            if isinstance(call.node, jinja2.nodes.Name) and call.node.name == "say":
                said = call.args[0]
                assert isinstance(said, jinja2.nodes.Const)
                yield Sentence(
                    path=path.relative_to(ROOT).as_posix(),
                    line=call.lineno,
                    text=said.value,
                    facts={one.key for one in call.kwargs},
                    is_said=True,
                )


def modules_of_the_app() -> list[Path]:
    """Those of the app and of the training that it starts, and all that any of them imports."""
    known = {
        name_of(path): path
        for path in PRODUCT
        if not name_of(path).startswith(tuple(SAID_TO_COMMANDS))
    }
    found: set[str] = set()
    todo = {name for name in known if name.startswith("malmoi.app")}
    todo |= {"malmoi.finetune.kfold", "malmoi.commands.report"}
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= (imports(known[name]) & known.keys()) - found
    return sorted(known[name] for name in found)


def catalogue(path: Path = KOREAN) -> Catalog:
    """What is in a file of sentences."""
    with path.open("rb") as file:
        return read_po(file, locale=path.stem)


def main() -> None:
    """Write the catalogue anew."""
    known, wanted = catalogue(), Catalog(locale=KOREAN.stem)
    for sentence in sorted(sentences(), key=lambda one: (one.path, one.line)):
        before = known.get(sentence.text)
        wanted.add(sentence.text, before.string if before else "", [(sentence.path, None)])
    with KOREAN.open("wb") as file:
        write_po(file, wanted, omit_header=True, width=100)


if __name__ == "__main__":
    main()
