"""Data is found by one rule, whatever folder a command is started from."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from malmoi.paths import home, label_database, sample

ROOT = Path(__file__).parents[2]


def test_a_named_home_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    assert home() == tmp_path
    assert label_database() == tmp_path / "runs" / "labels.db"


def test_the_repository_from_elsewhere_and_short_paths_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALMOI_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert home() == ROOT and sample("memos").is_dir()
    monkeypatch.chdir(ROOT)
    assert home() == Path() and str(label_database()) == "runs/labels.db"


def test_without_a_repository_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the packages are installed without it."""
    monkeypatch.delenv("MALMOI_HOME", raising=False)
    package = tmp_path / "installed" / "malmoi"
    package.mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "environment.py", "paths.py"):
        shutil.copy(ROOT / "malmoi" / name, package)
    shutil.copytree(ROOT / "malmoi" / "messages", package / "messages")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    done = subprocess.run(
        [sys.executable, "-c", "import malmoi.paths as p; print(p.__file__, p.home())"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(package / "paths.py"), "."]
