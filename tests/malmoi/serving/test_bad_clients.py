"""Garbage, huge, slow and too many requests: refused in time, and nobody else is disturbed."""

import contextlib
import gzip
import http.client
import json
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from malmoi.serving.application import make_application
from malmoi.serving.limits import Limits
from malmoi.serving.metrics import Metrics
from tests.malmoi.finetune.conftest import separable
from tests.malmoi.serving.conftest import TOKEN, Server, alone
from tests.malmoi.serving.test_batcher import Watched

TEXTS = [text for text, _ in separable()]
HEAD = (
    "POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    f"Authorization: Bearer {TOKEN}\r\n"
)
# The server of the tests takes half a MiB, and waits a second.
LIMIT, PATIENCE = 2**19, 1.0


@contextlib.contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        yield connection


def answer_of(connection: socket.socket) -> tuple[int, Any]:
    found = http.client.HTTPResponse(connection)
    found.begin()
    body = found.read()
    return found.status, json.loads(body) if body[:1] == b"{" else body.decode()


def wait_until_closed(connection: socket.socket) -> None:
    """Read until the other side closes, with or without an answer; a timeout is an error."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65_536):
            pass


def chunk(size: int) -> bytes:
    return f"{size:x}\r\n".encode() + b" " * size + b"\r\n"


def test_a_body_that_is_announced_as_too_large_is_not_read(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(f"{HEAD}Content-Length: {2**40}\r\n\r\n".encode())
        status, body = answer_of(connection)
    assert status == 413 and "at most 524,288 bytes" in body["error"]


def test_a_body_in_chunks_is_counted_while_it_comes(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(2 * LIMIT // 65_536):  # sent whole, though half would do
            connection.sendall(chunk(65_536))
        connection.sendall(b"0\r\n\r\n")
        status, body = answer_of(connection)
    assert status == 413 and "at most 524,288 bytes" in body["error"]


def test_a_body_in_chunks_below_the_limit_is_taken(server: Server) -> None:
    body = json.dumps({"text": "꿈에서"}).encode()
    with connected(server) as connection:
        connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        for place in range(len(body)):
            connection.sendall(b"1\r\n" + body[place : place + 1] + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        status, found = answer_of(connection)
    assert status == 200 and len(found["predictions"]) == 1


def test_a_body_in_gzip_is_unpacked_within_the_limit(server: Server) -> None:
    body = json.dumps({"text": "꿈에서"}).encode()
    packed = gzip.compress(body)
    bomb = gzip.compress(b" " * 2**28)
    assert len(bomb) < LIMIT
    for sent, encoding, status, fact in (
        (packed, "gzip", 200, "predictions"),
        (packed, "X-GZIP", 200, "predictions"),
        (body, "identity", 200, "predictions"),
        (bomb, "gzip", 413, "at most 524,288 bytes"),
        (packed[:-9], "gzip", 400, "packed by gzip"),
        (packed + packed, "gzip", 400, "packed by gzip"),
        (body, "gzip", 400, "packed by gzip"),
        (packed, "br", 415, "expected Content-Encoding: gzip or none, found br"),
        (packed, "gzip, gzip", 415, "found gzip, gzip"),
    ):
        given = {"Authorization": f"Bearer {TOKEN}", "Content_Encoding": encoding}
        found = server.ask("/v1/predict", sent, **given)
        assert found.status == status and fact in found.body.decode(), (encoding, found)


def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(server: Server) -> None:
    hidden = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected(server) as connection:
        lengths = f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(f"{HEAD}{lengths}".encode() + hidden)
        status, body = answer_of(connection)
        assert status == 400 and "expected Content-Length or Transfer-Encoding" in body["error"]
        assert connection.recv(65_536) == b""


def test_a_body_that_comes_too_slowly_is_refused(server: Server) -> None:
    with connected(server) as connection:
        began = time.monotonic()
        connection.sendall(f'{HEAD}Content-Length: 100\r\n\r\n{{"text": '.encode())
        status, body = answer_of(connection)
        assert PATIENCE <= time.monotonic() - began < 30
    assert status == 408 and "within 1 seconds, found 9 bytes" in body["error"]


def test_a_head_that_does_not_come_ends_the_connection(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        opened = {
            begun: stack.enter_context(connected(server))
            for begun in ("", "POST /v1/pre", HEAD, "GET /hea")
        }
        # The last is the second on its connection.
        opened["GET /hea"].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer_of(opened["GET /hea"])[0] == 200
        began = time.monotonic()
        for begun, connection in opened.items():
            connection.sendall(begun.encode())
        for begun, connection in opened.items():
            wait_until_closed(connection)
            assert time.monotonic() - began < 30, begun


def test_garbage_is_refused(server: Server) -> None:
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000,
    ):
        with connected(server) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(garbage + b"\r\n\r\n")
                connection.shutdown(socket.SHUT_WR)
            found = b"reset"
            with contextlib.suppress(ConnectionResetError):
                found = connection.recv(65_536)
        # What is longer than is read may end the connection before the answer is read.
        assert b" 400 " in found or (found == b"reset" and len(garbage) > 65_536), garbage[:20]
        assert server.ask("/health").status == 200


def ask_for(seconds: float, server: Server) -> list[float]:
    """A client that asks one request after the other; seconds of each, all answers being right."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    until, found = time.monotonic() + seconds, []
    while time.monotonic() < until:
        texts = TEXTS[len(found) % 50 :][:4]
        began = time.monotonic()
        connection.request("POST", "/v1/predict", json.dumps({"texts": texts}), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        found.append(time.monotonic() - began)
        assert response.status == 200 and len(answer["predictions"]) == 4
    connection.close()
    return found


def bad_clients(server: Server) -> list[Callable[[], None]]:
    """What each does once."""

    def garbage() -> None:
        with connected(server) as connection, contextlib.suppress(OSError):
            connection.sendall(b"\x00\xff" * 3000 + b"\r\n\r\n")
            wait_until_closed(connection)

    def no_json() -> None:
        assert server.ask("/v1/predict", b"{", Authorization=f"Bearer {TOKEN}").status == 400

    def huge() -> None:
        with connected(server) as connection, contextlib.suppress(OSError):
            connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
            for _ in range(2 * LIMIT // 65_536):
                connection.sendall(chunk(65_536))
            wait_until_closed(connection)

    def full() -> None:
        texts = [f"{TEXTS[place % 63]} {place}" * 20 for place in range(100)]
        found = server.ask("/v1/predict", {"texts": texts}, Authorization=f"Bearer {TOKEN}")
        assert found.status == 200

    def slow() -> None:
        with connected(server) as connection, contextlib.suppress(OSError):
            connection.sendall(f"{HEAD}Content-Length: 100\r\n\r\n".encode())
            for _ in range(20):
                connection.sendall(b" ")
                time.sleep(0.1)
            wait_until_closed(connection)

    def gone() -> None:
        with connected(server) as connection:
            connection.sendall(f"{HEAD}Content-Length: 100\r\n\r\n".encode())

    return [garbage, no_json, huge, full, slow, slow, slow, gone]


def test_bad_clients_do_not_disturb_the_others(server: Server) -> None:
    stop = threading.Event()

    def keep_on(work: Callable[[], None]) -> int:
        times = 0
        while not stop.is_set():
            work()
            times += 1
            time.sleep(0.05)
        return times

    alone = ask_for(1, server)
    with ThreadPoolExecutor(12) as pool:
        bad = [pool.submit(keep_on, work) for work in bad_clients(server)]
        good = [pool.submit(ask_for, 4, server) for _ in range(3)]
        times = [each for one in good for each in one.result()]
        stop.set()
        assert min(each.result() for each in bad) >= 1
    # A request waits for one batch at most, of this size some tens of milliseconds; the slowest
    # client takes two seconds.
    assert len(times) >= 30
    assert statistics.median(times) < 20 * statistics.median(alone) + 0.2
    assert server.ask("/health").json["waiting"] == 0


def test_a_server_that_computes_no_more_says_that_it_has_to_be_restarted(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(self: object, texts: int) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Metrics, "batch", defect)
    application = make_application(alone(Watched.of(classifier_directory)))
    with TestClient(application) as client:
        assert client.get("/health").status_code == 200
        for found in (client.post("/v1/predict", json={"text": "꿈"}), client.get("/health")):
            assert found.status_code == 500 and "restart the server" in found.json()["error"]


def test_too_many_waiting_requests_and_late_answers(classifier_directory: Path) -> None:
    slow = Watched.of(classifier_directory)
    slow.go.clear()
    limits = Limits(max_waiting=2, answer_seconds=2.0)
    with (
        TestClient(make_application(alone(slow), limits=limits)) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        late = [pool.submit(client.post, "/v1/predict", json={"text": "꿈"}) for _ in range(2)]
        while client.get("/health").status_code == 200:
            time.sleep(0.01)
        assert client.get("/health").json()["status"] == "BUSY"
        refused = client.post("/v1/predict", json={"text": "꿈"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"] == "too many requests wait; try again later"
        for each in late:
            found = each.result()
            assert (found.status_code, found.headers["retry-after"]) == (503, "1")
            assert "no answer within 2 seconds" in found.json()["error"]
        assert client.get("/health").json()["status"] == "UP"
        slow.go.set()
        assert client.post("/v1/predict", json={"text": "꿈"}).status_code == 200
