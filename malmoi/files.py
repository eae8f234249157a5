"""Files and directories that appear whole or not at all."""

import errno
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def directory_at_once(directory: Path, *, shared: bool = False) -> Iterator[Path]:
    """Yield a hidden folder that becomes `directory` if all goes well and vanishes if not.

    Made before the work whose result it takes, so that a place that cannot be written to is found
    in the first second and not in the last. Parents made for it vanish too, and so do hidden
    folders beside it that a killed process has left.

    Args:
        directory: must not exist yet, its parents may be missing.
        shared: the name says what is inside (a hash), so that if another process made the same
            directory meanwhile, its work is kept and ours dropped.

    Raises:
        OSError: errno.ENOSPC when the disk is full, whoever noticed it.
    """
    made = [path for path in directory.parents if not path.exists()]
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        remove_unfinished(directory.parent)
        scratch, lock = _held_scratch(directory)
        try:
            with full_disk_as_oserror(directory):
                yield scratch
            scratch.chmod(0o755)  # mkdtemp gives 0o700, which colleagues could not read
            sync_tree(scratch)
            try:
                scratch.rename(directory)
            except OSError:
                if not (shared and directory.is_dir()):
                    raise
                shutil.rmtree(scratch)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()
    except BaseException:
        _remove_empty(made)
        raise


def remove_unfinished(parent: Path) -> int:
    """Remove what `directory_at_once` left in `parent` when its process was killed.

    Each hidden folder has a lock beside it, `.NAME-xxxxxxxx.lock`, that is free once its process
    has ended. Folders without one are not ours and stay.

    Returns:
        How many were removed.
    """
    removed = 0
    for file in parent.glob(f".*-{'[a-z0-9_]' * 8}.lock"):
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):  # at work, or somebody else's
            continue
        with suppress(OSError):
            shutil.rmtree(file.with_suffix(""), ignore_errors=True)
            file.unlink(missing_ok=True)
            removed += 1
        lock.release()
    return removed


def _held_scratch(directory: Path) -> tuple[Path, FileLock]:
    """A new hidden folder beside `directory`, and the lock that says somebody is at work in it."""
    while True:
        scratch = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
        lock = FileLock(scratch.with_name(f"{scratch.name}.lock"))
        lock.acquire()
        if scratch.is_dir() and Path(lock.lock_file).exists():
            return scratch, lock
        # Another process found the lock before it was taken, and removed both as left over.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
        shutil.rmtree(scratch, ignore_errors=True)


def _remove_empty(directories: list[Path]) -> None:
    for directory in directories:
        try:
            directory.rmdir()
        except OSError:
            return  # not made after all, or someone else put something there meanwhile


def write_at_once(path: Path, content: str | bytes) -> None:
    """Replace a small file as a whole: a reader, or a crash, meets the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.tmp")
    try:
        scratch.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        sync(scratch)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def file_at_once(path: Path) -> Iterator[Path]:
    """Yield a hidden name beside `path`, of its ending, for a file that takes its place if all goes
    well and vanishes if not; two who write the same path at once do not meet.

    Raises:
        OSError: errno.ENOSPC when the disk is full, whoever noticed it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{secrets.token_hex(4)}-{path.name}")
    try:
        with full_disk_as_oserror(path):
            yield scratch
        sync(scratch)
        scratch.replace(path)
        sync(path.parent)
    finally:
        scratch.unlink(missing_ok=True)


def sync_tree(directory: Path) -> None:
    """Wait until a folder and all in it is on the disk.

    A rename may reach the disk before what was written into the renamed folder: after a power
    cut the new name would hold empty files. Call this before the rename, and `sync` for the
    parent after it.
    """
    for path in [*directory.rglob("*"), directory]:
        sync(path)


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    if os.name != "posix":
        return  # elsewhere folders cannot be opened
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def full_disk_as_oserror(path: Path) -> Iterator[None]:
    """Raise OSError(ENOSPC) where a library has an error of its own for a full disk.

    The Rust halves of safetensors and tokenizers write files themselves and raise
    `SafetensorError` and a bare `Exception`.
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if f"os error {errno.ENOSPC}" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def walk_once(
    folder: Path, onerror: Callable[[OSError], None] | None = None
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """As `os.walk`, into linked folders too, for data are often linked in; each is visited once, so
    that a link to a parent ends.

    Args:
        onerror: called with the error of a folder that cannot be read; else it is passed over.
    """
    visited = set()
    for root, folders, files in os.walk(folder, onerror=onerror, followlinks=True):
        real = Path(root).resolve()
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        yield Path(root), folders, files
