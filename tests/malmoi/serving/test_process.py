"""`malmoi serve` as a process: how it starts, how it ends, and one line for every mistake."""

import json
import os
import pty
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from malmoi.__main__ import main
from tests.malmoi.serving.conftest import ENGINE, TOKEN, Server, serving
from tests.malmoi.serving.test_bad_clients import answer_of

BODY = json.dumps({"text": "꿈에서"}).encode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_without_an_error_after_the_requests_that_have_come(
    classifier_directory: Path, home: Path, number: signal.Signals
) -> None:
    flags = [classifier_directory, f"--engine={ENGINE}"]
    with serving(*flags, home=home, stderr=subprocess.PIPE) as server:
        assert server.line.startswith("memos-1 by onnx-fp32 at http://127.0.0.1:")
        host = ("127.0.0.1", server.port)
        with socket.create_connection(host, 60) as busy, socket.create_connection(host, 60):
            head = "POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            busy.sendall(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY[:5])
            while server.ask("/health").status != 200:  # the head has come by now
                pass
            server.process.send_signal(number)
            with pytest.raises(OSError):
                while True:  # nobody new is let in
                    socket.create_connection(host, 60).close()
                    time.sleep(0.01)
            busy.sendall(BODY[5:])
            status, found = answer_of(busy)
        assert status == 200 and len(found["predictions"]) == 1
        assert server.process.wait(60) == 0
        assert server.process.stderr is not None
        with server.process.stderr as errors:
            assert errors.read() == ""


def test_it_ends_when_its_terminal_is_closed(classifier_directory: Path, home: Path) -> None:
    ours, its_own = pty.openpty()
    flags = [classifier_directory, f"--engine={ENGINE}"]
    with serving(*flags, home=home, stderr=its_own) as server:
        os.close(its_own)
        os.close(ours)
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(60) == 0


def test_a_port_in_use_and_other_mistakes_are_one_line(
    server: Server,
    classifier_directory: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = tmp_path / "token.txt"
    short.write_text("abc\n")
    model = str(classifier_directory)
    for flags, line in (
        ([model, f"--port={server.port}"], f"port {server.port} of 127.0.0.1 is in use"),
        ([model, "--port=70000"], "expected --port from 0 (any that is free) to 65535"),
        ([model, "--host=no.such.host.invalid"], "expected --host to be an address"),
        ([model, "--host=203.0.113.1"], "cannot listen on 203.0.113.1"),
        (["no/where/x"], "no model directory no/where/x"),
        ([model, "--also", "spam=no/where/x"], "no model directory no/where/x"),
        ([model, "--also", "default=x"], "expected --also NAME=MODEL with another name"),
        ([model, "--also", f"a={model}", "a/b=x"], "found a/b=x"),
        ([model, f"--token-file={short}"], "expected a token of at least 16 ASCII characters"),
        ([model, f"--token-file={tmp_path / 'none'}"], "expected a token in"),
        ([model, "--answer-seconds=0"], "expected --answer-seconds above 0, found 0"),
    ):
        assert main(["serve", *flags]) == 2
        printed = capsys.readouterr()
        assert printed.err.startswith("error: ") and line in printed.err
        assert printed.err.count("\n") == 1 and printed.out == ""


def test_only_this_machine_reaches_it_by_default(server: Server) -> None:
    with pytest.raises(ConnectionRefusedError):  # another address, though of this machine, too
        socket.create_connection(("127.0.0.2", server.port), 5).close()


def test_every_address_with_a_token_of_a_file(
    classifier_directory: Path, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token.txt"
    file.write_text(f"{TOKEN}\n")
    flags = [classifier_directory, f"--engine={ENGINE}", "--host=0.0.0.0", "--threads=1"]
    with serving(*flags, f"--token-file={file}", home=home, stderr=subprocess.PIPE) as server:
        reached = Server(server.process, f"http://127.0.0.2:{server.port}", server.line)
        assert reached.ask("/v1/labels").status == 401
        assert reached.ask("/v1/labels", Authorization=f"Bearer {TOKEN}").status == 200
    assert server.process.stderr is not None
    with server.process.stderr as errors:
        assert errors.read() == ""
    with serving(*flags, home=home, stderr=subprocess.PIPE) as server:
        reached = Server(server.process, f"http://127.0.0.2:{server.port}", server.line)
        assert reached.ask("/v1/labels").status == 200
    assert server.process.stderr is not None
    with server.process.stderr as errors:
        assert "whoever can reach 0.0.0.0 may use it, unencrypted" in errors.read()
