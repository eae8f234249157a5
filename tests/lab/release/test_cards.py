"""The cards of the released models: their numbers are those of the records and results."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from malmoi.errors import InputError
from tests.lab.release.conftest import write_json, write_records, write_weights


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """lab/release/scores_table.py, with nothing measured yet."""
    module = importlib.import_module("lab.release.scores_table")
    monkeypatch.setattr(module, "QUALITY", tmp_path / "quality.json")
    return module


@pytest.fixture
def released(measured: ModuleType, tmp_path: Path) -> Path:
    """A folder with the records of a release, where cards are written to."""
    return write_records(tmp_path / "checkpoints")


def card_of(released: Path, name: str = "malmoi-small") -> str:
    """The card, written anew by `python -m lab.release.make --cards`."""
    making = importlib.import_module("lab.release.making")
    making.make(making.ReleaseSettings(output=released, cards=True))
    return (released / name / "README.md").read_text(encoding="utf-8")


def test_numbers_are_those_of_the_records(measured: ModuleType, released: Path) -> None:
    sha256 = write_weights(released / "malmoi-small")
    rows: list[dict[str, Any]] = [
        {"part": "test", "task": "nsmc", "encoder": "malmoi-small", "seed": seed, "accuracy": score}
        for seed, score in enumerate((88.0, 89.0))
    ]
    for row, typos in zip(rows, (85.0, 86.0), strict=True):
        row["weights_sha256"] = sha256
        row["spoilt"] = {"as written": 88.0, "typos": typos, "CP949": 88.0}
    others = rows[0] | {"accuracy": 1.0}
    rows += [others | {"part": "dev", "task": "kote"}, others | {"weights_sha256": "0" * 64}]
    write_json(measured.QUALITY, {"runs": rows})
    encoder = card_of(released)
    for line in (
        "| parameters | 7.4 million |",
        "| tokens seen | 50 million |",
        "| steps | 12,345 |",
        "| hours | 2.0 |",
        "| seed | 7 |",
        "| started from | skip-gram |",
        "| everyday sentences (songys/Chatbot_data) | 14,455 | MIT |",
        # Two files of one source.
        "| questions and sentences on sensitive topics (NAVER, SQuARe and KoSBi) | 9 | MIT |",
        "| this encoder (2) | 88.00 | -2.50 | 0.00 |",
        "| this encoder | 7.4M | 88.50 |  |  |  |",
        "| DistilKoBERT |  | 88.41 | 73.21 | 92.48 |  |",
        "| [malmoi-small-memos](../malmoi-small-memos/README.md) | 0.8100 |  | 10 |",
    ):
        assert line in encoder.splitlines()
    assert "| accuracy | 88.50 ± 0.71 (2) |  |  |" in encoder
    assert "| 3 | public record; the archive states no licence" in encoder
    memos = card_of(released, "malmoi-small-memos")
    for line in (
        "| all | 1,001 | 0.8100 | 0.0141 |  |",
        "| rated | 1,000 | 0.7000 |  |  |",
        "| 꿈 | 500 |",
        "| before calibration | 0.108 |",
        "| after calibration | 0.034 |",
    ):
        assert line in memos.splitlines()


def test_a_card_of_ones_own_keeps_its_text(measured: ModuleType, released: Path) -> None:
    path = released / "malmoi-small" / "README.md"
    path.write_text("# mine\n<!-- numbers: begin -->\n2009\n<!-- numbers: end -->\nmore\n")
    card = card_of(released)
    assert card.startswith("# mine\n<!-- numbers: begin -->\n| ") and card.endswith("-->\nmore\n")
    assert "2009" not in card and card_of(released) == card
    for text in ("none", "<!-- numbers: end --><!-- numbers: begin -->", card + card):
        path.write_text(text)
        with pytest.raises(InputError, match=r"README\.md: expected the marks .* once each"):
            card_of(released)
        assert path.read_text() == text


def test_figures_are_of_todays_weights_and_texts(measured: ModuleType, released: Path) -> None:
    assert "Not measured yet." in card_of(released)
    sha256 = write_weights(released / "malmoi-small")
    row = {"part": "test", "task": "kote", "encoder": "malmoi-small", "weights_sha256": sha256}
    write_json(measured.QUALITY, {"runs": [row | {"macro_f1": 30.0}]})
    encoder = card_of(released)
    assert "| 30.00 (1) |" in encoder and "KoELECTRA" not in encoder
    row |= {"task": "korsts", "spearman": 38.5}
    write_json(measured.QUALITY, {"runs": [row]})
    assert "| this encoder | 7.4M |  | 38.50 |  |  |" in card_of(released)
    # Another encoder in its folder, or rows that name no weights.
    for rows, weights in (([row], b"newer"), ([row | {"weights_sha256": None}], b"weights")):
        write_json(measured.QUALITY, {"runs": rows})
        write_weights(released / "malmoi-small", weights)
        encoder = card_of(released)
        assert "Not measured yet." in encoder and "38.50" not in encoder


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("malmoi-small/run.json", None, "expected .*run.json, found none"),
        ("malmoi-small/run.json", [], "expected a JSON object in .*run.json, found list"),
        ("malmoi-small/run.json", {}, r"run\.json, found another \(KeyError\('networks'\)\)"),
        ("malmoi-small/model.safetensors", None, r"weights in .*model\.safetensors, found none"),
        ("malmoi-small/corpus.json", None, "expected .*corpus.json, found none"),
        ("malmoi-small/corpus.json", {}, r"corpus\.json, found another \(KeyError\('sources'\)\)"),
        (
            "malmoi-small/corpus.json",
            {"sources": {"my_reviews.csv": {"kept": 3}}},
            r"corpus\.json: expected files of reviews_rated.*, found my_reviews\.csv; add",
        ),
        ("malmoi-small-memos/report.json", None, "expected .*report.json, found none"),
        ("malmoi-small-memos/report.json", {"folds": []}, r"report\.json, found another"),
    ],
)
def test_cards_of_what_is_no_release_are_refused_and_none_is_written(
    released: Path, file: str, content: Any, message: str
) -> None:
    if content is None:
        (released / file).unlink()
    else:
        write_json(released / file, content)
    with pytest.raises(InputError, match=message):
        card_of(released)
    assert not list(released.rglob("README.md"))
