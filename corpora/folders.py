"""What lies below a folder, linked folders included."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path


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
