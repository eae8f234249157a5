"""The benchmark of the labelling page, small."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.speed.labelling_app import LabellingAppSettings, main

pytestmark = pytest.mark.browser


def test_a_small_run_measures_everything_and_loses_no_label(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not any(map(shutil.which, ("chromium", "google-chrome"))):
        pytest.skip("no Chromium on this machine")
    sizes = {"texts": 600, "labels": 100, "keys": 5, "queue_texts": 400, "queue_labels": 40}
    main(LabellingAppSettings(**sizes, draws=2, output=tmp_path / "out.json"))
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert len(found["queue_ms"]) == 6
    assert found["page"]["keys"] == 5 and found["page"]["changed_ms"]["median"] > 0
    assert set(found["page"]["bursts"]) == {"0 ms", "20 ms", "50 ms", "100 ms"}
    for burst in found["page"]["bursts"].values():
        assert burst == {"keys": 20, "right": 20}
    assert found["page"]["killed"] == {"unsent": 5, "keys": 5, "right": 5}
