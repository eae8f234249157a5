"""Where bytes come from: a file or an upload, plain, gzip or Zstandard, and folders of them."""

import gzip
import io
import logging
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from malmoi.errors import InputError
from malmoi.files import walk_once
from malmoi.messages import Phrase
from malmoi.model_folders import discriminator_folder, has_weights, is_linear_alone
from malmoi.text.reading.formats import SUPPORTED, is_supported, require_supported, split_suffixes

logger = logging.getLogger(__name__)

# A block of 4 bytes may stand for 128 KiB: with this much compressed input at a time, one step
# expands to 32 MiB at most.
COMPRESSED_CHUNK_BYTES = 1 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One input: a file on disk, or the bytes of an upload.

    Attributes:
        name: what records carry as their source, relative to the folder that was given.
        shown: what messages call it, the path as the user wrote it.
        path: the file, or None for an upload.
        data: the uploaded bytes, where `path` is None.
        frame: a table in memory instead, see `malmoi.text.reading.frames`.
    """

    name: str
    shown: str
    path: Path | None = None
    data: bytes = b""
    frame: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.shown

    @property
    def format(self) -> str:
        """The suffix that decides the reader, lower case, without a compression suffix."""
        return split_suffixes(self.name)[0]

    def open_stored(self) -> BinaryIO:
        """The bytes as stored, compressed ones still compressed.

        Raises:
            InputError: the file cannot be opened, or is none.
        """
        if self.path is None:
            return io.BytesIO(self.data)
        try:
            refuse_devices(self.path, self.shown)
            return self.path.open("rb")
        except OSError as error:
            raise InputError(
                "cannot be opened ({reason}); check its name and permissions",
                place=self.shown,
                reason=error.strerror,
            ) from error

    @contextmanager
    def open_bytes(self) -> Iterator[BinaryIO]:
        """The decompressed bytes, as a stream.

        Raises:
            InputError: the file cannot be opened, or its compressed data is damaged or cut off.
        """
        with self.open_stored() as stored, self.unpacked(stored) as stream:
            yield stream

    @contextmanager
    def unpacked(self, stored: BinaryIO) -> Iterator[BinaryIO]:
        """The decompressed bytes of an open file, as a stream that can go back to its start.

        Raises:
            InputError: its compressed data is damaged or cut off.
        """
        compression = split_suffixes(self.name)[1]
        try:
            if compression == ".gz":
                with gzip.GzipFile(fileobj=stored) as unzipped:
                    yield cast(BinaryIO, unzipped)
            elif compression == ".zst":
                with io.BufferedReader(_ZstdReader(stored)) as unpacked:
                    yield cast(BinaryIO, unpacked)
            else:
                yield stored
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise InputError(
                "expected complete {compression} data, found damaged or cut-off data ({error}); "
                "download or compress the file again",
                place=self.shown,
                compression=compression,
                error=error,
            ) from error


class _ZstdReader(io.RawIOBase):
    """Zstandard frames as one stream, like zstandard's own reader, but it notices a cut-off end."""

    def __init__(self, stored: BinaryIO) -> None:
        self._stored = stored
        # 2 GiB of window is what `zstd --long=31` writes; the default refuses beyond 128 MiB.
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        self._begin()

    def _begin(self) -> None:
        self._stored.seek(0)
        self._position = 0
        self._frame = self._decompressor.decompressobj()
        self._inside_frame = False
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Back to the start; where it is already is the only other place."""
        if (offset, whence) == (0, io.SEEK_SET):
            self._begin()
        elif (offset, whence) not in ((0, io.SEEK_CUR), (self._position, io.SEEK_SET)):
            raise io.UnsupportedOperation("compressed data is read from its start")
        return self._position

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]  # any writable buffer
        while not self._ready:
            chunk = self._compressed or self._stored.read(COMPRESSED_CHUNK_BYTES)
            self._compressed = b""
            if not chunk:
                if self._inside_frame:
                    raise EOFError("the file ends inside a frame")
                return 0
            if self._frame.eof:
                self._frame = self._decompressor.decompressobj()
            self._ready = memoryview(self._frame.decompress(chunk))
            self._inside_frame = not self._frame.eof
            if self._frame.eof:
                self._compressed = self._frame.unused_data
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        self._position += size
        return size


def refuse_devices(path: Path, shown: str) -> None:
    """Refuse what is neither file nor folder: a pipe may never give a byte, a device never end.

    They are read several times besides, for their encoding and their hash.

    Raises:
        InputError: it is one of these.
        OSError: nothing is there, or it cannot be looked at.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = Phrase("a socket") if stat.S_ISSOCK(mode) else Phrase("a device")
        if stat.S_ISFIFO(mode):
            kind = Phrase("a pipe")
        raise InputError(
            "expected a file or folder, found {kind}; write what it gives to a file",
            place=shown,
            kind=kind,
        )


