"""Real servers on loopback, in processes of their own, with small models."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.malmoi.inference.conftest import (
    MakeModel,
    make_model,
    pairs_model,
    several_labels_model,
    values_model,
)

__all__ = [
    "make_model",
    "pairs_model",
    "several_labels_model",
    "values_model",
]

ROOT = Path(__file__).parents[3]
TOKEN = "correct-horse-battery-staple"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[str]
    url: str
    line: str

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def ask(self, path: str, value: Any = None, **headers: str) -> Answer:
        """GET, or POST of a JSON value (bytes as they are)."""
        body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        request = urllib.request.Request(self.url + path, body, sent)
        try:
            with urllib.request.urlopen(request, timeout=120) as found:
                return Answer(found.status, dict(found.headers), found.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())


@contextlib.contextmanager
def serving(*flags: object, **more: Any) -> Iterator[Server]:
    """A server that is ready; it is ended by SIGTERM."""
    command = [sys.executable, "-m", "malmoi", "serve", *map(str, flags), "--port=0"]
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, encoding="utf-8", stdout=subprocess.PIPE, **more
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert " at http://" in line, process.wait()
        yield Server(process, line.split(" at ")[1].split()[0], line)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="session")
def classifier_directory(make_model: MakeModel) -> Path:
    """One of three labels; its weights are so large that texts get different ones."""
    return make_model("memos-1", initializer_range=0.6)


@pytest.fixture(scope="session")
def server(classifier_directory: Path) -> Iterator[Server]:
    """One label of three; small limits, and a token."""
    flags = (
        "--max-body-mebibytes=0.5",
        "--max-texts=100",
        "--max-characters=2000",
        "--body-seconds=1",
    )
    with serving(classifier_directory, *flags, env=os.environ | {"MALMOI_TOKEN": TOKEN}) as found:
        yield found
