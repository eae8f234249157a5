"""Texts to the real doccano and back with the labels of two people; where it is installed.

Version 1.8.4 starts with marshmallow < 4, numpy < 2 and setuptools < 80 beside it.
"""

import io
import json
import os
import shutil
import subprocess
import time
import urllib.request
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from malmoi.commands.labels import LabelsSettings
from malmoi.commands.labels import main as command
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.importing import WayOfReading, import_files
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore
from malmoi.labels.review import texts_with_votes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources
from tests.malmoi.serving.conftest import free_port

ADMIN, PASSWORD = "admin", "0123456789abcdef"
TASK = "DocumentClassification"


class Doccano:
    """A server, as one of its users."""

    def __init__(self, url: str, user: str = "") -> None:
        self.url, self.token = url, ""
        if user:
            login = {"username": user, "password": PASSWORD}
            self.token = self.ask("/auth/login/", login)["key"]

    def ask(self, path: str, value: Any = None) -> Any:
        body = None if value is None else json.dumps(value).encode()
        return json.loads(self.send(path, body, "application/json"))

    def send(self, path: str, body: bytes | None, kind: str) -> bytes:
        headers = {"Content-Type": kind} | (
            {"Authorization": f"Token {self.token}"} if self.token else {}
        )
        request = urllib.request.Request(f"{self.url}/v1{path}", body, headers)
        with urllib.request.urlopen(request, timeout=120) as found:
            return bytes(found.read())

    def wait_for(self, task: str) -> Any:
        until = time.monotonic() + 120
        while not (status := self.ask(f"/tasks/status/{task}"))["ready"]:
            assert time.monotonic() < until
            time.sleep(0.5)
        assert not status["error"], status
        return status["result"]

    def upload(self, project: int, file: Path) -> None:
        part = uuid.uuid4().hex
        head = f'Content-Disposition: form-data; name="filepond"; filename="{file.name}"'
        body = f"--{part}\r\n{head}\r\n\r\n".encode() + file.read_bytes()
        body += f"\r\n--{part}--\r\n".encode()
        sent = self.send("/fp/process/", body, f"multipart/form-data; boundary={part}")
        order = {"format": "JSONL", "uploadIds": [sent.decode()], "task": TASK}
        order |= {"encoding": "utf_8", "column_data": "text", "column_label": "label"}
        done = self.wait_for(self.ask(f"/projects/{project}/upload", order)["task_id"])
        assert done == {"error": []}

    def export(self, project: int, folder: Path) -> None:
        """A file for each user."""
        order = {"format": "JSONL", "exportApproved": False}
        task = self.ask(f"/projects/{project}/download", order)["task_id"]
        self.wait_for(task)
        sent = self.send(f"/projects/{project}/download?taskId={task}", None, "application/json")
        zipfile.ZipFile(io.BytesIO(sent)).extractall(folder)


@pytest.fixture
def doccano(tmp_path: Path) -> Iterator[Doccano]:
    if (program := shutil.which("doccano")) is None:
        pytest.skip("no doccano on this machine")
    environment = os.environ | {"DOCCANO_HOME": str(tmp_path / "doccano")}
    environment.pop("PYTHONPATH", None)
    url = f"http://127.0.0.1:{free_port()}"

    def start(*words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [program, *words], cwd=tmp_path, env=environment, stdout=log, stderr=log
        )

    with (tmp_path / "log").open("wb") as log:
        assert start("init").wait(300) == 0, tmp_path / "log"
        user = ("--username", ADMIN, "--password", PASSWORD)
        assert start("createuser", *user).wait(120) == 0, tmp_path / "log"
        server = start("webserver", "--port", url.rpartition(":")[2], "--workers", "1")
        worker = start("task", "--concurrency", "1")
    try:
        until = time.monotonic() + 120
        while True:
            try:
                yield Doccano(url, ADMIN)
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < until, tmp_path / "log"
                time.sleep(0.5)
    finally:
        for process in (server, worker):
            process.terminate()
            process.wait(60)


@pytest.fixture
def access(tmp_path: Path) -> ProjectAccess:
    """A project with three texts of a table that calls a column data; two have a label."""
    store = ProjectStore(f"sqlite:///{tmp_path}/labels.db")
    me = Person(name="지은", is_local=True)
    labels = [ProjectLabel(name=name) for name in ("긍정", "부정")]
    access = store.create(me, NewProject(name="리뷰", labels=labels))
    table = tmp_path / "표.csv"
    table.write_text("text,data,별점\n좋아요,가,5\n별로예요,나,\n그냥 그래요,다,3", "utf-8")
    way = WayOfReading(options=ReadOptions(text_column="text"))
    import_files(access, find_sources(table), way)
    acts = [
        Act(text_id=text, kind="label", request_id=f"{text}", labels=[label])
        for text, label in ((1, "긍정"), (2, "부정"))
    ]
    save_acts(access, acts)
    return access


def test_labels_go_to_doccano_and_come_back_with_those_of_its_people(
    doccano: Doccano, access: ProjectAccess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(action: str, file: Path, **settings: Any) -> str:
        given = {"action": action, "files": (file,), "database": str(tmp_path / "labels.db")}
        command(LabelsSettings(**given | settings))
        return capsys.readouterr().err

    run("export", tmp_path / "ours.jsonl", target="doccano")
    new = {"name": "리뷰", "description": "-", "project_type": TASK, "guideline": "", "tags": []}
    new |= {"resourcetype": "TextClassificationProject", "single_class_classification": True}
    project = doccano.ask("/projects", new)["id"]
    doccano.upload(project, tmp_path / "ours.jsonl")
    kinds = {one["text"]: one["id"] for one in doccano.ask(f"/projects/{project}/category-types")}
    examples = doccano.ask(f"/projects/{project}/examples?limit=10")["results"]
    assert sorted(one["text"] for one in examples) == ["그냥 그래요", "별로예요", "좋아요"]

    roles = {one["name"]: one["id"] for one in doccano.ask("/roles")}
    said = {
        "gana": {"좋아요": "긍정", "별로예요": "부정", "그냥 그래요": "긍정"},
        "dara": {"좋아요": "부정", "별로예요": "부정"},
    }
    for name, labels in said.items():
        user = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
        member = {"user": doccano.ask("/users/create", user)["id"], "role": roles["annotator"]}
        doccano.ask(f"/projects/{project}/members", member)
        person = Doccano(doccano.url, name)
        for one in examples:
            if label := labels.get(one["text"]):
                path = f"/projects/{project}/examples/{one['id']}/categories"
                person.ask(path, {"label": kinds[label]})

    doccano.export(project, tmp_path / "back")
    # Who brought ours there has labelled nothing: what is ours is no vote of anybody else.
    back = {"source": "doccano"}
    told = run("import", tmp_path / "back" / f"{ADMIN}.jsonl", **back)
    assert "0 new texts of 3 rows, 0 new labels, 2 here already" in told
    for name, counts in (("gana", "3 new labels"), ("dara", "2 new labels, 1 of these differ")):
        told = run("import", tmp_path / "back" / f"{name}.jsonl", annotator=name, **back)
        assert f"0 new texts of 3 rows, {counts}" in told
    votes = {
        text.text: {vote.annotator: vote.labels[0] for vote in text.votes}
        for text in texts_with_votes(access, range(10))
    }
    ours = {"좋아요": "긍정", "별로예요": "부정"}
    people = {"지은": ours, **said}
    assert votes == {
        text: {who: labels[text] for who, labels in people.items() if text in labels}
        for text in ("좋아요", "별로예요", "그냥 그래요")
    }
