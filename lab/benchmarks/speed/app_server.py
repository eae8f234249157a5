"""The app as a user starts it, and a real Chromium: for benchmarks, browser tests and pictures."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from malmoi.errors import InputError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[3]
LOG = "server.log"
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_MS = 300_000
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
    path = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if path is None:
        raise InputError(f"expected one of {', '.join(_CHROMIUM)} on PATH, found none")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            timeout=_PATIENCE_MS,
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
def serving(
    folder: Path,
    port: int,
    settings: Mapping[str, str],
    *,
    script: Path | str = ROOT / "app" / "main.py",
    flags: Sequence[str] = (),
) -> Iterator["subprocess.Popen[bytes]"]:
    """The app, as `streamlit run` starts it, without Streamlit settings of the machine's own.

    Args:
        folder: where the command is given; what the server says goes to `LOG` there.
        port: that it listens on.
        settings: environment variables.
        script: what is run.
        flags: of `streamlit run`.

    Raises:
        InputError: it did not start; with the end of what it said.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            [*command, *flags],
            cwd=folder,
            env={**own, **settings},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(port, process, folder / LOG)
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)


def own_data(folder: Path, database: Path) -> dict[str, str]:
    """The settings with which the app has a label database and a home of its own."""
    return {"MALMOI_DATABASE": f"sqlite:///{database}", "MALMOI_HOME": str(folder)}


def link_models(home: Path) -> None:
    """Put the released models into a home, and the corpora that their engines are tried on."""
    for name in ("checkpoints", "corpora"):
        (home / name).symlink_to(ROOT / name)


def _wait(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    said = log.read_text(encoding="utf-8", errors="replace")[-2_000:]
    raise InputError(f"expected the app to answer on port {port}, found nothing; it said: {said}")
