"""`malmoi doctor`: what it finds, and what it says where something is missing."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from malmoi.__main__ import main
from malmoi.commands import doctor


@pytest.fixture
def examine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[], dict[str, str]]:
    """Run it in an empty folder; returns its lines by the name of what was looked at."""
    monkeypatch.chdir(tmp_path)

    def run() -> dict[str, str]:
        assert main(["doctor"]) == 0
        lines = capsys.readouterr().out.splitlines()
        return {line[7:29].strip(): line for line in lines if line.startswith("  ")}

    return run


def test_what_is_missing_is_said_with_the_command_that_brings_it(
    examine: Callable[[], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = doctor.installed_version
    monkeypatch.setattr(
        doctor, "installed_version", lambda p: None if p == "openai" else installed(p)
    )
    lines = examine()
    assert lines["llm"].startswith(f"  {doctor.MISSING}") and "without openai" in lines["llm"]
    assert lines["packages"].startswith(f"  {doctor.OK}")
    assert lines["encoders"].startswith(f"  {doctor.MISSING}") and "none" in lines["encoders"]
    assert "bfloat16" in lines["number format"] or "float32" in lines["number format"]


def test_a_model_is_found_and_a_damaged_one_does_no_harm(
    examine: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    good, damaged = (tmp_path / "checkpoints" / name for name in ("good", "damaged"))
    for folder in (good, damaged):
        folder.mkdir(parents=True)
        (folder / "model.safetensors").touch()
    (good / "config.json").write_text('{"architectures": ["ElectraForPreTraining"]}')
    (damaged / "config.json").write_text("{")
    assert "checkpoints/good" in examine()["encoders"]
    assert "damaged" not in examine()["encoders"]


def test_classifiers_of_every_kind_are_found(
    examine: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    for name, more in (("one", ""), ("pairs", ', "finetune_task": "pair"')):
        folder = tmp_path / "checkpoints" / name
        folder.mkdir(parents=True)
        (folder / "model.safetensors").touch()
        config = '{"architectures": ["ElectraForSequenceClassification"]' + more + "}"
        (folder / "config.json").write_text(config)
    found = examine()["classifiers"]
    assert "checkpoints/one, " in found
    assert "checkpoints/pairs (reads two texts at a time)" in found


def test_a_home_that_is_not_there_is_a_line(
    examine: Callable[[], dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path / "nowhere"))
    line = examine()["data and models"]
    assert line.startswith(f"  {doctor.MISSING}") and f"MALMOI_HOME={tmp_path}/nowhere" in line


def test_without_torch_it_is_a_line_and_the_places_follow(
    examine: Callable[[], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    lines = examine()
    assert lines["torch"].startswith(f"  {doctor.MISSING}") and "not installed" in lines["torch"]
    assert "free disk" in lines
