"""What a machine has for worker processes."""

from pathlib import Path

import psutil
import pytest

from malmoi.workers import local


@pytest.mark.parametrize("limit", ["1073741824\n", "max\n", ""])
def test_a_container_has_no_more_memory_than_its_limit(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text(limit, encoding="ascii")
    monkeypatch.setattr(local, "_LIMITS", (tmp_path / "memory.max", tmp_path / "not-there"))
    whole = psutil.virtual_memory().total
    assert local.machine_memory() == (min(whole, 2**30) if limit.strip().isdigit() else whole)
