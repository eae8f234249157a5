"""An offline mirror: a folder in which the files of public sources lie somewhere, as they may."""

import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from malmoi.errors import InputError
from malmoi.files import file_sha256, walk_once
from malmoi.text.public.catalog import SOURCES
from malmoi.text.public.description import Making, RemoteFile, Variant
from malmoi.text.public.repository_files import (
    ARCHIVE,
    archive_members,
    folder_members,
    is_member,
    write_made,
)
from malmoi.text.reading.sources import COMPRESSIONS, Source

# Many sources have a `train.tsv`: one that is known as a file of another source is no wrong one.
_KNOWN = {
    sha256
    for source in SOURCES.values()
    for file in source.files
    for sha256 in (file.sha256, *(variant.sha256 for variant in file.variants))
}


class NotInMirrorError(Exception):
    """The mirror has no such file; most have only a part of a source."""


class Mirror:
    """Finds files by their content, or by name where the content is not known.

    Folders are not compared: mirrors have folders of their own.
    """

    def __init__(self, folder: Path) -> None:
        """Look at the names and sizes below the folder.

        Raises:
            InputError: it is not a folder.
        """
        if not folder.is_dir():
            raise InputError(
                f"expected a folder for --from, found {folder}, which is none; check the path"
            )
        self._folder = folder
        self._sizes: dict[Path, int] = {}
        for root, _, names in walk_once(folder):
            for name in names:
                path = root / name
                if path.is_file():
                    self._sizes[path] = path.stat().st_size

    def copy(self, file: RemoteFile, sha256: str | None, part: Path) -> Variant | None:
        """Write a file to `part`, unpacked if the mirror has it packed, made if it must be made.

        Args:
            file: what is wanted.
            sha256: its hash, or the one recorded at an earlier fetch; None takes what has its name.
            part: where it goes.

        Returns:
            The known variant that was taken in its place, if it was not the original.

        Raises:
            NotInMirrorError: the mirror has no such file.
            InputError: what has its name there is another file, or two files have it.
        """
        if sha256 is not None and self._copy_by_content(file.size, sha256, part):
            return None
        for variant in file.variants:
            if self._copy_by_content(variant.size, variant.sha256, part):
                return variant
        named = list(self._with_name_of(file))
        if not named:
            if file.making is None:
                raise NotInMirrorError(file.name)
            self._make(file, file.making, sha256, part)
            return None
        if sha256 is None and len(named) > 1:  # nothing could tell the right one
            raise InputError(
                f"{self._folder}: expected one file for {file.name}, found "
                f"{', '.join(str(path) for path in named)}; name a folder below with --from"
            )
        wrong = ""
        for path in named:
            _unpack(path, part)
            found = file_sha256(part)
            if found == sha256 or (sha256 is None and found not in _KNOWN):
                return None
            same = next((variant for variant in file.variants if variant.sha256 == found), None)
            if same is not None:
                return same
            part.unlink()
            if found not in _KNOWN:
                wrong = f"{path}: expected SHA-256 {sha256}, found {found}"
        if not wrong:
            raise NotInMirrorError(file.name)
        raise InputError(f"{wrong}; it is not the original {file.name} and is not taken")

    def _copy_by_content(self, size: int | None, sha256: str, part: Path) -> bool:
        for path in sorted(path for path, there in self._sizes.items() if there == size):
            if file_sha256(path) == sha256:
                shutil.copyfile(path, part)
                return True
        return False

    def _make(self, file: RemoteFile, making: Making, sha256: str | None, part: Path) -> None:
        """Make a file of the repository's archive, or of a folder of its files."""
        # Browsers and curl save archives as NAME-COMMIT.tar.gz or COMMIT.tar.gz.
        end = _name_there(file)
        archives = (path for path in self._sizes if path.name.endswith(end))
        archive = next(archives, None) if end.endswith(ARCHIVE) else None
        paths = [path for path in self._sizes if is_member(path, making)]
        if archive is not None:
            write_made(making, archive_members(archive, making), part)
        elif paths:
            write_made(making, folder_members(paths), part)
        else:
            raise NotInMirrorError(file.name)
        found = file_sha256(part)
        if sha256 not in (None, found):
            part.unlink()
            raise InputError(
                f"{archive or paths[0].parent}: expected files that make a {file.name} of SHA-256 "
                f"{sha256}, found some that make {found}; they are not the original ones, all of "
                "them and no others, and nothing is taken"
            )

    def _with_name_of(self, file: RemoteFile) -> Iterator[Path]:
        plain = {PurePosixPath(file.name).name}
        if file.making is None:
            plain.add(_name_there(file))
        names = plain | {name + suffix for name in plain for suffix in COMPRESSIONS}
        yield from sorted(path for path in self._sizes if path.name in names)


def _name_there(file: RemoteFile) -> str:
    return PurePosixPath(unquote(urlsplit(file.url).path)).name


def _unpack(path: Path, part: Path) -> None:
    source = Source(name=path.name, shown=str(path), path=path)
    try:
        with source.open_bytes() as packed, part.open("wb") as file:
            shutil.copyfileobj(packed, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
