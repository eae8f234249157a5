"""How the threads of torch wait for each other, so that they leave the cores to other programs."""

import os

# Whatever of these a user has set wins.
_SET_BY_USERS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def share_cores() -> None:
    """Let threads that wait fall asleep soon; call this before torch is imported.

    By default GNU's OpenMP threads wait in a busy loop. With another program on the same cores
    that loop is what runs, and the thread that all wait for does not (docs/performance.md).
    """
    if not any(name in os.environ for name in _SET_BY_USERS):
        os.environ["GOMP_SPINCOUNT"] = "1000"
