"""Several models in a server, and new versions that take the place of those that answer."""

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from malmoi import cache
from malmoi.inference.classifier import Classifier
from malmoi.serving.application import make_application
from tests.malmoi.finetune.conftest import separable
from tests.malmoi.serving.conftest import ENGINE, TOKEN, MakeModel, Server, alone, serving

BEARER = {"Authorization": f"Bearer {TOKEN}"}
TEXTS = [text for text, _ in separable()][:4]


@pytest.fixture(scope="module")
def exported(make_model: MakeModel, classifier_directory: Path, home: Path) -> dict[str, Path]:
    """Models of two versions and of another kind, which a server loads within a second."""
    found = {
        "old": classifier_directory,
        "new": make_model("memos-1", initializer_range=0.5),
        "pairs": make_model("pairs", finetune_task="pair"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "CACHE", home / "runs" / "cache")
        for directory in found.values():
            Classifier.load(directory, ENGINE)
    return found


@pytest.fixture
def swapping(exported: dict[str, Path], home: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of a folder that the tests exchange, and of a model of pairs beside it."""
    put(tmp_path / "live", exported["old"])
    flags = [f"--model={tmp_path / 'live'}", "--also", f"pairs={exported['pairs']}"]
    with serving(
        *flags, f"--engine={ENGINE}", home=home, token=TOKEN, stderr=subprocess.PIPE
    ) as server:
        yield server


def put(place: Path, model: Path) -> None:
    """Put another model at a place at once, as whoever deploys one should."""
    beside = place.with_suffix(".new")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(model, beside)
    if place.exists():
        place.rename(place.with_suffix(f".{time.monotonic_ns()}"))
    beside.rename(place)


def said_by(server: Server) -> str:
    assert server.process.stderr is not None
    return server.process.stderr.readline().strip()


def read_anew(server: Server) -> str:
    """Send SIGHUP; what is said of the default model."""
    server.process.send_signal(signal.SIGHUP)
    while said_by(server) != "SIGHUP: the models are read anew":
        pass
    first, second = said_by(server), said_by(server)
    assert second.startswith("pairs: pairs-") and second.endswith(", as before")
    return first


def ask_until(stop: threading.Event, server: Server) -> list[tuple[str, tuple[str, ...]]]:
    """A client that asks one request after the other: version and labels of each answer."""
    found = []
    while not stop.is_set():
        answer = server.ask("/v1/predict", {"texts": TEXTS}, **BEARER)
        assert answer.status == 200, answer
        labels = tuple(each["label"] for each in answer.json["predictions"])
        found.append((answer.json["version"], labels))
    return found


def test_no_request_fails_while_new_versions_take_the_place_of_old_ones(
    swapping: Server, exported: dict[str, Path], tmp_path: Path
) -> None:
    live = tmp_path / "live"

    def version() -> str:
        return str(swapping.ask("/v1/labels", **BEARER).json["version"])

    def post(model: Path) -> str:
        sent = {"model": str(model)}
        answer = swapping.ask("/v1/models/default", sent, **BEARER)
        assert answer.status == 200, answer
        assert said_by(swapping).startswith("default: ")
        return str(answer.json["version"])

    old, stop = version(), threading.Event()
    with ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(ask_until, stop, swapping) for _ in range(8)]
        try:
            put(live, exported["new"])
            line = read_anew(swapping)
            new = version()
            assert new != old and line == f"default: {new} for {old}"
            assert post(exported["old"]).endswith(old[-9:])
            assert post(live) == version() == new
        finally:
            stop.set()
        answers = [answer for client in clients for answer in client.result()]
    expected = {}
    for name, kind in ((old, "old"), (new, "new")):
        found = Classifier.load(exported[kind], ENGINE).predict(TEXTS)
        expected[name[-9:]] = tuple(each.label for each in found)
    assert len(set(expected.values())) == 2  # else it could not be told which has answered
    assert {name[-9:] for name, _ in answers} == expected.keys()
    assert all(labels == expected[name[-9:]] for name, labels in answers)


def test_every_model_answers_under_its_name(swapping: Server) -> None:
    listed = swapping.ask("/v1/models", **BEARER).json["models"]
    assert [each["name"] for each in listed] == ["default", "pairs"]
    assert [each["reads_pairs"] for each in listed] == [None, True]
    for each in listed:
        assert swapping.ask(f"/v1/models/{each['name']}/labels", **BEARER).json == each
    bodies = {"default": {"texts": TEXTS}, "pairs": {"pairs": [TEXTS[:2], TEXTS[2:]]}}
    for name, body in bodies.items():
        found = swapping.ask(f"/v1/models/{name}/predict", body, **BEARER)
        assert found.status == 200 and len(found.json["predictions"]) == len(*body.values())
    assert swapping.ask("/v1/models/pairs/predict", {"text": "꿈"}, **BEARER).status == 422
    default = swapping.ask("/v1/models/default/predict", {"texts": TEXTS}, **BEARER).json
    assert default == swapping.ask("/v1/predict", {"texts": TEXTS}, **BEARER).json
    metrics = swapping.ask("/metrics", **BEARER).body.decode()
    for each in listed:
        (line,) = [line for line in metrics.splitlines() if f'name="{each["name"]}"' in line]
        assert line.startswith("malmoi_model_info{") and f'version="{each["version"]}"' in line
    assert 'path="/v1/models/pairs/predict"' in metrics


def test_what_cannot_take_the_place_is_refused_and_the_old_one_goes_on(
    swapping: Server, exported: dict[str, Path], tmp_path: Path
) -> None:
    before = swapping.ask("/v1/models", **BEARER).json
    for name, model, status, fact in (
        ("default", str(tmp_path / "none"), 422, "no model directory"),
        ("default", "a" * 5000, 422, "File name too long"),
        ("default", "", 422, "is not a model"),
        ("default", 3, 422, "a text at model, found 3"),
        ("pairs", str(exported["new"]), 200, "memos-1-"),
        ("pairs", str(exported["pairs"]), 200, "pairs-"),
        ("default", str(exported["pairs"]), 422, "reads single texts, found one that reads pairs"),
        ("spam", str(exported["new"]), 404, "/v1/models/pairs"),
    ):
        found = swapping.ask(f"/v1/models/{name}", {"model": model}, **BEARER)
        assert found.status == status and fact in found.body.decode(), (model, found)
        assert found.body.count(b"\n") == 0
    assert swapping.ask("/v1/models/default", {"model": str(exported["new"])}).status == 401
    (tmp_path / "live" / "config.json").unlink()
    assert f"goes on; {tmp_path / 'live'} is not taken: " in read_anew(swapping)
    assert swapping.ask("/v1/models", **BEARER).json == before


def test_without_a_token_no_model_is_exchanged(classifier_directory: Path) -> None:
    application = make_application(alone(Classifier.load(classifier_directory)))
    with TestClient(application) as client:
        found = client.post("/v1/models/default", json={"model": str(classifier_directory)})
    assert found.status_code == 403 and "--token-file" in found.json()["error"]
