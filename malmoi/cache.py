"""What `runs/cache` keeps for the next run: how large it is, and how it is bounded and removed.

It holds cleaned copies of the texts of every corpus that was read, tokenized ones, tokenizers,
classifiers exported to ONNX, and vectors of projects' texts.
Each entry is a folder, `KIND/HASH`, that is made again when it is missing.
"""

import os
import shutil
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from malmoi.files import remove_unfinished
from malmoi.paths import runs

CACHE = runs("cache")
# Several corpora of a few million texts; a single larger one is kept while it is in use.
MAX_BYTES = 20 * 2**30


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One folder of the cache.

    Attributes:
        path: where it lies.
        num_bytes: the size of its files.
        used_at: when a run last took it, in seconds since 1970.
    """

    path: Path
    num_bytes: int
    used_at: float


def entries(cache: Path = CACHE) -> list[Entry]:
    """All entries, the one used longest ago first."""
    found = []
    for path in cache.glob("*/[!.]*"):
        try:
            files = [file.stat() for file in path.rglob("*") if file.is_file()]
            used_at = path.stat().st_mtime
        except FileNotFoundError:  # another run is removing it
            continue
        size = sum(file.st_size for file in files)
        if path.is_dir():
            found.append(Entry(path=path, num_bytes=size, used_at=used_at))
    return sorted(found, key=lambda entry: entry.used_at)


def mark_used(path: Path) -> None:
    """Say that a run takes this entry now."""
    with suppress(FileNotFoundError):  # another run has removed it
        os.utime(path)


def bound(
    cache: Path = CACHE,
    *,
    keep: Collection[Path] = (),
    max_bytes: int = MAX_BYTES,
    spare_seconds: float = 0.0,
) -> int:
    """Remove what killed runs left, and entries used longest ago until the rest fits.

    Args:
        cache: the folder of the cache.
        keep: entries in use, never removed.
        max_bytes: that the entries may have together.
        spare_seconds: entries used in so many last seconds stay: another run may be at them.

    Returns:
        Bytes of the entries that were removed.
    """
    for kind in cache.glob("*"):
        remove_unfinished(kind)
    all_entries = entries(cache)
    total, removed = sum(entry.num_bytes for entry in all_entries), 0
    kept = {path.resolve() for path in keep}
    for entry in all_entries:
        if total - removed <= max_bytes:
            break
        if entry.path.resolve() not in kept and time.time() - entry.used_at >= spare_seconds:
            shutil.rmtree(entry.path, ignore_errors=True)
            removed += entry.num_bytes
    return removed


def remove(path: Path) -> None:
    """Remove a damaged entry, so that it is made again."""
    shutil.rmtree(path, ignore_errors=True)
