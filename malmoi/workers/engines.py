"""Work on units of a long stream: in this process, in processes beside it, or on a Ray cluster.

Every engine gives the results in the order of the units, so the output does not depend on it.
"""

import multiprocessing
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from malmoi.files import write_at_once
from malmoi.workers.local import LostWorkerError, begin_worker, starting_workers
from malmoi.workers.ray_cluster import ray_submit

Engine = Literal["local", "ray"]
Index = TypeVar("Index")
Item = TypeVar("Item")
Result = TypeVar("Result")

# A second unit for each worker waits while the first is cleaned, and one more hides a slow one.
_UNITS_PER_WORKER = 3


def map_in_order(
    work: Callable[[Item], Result],
    units: Iterable[tuple[Index, Item]],
    *,
    engine: Engine = "local",
    workers: int = 1,
    most_at_once: int | None = None,
) -> Iterator[tuple[Index, Result]]:
    """Do the work on units, several at a time, and yield the results in their order.

    Only a few units for each worker are in memory at any time.

    Args:
        work: what is done with each unit; picklable, and so are units and results.
        units: each with an index that is handed back.
        engine: "local", or "ray" for the cluster that RAY_ADDRESS names, else one on this machine.
        workers: processes of the local engine. One, and a corpus of no more units than workers,
            needs no other process.
        most_at_once: units that a cluster works on side by side; None: as many as it has cores,
            and some that wait.

    Raises:
        InputError: as the work; or ray is not installed, its cluster cannot be reached, or a worker
            was killed.
    """
    if engine == "ray":
        with ray_submit(work) as (submit, collect, workers):
            most = most_at_once or workers * _UNITS_PER_WORKER
            yield from _in_order(units, submit, collect, most)
        return
    units = iter(units)
    first = list(islice(units, workers + 1))
    units = chain(first, units)
    if workers == 1 or len(first) <= workers:
        for index, unit in units:
            yield index, work(unit)
        return
    # Not forked: Arrow's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=begin_worker) as pool:

        def submit(unit: Item) -> Any:
            with starting_workers():
                return pool.submit(work, unit)

        try:
            most = workers * _UNITS_PER_WORKER
            yield from _in_order(units, submit, lambda future: future.result(), most)
        except BrokenProcessPool as error:
            raise LostWorkerError(
                "a worker process was killed, most likely for want of memory; run the command "
                "again, it goes on from the finished work, with fewer --workers"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _in_order(
    units: Iterable[tuple[Index, Item]],
    submit: Callable[[Item], Any],
    collect: Callable[[Any], Result],
    most: int,
) -> Iterator[tuple[Index, Result]]:
    waiting: deque[tuple[Index, Any]] = deque()
    for index, unit in units:
        waiting.append((index, submit(unit)))
        if len(waiting) >= most:
            index, result = waiting.popleft()
            yield index, collect(result)
    while waiting:
        index, result = waiting.popleft()
        yield index, collect(result)


def keep_results(
    work: Callable[[Item], bytes],
    units: Iterable[tuple[int, Item]],
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

    def missing() -> Iterator[tuple[tuple[Path, int], Item]]:
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
