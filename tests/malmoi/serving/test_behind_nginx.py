"""Behind a real nginx that strips a prefix: every address that is given leads back below it."""

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.malmoi.serving.conftest import TOKEN, Server, free_port

BEARER = {"Authorization": f"Bearer {TOKEN}"}
CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location /말모이/v2/ {{ proxy_pass {url}/; }}
  }}
}}
"""


@pytest.fixture
def proxied(server: Server, tmp_path: Path) -> Iterator[Server]:
    if (nginx := shutil.which("nginx")) is None:
        pytest.skip("no nginx on this machine")
    port = free_port()
    file = tmp_path / "nginx.conf"
    file.write_text(CONFIGURATION.format(folder=tmp_path, port=port, url=server.url))
    process = subprocess.Popen([nginx, "-p", tmp_path, "-c", file, "-e", "stderr"])
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        prefix = "%EB%A7%90%EB%AA%A8%EC%9D%B4/v2"
        yield Server(process, f"http://127.0.0.1:{port}/{prefix}", server.line)
    finally:
        process.terminate()
        process.wait(60)


def test_what_the_docs_try_out_is_found_below_the_prefix(proxied: Server) -> None:
    below = len(proxied.url)
    for docs in ("/docs", "/docs/"):
        page = proxied.ask(docs)
        assert page.status == 200 and "location" not in page.headers
        found = re.search(r'href="([^"]*)"', page.body.decode())
        assert found is not None
        document = urljoin(proxied.url + docs, found[1])
        assert document == f"{proxied.url}/openapi.json"
        schema = proxied.ask(document[below:]).json
        (server,) = schema["servers"]
        base = urljoin(document, server["url"]).rstrip("/")
        operation = schema["paths"]["/v1/predict"]["post"]
        examples = operation["requestBody"]["content"]["application/json"]["examples"]
        for example in examples.values():
            answer = proxied.ask(f"{base}/v1/predict"[below:], example["value"], **BEARER)
            assert answer.status == 200, answer


def test_a_slash_at_the_end_changes_nothing(proxied: Server) -> None:
    body = json.dumps({"text": "꿈에서"}).encode()
    for path, sent in (("/health", None), ("/", None), ("/v1/labels", None), ("/v1/predict", body)):
        with_slash = proxied.ask(f"{path.rstrip('/')}/", sent, **BEARER)
        assert (with_slash.status, with_slash.json) == (200, proxied.ask(path, sent, **BEARER).json)
    assert proxied.ask("/v1/labels/").status == 401
    nowhere = proxied.ask("/v1/", **BEARER)
    assert nowhere.status == 404 and "location" not in nowhere.headers
