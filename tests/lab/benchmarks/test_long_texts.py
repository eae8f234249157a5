"""Petitions, which are long: the encoder that is released knows more of one when it reads all."""

import json
from pathlib import Path

import numpy as np

from lab.benchmarks.quality.long_texts import RESULTS

ROOT = Path(__file__).parents[3]


def test_the_documented_figures_are_those_measured() -> None:
    page = (ROOT / "docs" / "reference" / "classifier.md").read_text(encoding="utf-8")
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    for row, way in (("cut at 128 tokens", "cut"), ("in windows", "windows")):
        scores = [run[way]["macro_f1"] for run in found["runs"]]
        assert f"| {row} | {np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f} |" in page
    windows = np.mean([run["windows_per_text"] for run in found["runs"]])
    assert f"{windows:.1f} windows a petition" in page
    assert f"{found['setting']['learnt']} petitions" in page
