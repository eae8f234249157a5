"""Fetching against a real server that cuts, lies, stalls and refuses."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from malmoi.__main__ import main as corpora_command
from malmoi.errors import InputError
from malmoi.text.public import catalog, fetching
from malmoi.text.public.description import PublicSource, RemoteFile, Variant
from malmoi.text.public.fetching import Outcome, fetch_source

DATA = "".join(f"{n}\t재밌다 ㅋㅋ {n}\t1\n" for n in range(20_000)).encode()
TRIES = 3


class Request(BaseHTTPRequestHandler):
    """One request, answered by the next step of the plan; the last step repeats."""

    server: "Server"

    def do_GET(self) -> None:
        self.server.asked += 1
        step = min(self.server.asked, len(self.server.plan)) - 1
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has seen enough
            self.server.plan[step](self)

    def log_message(self, *_: object) -> None:
        pass

    def head(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def cut_off(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.plan: list[Callable[[Request], None]] = [send()]
        self.asked = 0
        self.ended = threading.Event()  # the test is over

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/ratings.txt"


def send(
    data: bytes = DATA,
    *,
    cut_at: int | None = None,
    length: bool = True,
    content_type: str = "text/plain",
) -> Callable[[Request], None]:
    """Answer with data, to where the connection is cut."""

    def step(request: Request) -> None:
        headers: dict[str, object] = {"Content_Type": content_type}
        if length:
            headers["Content_Length"] = len(data)
        request.head(200, **headers)
        request.wfile.write(data[:cut_at])
        if cut_at is not None:
            request.cut_off()

    return step


def answer(status: int, body: bytes = b"", **headers: object) -> Callable[[Request], None]:
    def step(request: Request) -> None:
        request.head(status, Content_Length=len(body), **headers)
        request.wfile.write(body)

    return step


def stall(request: Request) -> None:
    request.head(200, Content_Length=len(DATA))
    request.wfile.write(DATA[:150_000])
    request.wfile.flush()
    request.server.ended.wait()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.ended.set()
        server.shutdown()
        thread.join()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def source(
    url: str,
    *,
    name: str = "ratings.txt",
    known: bool = True,
    size: bool = True,
    variants: tuple[Variant, ...] = (),
) -> PublicSource:
    file = RemoteFile(
        name=name,
        url=url,
        sha256=sha256(DATA) if known else None,
        size=len(DATA) if known and size else None,
        variants=variants,
    )
    return PublicSource(
        name="test",
        about="a test",
        homepage=url,
        licence="CC0 1.0",
        citation="nobody",
        labels="none",
        texts=20_000,
        files=(file,),
    )


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between tries; nobody waits for it."""
    waited: list[float] = []
    monkeypatch.setattr("pooch.core.time.sleep", waited.append)
    return waited


