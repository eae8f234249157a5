"""Libraries that report how they are used, told not to: ONNX Runtime, Ray, huggingface_hub."""

import os


def send_no_telemetry() -> None:
    """Let no library send usage data; call this before one is imported.

    ONNX Runtime 1.32 does so by default: it keeps an id of the machine in the user's cache folder,
    starts threads, and sends events to Microsoft (Privacy.md in its package). Ray reports every
    cluster, and huggingface_hub adds what is installed to its requests. Whatever of these variables
    a user has set wins.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