def damaged(source: Source, kind: str, error: Exception) -> InputError:
    """The error for a file that a library cannot read as what its name says.

    Args:
        kind: what was expected, with its article.
        error: what the library raised.
    """
    with source.open_stored() as stored:
        if not stored.read(1):
            return InputError("the file is empty; expected {kind}", place=source.shown, kind=kind)
    reason = " ".join(str(error).split())[:200]
    return InputError(
        "expected {kind}, found a damaged file or another kind ({reason}); export or download it "
        "again",
        place=source.shown,
        kind=kind,
        reason=reason,
    )


def source_of_upload(name: str, data: bytes) -> Source:
    """An upload as a source.

    Raises:
        InputError: the name is not of a supported kind.
    """
    require_supported(name, name)
    return Source(name=name, shown=name, data=data)


def find_sources(path: str | Path | Source) -> list[Source]:
    """The file given, or every readable file below the folder given, in a fixed order.

    A source is given back as it is.

    Hidden files, README*, LICENSE*, *.md, Excel's lock files, the report of a clean corpus, the
    `SOURCE.json` of a fetched one and the `task.toml` of a labelled one are documentation; any
    other file of an unsupported kind, and a link to a file that is read, is named in a warning.

    Raises:
        InputError: nothing is there, a pipe or a device is, the file is of an unsupported kind, or
            the folder is a model or holds no readable file.
    """
    if isinstance(path, Source):
        return [path]
    path = Path(path)
    if path.is_dir():
        return _sources_in_folder(path)
    if path.is_symlink() and not path.exists():
        raise InputError(
            "expected a file or folder, found a link that leads nowhere or to itself; link it anew",
            place=path,
        )
    if not path.exists():
        raise InputError(
            "no such file or folder: {path}; expected a file of a supported kind ({supported}) or "
            "a folder of them; check the path",
            path=path,
            supported=SUPPORTED,
        )
    refuse_devices(path, _readable(str(path)))
    require_supported(path.name, str(path))
    return [Source(name=_readable(path.name), shown=_readable(str(path)), path=path)]


def find_all_sources(paths: Sequence[Path]) -> list[Source]:
    """The sources of several inputs, in the order given, each with a name of its own.

    Where two inputs hold files of one name, all sources are named by their path as it was written.

    Raises:
        InputError: as `find_sources`, or an input is given twice, alone or inside another.
    """
    sources: list[Source] = []
    inputs: dict[str, Path] = {}
    for path in paths:
        for source in find_sources(path):
            assert source.path is not None
            before = inputs.setdefault(os.path.realpath(source.path), path)
            if before is not path:
                raise InputError(
                    "expected different inputs, found {name} in {before} and in {path}; name it "
                    "once",
                    name=source.shown,
                    before=before,
                    path=path,
                )
            sources.append(source)
    if len({source.name for source in sources}) < len(sources):
        return [replace(source, name=source.shown) for source in sources]
    return sources


def _readable(name: str) -> str:
    """A name that can be written in UTF-8: that of a Windows archive may be in CP949."""
    stored = os.fsencode(name)
    for encoding in ("utf-8", "cp949"):
        try:
            return stored.decode(encoding)
        except UnicodeDecodeError:
            continue
    return stored.decode("utf-8", "backslashreplace")


def _sources_in_folder(folder: Path) -> list[Source]:
    files = sorted(_files_below(folder), key=lambda file: file.relative_to(folder).parts)
    if has_weights(discriminator_folder(folder)) or is_linear_alone(folder):
        raise InputError(
            "expected texts, found a model; give it as --model (to pretrain/run.py as --init), "
            "and here a file or folder of texts",
            place=folder,
        )
    sources = []
    seen: dict[str, Path] = {}
    for file in files:
        if is_supported(file.name):
            first = seen.setdefault(os.path.realpath(file), file)
            if first is not file:
                logger.warning("%s: not read, it is the same file as %s", file, first)
                continue
            name = file.relative_to(folder).as_posix()
            sources.append(Source(name=_readable(name), shown=_readable(str(file)), path=file))
        elif not file.exists():
            logger.warning("%s: not read, a link that leads nowhere or to itself", file)
        else:
            logger.warning("%s: not read, its kind is unsupported; supported: %s", file, SUPPORTED)
    if not sources:
        raise InputError(
            "expected files of a supported kind ({supported}), found none; give another folder or "
            "put the corpus there",
            place=folder,
            supported=SUPPORTED,
        )
    return sources


def _files_below(folder: Path) -> Iterator[Path]:
    for root, folders, files in walk_once(folder, _refuse_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (root / name for name in files if not _is_documentation(name))


def _refuse_folder(error: OSError) -> None:
    raise InputError(
        "the folder cannot be read ({reason}); check its permissions",
        place=error.filename,
        reason=error.strerror,
    ) from error


def _is_documentation(name: str) -> bool:
    lowered = name.lower()
    return (
        # Excel keeps a file ~$NAME beside a workbook as long as it is open.
        lowered.startswith((".", "~$", "readme", "license"))
        or lowered.endswith(".md")
        or lowered in ("report.json", "_report.json", "source.json", "task.toml")
        # What Hugging Face's save_to_disk writes beside the rows.
        or lowered in ("dataset_info.json", "dataset_dict.json", "state.json")
    )
