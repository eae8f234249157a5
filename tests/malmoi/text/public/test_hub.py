"""Data sets of the Hugging Face Hub, from a server on this machine that speaks its protocol."""

import hashlib
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from malmoi.text.public.hub import KCBERT_CORPUS, is_data
from malmoi.text.reading.records import iter_records

REVISION = "0123456789abcdef0123456789abcdef01234567"


def parquet(texts: list[str]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"text": texts}).to_parquet(buffer)
    return buffer.getvalue()


class Request(BaseHTTPRequestHandler):
    server: "Hub"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path = self.path.split("?")[0]
        prefix = f"/datasets/owner/comments/resolve/{REVISION}/"
        if path.startswith("/api/datasets/owner/comments/tree/"):
            self.reply(json.dumps([self.entry(name) for name in self.server.files]).encode())
        elif path.startswith("/api/datasets/owner/comments"):
            self.reply(json.dumps(self.info()).encode())
        elif path.startswith(prefix) and path.removeprefix(prefix) in self.server.files:
            self.reply(self.server.files[path.removeprefix(prefix)])
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def entry(self, name: str) -> dict[str, object]:
        data = self.server.files[name]
        entry = {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
        return {**entry, **self.lfs(name)}

    def info(self) -> dict[str, object]:
        siblings = [
            {"rfilename": name, "size": len(data), "blobId": "0" * 40, **self.lfs(name)}
            for name, data in self.server.files.items()
        ]
        card = {"license": "cc-by-sa-4.0"}
        identity = {"id": "owner/comments", "sha": REVISION, "private": False, "gated": False}
        return {**identity, "siblings": siblings, "cardData": card, "tags": [], "downloads": 0}

    def lfs(self, name: str) -> dict[str, object]:
        if not name.endswith(".parquet"):
            return {}
        data = self.server.published.get(name, self.server.files[name])
        sha256 = hashlib.sha256(data).hexdigest()
        return {"lfs": {"sha256": sha256, "oid": sha256, "size": len(data), "pointerSize": 100}}

    def reply(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Hub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.files = {
            "README.md": b"# comments",
            ".gitattributes": b"*.parquet filter=lfs",
            "comments.py": b"raise SystemExit('remote code was run')",
            "data/train-00000.parquet": parquet(["재밌다 ㅋㅋ", "별로예요"]),
            "extra.csv": "text\n하나\n".encode(),
        }
        self.published: dict[str, bytes] = {}
        self.asked: list[str] = []


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub
        hub.shutdown()
        thread.join()


def fetch(name: str, folder: Path, hub: Hub | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_XET": "1"}
    if hub is not None:
        environment |= {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HUB_OFFLINE": "0"}
    return subprocess.run(
        [sys.executable, "-m", "malmoi", "fetch", name, "--output", str(folder / "out")],
        env=environment,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[4],
    )


def test_files_of_data_come_and_nothing_else(hub: Hub, tmp_path: Path) -> None:
    done = fetch("hub:owner/comments", tmp_path, hub)
    assert done.returncode == 0, done.stderr
    assert "licence: cc-by-sa-4.0" in done.stdout
    assert "2 files of hub:owner/comments" in done.stdout
    visible = sorted(
        path.relative_to(tmp_path / "out").as_posix()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file() and ".cache" not in path.parts
    )
    assert visible == ["SOURCE.json", "data/train-00000.parquet", "extra.csv"]
    assert not [path for path in hub.asked if "comments.py" in path]
    texts = [record.text for record in iter_records(tmp_path / "out")]
    assert texts == ["재밌다 ㅋㅋ", "별로예요", "하나"]
    recorded = json.loads((tmp_path / "out" / "SOURCE.json").read_text(encoding="utf-8"))
    assert recorded["homepage"].endswith(f"(revision {REVISION})")
    assert fetch("hub:owner/comments", tmp_path, hub).returncode == 0
    other = fetch("hub:owner/other", tmp_path, hub)
    assert other.returncode == 2
    assert "found one of hub:owner/comments" in other.stderr


def test_a_file_that_is_not_the_published_one_is_deleted(hub: Hub, tmp_path: Path) -> None:
    name = "data/train-00000.parquet"
    hub.published[name] = hub.files[name][:-1] + b"x"
    done = fetch("hub:owner/comments", tmp_path, hub)
    assert done.returncode == 2
    assert f"expected {name}" in done.stderr
    assert not (tmp_path / "out" / name).exists()
    assert not (tmp_path / "out" / "SOURCE.json").exists()


def test_a_data_set_of_nothing_but_code_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.files = {name: data for name, data in hub.files.items() if name.endswith((".py", ".md"))}
    done = fetch("hub:owner/comments", tmp_path, hub)
    assert done.returncode == 2
    assert "data sets that only a script can build are not fetched" in done.stderr


@pytest.mark.parametrize("name", ["hub:owner/nowhere", "hub:a b", "hub:", KCBERT_CORPUS.name])
def test_what_cannot_be_had_is_one_line(hub: Hub, tmp_path: Path, name: str) -> None:
    # The last one: HF_HUB_OFFLINE=1, as all tests run.
    done = fetch(name, tmp_path, None if name == KCBERT_CORPUS.name else hub)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {name}: expected a data set of the Hugging Face Hub")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_what_counts_as_data() -> None:
    assert is_data("data/train-00000-of-00026.parquet")
    assert is_data("train.jsonl.zst")
    for name in ("a.py", "README.md", ".gitattributes", "x/requirements.txt", "model.bin", "a.pkl"):
        assert not is_data(name)
