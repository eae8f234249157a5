"""The app as a user starts it, and a real Chromium, for benchmarks."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from malmoi.errors import InputError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
_START_SECONDS = 300


@contextmanager
def chromium() -> Iterator["Browser"]:
    """The browser of this machine.

    Raises:
        InputError: playwright or Chromium is missing.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise InputError(
            "expected playwright to be installed; run pip install playwright"
        ) from error
    path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if path is None:
        raise InputError(
            "expected Chromium on this machine, found neither chromium nor google-chrome"
        )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def serving(folder: Path, database: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The app, as `streamlit run` starts it, with a label database and a home of its own.

    Raises:
        InputError: it did not start.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app" / "main.py")]
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--server.port", str(port)],
            cwd=folder,
            env={**own, "MALMOI_DATABASE": f"sqlite:///{database}", "MALMOI_HOME": str(folder)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(port, process)
            yield process
        finally:
            process.terminate()
            process.wait()


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise InputError("the app did not start: expected an answer of its server, found none")
