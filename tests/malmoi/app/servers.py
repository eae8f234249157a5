"""Real servers of the app, each in a process of its own, and pages of a browser to visit them."""

import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.benchmarks.speed import app_server
from lab.benchmarks.speed.app_server import ROOT, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_LISTENING = "0A"
PATIENCE = 300_000  # ms
# Whether something in an element is wider than its place.
IS_CUT = """(one) => [one, ...one.querySelectorAll("*")]
  .some((part) => part.scrollWidth > part.clientWidth)"""


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
    """Start the app without settings of the machine's own, and wait until it answers.

    At the end what it said is looked through for errors.

    Args:
        cwd: where the command is given.
        script: what is run.
        flags: of `streamlit run`.
        settings: environment variables.
        port: None: a free one.
    """
    port = port or free_port()
    own = {"HOME": str(cwd), **(settings or {})}
    with app_server.serving(cwd, port, own, script=script, flags=flags) as process:
        server = Server(process, port, cwd / app_server.LOG)
        yield server
        # Before the server ends, which may meet a page that is still being imported.
        server.check_log()


def new_page(chromium: "Browser", *, width: int = 1280, height: int = 800) -> "Page":
    """A page of a Korean browser, which waits as long as a slow machine needs."""
    from playwright.sync_api import expect

    context = chromium.new_context(locale="ko-KR", viewport={"width": width, "height": height})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    # What is clicked while a page is drawn anew may belong to the one before, and does nothing.
    drawing = page.locator("[data-test-script-state=running][data-test-connection-state=CONNECTED]")
    page.add_locator_handler(drawing, lambda: None)
    return page


def upload(page: "Page", name: str, data: bytes) -> None:
    """Choose a file, as people do: once the page stands still, and again where it was not taken.

    A field that is drawn anew at that moment, on a page that still loads, keeps nothing.
    """
    from playwright.sync_api import TimeoutError as NotShown

    field = page.get_by_test_id("stFileUploaderDropzoneInput")
    for patience in (20_000, PATIENCE):
        page.locator("[data-test-script-state=notRunning]").wait_for()
        field.set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})
        try:
            page.get_by_test_id("stFileChipName").first.wait_for(timeout=patience)
        except NotShown:
            continue
        return
    raise AssertionError(f"{name} was not taken")


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
