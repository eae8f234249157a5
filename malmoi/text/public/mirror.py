"""An offline mirror: a folder in which the files of public sources lie somewhere, as they may."""

import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from malmoi.errors import InputError
from malmoi.files import file_sha256, walk_once
from malmoi.text.public.catalog import sources
from malmoi.text.public.description import RemoteFile, Variant
from malmoi.text.public.repository_files import (
    ARCHIVE,
    archive_members,
    folder_members,
    is_member,
    write_made,
)
from malmoi.text.reading.formats import COMPRESSIONS
from malmoi.text.reading.sources import Source


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
                "expected a folder for --from, found {folder}, which is none; check the path",
                folder=folder,
            )
        self._folder = folder
        # Many sources have a `train.tsv`: one of another source is no wrong one.
        self._known = {
            sha256
            for source in sources().values()
            for file in source.files
            for sha256 in (file.sha256, *(variant.sha256 for variant in file.variants))
        }
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
            if not file.made_by:
                raise NotInMirrorError(file.name)
            self._make(file, sha256, part)
            return None
        if sha256 is None and len(named) > 1:  # nothing could tell the right one
            raise InputError(
                "expected one file for {name}, found {paths}; name a folder below with --from",
                place=self._folder,
                name=file.name,
                paths=", ".join(str(path) for path in named),
            )
        wrong: InputError | None = None
        for path in named:
            _unpack(path, part)
            found = file_sha256(part)
            if found == sha256 or (sha256 is None and found not in self._known):
                return None
            same = next((variant for variant in file.variants if variant.sha256 == found), None)
            if same is not None:
                return same
            part.unlink()
            if found not in self._known:
                wrong = InputError(
                    "expected SHA-256 {sha256}, found {found}; it is not the original {name} and "
                    "is not taken",
                    place=path,
                    sha256=sha256,
                    found=found,
                    name=file.name,
                )
        raise wrong or NotInMirrorError(file.name)

    def _copy_by_content(self, size: int | None, sha256: str, part: Path) -> bool:
        for path in sorted(path for path, there in self._sizes.items() if there == size):
            if file_sha256(path) == sha256:
                shutil.copyfile(path, part)
                return True
        return False

    def _make(self, file: RemoteFile, sha256: str | None, part: Path) -> None:
        """Make a file of the repository's archive, or of a folder of its files."""
        # Browsers and curl save archives as NAME-COMMIT.tar.gz or COMMIT.tar.gz.
        end = _name_there(file)
        archives = (path for path in self._sizes if path.name.endswith(end))
        archive = next(archives, None) if end.endswith(ARCHIVE) else None
        paths = [path for path in self._sizes if is_member(path, file)]
        if archive is not None:
            write_made(file, archive_members(archive, file), part)
        elif paths:
            write_made(file, folder_members(paths), part)
        else:
            raise NotInMirrorError(file.name)
        found = file_sha256(part)
        if sha256 not in (None, found):
            part.unlink()
            raise InputError(
                "expected files that make a {name} of SHA-256 {sha256}, found some that make "
                "{found}; they are not the original ones, all of them and no others, and nothing "
                "is taken",
                place=archive or paths[0].parent,
                name=file.name,
                sha256=sha256,
                found=found,
            )

    def _with_name_of(self, file: RemoteFile) -> Iterator[Path]:
        plain = {PurePosixPath(file.name).name}
        if not file.made_by:
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
