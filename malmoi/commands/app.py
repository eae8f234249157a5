"""`malmoi app`: the labelling app in a browser."""

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

ABOUT = "Start the labelling app; open the address that it prints in a browser. Ctrl-C ends it."
_SCRIPT = Path(__file__).parents[1] / "app" / "main.py"


@dataclass(kw_only=True)
class AppSettings:
    """Where the app listens."""

    port: int = 8501
    """Port of the address."""
    address: str = "localhost"
    """Who can come in: localhost is this machine alone, 0.0.0.0 the whole network. There is no
    login unless one is set up."""


def main(settings: AppSettings) -> None:
    importlib.import_module("streamlit")  # where it is not installed, that is one line
    flags = [f"--server.port={settings.port}", f"--server.address={settings.address}"]
    command = [sys.executable, "-m", "streamlit", "run", str(_SCRIPT), *flags]
    os.execv(sys.executable, command)
