"""`malmoi stats`: what is counted, on texts small enough to count by hand."""

import json
from pathlib import Path

import pytest

from malmoi.__main__ import main
from malmoi.text.corpus.clean_report import REPORT_NAME
from malmoi.text.corpus.counting import CorpusCounts, script_of
from malmoi.text.record import Record


def test_scripts() -> None:
    for characters, script in (
        ("가힣", "Hangul"),
        ("ㅋㅠㅏㅣ\u1100", "lone jamo"),
        ("aZéＡ", "Latin"),
        ("09３", "digits"),
        ("大豈㐀", "hanja"),
        ("😀❤👍🇰☕\ufe0f\u200d", "emoji"),
        (".!~あЯ½", "other"),
    ):
        assert {character: script_of(character) for character in characters} == dict.fromkeys(
            characters, script
        )


def counted(*texts: str) -> dict[str, object]:
    counts = CorpusCounts()
    for number, text in enumerate(texts):
        counts.add(Record(id=str(number), text=text))
    return counts.summary()


def test_counts() -> None:
    summary = counted("가나 다", "가나 다", "ㅋㅋab 1大😀.", "", "가나다 ")
    assert summary["texts"] == 5
    assert summary["empty texts"] == 1
    assert summary["characters"] == 4 + 4 + 9 + 0 + 4
    assert summary["characters a text, mean"] == 4.2
    assert summary["characters a text, median"] == 4
    assert summary["characters a text, 95th percentile"] == 9
    assert summary["eojeol"] == 2 + 2 + 2 + 0 + 1
    assert summary["duplicates"] == 1
    share = summary["share of characters"]
    assert share == {
        "Hangul": pytest.approx(9 / 17, abs=1e-6),
        "lone jamo": pytest.approx(2 / 17, abs=1e-6),
        "Latin": pytest.approx(2 / 17, abs=1e-6),
        **dict.fromkeys(("digits", "hanja", "emoji", "other"), pytest.approx(1 / 17, abs=1e-6)),
    }


def test_nothing_and_halves_of_characters_are_counted_too() -> None:
    assert counted()["texts"] == 0
    assert counted("")["characters a text, mean"] == 0
    assert counted("\ud83d", "\ud83d", "\x00")["duplicates"] == 1


def test_rejections_of_a_clean_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("재밌다\n", encoding="utf-8")
    report = tmp_path / REPORT_NAME
    report.write_text(json.dumps({"dropped": {"empty": 1, "duplicate": 7, "too-short": 3}}))
    assert main(["stats", str(tmp_path)]) == 0
    assert "rejections:\n  duplicate: 7\n  too-short: 3\n  empty: 1\n" in capsys.readouterr().out
    report.write_text("[]")
    assert main(["stats", str(tmp_path)]) == 2
    assert "expected the report of a clean corpus" in capsys.readouterr().err
