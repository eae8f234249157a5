"""A file that is made of files of a repository: of its archive, of one file or of a folder."""

import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath, PurePosixPath
from urllib.parse import unquote, urlsplit

from malmoi.errors import InputError
from malmoi.text.public.description import Making

Members = Iterator[tuple[str, bytes]]

ARCHIVE = ".tar.gz"


def downloaded_members(url: str, path: Path, making: Making) -> Members:
    """Those of the archive that was downloaded from there, or the one file that it is.

    Raises:
        InputError: as `archive_members`.
    """
    if url.endswith(ARCHIVE):
        return archive_members(path, making)
    return iter([(PurePosixPath(unquote(urlsplit(url).path)).name, path.read_bytes())])


def archive_members(archive: Path, making: Making) -> Members:
    """Names and contents of those files of a `.tar.gz` that are wanted; nothing is unpacked.

    Raises:
        InputError: it is no such archive, or is damaged.
    """
    try:
        with tarfile.open(archive, "r:*") as packed:
            for member in packed:
                if member.isfile() and is_member(PurePosixPath(member.name), making):
                    file = packed.extractfile(member)
                    if file is not None:
                        yield member.name, file.read()
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise InputError(
            f"{archive}: expected a .tar.gz of a repository, found something else or a damaged "
            f"one ({error}); fetch it again"
        ) from error


def is_member(path: PurePath, making: Making) -> bool:
    """Whether a file is one of those that another is made of."""
    return any(path.match(pattern) for pattern in making.members)


def folder_members(paths: Iterable[Path]) -> Members:
    """Names and contents of files of a folder."""
    for path in paths:
        yield str(path), path.read_bytes()


def write_made(making: Making, members: Members, path: Path) -> None:
    """Make a file, in UTF-8; where that fails, nothing is left of it.

    Raises:
        InputError: a member is not what is expected, or there is none.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(making.make(members))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
