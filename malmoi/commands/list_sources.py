"""`malmoi list`: the public sources, and which of them are here."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from malmoi.command_line import is_terminal
from malmoi.text.public.catalog import sources
from malmoi.text.public.description import PublicSource
from malmoi.text.public.fetched import read_fetched
from malmoi.text.public.hub import KCBERT_CORPUS, PREFIX

ABOUT = "Show the public sources: size, texts, licence, what they are, and whether they are here."

_COLUMNS = ("name", "size", "texts", "licence", "what it is", "fetched")


@dataclass(kw_only=True)
class ListSettings:
    """Where fetched sources are looked for."""

    data: Path = Path("data")
    """Folder under which `fetch` wrote them."""


def main(settings: ListSettings) -> None:
    rows = [_row(source, settings.data) for source in sources().values()]
    rows.append(_hub_row(settings.data))
    if is_terminal():
        table = Table(*(Column(name, overflow="fold") for name in _COLUMNS))
        for row in rows:
            table.add_row(*row)
        Console().print(table)
    else:
        for row in (_COLUMNS, *rows):
            print("\t".join(row))
    print("Any data set of the Hugging Face Hub: malmoi fetch hub:OWNER/NAME")


def _row(source: PublicSource, data: Path) -> tuple[str, ...]:
    texts = f"{source.texts:,}" if source.texts is not None else "?"
    size = _megabytes(source.size)
    here = _here(data / source.name, len(source.files))
    return source.name, size, texts, source.licence, source.about, here


def _hub_row(data: Path) -> tuple[str, ...]:
    hub = KCBERT_CORPUS
    folder = data / hub.name.removeprefix(PREFIX).replace("/", "--")
    here = _here(folder, None)
    return hub.name, _megabytes(hub.size), f"{hub.texts:,}", hub.licence, hub.about, here


def _megabytes(size: int | None) -> str:
    return f"{size / 1e6:,.1f} MB" if size is not None else "?"


def _here(folder: Path, files: int | None) -> str:
    """Which files are here with the size that was recorded; hashes are the fetch command's work."""
    fetched = read_fetched(folder)
    if fetched is None:
        return "no"
    there = 0
    for name, file in fetched.files.items():
        path = folder / name
        there += path.is_file() and path.stat().st_size == file.size
    expected = files if files is not None else len(fetched.files)
    return "yes" if there == expected else f"{there} of {expected} files"
