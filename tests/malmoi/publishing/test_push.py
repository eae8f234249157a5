"""`malmoi push` against a small Hub on this machine; one line for whatever goes wrong."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from malmoi import Classifier
from malmoi.__main__ import main
from tests.malmoi.publishing.hub_server import READ_TOKEN, TOKEN, Hub, serving

ROOT = Path(__file__).parents[3]
Exported = Callable[[Path], Path]
Push = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving() as hub:
        yield hub


@pytest.fixture
def push(hub: Hub, tmp_path: Path) -> Push:
    """The command, in a process of its own: the Hub's address is read once."""

    def run(*given: object, token: str | None = TOKEN, **variables: str) -> object:
        settings = {
            name: value for name, value in os.environ.items() if not name.startswith("HF_")
        } | {
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(tmp_path / "home"),
            # What the Hub would rather have needs its own storage servers.
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "PYTHONPATH": str(ROOT),
        }
        if token is not None:
            settings["HF_TOKEN"] = token
        return subprocess.run(
            [sys.executable, "-m", "malmoi", "push", *map(str, given)],
            env=settings | variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return run  # type: ignore[return-value]


def test_an_exported_folder_is_sent_as_it_is(
    hub: Hub, push: Push, exported: Exported, classifier_directory: Path, tmp_path: Path
) -> None:
    folder = exported(classifier_directory)
    done = push(folder, "kim/memos", "--private")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{folder} -> {hub.address}/kim/memos"
    assert hub.private == {"kim/memos": True} and len(hub.commits) == 1
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.*")}
    assert hub.files["kim/memos"] == files

    # What a stranger then downloads is the same classifier.
    copy = tmp_path / "copy"
    for name, content in hub.files["kim/memos"].items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
    texts = ["내일 병원 예약", "꿈에서 하늘을 날았다"]
    assert Classifier.load(copy, "onnx-fp32").predict(texts) == (
        Classifier.load(folder, "onnx-fp32").predict(texts)
    )


def test_another_model_is_exported_first_and_a_second_push_goes_to_the_same_place(
    hub: Hub, push: Push, exported: Exported, classifier_directory: Path
) -> None:
    for number, source in enumerate((classifier_directory, exported(classifier_directory)), 1):
        done = push(source, "kim/memos")
        assert done.returncode == 0, done.stderr
        assert len(hub.commits) == number
    assert {"onnx/model.onnx", "index.html", "README.md"} <= hub.files["kim/memos"].keys()
    assert hub.private == {"kim/memos": False}
    assert not [p for p in classifier_directory.iterdir() if p.name == "onnx"]


def test_a_public_repository_is_not_taken_for_a_private_one(
    hub: Hub, push: Push, exported: Exported, classifier_directory: Path
) -> None:
    hub.private["kim/memos"], hub.files["kim/memos"] = False, {}
    done = push(exported(classifier_directory), "kim/memos", "--private")
    assert done.returncode == 2 and "and public" in done.stderr
    assert hub.files == {"kim/memos": {}}


def test_who_may_not_write_is_told_so(
    hub: Hub, push: Push, exported: Exported, classifier_directory: Path
) -> None:
    for token, said in (
        (None, "token"),
        (READ_TOKEN, "no right to write to kim/memos"),
        ("hf_unknown", "does not know the token"),
    ):
        done = push(exported(classifier_directory), "kim/memos", token=token)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, token
        assert done.stderr.startswith("error: ") and said in done.stderr, token
    assert not hub.files


def test_a_malformed_name_and_a_model_that_is_not_there(
    classifier_directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for name in ("memos", "kim/", "kim/한글", "a/b/c", "kim/memos.git", "-/x"):
        given = ["--", name] if name[0] == "-" else [name]
        assert main(["push", str(classifier_directory), *given]) == 2, name
        said = capsys.readouterr().err
        assert "OWNER/NAME" in said and name in said and said.count("\n") == 1, said
    assert main(["push", "nowhere/at/all", "kim/memos"]) == 2
    assert "nowhere/at/all" in capsys.readouterr().err


def test_without_a_network(push: Push, exported: Exported, classifier_directory: Path) -> None:
    folder = exported(classifier_directory)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    done = push(folder, "kim/memos", HF_ENDPOINT=nobody)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "cannot reach the Hub to push kim/memos" in done.stderr
    done = push(folder, "kim/memos", HF_HUB_OFFLINE="1")
    assert done.returncode == 2 and "HF_HUB_OFFLINE is set" in done.stderr


def test_a_file_that_cannot_be_read_is_named_and_the_hub_is_not_blamed(
    hub: Hub, push: Push, exported: Exported, classifier_directory: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(exported(classifier_directory), folder)
    (folder / "notes.md").symlink_to("/proc/sys/vm/drop_caches")  # not even root may read it
    done = push(folder, "kim/memos")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"cannot read {folder / 'notes.md'}: Permission denied" in done.stderr
    assert not hub.commits


def test_an_upload_that_breaks_off_is_one_line(
    hub: Hub, push: Push, exported: Exported, classifier_directory: Path
) -> None:
    hub.refuses_large_files = True
    done = push(exported(classifier_directory), "kim/memos")
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith(
        "error: the Hub refuses kim/memos: "
    )
    assert not hub.commits
