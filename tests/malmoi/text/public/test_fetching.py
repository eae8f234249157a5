"""Fetching against a real server that cuts, lies, ignores ranges, stalls and refuses."""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from malmoi.__main__ import main as corpora_command
from malmoi.errors import InputError
from malmoi.text.public import catalog
from malmoi.text.public.description import PublicSource, RemoteFile, Variant
from malmoi.text.public.download import Retries
from malmoi.text.public.fetch_progress import FetchProgress
from malmoi.text.public.fetching import Outcome, fetch_source

DATA = "".join(f"{n}\t재밌다 ㅋㅋ {n}\t1\n" for n in range(20_000)).encode()
QUICK = Retries(tries=3, first_wait_seconds=0.01, connect_seconds=300, read_seconds=300)


class Request(BaseHTTPRequestHandler):
    """One request, answered by the next step of the plan; the last step repeats."""

    server: "Server"

    def do_GET(self) -> None:
        self.server.ranges.append(self.headers["Range"])
        step = min(len(self.server.ranges), len(self.server.plan)) - 1
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has seen enough
            self.server.plan[step](self)

    def log_message(self, *_: object) -> None:
        pass

    @property
    def start(self) -> int:
        found = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "bytes=0-")
        assert found
        return int(found[1])

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
        self.ranges: list[str | None] = []
        self.ended = threading.Event()  # the test is over

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/ratings.txt"


def send(
    data: bytes = DATA,
    *,
    cut_at: int | None = None,
    ranges: bool = True,
    length: bool = True,
    content_range: str | None = None,
    content_type: str = "text/plain",
    pause: float = 0.0,
) -> Callable[[Request], None]:
    """Answer with data, from where the request asks to where the connection is cut."""

    def step(request: Request) -> None:
        start = request.start if ranges else 0
        headers: dict[str, object] = {"Content_Type": content_type}
        if length:
            headers["Content_Length"] = len(data) - start
        if start:
            span = f"bytes {start}-{len(data) - 1}/{len(data)}"
            headers["Content_Range"] = content_range if content_range is not None else span
        request.head(206 if start else 200, **headers)
        for place in range(start, len(data) if cut_at is None else cut_at, 100_000):
            end = min(place + 100_000, len(data) if cut_at is None else cut_at)
            request.wfile.write(data[place:end])
            time.sleep(pause)
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


def fetch(
    described: PublicSource, folder: Path, mirror: Path | None = None, patience: Retries = QUICK
) -> Outcome:
    progress = FetchProgress()
    return fetch_source(described, folder, progress=progress, mirror=mirror, patience=patience)


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
    }
    assert fetch(source(server.url), folder).kept == ("ratings.txt",)
    assert server.ranges == [None]


PART = DATA[:100_000]
# What lies there, what the server does, which ranges it is asked for until the file is whole.
WAYS: dict[str, tuple[bytes, list[Callable[[Request], None]], list[int | None]]] = {
    "cut, cut, cut, whole": (
        b"",
        [send(cut_at=150_000), send(cut_at=150_001), send(cut_at=400_000), send()],
        [None, 150_000, 150_001, 400_000],
    ),
    "ends early, without a length": (
        b"",
        [send(cut_at=150_000, length=False), send()],
        [None, 150_000],
    ),
    "ranges are ignored": (
        b"",
        [send(cut_at=150_000), send(ranges=False, cut_at=90_000), send(ranges=False)],
        [None, 150_000, 90_000],
    ),
    "the part of another file": (b"x" * 1_000, [send()], [1_000, None]),
    "a part longer than the file": (DATA + b"x", [send()], [None]),
    "a whole part": (DATA, [send()], []),
    "busy": (b"", [answer(503), answer(429, Retry_After="0"), send()], [None] * 3),
    "elsewhere": (b"", [answer(302, Location="/elsewhere"), send()], [None] * 2),
}


def test_a_file_comes_whole_whatever_lies_there_and_happens_on_its_way(
    server: Server, tmp_path: Path
) -> None:
    for name, (part, plan, ranges) in WAYS.items():
        folder = tmp_path / name
        folder.mkdir()
        if part:
            (folder / "ratings.txt.part").write_bytes(part)
        server.plan = plan
        server.ranges.clear()
        fetch(source(server.url), folder)
        assert (folder / "ratings.txt").read_bytes() == DATA, name
        asked = [None if start is None else f"bytes={start}-" for start in ranges]
        assert server.ranges == asked, name
    # Of a file whose size is not known.
    folder = tmp_path / "size unknown"
    folder.mkdir()
    (folder / "ratings.txt.part").write_bytes(DATA)
    server.plan = [answer(416, Content_Range=f"bytes */{len(DATA)}")]
    fetch(source(server.url, size=False), folder)
    assert (folder / "ratings.txt").read_bytes() == DATA
    server.plan = [send(cut_at=150_000), send()]
    server.ranges.clear()
    fetch(source(server.url, size=False), tmp_path / "size unknown, cut")
    assert server.ranges == [None, "bytes=150000-"]


def test_anything_but_the_file_is_one_line_after_one_request(
    server: Server, tmp_path: Path
) -> None:
    wrong = DATA[:-3] + b"0\n\n"
    for step, found in (
        (answer(404), "404"),
        (answer(403), "403"),
        (answer(416), "416"),
        (answer(206, DATA), "206"),
        (send(DATA + b"x"), f"{len(DATA):,} bytes"),
        (send(DATA[:-1]), f"{len(DATA):,} bytes"),
        (send(DATA * 2, length=False), f"{len(DATA):,} bytes"),
        (send(b"<p>", content_type="text/html; charset=utf-8"), "HTML"),
        (send(b"\n<!DOCTYPE html>" + DATA, length=False), "HTML"),
        (answer(200, DATA, Content_Encoding="gzip"), "gzip"),
        (send(wrong), f"{sha256(DATA)}, found {sha256(wrong)}"),
    ):
        server.plan = [step]
        server.ranges.clear()
        message = error_of(source(server.url), tmp_path / "new")
        assert message.startswith(server.url) and found in message
        assert server.ranges == [None]
        assert not (tmp_path / "new").exists(), found


