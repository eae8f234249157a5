"""Libraries are told to send no usage data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def files_made(home: Path, first: str, **variables: str) -> set[str]:
    """Names of what onnxruntime keeps in the home folder of a user who has never run it."""
    home.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    }
    environment |= {"HOME": str(home), **variables}
    program = f"import {first}, onnxruntime"
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)
    return {path.name for path in home.rglob("*") if path.is_file()}


def test_onnxruntime_keeps_no_id_of_the_machine(tmp_path: Path) -> None:
    if "deviceid" not in files_made(tmp_path / "alone", "sys"):
        pytest.skip("this build of onnxruntime keeps none by itself")
    assert files_made(tmp_path / "malmoi", "malmoi") == set()
    assert "deviceid" in files_made(tmp_path / "wanted", "malmoi", ORT_DISABLE_TELEMETRY="0")


def test_ray_and_the_hub_are_told_before_they_are_imported() -> None:
    program = (
        "import malmoi, sys; assert not {'ray', 'huggingface_hub'} & set(sys.modules);"
        "from huggingface_hub import constants; print(constants.HF_HUB_DISABLE_TELEMETRY);"
        "import os; print(os.environ['RAY_USAGE_STATS_ENABLED'])"
    )
    names = ("HF_HUB_DISABLE_TELEMETRY", "RAY_USAGE_STATS_ENABLED")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["True", "0"]
