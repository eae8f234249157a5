"""A small Hub on this machine: the endpoints that `HfApi.upload_folder` calls, over LFS."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN, READ_TOKEN = "hf_writes", "hf_reads"
_COMMIT = "0" * 39 + "1"


@dataclass
class Hub:
    """What the server holds.

    Attributes:
        address: for HF_ENDPOINT.
        private: repository to whether it is private.
        files: repository to its files.
        commits: one a commit: repository and message.
        refuses_large_files: whether an upload over LFS is answered 400.
    """

    address: str = ""
    private: dict[str, bool] = field(default_factory=dict)
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: list[tuple[str, str]] = field(default_factory=list)
    refuses_large_files: bool = False
    large: dict[str, bytes] = field(default_factory=dict)


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self, status: int, value: Any, **headers: str) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _may(self) -> bool:
        """Whether the token may write; the refusal is answered."""
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token == TOKEN:
            return True
        status, error = (403, "You have no right") if token == READ_TOKEN else (401, "Bad token")
        self._answer(status, {"error": error})
        return False

    def do_GET(self) -> None:
        name = self.path.removeprefix("/api/models/").partition("/revision/")[0].partition("?")[0]
        if name not in self.hub.private:
            return self._answer(404, {"error": "none"}, X_Error_Code="RepoNotFound")
        self._answer(
            200, {"id": name, "private": self.hub.private[name], "siblings": [], "sha": _COMMIT}
        )

    def do_PUT(self) -> None:
        body = self._body()
        oid = self.path.rpartition("/")[2]
        if self.hub.refuses_large_files or hashlib.sha256(body).hexdigest() != oid:
            return self._answer(400, {"error": "other bytes"})
        self.hub.large[oid] = body
        self._answer(200, {})

    def do_POST(self) -> None:
        body = self._body()
        if not self._may():
            return
        path = self.path.partition("?")[0]
        if path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/models/(.+)/preupload/main", path):
            self._modes(json.loads(body))
        elif path.endswith(".git/info/lfs/objects/batch"):
            self._large(json.loads(body))
        elif found := re.fullmatch(r"/api/models/(.+)/commit/main", path):
            self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        else:
            self._answer(404, {"error": path})

    def _create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted['organization']}/{wanted['name']}"
        address = f"{self.hub.address}/{name}"
        if name in self.hub.private:
            return self._answer(409, {"error": "You already created it", "url": address})
        self.hub.private[name] = wanted.get("visibility") == "private"
        self.hub.files[name] = {}
        self._answer(200, {"url": address})

    def _modes(self, wanted: dict[str, Any]) -> None:
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs"
                if file["path"].endswith((".onnx", ".safetensors"))
                else "regular",
                "shouldIgnore": False,
            }
            for file in wanted["files"]
        ]
        self._answer(200, {"files": files})

    def _large(self, wanted: dict[str, Any]) -> None:
        objects = [
            one | {"actions": {"upload": {"href": f"{self.hub.address}/large/{one['oid']}"}}}
            for one in wanted["objects"]
        ]
        self._answer(200, {"transfer": "basic", "objects": objects})

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        header, *operations = lines
        for operation in operations:
            value = operation["value"]
            self.hub.files[name][value["path"]] = (
                self.hub.large[value["oid"]]
                if operation["key"] == "lfsFile"
                else base64.b64decode(value["content"])
            )
        self.hub.commits.append((name, header["value"]["summary"]))
        address = f"{self.hub.address}/{name}/commit/{_COMMIT}"
        self._answer(200, {"success": True, "commitOid": _COMMIT, "commitUrl": address})


@contextmanager
def serving() -> Iterator[Hub]:
    """The server, while it runs."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield hub
    server.shutdown()
    server.server_close()
