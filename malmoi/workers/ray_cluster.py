"""Units of work on a Ray cluster: the one that RAY_ADDRESS names, else one on this machine."""

import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from malmoi.errors import InputError
from malmoi.workers.local import LostWorkerError

_RAY_MISSING = (
    "expected the package ray for --engine ray, found none; install it with: "
    "pip install -c constraints.txt -e '.[cluster]'"
)


@contextmanager
def ray_submit(
    work: Callable[[Any], Any],
) -> Iterator[tuple[Callable[[Any], Any], Callable[[Any], Any], int]]:
    """Functions that hand a unit to the cluster and wait for its result, and the cluster's cores.

    A unit of a node that dies is done again on another; the driver keeps the units themselves.
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
        remote = ray.remote(_on_ray).options(
            num_cpus=1, max_retries=10, scheduling_strategy="SPREAD"
        )
        shared = ray.put(work)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        yield lambda unit: remote.remote(shared, unit), ray.get, cores
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


def _on_ray(work: Callable[[Any], Any], unit: Any) -> Any:
    return work(unit)
