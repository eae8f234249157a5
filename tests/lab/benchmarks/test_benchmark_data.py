"""Benchmarks find public texts where `malmoi fetch` writes them, and say in one line what lacks."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from lab.benchmarks.data import HATE_TRAIN, NEWS_COMMENTS, PETITIONS, QUESTIONS, DataSettings
from malmoi.errors import InputError


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("글\n", encoding="utf-8")
    return path


def test_a_file_is_found_by_its_source_and_name(tmp_path: Path) -> None:
    hate = write(tmp_path / "korean_hate_speech" / "labeled" / "train.tsv")
    questions = write(tmp_path / "question_pair" / "train.tsv")
    assert HATE_TRAIN.find(tmp_path) == hate
    assert QUESTIONS["train"].find(tmp_path) == questions
    # The folder of one source alone, a compressed file, and another name of the same file.
    assert HATE_TRAIN.find(hate.parent.parent) == hate
    petitions = write(tmp_path / "petitions" / "petitions_2019-08.jsonl.gz")
    assert PETITIONS["2019-08"].find(tmp_path) == petitions
    comments = write(tmp_path / "comments" / "korean_hate_speech_unlabeled_5.txt")
    assert NEWS_COMMENTS.find(tmp_path) == comments
    comments.unlink()
    comments = write(tmp_path / "korean_hate_speech" / "unlabeled" / "unlabeled_comments_5.txt")
    assert NEWS_COMMENTS.find(tmp_path) == comments


def test_the_folder_is_the_flag_the_variable_or_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALMOI_DATA", raising=False)
    assert DataSettings().folder == Path("data")
    monkeypatch.setenv("MALMOI_DATA", "elsewhere")
    assert DataSettings().folder == Path("elsewhere")
    assert DataSettings(data=Path("given")).folder == Path("given")


def test_no_benchmark_passes_over_data_that_lack(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "quality.score": ("QualitySettings", {"tasks": "memos,nsmc", "linear": True}),
        "quality.token_budget": ("BudgetSettings", {}),
        "speed.pretraining": ("PretrainingSpeedSettings", {}),
    }
    for name, (settings, flags) in cases.items():
        module = importlib.import_module(f"lab.benchmarks.{name}")
        places = {"data": tmp_path / "data", "output": tmp_path / "results.json"} | flags
        with pytest.raises(InputError, match=f"below {tmp_path / 'data'}, found none; "):
            module.main(getattr(module, settings)(**places))
        assert not any(tmp_path.iterdir()), name
