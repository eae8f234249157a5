"""Uploads on the disk, where they can be read again in bounded memory.

They lie in a folder of random name below `runs/uploads` under numbers; what a visitor calls a file
is shown and kept with its texts, and never part of a path. They go when nobody holds them any more.
"""

import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import streamlit as st

from malmoi.errors import InputError
from malmoi.labels.stored_text import storable
from malmoi.paths import runs
from malmoi.text.reading.formats import SUPPORTED, is_supported, split_suffixes
from malmoi.text.reading.sources import Source

_DAY = 24 * 3600.0
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Upload(Protocol):
    """What this module needs of Streamlit's `UploadedFile`."""

    name: str
    size: int

    def seek(self, place: int) -> object: ...
    def read(self, size: int = -1) -> bytes: ...


class UploadFolder:
    """A folder that goes with the last who holds it, or with the process."""

    def __init__(self) -> None:
        parent = runs("uploads").absolute()
        parent.mkdir(parents=True, exist_ok=True)
        _sweep(parent)
        self.path = Path(tempfile.mkdtemp(dir=parent))
        self._end = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def take(self, number: int, name: str, file: Upload) -> Source:
        """Write an upload to the disk.

        Raises:
            InputError: it is of no kind that we read, or larger than Streamlit takes here.
        """
        shown = shown_name(name)
        if not is_supported(shown):
            raise InputError(
                "unsupported kind of file; expected {supported}", place=shown, supported=SUPPORTED
            )
        most = st.get_option("server.maxUploadSize")
        if file.size > most << 20:
            raise InputError(
                "expected at most {most} MB, found {size:,}; split it into several files",
                place=shown,
                most=most,
                size=file.size >> 20,
            )
        # The kind of a file is told by its name; these suffixes are of a fixed list.
        path = self.path / f"{number}{''.join(split_suffixes(shown))}"
        file.seek(0)
        with path.open("wb") as stored:
            shutil.copyfileobj(cast(BinaryIO, file), stored, 1 << 20)
        return Source(name=shown, shown=shown, path=path)

    def write(self, name: str, content: bytes) -> Source:
        """The same for what was pasted."""
        path = self.path / f"pasted{''.join(split_suffixes(name))}"
        path.write_bytes(content)
        return Source(name=name, shown=name, path=path)


def shown_name(name: str) -> str:
    """The last part of a file's name, as it can be stored and shown."""
    last = re.split(r"[/\\]", storable(name))[-1]
    return _CONTROL.sub(" ", last).strip() or "file"


def names_apart(sources: Iterable[Source]) -> list[Source]:
    """Sources of different names: a number is put before the ending of one that comes again."""
    taken: set[str] = set()
    apart = []
    for source in sources:
        ending = "".join(split_suffixes(source.name))
        stem = source.name[: len(source.name) - len(ending)]
        name, again = source.name, 2
        while name in taken:
            name, again = f"{stem} ({again}){ending}", again + 1
        taken.add(name)
        apart.append(Source(name=name, shown=name, path=source.path))
    return apart


@st.cache_resource(show_spinner=False)
def _sweep(parent: Path) -> None:
    """Once in the life of a server: remove what one that was killed has left behind."""
    for folder in parent.iterdir():
        if folder.is_dir() and time.time() - folder.stat().st_mtime > _DAY:
            shutil.rmtree(folder, ignore_errors=True)
