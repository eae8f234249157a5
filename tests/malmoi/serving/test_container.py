"""The container file agrees with the project; no container is built here."""

import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import tyro

from malmoi.commands.serve import ServeSettings
from tests.malmoi.serving.conftest import ROOT

DEPLOY = ROOT / "deploy"


def instructions() -> list[tuple[str, str]]:
    """Those of the container file in their order, such as ("EXPOSE", "8000")."""
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    whole = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", "")
    parted = (line.partition(" ") for line in whole.splitlines() if line)
    return [(word, rest.strip()) for word, _, rest in parted]


def last(word: str) -> str:
    """What the final image has of an instruction."""
    return [rest for each, rest in instructions() if each == word][-1]


def health_command() -> list[str]:
    command: list[str] = json.loads(last("HEALTHCHECK").partition(" CMD ")[2])
    return command


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_what_it_copies_is_there_and_sent_to_the_builder() -> None:
    copied = [rest.split() for word, rest in instructions() if word == "COPY"]
    names = {name for *group, _ in copied if not group[0].startswith("--from") for name in group}
    assert all((ROOT / name).exists() for name in names)
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{name}" for name in names} == {line for line in sent if line.startswith("!")}
    assert {"pyproject.toml", project()["readme"], *project()["license-files"]} <= names
    installed = [rest for word, rest in instructions() if word == "RUN"]
    assert any("-c /opt/malmoi/constraints.txt" in line for line in installed)


def test_it_starts_the_command_on_the_port_that_it_shows_and_asks() -> None:
    program, command, *flags = json.loads(last("ENTRYPOINT"))
    assert program in project()["scripts"] and command == "serve"
    (model,) = json.loads(last("CMD"))
    assert (ROOT / "checkpoints" / model / "config.json").is_file()
    settings = tyro.cli(ServeSettings, args=[*flags, "--model", model])
    assert (settings.host, settings.model) == ("0.0.0.0", model)
    assert last("EXPOSE") == str(settings.port)
    assert f"'127.0.0.1', {settings.port}," in health_command()[-1]


def test_a_busy_container_is_healthy_and_one_that_computes_no_more_is_not() -> None:
    statuses: Iterator[int | None] = iter((200, 503, 500, None))

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if (status := next(statuses)) is not None:
                self.send_response(status)
                self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    _, *flags = health_command()
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = [flag.replace("8000", str(server.server_port)) for flag in flags]
        for healthy in (True, True, False, False):
            done = subprocess.run([sys.executable, *flags], capture_output=True, timeout=60)
            assert (done.returncode == 0) == healthy, done.stderr
        server.shutdown()
