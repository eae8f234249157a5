"""Tables as pandas gives them, and as people fill them in."""

from pathlib import Path

import pandas as pd

from malmoi.analysis.analysing import report


def test_missing_cells_of_any_kind_are_empty() -> None:
    frame = pd.DataFrame(
        {
            "글": ["배송이 빨라요", "늦게 왔어요", None],
            "라벨": ["좋음", None, None],
            "날": ["2026-01-05", "2026-01-06", None],
            "별점": [5, None, 1],
        }
    )
    found = report(frame.convert_dtypes(), "글", label="라벨", by="별점", time="날")
    assert (found.blank, found.labels) == (1, ["좋음"])
    assert [parts.names for parts in found.parts] == [[""], ["5"], ["2026-01-05"]]


def test_parts_whose_names_are_masked_alike_are_two(tmp_path: Path) -> None:
    frame = pd.DataFrame({"글": [f"배송이 빨라요 {n}" for n in range(60)]})
    frame["라벨"] = ["좋음", "나쁨"] * 30
    frame["누구"] = ["010-1234-5678", "010-9876-5432", "지은"] * 20
    found = report(frame, "글", label="라벨", by="누구")
    assert found.part_names[1] == ["[전화]", "[전화] (2)", "지은"]
    assert len(found.behind("누구", "[전화] (2)", "좋음")) == 10
    found.save(tmp_path / "보고서.html")
    assert "[전화] (2)" in (tmp_path / "보고서.html").read_text(encoding="utf-8")
