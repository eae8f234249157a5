"""The pages of the site: the documents, what is generated put in, and links that lead somewhere.

A hook of mkdocs (`mkdocs.yml`), which reads the pages that this writes. A page says where something
is generated: `<!-- generate: commands -->`, `recipes ROOM`, `settings ROOM` or `python`. Documents
beside docs/ (the log, the cards of models and corpora) become pages, too. Links to anything else of
the repository become plain words, for the site has no such file.
"""

import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import malmoi
from malmoi.commands.registry import COMMANDS, TOKENIZER_COMMANDS

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).parents[1]
# Documents and pictures beside docs/ that are part of the site.
BESIDE = (
    *("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "lab/README.md", "lab/log/*.md"),
    *("checkpoints/*/README.md", "corpora/*/README.md", "lab/benchmarks/results/*.png"),
)
_MARK = re.compile(r"^<!-- generate: (\w+) ?(\w*) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<!`)(!?)\[([^\]]*)\]\(([^()\s]+)\)")
_HELP_COLUMNS = "98"


def on_config(config: "MkDocsConfig") -> None:
    """Write the pages before mkdocs looks for them."""
    write_pages(Path(config.docs_dir))


def write_pages(folder: Path) -> None:
    """Write every page and picture of the site into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in documents():
        to = folder / place_of(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            written = _MARK.sub(
                lambda mark: _WRITERS[mark[1]](mark[2]), path.read_text(encoding="utf-8")
            )
            to.write_text(lead_links(written, path), encoding="utf-8")
        else:
            shutil.copyfile(path, to)


def documents() -> list[Path]:
    """The documents and pictures that the site has."""
    inside = [path for ending in ("md", "png") for path in (ROOT / "docs").rglob(f"*.{ending}")]
    return sorted([*inside, *(path for pattern in BESIDE for path in ROOT.glob(pattern))])


def place_of(path: Path) -> str:
    """Where the site has a document."""
    docs = ROOT / "docs"
    return path.relative_to(docs if path.is_relative_to(docs) else ROOT).as_posix()


def lead_links(markdown: str, source: Path) -> str:
    """The text of a document, with its links as the site has them."""
    known = set(documents())

    def led(link: re.Match[str]) -> str:
        picture, words, address = link.groups()
        place, _, anchor = address.partition("#")
        if re.match(r"[a-z]+:", address) or not place:
            return link[0]
        target = Path(os.path.normpath(source.parent / place))
        if target not in known:
            return words
        there = posixpath.relpath(place_of(target), posixpath.dirname(place_of(source)) or ".")
        return f"{picture}[{words}]({there}{'#' + anchor if anchor else ''})"

    return _LINK.sub(led, markdown)


def commands(_: str = "") -> str:
    """Every command of malmoi, with what `--help` says."""
    named = [(name, about) for name, (_, about) in COMMANDS.items() if name != "tokenizer"]
    named += [(f"tokenizer {name}", about) for name, (_, about) in TOKENIZER_COMMANDS.items()]
    with ThreadPoolExecutor(2) as pool:
        helps = list(pool.map(_help, [name for name, _ in named]))
    parts = [
        f"### malmoi {name}\n\n{about[0].upper()}{about[1:]}.\n\n```text\n{said}\n```"
        for (name, about), said in zip(named, helps, strict=True)
    ]
    return "\n\n".join(parts)


def _help(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "malmoi", *command.split(), "--help"],
        env=os.environ | {"COLUMNS": _HELP_COLUMNS, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def recipes(room: str) -> str:
    """A table of the recipes of `pretrain` or `finetune`, by the comments they begin with."""
    rows = ["| recipe | what it is |", "| --- | --- |"]
    for path in sorted((ROOT / "malmoi" / room / "recipes").glob("*.toml")):
        rows.append(f"| `{path.stem}` | {_first_comment(path)} |")
    return "\n".join(rows)


def _first_comment(path: Path) -> str:
    """The first paragraph of the comment at the top of a recipe."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:])
    return " ".join(lines).replace("|", "\\|")


def settings(room: str) -> str:
    """`default.toml` of `pretrain` or `finetune`: every key with its default and its source."""
    path = ROOT / "malmoi" / room / "recipes" / "default.toml"
    return f"```toml\n{path.read_text(encoding='utf-8').strip()}\n```"


def python(_: str = "") -> str:
    """The public names, for mkdocstrings to describe."""
    return "\n\n".join(f"::: malmoi.{name}" for name in malmoi.__all__)


_WRITERS: dict[str, Callable[[str], str]] = {
    "commands": commands,
    "recipes": recipes,
    "settings": settings,
    "python": python,
}
