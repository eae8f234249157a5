"""A Ray cluster: the one that is named, else one on this machine; units of work on it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from malmoi.errors import InputError
from malmoi.workers.local import LostWorkerError

ADDRESS_VARIABLE = "RAY_ADDRESS"
# How often work that a lost node has taken along is given to another one.
RETRIES = 10
_RAY_MISSING = (
    "expected the package ray for a cluster, found none; install it with: "
    "pip install -c constraints.txt -e '.[cluster]'"
)
# A node that has not started a process by then has no memory left, or no Python.
_SECONDS_TO_ANSWER = 180.0
# Every Ray service speaks gRPC, which is HTTP/2 (RFC 9113, sections 3.4 and 6.5): a client begins
# with these bytes and an empty frame of settings, and a server answers with its own settings.
_HTTP2_BEGINNING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_FRAME_HEAD_BYTES, _SETTINGS_FRAME = 9, 4


@contextmanager
def joined_cluster(address: str | None = None, *, named: str = ADDRESS_VARIABLE) -> Iterator[Any]:
    """Yield the module `ray`, part of a cluster; what was joined here is left at the end.

    Args:
        address: host:port of the head; what RAY_ADDRESS says without one, and where that says
            nothing the cluster of this machine, which is started if need be.
        named: what names the address, for messages.

    Raises:
        InputError: ray is not installed, or its cluster cannot be reached.
        LostWorkerError: processes of the cluster died again and again.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError(_RAY_MISSING) from error
    started = not ray.is_initialized()
    if started:
        _check_address(address or os.environ.get(ADDRESS_VARIABLE, ""), named)
        try:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise _no_cluster(error, named) from error
        except ray.exceptions.AuthenticationError as error:
            raise _no_cluster("one that asks for another token", named) from error
    try:
        yield ray
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.RayActorError) as error:
        raise LostWorkerError(
            "Ray workers died again and again ({error}); see the cluster's log, then run the "
            "command again",
            error=error,
        ) from error
    finally:
        if started:
            ray.shutdown()


@contextmanager
def ray_submit(
    work: Callable[[Any], Any],
) -> Iterator[tuple[Callable[[Any], Any], Callable[[Any], Any], int]]:
    """Functions that hand a unit to the cluster and wait for its result, and the cluster's cores.

    A unit of a node that dies is done again on another; the driver keeps the units themselves.
    """
    with joined_cluster() as ray:
        # Spread, for the units are equal; by default Ray fills one node first.
        remote = ray.remote(_on_ray).options(
            num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD"
        )
        shared = ray.put(work)

        def collect(result: Any) -> Any:
            try:
                return ray.get(result)
            except InputError as error:  # which Ray wraps, with a traceback in its words
                raise getattr(error, "cause", error) from None

        yield lambda unit: remote.remote(shared, unit), collect, cluster_cores(ray)


def cluster_cores(ray: Any) -> int:
    """Cores of all nodes, as they say themselves."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def check_nodes(ray: Any, paths: Sequence[Path]) -> None:
    """Refuse a cluster with a node that has no malmoi, or does not see these files and folders.

    Raises:
        InputError: with the node and what it lacks.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    wanted = [str(path) for path in paths]
    asked = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU"):
            place = On(node_id=node["NodeID"], soft=False)
            task = ray.remote(_missing).options(num_cpus=0, scheduling_strategy=place)
            asked[task.remote(wanted)] = node["NodeManagerAddress"]
    for answer, node in asked.items():
        try:
            missing = ray.get(answer, timeout=_SECONDS_TO_ANSWER)
        except ray.exceptions.GetTimeoutError as error:
            raise InputError(
                "expected an answer of node {node}, found none in {seconds:.0f} s; see the "
                "cluster's log",
                node=node,
                seconds=_SECONDS_TO_ANSWER,
            ) from error
        except (ray.exceptions.NodeDiedError, ray.exceptions.TaskUnschedulableError):
            continue  # it left meanwhile: the others do its work
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1][:200]
            raise InputError(
                "expected this project on every node, found that {node} cannot run it ({reason}); "
                "install the same version there, with the extra cluster",
                node=node,
                reason=reason,
            ) from error
        if missing:
            raise InputError(
                "expected {missing} on every node, found none on {node}; put input and output "
                "into a folder that all nodes share under one path",
                missing=missing[0],
                node=node,
            )


def _missing(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if not Path(path).exists()]


def _check_address(address: str, named: str) -> None:
    """Refuse an address where nothing answers as Ray does: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not (host and port.isdigit()):
        return  # "auto", "local" and the like, which Ray understands
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        return  # which would not answer to what is asked here
    try:
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.settimeout(10)
            connection.sendall(_HTTP2_BEGINNING)
            head = connection.recv(_FRAME_HEAD_BYTES)
    except TimeoutError as error:
        raise _no_cluster(f"nothing that answers at {address}", named) from error
    except (OSError, OverflowError) as error:
        raise _no_cluster(f"nothing at {address} ({error})", named) from error
    if len(head) < 4 or head[3] != _SETTINGS_FRAME:
        raise _no_cluster(f"another service at {address}", named)


def _no_cluster(found: object, named: str) -> InputError:
    return InputError(
        "expected a Ray cluster at {named}, found {found}; start one with: ray start --head (the "
        "token of one that runs belongs into RAY_AUTH_TOKEN)",
        named=named,
        found=found,
    )


def _on_ray(work: Callable[[Any], Any], unit: Any) -> Any:
    return work(unit)
