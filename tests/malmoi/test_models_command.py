"""`malmoi models`: released models from a folder and from a web server, whole or not at all."""

import functools
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from malmoi.__main__ import main
from malmoi.inference.classifier import Classifier
from tests.malmoi.finetune.conftest import classifier_directory

__all__ = ["classifier_directory"]


@pytest.fixture
def release(tmp_path: Path, classifier_directory: Path) -> Path:
    """A folder of one model, and of something else."""
    shutil.copytree(classifier_directory, tmp_path / "release" / "my-memos")
    (tmp_path / "release" / "notes").mkdir()
    return tmp_path / "release"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(release: Path) -> Iterator[str]:
    """A web server of that folder."""
    handler = functools.partial(_Quiet, directory=str(release))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far").mkdir()
    monkeypatch.chdir(tmp_path / "far")


def test_a_model_comes_from_a_folder_and_predicts(
    release: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["models", "get", "my-memos"]) == 2
    assert "--from" in capsys.readouterr().err
    assert main(["models", "get", "nothing", "--from", str(release)]) == 2
    assert "my-memos" in capsys.readouterr().err
    monkeypatch.setenv("MALMOI_MODELS", str(release))
    assert main(["models", "get", "my-memos"]) == 0
    assert Classifier.load("my-memos").predict(["내일 세 시에 회의"])[0].label
    assert main(["models", "list"]) == 0
    assert "my-memos" in capsys.readouterr().out
    assert main(["models", "get", "my-memos"]) == 2  # it is here


def test_a_model_comes_from_a_server_only_if_it_is_whole(
    release: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["models", "get", "my-memos", "--from", address]
    assert main(flags) == 2
    assert "models.json" in capsys.readouterr().err
    assert main(["models", "index", str(release)]) == 0
    weights = release / "my-memos" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert main(flags) == 2
    assert not Path("checkpoints").exists()
    weights.write_bytes(whole)
    assert main(flags) == 0
    assert Path("checkpoints/my-memos/model.safetensors").read_bytes() == whole
    assert Classifier.load("my-memos").predict(["내일 세 시에 회의"])[0].label

    index = json.loads((release / "models.json").read_text(encoding="utf-8"))
    index["my-memos"]["../../bad"] = index["my-memos"].pop("config.json")
    (release / "models.json").write_text(json.dumps(index), encoding="utf-8")
    shutil.rmtree("checkpoints")
    assert main(flags) == 2
    assert not Path("checkpoints").exists()
