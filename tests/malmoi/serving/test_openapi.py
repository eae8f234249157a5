"""schemathesis: what the OpenAPI document promises is what the server does, whatever it is sent."""

import subprocess
import sys
from pathlib import Path

from tests.malmoi.serving.conftest import TOKEN, Server

# Whether a labelling configuration is XML with choices for all labels, no JSON schema can say: what
# fits the schema may be refused there. Nor can it say what models there are.
CONFIGURATION = """
[[operations]]
include-path = ["/setup", "/predict", "/v1/models/default"]

[operations.checks]
positive_data_acceptance.enabled = false
"""
COMMAND = "from schemathesis.cli import schemathesis; schemathesis()"


def test_schemathesis_finds_nothing(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "schemathesis.toml"
    file.write_text(CONFIGURATION)
    flags = ["--max-examples=30", "--seed=1", "--no-color", "--request-timeout=60"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, f"--config-file={file}", "run"]
        + [f"{server.url}/openapi.json", "-H", f"Authorization: Bearer {TOKEN}", *flags],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Nothing was found because everything was looked at.
    assert "Tested: 11" in done.stdout and "ignored_auth" not in done.stdout
