"""A file that is made of files of a repository: of its archive, of one file or of a folder."""

import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath
from urllib.parse import unquote, urlsplit

from malmoi.errors import InputError
from malmoi.text.public.description import RemoteFile
from malmoi.text.public.made_files import MADE_BY, Members

ARCHIVE = ".tar.gz"


def downloaded_members(file: RemoteFile, path: Path) -> Members:
    """Those of the archive that was downloaded from there, or the one file that it is.

    Raises:
        InputError: as `archive_members`.
    """
    if file.url.endswith(ARCHIVE):
        return archive_members(path, file)
    return [(PurePosixPath(unquote(urlsplit(file.url).path)).name, path.read_bytes())]


def archive_members(archive: Path, file: RemoteFile) -> Members:
    """Names and contents of those files of a `.tar.gz` that are wanted; nothing is unpacked.

    Raises:
        InputError: it is no such archive, or is damaged.
    """
    try:
        with tarfile.open(archive, "r:*") as packed:
            for member in packed:
                if member.isfile() and is_member(PurePosixPath(member.name), file):
                    opened = packed.extractfile(member)
                    if opened is not None:
                        yield member.name, opened.read()
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise InputError(
            "expected a .tar.gz of a repository, found something else or a damaged one ({error}); "
            "fetch it again",
            place=archive,
            error=error,
        ) from error


def is_member(path: PurePath, file: RemoteFile) -> bool:
    """Whether a file is one of those that another is made of."""
    return any(path.match(pattern) for pattern in file.made_of)


def folder_members(paths: Iterable[Path]) -> Members:
    """Names and contents of files of a folder."""
    for path in paths:
        yield str(path), path.read_bytes()


def write_made(file: RemoteFile, members: Members, path: Path) -> None:
    """Make a file, in UTF-8; where that fails, nothing is left of it.

    Raises:
        InputError: a member is not what is expected, or there is none.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as made:
            made.writelines(MADE_BY[file.made_by](members))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
