"""The real Label Studio asks a real server; where the program `label-studio` is installed."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from malmoi.inference.classifier import Classifier
from tests.malmoi.finetune.conftest import LABELS, separable
from tests.malmoi.serving.conftest import ENGINE, TOKEN, free_port, serving

USER_TOKEN = "0123456789abcdef0123456789abcdef01234567"
# As docs/how-to/serve.md says; the rest spares the test what needs a network.
SETTINGS = {
    "ML_BLOCK_LOCAL_IP": "false",
    "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
}
TEXT = '<Text name="text" value="$text"/>'
TOPIC = '<Choices name="topic" toName="text"><Choice value="음식"/></Choices>'
CHOICES = "".join(f'<Choice value="{label}"/>' for label in LABELS)
LABEL = f'<Choices name="label" toName="text">{CHOICES}</Choices>'
TEXTS = [*(text for text, _ in separable())][:5]


@dataclass(frozen=True)
class LabelStudio:
    url: str

    def ask(self, path: str, value: Any = None, method: str | None = None) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Token {USER_TOKEN}"}
        body = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as found:
                return found.status, json.loads(found.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def project(self, config: str) -> int:
        status, found = self.ask("/api/projects", {"title": "memos", "label_config": config})
        assert status == 201, found
        return int(found["id"])

    def predictions(self, project: int) -> list[dict[str, Any]]:
        """Those of the tasks in their order, after the action that asks the model for them."""
        selected = {"selectedItems": {"all": True, "excluded": []}}
        action = f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}"
        assert self.ask(action, selected)[0] == 200
        _, found = self.ask(f"/api/predictions?project={project}")
        return sorted(found, key=lambda each: int(each["task"]))


@pytest.fixture
def label_studio(tmp_path: Path) -> Iterator[LabelStudio]:
    if (program := shutil.which("label-studio")) is None:
        pytest.skip("no label-studio on this machine")
    found = LabelStudio(f"http://127.0.0.1:{free_port()}")
    port = found.url.rpartition(":")[2]
    flags = ["--no-browser", "--port", port, "--username", "a@example.com"]
    flags += ["--password", USER_TOKEN, "--user-token", USER_TOKEN]
    environment = os.environ | SETTINGS | {"LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path)}
    environment.pop("PYTHONPATH", None)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "start", *flags], cwd=tmp_path, env=environment, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 300
        while True:
            try:
                found.ask("/api/projects")
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < until, tmp_path / "log"
                time.sleep(0.5)
        yield found
    finally:
        process.terminate()
        process.wait(60)


def test_it_connects_gets_predictions_and_is_told_what_does_not_fit(
    label_studio: LabelStudio, classifier_directory: Path, home: Path
) -> None:
    flags = (classifier_directory, f"--engine={ENGINE}")
    with serving(*flags, home=home, token=TOKEN, stderr=subprocess.PIPE) as server:
        version = server.ask("/v1/labels", Authorization=f"Bearer {TOKEN}").json["version"]
        errors = server.process.stderr
        assert errors is not None
        backend = {
            "url": server.url,
            "title": "malmoi",
            "auth_method": "BASIC_AUTH",
            "basic_auth_user": "anybody",
            "basic_auth_pass": TOKEN,
        }

        project = label_studio.project(f"<View>{TEXT}{TOPIC}{LABEL}</View>")
        tasks = [{"text": text} for text in [*TEXTS, ""]]
        assert label_studio.ask(f"/api/projects/{project}/import", tasks)[0] == 201
        status, found = label_studio.ask("/api/ml", backend | {"project": project})
        # It may say of its webhook, and not of the model, that the address is a local one.
        assert status == 201 or "reserved network address" in found["detail"], found
        (connected,) = label_studio.ask(f"/api/ml?project={project}")[1]
        assert (connected["state"], connected["model_version"]) == ("CO", version)

        *predictions, empty = label_studio.predictions(project)
        expected = Classifier.load(classifier_directory, ENGINE).predict(TEXTS)
        for prediction, one in zip(predictions, expected, strict=True):
            assert prediction["model_version"] == version
            assert prediction["score"] == pytest.approx(one.confidence, abs=1e-5)
            (region,) = prediction["result"]
            assert (region["from_name"], region["value"]) == ("label", {"choices": [one.label]})
        assert empty["result"] == []

        changed = {"label_config": f"<View>{TEXT}{TOPIC}</View>"}
        assert label_studio.ask(f"/api/projects/{project}", changed, "PATCH")[0] == 200
        label_studio.predictions(project)
        line = errors.readline()
        assert line.startswith(f"project {project}.") and f"none for {', '.join(LABELS)};" in line

        other = label_studio.project("<View></View>")
        status, found = label_studio.ask("/api/ml", backend | {"project": other})
        assert status == 400 and "422" in str(found), found
        assert errors.readline().startswith(f"project {other}.")