def test_a_range_that_is_none_of_the_file_is_refused_and_nothing_is_kept(
    server: Server, tmp_path: Path
) -> None:
    for content_range in (
        "",
        "bytes 0-99/100",
        "bytes 100001-5/5",
        "lines 100000-5/9",
        "bytes 100000",
        f"bytes 100000-{len(DATA)}/{len(DATA) + 1}",
        None,
    ):
        folder = tmp_path / "new"
        folder.mkdir()
        (folder / "ratings.txt.part").write_bytes(PART)
        other = content_range is not None
        server.plan = [send(content_range=content_range) if other else answer(416)]
        message = error_of(source(server.url), folder)
        found = "416" if content_range is None else repr(content_range)
        assert found in message or f"{len(DATA) + 1:,}" in message
        assert not folder.exists()


def test_a_connection_that_is_always_cut_at_the_same_place_ends(
    server: Server, tmp_path: Path
) -> None:
    server.plan = [send(cut_at=150_000)]
    message = error_of(source(server.url), tmp_path)
    assert "after 3 tries" in message
    assert "goes on at byte 150,000" in message
    assert files(tmp_path) == ["ratings.txt.part"]
    server.plan = [send()]
    fetch(source(server.url), tmp_path)
    assert server.ranges[-1] == "bytes=150000-"
    assert (tmp_path / "ratings.txt").read_bytes() == DATA


def test_nobody_there(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    message = error_of(source(f"http://127.0.0.1:{port}/a.txt"), tmp_path / "new")
    assert "none after 3 tries" in message
    assert "use --from FOLDER" in message
    assert files(tmp_path) == []


def test_a_slow_server_is_waited_for_and_a_silent_one_asked_again(
    server: Server, tmp_path: Path
) -> None:
    # Longer in all than the patience, but never silent for a fourth of it.
    server.plan = [stall, send(pause=0.5)]
    fetch(source(server.url), tmp_path, patience=replace(QUICK, read_seconds=2))
    assert (tmp_path / "ratings.txt").read_bytes() == DATA
    assert server.ranges == [None, "bytes=150000-"]


def test_a_file_of_unknown_hash_is_recorded_and_holds_from_then_on(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = source(server.url, known=False)
    (tmp_path / "ratings.txt.part").write_bytes(b"of another version")
    server.plan = [send(cut_at=150_000), send(), send(DATA + b"changed")]
    fetch(described, tmp_path)
    assert server.ranges == [None, None]  # nothing could tell a splice of two versions
    assert f"{sha256(DATA)} is recorded" in capsys.readouterr().out
    assert fetch(described, tmp_path).kept == ("ratings.txt",)

    (tmp_path / "ratings.txt").unlink()
    assert f"expected SHA-256 {sha256(DATA)}, found" in error_of(described, tmp_path)
    (tmp_path / "ratings.txt").write_bytes(b"edited")
    assert "it is not the original: move it away" in error_of(described, tmp_path)
    assert (tmp_path / "ratings.txt").read_bytes() == b"edited"


def test_an_unknown_file_whose_server_always_cuts_ends(server: Server, tmp_path: Path) -> None:
    server.plan = [send(cut_at=150_000)]
    assert "none after 3 tries" in error_of(source(server.url, known=False), tmp_path)
    assert server.ranges == [None, None, None]


def test_a_killed_fetch_goes_on(server: Server, tmp_path: Path) -> None:
    server.plan = [stall, send()]
    script = f"""
        from pathlib import Path
        from malmoi.text.public.fetch_progress import FetchProgress
        from malmoi.text.public.fetching import fetch_source
        from malmoi.text.public.description import PublicSource, RemoteFile
        file = RemoteFile(name="ratings.txt", url={server.url!r}, sha256={sha256(DATA)!r},
                          size={len(DATA)})
        source = PublicSource(name="test", about="", homepage="", licence="", citation="",
                              labels="", texts=1, files=(file,))
        fetch_source(source, Path({str(tmp_path)!r}), progress=FetchProgress())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    part = tmp_path / "ratings.txt.part"
    process = subprocess.Popen(command)
    while not part.exists() or part.stat().st_size < 100_000:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert files(tmp_path) == ["ratings.txt.part"]
    there = part.stat().st_size
    assert there < len(DATA)

    subprocess.run(command, check=True)
    assert server.ranges == [None, f"bytes={there}-"]
    assert (tmp_path / "ratings.txt").read_bytes() == DATA
    assert files(tmp_path) == ["SOURCE.json", "ratings.txt"]


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
    assert "found one of 7" in error_of(source(server.url, variants=(variant,)), tmp_path)


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
    monkeypatch.setitem(catalog.SOURCES, "test", source(server.url))
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
        (["fetch", "zzz"], "expected the name of a public source (nsmc, nsmc_rated, kote,"),
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
    assert "expected a proxy" in error_of(address, tmp_path / "out")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "ratings.txt").write_bytes(DATA)
    assert fetch(address, tmp_path / "out", tmp_path / "mirror").fetched == ("ratings.txt",)
