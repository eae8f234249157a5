"""The sentences of the code, and `make messages`: the catalogue gets those that are new in it.

What is new stands in malmoi/messages/ko.po with an empty line to fill; what nobody says any more
goes. tests/test_messages.py is red until both agree.
"""

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[1]
KOREAN = ROOT / "malmoi/messages/ko.po"
# What takes a sentence first, and where: other rooms have functions of that name.
CALLS = {"Phrase": "malmoi", "say": "malmoi/app"}


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A place in the code where a sentence stands."""

    path: str
    line: int
    text: str
    facts: Set[str]


def sentences() -> Iterator[Sentence]:
    """All that stand in the code; not those of variables, which are marked where they are set."""
    for path in sorted((ROOT / "malmoi").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            if name.startswith(CALLS.get(node.func.id, "-")) and (
                isinstance(said := node.args[0], ast.Constant | ast.JoinedStr)
            ):
                assert isinstance(said, ast.Constant), f"{name}:{node.lineno}: an f-string"
                yield Sentence(
                    path=name,
                    line=node.lineno,
                    text=said.value,
                    facts={str(keyword.arg) for keyword in node.keywords},
                )


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
