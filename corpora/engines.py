"""Where units are cleaned: in this process, in processes beside it, or on a Ray cluster.

Every engine gives the results in the order of the units, so the output does not depend on it.
"""

import logging
import multiprocessing
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Literal, TypeVar

from corpora.errors import InputError, UnfinishedError
from corpora.units import Unit, UnitCleaner

Engine = Literal["local", "ray"]
Index = TypeVar("Index")
_Submit = Callable[[Unit], Any]

# A second unit for each worker waits while the first is cleaned, and one more hides a slow one.
_UNITS_PER_WORKER = 3
_RAY_MISSING = (
    "expected the package ray for --engine ray, found none; install it with: "
    "pip install -c constraints.txt -e '.[cluster]'"
)


class LostWorkerError(UnfinishedError):
    """A worker was killed from outside; what the others finished can be used again."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def clean_units(
    cleaner: UnitCleaner,
    units: Iterable[tuple[Index, Unit]],
    *,
    engine: Engine = "local",
    workers: int = 1,
) -> Iterator[tuple[Index, bytes]]:
    """Clean units, several at a time, and yield the results in their order.

    Only a few units for each worker are in memory at any time.

    Args:
        cleaner: what is done with each unit.
        units: each with an index that is handed back.
        engine: "local", or "ray" for the cluster that RAY_ADDRESS names, else one on this machine.
        workers: processes of the local engine. One, and a corpus of no more units than workers,
            needs no other process.

    Raises:
        InputError: ray is not installed or its cluster cannot be reached, or a worker was killed.
    """
    if engine == "ray":
        with _ray_submit(cleaner) as (submit, collect, workers):
            yield from _in_order(units, submit, collect, workers)
        return
    units = iter(units)
    first = list(islice(units, workers + 1))
    units = chain(first, units)
    if workers == 1 or len(first) <= workers:
        for index, unit in units:
            yield index, cleaner(unit)
        return
    # Not forked: Arrow's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_begin_worker) as pool:
        try:
            yield from _in_order(
                units,
                lambda unit: pool.submit(cleaner, unit),
                lambda future: future.result(),
                workers,
            )
        except BrokenProcessPool as error:
            raise LostWorkerError(
                "a worker process was killed, most likely for want of memory; run the command "
                "again, it goes on from the finished work, with fewer --workers"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _in_order(
    units: Iterable[tuple[Index, Unit]],
    submit: _Submit,
    collect: Callable[[Any], bytes],
    workers: int,
) -> Iterator[tuple[Index, bytes]]:
    waiting: deque[tuple[Index, Any]] = deque()
    for index, unit in units:
        waiting.append((index, submit(unit)))
        if len(waiting) >= workers * _UNITS_PER_WORKER:
            index, result = waiting.popleft()
            yield index, collect(result)
    while waiting:
        index, result = waiting.popleft()
        yield index, collect(result)


def _begin_worker() -> None:
    # Ctrl-C reaches the whole group; the parent ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A worker whose parent was killed would otherwise wait for work for ever.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


@contextmanager
def _ray_submit(cleaner: UnitCleaner) -> Iterator[tuple[_Submit, Callable[[Any], bytes], int]]:
    """Functions that hand a unit to the cluster and wait for its result, and the cluster's cores.

    A unit of a node that dies is cleaned again on another; the driver keeps the units themselves.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError(_RAY_MISSING) from error
    started = not ray.is_initialized()
    if started:
        _check_ray_address(os.environ.get("RAY_ADDRESS", ""))
        try:
            ray.init(logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise _no_cluster(error) from error
    try:
        # Spread, for the units are equal; by default Ray fills one node first.
        clean = ray.remote(_clean_on_ray).options(
            num_cpus=1, max_retries=10, scheduling_strategy="SPREAD"
        )
        shared = ray.put(cleaner)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        yield lambda unit: clean.remote(shared, unit), ray.get, cores
    except ray.exceptions.WorkerCrashedError as error:
        raise LostWorkerError(
            f"Ray workers died again and again ({error}); see the cluster's log, then run the "
            "command again"
        ) from error
    finally:
        if started:
            ray.shutdown()


def _check_ray_address(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not (host and port.isdigit()):
        return  # "auto", "local" and the like, which Ray understands
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise _no_cluster(f"nothing at {address} ({error})") from error


def _no_cluster(found: object) -> InputError:
    return InputError(
        f"expected a Ray cluster at RAY_ADDRESS, found {found}; start one with: ray start --head"
    )


def _clean_on_ray(cleaner: UnitCleaner, unit: Unit) -> bytes:
    return cleaner(unit)
