"""Real servers of the app, each in a process of its own."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START_SECONDS = 120
_LISTENING = "0A"


@dataclass(frozen=True)
class Server:
    """A running `streamlit run`."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def check_log(self) -> None:
        """Fail with what went wrong, where something did."""
        plain = re.sub(r"\x1b\[[0-9;]*m", "", self.said())
        found = plain.find("Traceback")
        assert found < 0, plain[found : found + 6_000]


@contextmanager
def serving(
    cwd: Path,
    *,
    script: Path | str = ROOT / "app" / "main.py",
    flags: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Iterator[Server]:
    """Start the app without Streamlit settings of the machine's own, and wait until it answers.

    Args:
        cwd: where the command is given.
        script: what is run.
        flags: of `streamlit run`.
        settings: environment variables.
        port: None: a free one.
    """
    port = port or free_port()
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    log = cwd / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
            + [*flags],
            cwd=cwd,
            env={**own, "HOME": str(cwd), **(settings or {})},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(f"http://127.0.0.1:{port}/_stcore/health", process, log)
            yield Server(process, port, log)
        finally:
            process.terminate()
            process.wait(timeout=30)


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def listening_on(port: int) -> set[str]:
    """The addresses on which this machine listens at a port; "any" for all of its interfaces."""
    table = Path("/proc/net/tcp")
    if not table.is_file():
        pytest.skip("no /proc/net/tcp on this machine to read open ports from")
    found: set[str] = set()
    for path in (table, table.with_name("tcp6")):
        for line in path.read_text(encoding="ascii").splitlines()[1:] if path.is_file() else ():
            local, state = line.split()[1], line.split()[3]
            place, number = local.split(":")
            if state == _LISTENING and int(number, 16) == port:
                found.add(_name(place))
    return found


def _name(place: str) -> str:
    if not place.strip("0"):
        return "any"
    # Four bytes in this machine's order, or sixteen for IPv6.
    return socket.inet_ntoa(bytes.fromhex(place)[::-1]) if len(place) == 8 else place


def _wait(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text(encoding='utf-8')}")
