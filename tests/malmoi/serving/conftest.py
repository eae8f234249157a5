"""Real servers on loopback, in processes of their own, with small models."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from malmoi import cache
from malmoi.inference.classifier import Classifier
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore
from malmoi.serving.models import DEFAULT, Models, ServedModel
from tests.malmoi.inference.conftest import (
    MakeModel,
    make_model,
    pairs_model,
    several_labels_model,
    values_model,
)
from tests.malmoi.labels.conftest import any_url, postgres_server, postgres_url

__all__ = [
    "any_url",
    "make_model",
    "pairs_model",
    "postgres_server",
    "postgres_url",
    "several_labels_model",
    "values_model",
]

ROOT = Path(__file__).parents[3]
ENGINE = "onnx-fp32"
TOKEN = "correct-horse-battery-staple"
ADMIN = Person(name="관리자", is_local=True)
PEOPLE = {"민지": "annotator", "서준": "annotator", "하윤": "reviewer"}


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

    def ask(
        self, path: str, value: Any = None, *, method: str | None = None, **headers: str
    ) -> Answer:
        """GET, or POST of a JSON value (bytes as they are), or another method."""
        body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        request = urllib.request.Request(self.url + path, body, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as found:
                return Answer(found.status, dict(found.headers), found.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())


def alone(classifier: Classifier, version: str = "1") -> Models:
    """A classifier as the only model of a server, which loads no other."""
    served = ServedModel(name=DEFAULT, source="none", version=version, classifier=classifier)
    return Models({DEFAULT: served}, lambda name, source: served)


def free_port() -> int:
    """A port for a program that cannot choose one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextlib.contextmanager
def serving(
    *flags: object,
    home: Path,
    program: Sequence[str] = ("-m", "malmoi"),
    token: str | None = None,
    **more: Any,
) -> Iterator[Server]:
    """A server that is ready; it is ended by SIGTERM."""
    command = [sys.executable, *program, "serve", *map(str, flags), "--port=0"]
    environment = os.environ | {"MALMOI_HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment.pop("MALMOI_ENGINE", None)
    if token is not None:
        environment["MALMOI_TOKEN"] = token
    process = subprocess.Popen(
        command,
        cwd=home,
        env=environment,
        text=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        **more,
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
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MALMOI_HOME of the servers, with a cache of exports."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _same_cache(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(cache, "CACHE", home / "runs" / "cache")


@pytest.fixture(scope="session")
def classifier_directory(make_model: MakeModel, home: Path) -> Path:
    """One of three labels; its weights are so large that texts get different ones.

    It is exported, so that a server of it starts without torch.
    """
    directory = make_model("memos-1", initializer_range=0.6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "CACHE", home / "runs" / "cache")
        Classifier.load(directory, ENGINE)
    return directory


@pytest.fixture(scope="session")
def server(classifier_directory: Path, home: Path) -> Iterator[Server]:
    """One label of three; small limits, and a token."""
    flags = (
        f"--engine={ENGINE}",
        "--max-body-mebibytes=0.5",
        "--max-texts=100",
        "--max-characters=2000",
        "--body-seconds=1",
    )
    with serving(classifier_directory, *flags, home=home, token=TOKEN) as found:
        yield found


class Labels(NamedTuple):
    """The URL of a database with a project, and the tokens of its people."""

    database: str
    tokens: dict[str, str]


def run_labels(home: Path, *flags: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "malmoi", "labels", *map(str, flags)],
        cwd=home,
        env=os.environ | {"MALMOI_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def labels(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Labels:
    """In SQLite, or where a test is parametrised indirectly by `postgresql` there."""
    database = f"sqlite:///{tmp_path}/labels.db"
    if getattr(request, "param", "sqlite") == "postgresql":
        database = request.getfixturevalue("postgres_url")
    named = [ProjectLabel(name=name) for name in ("긍정", "부정")]
    settings = ProjectSettings(annotators_per_text=2)
    new = NewProject(name="reviews", labels=named, settings=settings)
    ProjectStore(database).create(ADMIN, new)
    common = ("token", f"--database={database}")
    tokens = {
        person: run_labels(home, *common, f"--person={person}", f"--role={role}")
        for person, role in PEOPLE.items()
    }
    return Labels(database, tokens)
