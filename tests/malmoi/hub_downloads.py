"""A small Hub on this machine: the endpoints by which a repository's files are downloaded."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Files = dict[str, bytes]


def commit_of(branch: str) -> str:
    """The commit that a branch stands at."""
    return hashlib.sha1(branch.encode()).hexdigest()


class Hub(ThreadingHTTPServer):
    """One repository.

    Attributes:
        name: such as "owner/electra".
        prefix: of the paths of its files: "datasets/", or nothing for a model.
        branches: the files of each.
        published: what the Hub says of a file's bytes, where those are others.
        asked: all paths, in order.
    """

    daemon_threads = True

    def __init__(self, name: str, prefix: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.name, self.prefix = name, prefix
        self.branches: dict[str, Files] = {}
        self.published: Files = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        """For HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(name: str, prefix: str = "") -> Iterator[Hub]:
    """The server, while it runs."""
    with Hub(name, prefix) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub
        hub.shutdown()
        thread.join()


class _Request(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, path = self.server, unquote(self.path.split("?")[0])
        hub.asked.append(path)
        api = f"/api/{hub.prefix or 'models/'}{hub.name}"
        resolve = f"/{hub.prefix}{hub.name}/resolve/"
        if path == f"{api}/refs":
            self._reply(json.dumps(self._refs()).encode())
        elif path.startswith(f"{api}/revision/") or path == api:
            revision = path.removeprefix(api).removeprefix("/revision/") or "main"
            self._with(revision, lambda files: json.dumps(self._info(revision, files)).encode())
        elif path.startswith(f"{api}/tree/"):
            revision = path.removeprefix(f"{api}/tree/")
            self._with(revision, lambda files: json.dumps(self._tree(files)).encode())
        elif path.startswith(resolve):
            commit, _, name = path.removeprefix(resolve).partition("/")
            self._with(commit, lambda files: files[name], name)
        else:
            self._refuse("RepoNotFound")

    def _with(
        self, revision: str, answer: Callable[[Files], bytes], name: str | None = None
    ) -> None:
        branches = self.server.branches
        named = {commit_of(branch): files for branch, files in branches.items()} | branches
        if revision not in named:
            self._refuse("RevisionNotFound")
        elif name is not None and name not in named[revision]:
            self._refuse("EntryNotFound")
        else:
            commit = revision if revision not in branches else commit_of(revision)
            self._reply(answer(named[revision]), commit)

    def _info(self, revision: str, files: Files) -> dict[str, Any]:
        name = self.server.name
        sha = commit_of(revision) if revision in self.server.branches else revision
        siblings = [
            {"rfilename": one["path"], "blobId": one["oid"], **one} for one in self._tree(files)
        ]
        about = {"private": False, "gated": False, "tags": [], "downloads": 0}
        card = {"license": "cc-by-sa-4.0"}
        return about | {"id": name, "sha": sha, "siblings": siblings, "cardData": card}

    def _tree(self, files: Files) -> list[dict[str, Any]]:
        return [
            {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
            | self._lfs(name, data)
            for name, data in files.items()
        ]

    def _lfs(self, name: str, data: bytes) -> dict[str, Any]:
        if not name.endswith(".parquet"):
            return {}
        sha256 = hashlib.sha256(self.server.published.get(name, data)).hexdigest()
        return {"lfs": {"sha256": sha256, "oid": sha256, "size": len(data), "pointerSize": 100}}

    def _refs(self) -> dict[str, Any]:
        found: dict[str, list[Any]] = {
            "branches": [],
            "converts": [],
            "tags": [],
            "pullRequests": [],
        }
        for name in self.server.branches:
            pull = name.startswith("refs/pr/")
            ref = name if pull else f"refs/heads/{name}"
            one = {"name": name, "ref": ref, "targetCommit": commit_of(name)}
            found["pullRequests" if pull else "branches"].append(one)
        return found

    def _refuse(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _reply(self, data: bytes, commit: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", commit)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)
