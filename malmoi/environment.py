"""What libraries read from the environment when they are imported; what a user has set wins."""

import os
import warnings

_SET_BY_USERS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def prepare_environment() -> None:
    """Let waiting threads fall asleep soon, and let no library send usage data.

    By default GNU's OpenMP threads wait in a busy loop. With another program on the same cores
    that loop is what runs, and the thread that all wait for does not (docs/performance.md).

    ONNX Runtime 1.32 sends usage data by default: it keeps an id of the machine in the user's cache
    folder, starts threads, and sends events to Microsoft (Privacy.md in its package). Ray reports
    every cluster, and huggingface_hub adds what is installed to its requests.

    tqdm warns in every notebook without ipywidgets, where its bar is one of characters.
    """
    warnings.filterwarnings("ignore", "IProgress not found")
    if not any(name in os.environ for name in _SET_BY_USERS):
        os.environ["GOMP_SPINCOUNT"] = "1000"
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
