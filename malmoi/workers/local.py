"""Worker processes of this machine."""

import multiprocessing
import os
import signal
import threading

from malmoi.errors import UnfinishedError


class LostWorkerError(UnfinishedError):
    """A worker was killed from outside; what the others finished can be used again."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def begin_worker() -> None:
    """First thing in a process of ours: Ctrl-C is the parent's, and it ends with its parent."""
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
