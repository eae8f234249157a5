"""Directories that appear whole or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def directory_at_once(directory: Path, *, shared: bool = False) -> Iterator[Path]:
    """Yield a hidden folder that becomes `directory` if all goes well and vanishes if not.

    Args:
        directory: must not exist yet, its parents may be missing.
        shared: the name says what is inside (a hash), so that if another process made the same
            directory meanwhile, its work is kept and ours dropped.

    Raises:
        OSError: errno.ENOSPC when the disk is full, whoever noticed it.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        with full_disk_as_oserror(directory):
            yield scratch
        scratch.chmod(0o755)  # mkdtemp gives 0o700, which colleagues could not read
        try:
            scratch.rename(directory)
        except OSError:
            if not (shared and directory.is_dir()):
                raise
            shutil.rmtree(scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


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
