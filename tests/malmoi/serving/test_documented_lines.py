"""The curl lines of docs/how-to/serve.md, typed as they stand, but for the port."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.malmoi.serving.conftest import ENGINE, ROOT, TOKEN, Labels, run_labels, serving

MEASURED = ROOT / "lab" / "benchmarks" / "results" / "serving.json"
PAGE = (ROOT / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")


def curl_lines() -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    lines = (
        "".join(block for language, block in blocks if not language)
        .replace("\\\n", " ")
        .splitlines()
    )
    return [line for line in lines if line.startswith("curl ")]


def test_every_curl_line_is_answered_with_the_keys_that_the_page_shows(
    classifier_directory: Path, home: Path, tmp_path: Path, labels: Labels
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    (tmp_path / "my-token").write_text(f"{TOKEN}\n")
    lines = [
        line.replace("malmoi-medium-reviews", str(classifier_directory)) for line in curl_lines()
    ]
    assert len(lines) >= 5 and any("Bearer" in line for line in lines)
    shown = re.search(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert shown is not None
    documented = json.loads(shown[1])
    owner_token = run_labels(home, "token", f"--database={labels.database}")
    for name, given in (("label", labels.tokens["하윤"]), ("owner", owner_token)):
        (tmp_path / f"{name}-token").write_text(f"{given}\n")
    flags = (classifier_directory, f"--engine={ENGINE}", f"--labels={labels.database}")
    with (
        serving(*flags, home=home) as server,
        serving(*flags, home=home, token=TOKEN) as with_token,
    ):
        for line in lines:
            port = with_token.port if "Bearer" in line else server.port
            done = subprocess.run(
                ["bash", "-c", f"{line.replace(':8000', f':{port}')} -sS --fail"],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            assert (
                "/metrics" in line or "/export" in line or isinstance(json.loads(done.stdout), dict)
            )
        found = server.ask("/v1/predict", {"texts": ["꿈", "일기"]}).json
    assert found.keys() == documented.keys()
    assert found["predictions"][0].keys() == documented["predictions"][0].keys()


def test_the_speeds_are_those_measured() -> None:
    found = json.loads(MEASURED.read_text(encoding="utf-8"))["texts_per_request"]
    speeds = PAGE.partition("## How fast")[2]
    for texts in ("64", "1"):
        assert f" {100 * found[texts]['ratio']:.0f}%" in speeds
    assert not any(each["errors"] for each in found.values())
