"""The fast part of the golden manifest; `make golden` runs all of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.entries import Golden, changes, write_manifest

ROOT = Path(__file__).parents[2]


def test_nothing_has_changed() -> None:
    """In a process of its own: other tests leave threads, seeds and folders behind."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden", "--fast"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    told = "make golden ACCEPT=1 writes a new manifest; say why in tests/golden/README.md"
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}\n{told}"


def test_what_differs_is_named_and_what_varies_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(texts: int, seconds: float, loss: float) -> Golden:
        golden = Golden(work=tmp_path)
        report = {"texts": texts, "seconds": seconds, "path": f"{tmp_path}/{texts}.csv"}
        golden.add("report", report, texts=texts)
        golden.add("weights", str(loss), of_cpu=True)
        return golden

    place = tmp_path / "manifest.json"
    write_manifest(place, found(3, 1.5, 0.25))
    manifest = json.loads(place.read_text(encoding="utf-8"))
    assert list(changes(manifest, found(3, 9.5, 0.25), whole=True)) == []
    (line,) = changes(manifest, found(2, 1.5, 0.25), whole=True)
    assert line.startswith("changed: report:") and '"texts": 3' in line and '"texts": 2' in line
    (line,) = changes(manifest, found(3, 1.5, 0.5), whole=True)
    assert line.startswith("changed: weights:")
    monkeypatch.setattr("tests.golden.entries.this_cpu", lambda: "another")
    assert list(changes(manifest, found(3, 1.5, 0.5), whole=True)) == []
    empty = Golden(work=tmp_path, skipped={"report": "nothing to read"})
    assert list(changes(manifest, empty, whole=True)) == []
    empty.keep_skipped(manifest["everywhere"])
    assert empty.everywhere == manifest["everywhere"]
    assert list(changes(manifest, Golden(work=tmp_path), whole=True)) == ["missing: report"]
    assert list(changes(manifest, Golden(work=tmp_path), whole=False)) == []
