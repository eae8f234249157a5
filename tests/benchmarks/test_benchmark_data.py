"""Benchmarks find public texts where `malmoi fetch` writes them, and say in one line what lacks."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.data import (
    HATE_TRAIN,
    NEWS_COMMENTS,
    NSMC_TRAIN,
    PETITIONS,
    QUESTIONS,
    RATED_REVIEWS,
    DataSettings,
)
from malmoi.errors import InputError

ROOT = Path(__file__).parents[2]


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


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    for file, remedy in (
        (NSMC_TRAIN, "malmoi fetch nsmc, or --data FOLDER"),
        (RATED_REVIEWS, "malmoi fetch nsmc_rated, or --data FOLDER"),
    ):
        with pytest.raises(
            InputError, match=f"^expected {file.name} below {tmp_path}, found none; .*{remedy}$"
        ):
            file.find(tmp_path)


def test_the_folder_is_the_flag_the_variable_or_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALMOI_DATA", raising=False)
    assert DataSettings().folder == Path("data")
    monkeypatch.setenv("MALMOI_DATA", "elsewhere")
    assert DataSettings().folder == Path("elsewhere")
    assert DataSettings(data=Path("given")).folder == Path("given")


@pytest.mark.parametrize(
    ("name", "settings", "flags"),
    [
        ("quality.ablation", "AblationSettings", {}),
        ("quality.pretraining_gain", "GainSettings", {}),
        ("quality.score", "QualitySettings", {"tasks": "memos,nsmc", "linear": True}),
        ("quality.self_training", "SelfTrainingSettings", {}),
        ("quality.token_budget", "BudgetSettings", {}),
        ("quality.tokenizer_kinds", "KindsSettings", {"tokenizers": "a=b"}),
        ("speed.cleaning", "CleaningSpeedSettings", {}),
        ("speed.cleaning_scale", "ScaleSettings", {}),
        ("speed.pretraining", "PretrainingSpeedSettings", {}),
        ("text.vocabularies", "VocabulariesSettings", {}),
    ],
)
def test_no_benchmark_passes_over_data_that_lack(
    tmp_path: Path, name: str, settings: str, flags: dict[str, Any]
) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    places = {"data": tmp_path / "data"} | flags
    results = "results" if "self_training" in name else "output"
    places[results] = tmp_path / "results.json"
    with pytest.raises(InputError, match=f"below {tmp_path / 'data'}, found none; "):
        module.main(getattr(module, settings)(**places))
    assert not any(tmp_path.iterdir())


def test_a_benchmark_without_its_data_ends_with_2_and_helps_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def run(name: str, *flags: str) -> tuple[subprocess.CompletedProcess[str], float]:
        command = [sys.executable, "-m", f"benchmarks.{name}", *flags]
        before = os.times().children_user
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done, os.times().children_user - before

    done, _ = run("quality.score", "--tasks", "nsmc", "--linear")
    assert done.returncode == 2
    assert done.stderr.startswith("error: expected ratings_train.txt below data, found none; malm")
    assert len(done.stderr.splitlines()) == 1
    for name in ("quality.score", "quality.self_training", "quality.token_budget"):
        done, seconds = run(name, "--help")
        assert done.returncode == 0 and "--data" in done.stdout
        # Of one core; a second alone, torch and transformers take four more.
        assert seconds < 2.5, name
