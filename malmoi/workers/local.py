"""Worker processes of this machine."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from malmoi.command_line import spare_the_collector
from malmoi.errors import UnfinishedError

# Of a container, by cgroup 2 and 1; a number, or "max".
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class LostWorkerError(UnfinishedError):
    """A worker was killed from outside; what the others finished can be used again."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_memory() -> int:
    """Bytes of memory of this machine, or of the container that it is."""
    import psutil  # which a server that only predicts has not

    limits = [psutil.virtual_memory().total]
    for file in _LIMITS:
        try:
            limits.append(int(file.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return min(limits)


@contextmanager
def starting_workers() -> Iterator[None]:
    """Ctrl-C passes by the processes that start in here; this one hears it afterwards.

    Else it would meet them before `begin_worker`, among their imports. Nor do they run the script
    again that called us: what they do is all in modules of ours.
    """
    script, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        with _interrupts_blocked():
            yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # children inherit it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
    """First thing in a process of ours: Ctrl-C is the parent's, and it ends with its parent."""
    spare_the_collector()
    # Ctrl-C reaches the whole group; the parent ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A worker whose parent was killed would otherwise wait for work for ever.
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    """End this process when its parent is gone, however that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
