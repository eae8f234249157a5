"""Results of units as files in a folder: what a killed run has finished is not done again."""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from malmoi.files import write_at_once
from malmoi.workers.engines import Engine, map_in_order

Unit = TypeVar("Unit")


def keep_results(
    work: Callable[[Unit], bytes],
    units: Iterable[tuple[int, Unit]],
    folder: Path,
    *,
    engine: Engine = "local",
    workers: int = 1,
    on_done: Callable[[int], object] = lambda done: None,
) -> list[Path]:
    """Do the work on those units whose files are not there yet.

    Args:
        work: gives a file of NumPy arrays (`.npz`), as bytes; see `map_in_order`.
        units: each with how many things are in it; the same ones, in the same order, each time.
        folder: of the files. Those that are there are taken as they are: the caller knows that they
            were made of the same units by the same work.
        engine: see `map_in_order`.
        workers: see `map_in_order`.
        on_done: called with how many things are done in all, after every unit.

    Returns:
        The files of all units, in their order.

    Raises:
        InputError: as `map_in_order`.
    """
    paths: list[Path] = []
    done = 0

    def finished(size: int) -> None:
        nonlocal done
        done += size
        on_done(done)

    def missing() -> Iterator[tuple[tuple[Path, int], Unit]]:
        for number, (size, unit) in enumerate(units):
            path = folder / f"unit-{number:07d}.npz"
            paths.append(path)
            # After a power failure a file may be there without its end.
            if zipfile.is_zipfile(path):
                finished(size)
            else:
                yield (path, size), unit

    for (path, size), content in map_in_order(work, missing(), engine=engine, workers=workers):
        write_at_once(path, content)
        finished(size)
    return paths