def fetch(described: PublicSource, folder: Path, mirror: Path | None = None) -> Outcome:
    return fetch_source(described, folder, mirror=mirror, tries=TRIES)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def error_of(described: PublicSource, folder: Path, mirror: Path | None = None) -> str:
    with pytest.raises(InputError) as caught:
        fetch(described, folder, mirror)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_comes_whole_and_only_once(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "test"
    assert fetch(source(server.url), folder).fetched == ("ratings.txt",)
    assert (folder / "ratings.txt").read_bytes() == DATA
    assert files(folder) == ["SOURCE.json", "ratings.txt"]
    written = json.loads((folder / "SOURCE.json").read_text(encoding="utf-8"))
    assert written["source"] == "test"
    assert written["files"]["ratings.txt"] == {
        "url": server.url,
        "sha256": sha256(DATA),
        "size": len(DATA),
        "note": "",
        "layout": None,
    }
    assert fetch(source(server.url), folder).kept == ("ratings.txt",)
    assert server.asked == 1


def test_a_file_comes_whole_whatever_happens_on_its_way(
    server: Server, tmp_path: Path, waits: list[float]
) -> None:
    for name, plan in {
        "cut, cut, whole": [send(cut_at=150_000), send(cut_at=150_001), send()],
        "ends early, without a length": [send(cut_at=150_000, length=False), send()],
        "busy": [answer(503), answer(429), send()],
        "damaged": [send(DATA[:-1] + b"x"), send()],
        "elsewhere": [answer(302, Location="/elsewhere"), send()],
    }.items():
        server.plan, server.asked = plan, 0
        waits.clear()
        fetch(source(server.url), tmp_path / name)
        assert (tmp_path / name / "ratings.txt").read_bytes() == DATA, name
        assert server.asked == len(plan), name
        assert len(waits) == (0 if name == "elsewhere" else len(plan) - 1), name


def test_anything_but_the_file_is_one_line_and_nothing_is_kept(
    server: Server, tmp_path: Path
) -> None:
    for step, found in (
        (answer(404), "404"),
        (answer(503), "after 3 tries"),
        (send(cut_at=150_000), "after 3 tries"),
        (send(DATA + b"x"), f"expected SHA-256 {sha256(DATA)}"),
        (send(b"<p>", content_type="text/html; charset=utf-8"), "found another file"),
    ):
        server.plan, server.asked = [step], 0
        message = error_of(source(server.url), tmp_path / "new")
        assert message.startswith(server.url) and found in message
        assert server.asked == TRIES
        assert not (tmp_path / "new").exists(), found
    # Without a hash nothing else would tell it.
    server.plan = [send(b"\n<!DOCTYPE html>" + DATA, length=False)]
    assert "found an HTML page" in error_of(source(server.url, known=False), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nobody_there(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    message = error_of(source(f"http://127.0.0.1:{port}/a.txt"), tmp_path / "new")
    assert "none after 3 tries" in message
    assert "use --from FOLDER" in message
    assert files(tmp_path) == []


def test_a_silent_server_is_asked_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_SECONDS", (300, 2))
    server.plan = [stall, send()]
    fetch(source(server.url), tmp_path)
    assert (tmp_path / "ratings.txt").read_bytes() == DATA


def test_a_file_of_unknown_hash_is_recorded_and_holds_from_then_on(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = source(server.url, known=False)
    server.plan = [send(), send(DATA + b"changed")]
    fetch(described, tmp_path)
    assert f"{sha256(DATA)} is recorded" in capsys.readouterr().out
    assert fetch(described, tmp_path).kept == ("ratings.txt",)

    (tmp_path / "ratings.txt").unlink()
    assert f"expected SHA-256 {sha256(DATA)}, found another" in error_of(described, tmp_path)
    (tmp_path / "ratings.txt").write_bytes(b"edited")
    assert "it is not the original: move it away" in error_of(described, tmp_path)
    assert (tmp_path / "ratings.txt").read_bytes() == b"edited"


def test_a_killed_fetch_leaves_what_is_whole_and_goes_on(server: Server, tmp_path: Path) -> None:
    script = f"""
        from dataclasses import replace
        from pathlib import Path
        from malmoi.text.public.fetching import fetch_source
        from malmoi.text.public.description import PublicSource, RemoteFile
        first = RemoteFile(name="ratings.txt", url={server.url!r}, sha256={sha256(DATA)!r})
        files = (first, replace(first, name="more.txt"))
        source = PublicSource(name="test", about="", homepage="", licence="", citation="",
                              labels="", files=files)
        fetch_source(source, Path({str(tmp_path)!r}))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    server.plan = [send(), stall, send()]
    process = subprocess.Popen(command)
    while server.asked < 2:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert files(tmp_path) == ["SOURCE.json", "ratings.txt"]
    subprocess.run(command, check=True)
    assert server.asked == 3
    assert files(tmp_path) == ["SOURCE.json", "more.txt", "ratings.txt"]
    assert (tmp_path / "more.txt").read_bytes() == DATA


def test_a_second_fetch_into_the_folder_is_refused(server: Server, tmp_path: Path) -> None:
    held, refused = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        held.set()
        refused.wait()
        send()(request)

    server.plan = [hold]
    first = threading.Thread(target=fetch, args=(source(server.url), tmp_path))
    first.start()
    assert held.wait(300)
    try:
        assert "found another fetch under way" in error_of(source(server.url), tmp_path)
    finally:
        refused.set()
    first.join()
    assert (tmp_path / "ratings.txt").read_bytes() == DATA


def test_a_variant_is_not_accepted_from_the_network(server: Server, tmp_path: Path) -> None:
    server.plan = [send(b"rebuilt")]
    variant = Variant(sha256=sha256(b"rebuilt"), size=7, note="rebuilt")
    assert "found another file" in error_of(source(server.url, variants=(variant,)), tmp_path)


def test_a_damaged_record_is_one_line(tmp_path: Path) -> None:
    for content in ("{", "[]", '{"files": {"a": 1}}', '{"files": {}, "x": 1}'):
        (tmp_path / "SOURCE.json").write_text(content)
        assert "expected what `malmoi fetch` writes" in error_of(
            source("https://example.org/ratings.txt"), tmp_path
        )


def test_a_folder_of_another_source_is_left_alone(server: Server, tmp_path: Path) -> None:
    fetch(source(server.url), tmp_path)
    assert corpora_command(["fetch", "nsmc", "--output", str(tmp_path)]) == 2
    assert files(tmp_path) == ["SOURCE.json", "ratings.txt"]


def test_the_command(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(catalog.sources(), "test", source(server.url))
    assert corpora_command(["fetch", "test"]) == 0
    out = capsys.readouterr().out
    assert "SHA-256 verified" in out
    assert "licence: CC0 1.0\ncitation: nobody\n" in out
    assert (tmp_path / "data" / "test" / "ratings.txt").read_bytes() == DATA
    assert corpora_command(["list"]) == 0
    row = next(line for line in capsys.readouterr().out.split("\n") if line.startswith("test\t"))
    assert row.endswith("yes")


def test_bad_arguments_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, message in (
        (["fetch", "nsmcc"], "did you mean nsmc?"),
        (["fetch", "zzz"], "expected the name of a public source (boddari_tales, chatbot,"),
        (["fetch", "steam", "--from", "."], "expected files of steam (steam.txt, …), found none"),
        (["fetch", "steam", "--from", "nowhere"], "expected a folder for --from, found nowhere"),
        (["fetch", "hub:a/b", "--from", "."], "expected no --from with hub:a/b"),
        (["fetchh"], "expected a command of list, fetch, "),
    ):
        monkeypatch.chdir(tmp_path)
        assert corpora_command(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert message in error
        assert error.count("\n") == 1
        assert files(tmp_path) == []


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "odd://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_named_and_a_mirror_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    address = source("https://example.org/ratings.txt")
    assert "expected the file, found none" in error_of(address, tmp_path / "out")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "ratings.txt").write_bytes(DATA)
    assert fetch(address, tmp_path / "out", tmp_path / "mirror").fetched == ("ratings.txt",)
