"""Data sets of the Hugging Face Hub, from a server on this machine that speaks its protocol."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from malmoi.text.public.hub import KCBERT_CORPUS, is_data
from malmoi.text.reading.records import iter_records
from tests.malmoi.hub_downloads import Hub, commit_of, serving


def parquet(texts: list[str]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"text": texts}).to_parquet(buffer)
    return buffer.getvalue()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving("owner/comments", "datasets/") as hub:
        hub.branches["main"] = {
            "README.md": b"# comments",
            ".gitattributes": b"*.parquet filter=lfs",
            "comments.py": b"raise SystemExit('remote code was run')",
            "data/train-00000.parquet": parquet(["재밌다 ㅋㅋ", "별로예요"]),
            "extra.csv": "text\n하나\n".encode(),
        }
        yield hub


def fetch(name: str, folder: Path, hub: Hub | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_XET": "1"}
    if hub is not None:
        environment |= {"HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "0"}
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
    assert recorded["homepage"].endswith(f"(revision {commit_of('main')})")
    assert fetch("hub:owner/comments", tmp_path, hub).returncode == 0
    other = fetch("hub:owner/other", tmp_path, hub)
    assert other.returncode == 2
    assert "found one of hub:owner/comments" in other.stderr


def test_a_file_that_is_not_the_published_one_is_deleted(hub: Hub, tmp_path: Path) -> None:
    name = "data/train-00000.parquet"
    hub.published[name] = hub.branches["main"][name][:-1] + b"x"
    done = fetch("hub:owner/comments", tmp_path, hub)
    assert done.returncode == 2
    assert f"expected {name}" in done.stderr
    assert not (tmp_path / "out" / name).exists()
    assert not (tmp_path / "out" / "SOURCE.json").exists()


def test_a_data_set_of_nothing_but_code_is_refused(hub: Hub, tmp_path: Path) -> None:
    files = hub.branches["main"]
    hub.branches["main"] = {n: data for n, data in files.items() if n.endswith((".py", ".md"))}
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
