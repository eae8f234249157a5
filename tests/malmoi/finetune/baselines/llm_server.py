"""A local server that speaks OpenAI's protocol: it answers, fails, stalls and babbles."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.malmoi.finetune.conftest import LABELS

KEY = "sk-test-0123456789"
# The label of each text is its first word.
TEXTS = [f"{label} 이야기 {number}" for number in range(4) for label in LABELS]
LABEL_IDS = [place % 3 for place in range(12)]
FOLD_OF = [1] * 6 + [2] * 6
USAGE = {"prompt_tokens": 100, "completion_tokens": 2}

Reply = Callable[["Request", str], None]


class Request(BaseHTTPRequestHandler):
    """One call, answered by the server's plan for this text, try by try; the last one repeats."""

    server: "Server"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][1]["content"]
        server = self.server
        with server.lock:
            server.asked.append(asked)
            server.paths.add(self.path)
            server.keys.add(self.headers["Authorization"])
            tries = sum(other["messages"][1]["content"] == text for other in server.asked)
        plan = server.plans.get(text, server.plan)
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has seen enough
            plan[min(tries, len(plan)) - 1](self, text)

    def log_message(self, *_: object) -> None:
        pass

    def send(self, status: int, body: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode())


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.lock = threading.Lock()
        self.ended = threading.Event()  # the test is over
        self.plan: list[Reply] = [right]
        self.plans: dict[str, list[Reply]] = {}
        self.asked: list[dict[str, Any]] = []
        self.paths: set[str] = set()
        self.keys: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def times_asked(self) -> Counter[str]:
        return Counter(asked["messages"][1]["content"] for asked in self.asked)


def completion(content: str | None, usage: dict[str, int] | None = USAGE) -> str:
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    return json.dumps({"id": "1", "choices": choices, "usage": usage})


def right(request: Request, text: str) -> None:
    request.send(200, completion(f" {text.split()[0]}\n"))


def say(content: str | None, usage: dict[str, int] | None = USAGE) -> Reply:
    return lambda request, text: request.send(200, completion(content, usage))


def fail(status: int, message: str = "overloaded", **more: str) -> Reply:
    body = json.dumps({"error": {"message": message, **more}})
    return lambda request, text: request.send(status, body, Retry_After="0")


def malformed(request: Request, text: str) -> None:
    request.send(200, '{"choices": [')


def stall(request: Request, text: str) -> None:
    request.server.ended.wait()


def drip(request: Request, text: str) -> None:
    """Alive, but never done: a byte now and then, as endpoints that keep connections open send."""
    request.send_response(200)
    request.end_headers()
    while not request.server.ended.wait(0.05):
        request.wfile.write(b" ")
        request.wfile.flush()


def cut_off(request: Request, text: str) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b'{"choi')
    request.wfile.flush()
    request.connection.shutdown(socket.SHUT_RDWR)
