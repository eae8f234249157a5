"""The recipe of the released checkpoints: sittings, the check of its record, what is refused."""

import gzip
import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from corpora.errors import InputError

ROOT = Path(__file__).parents[1]
STEPS = 20


@pytest.fixture(scope="module")
def release() -> Iterator[ModuleType]:
    """checkpoints/release.py, which lies in no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "checkpoints")
        yield importlib.import_module("release")


@pytest.fixture
def small(release: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The same with a recipe of seconds."""
    recipe = ["--init", "random", "--vocab-size", "2000", "--tokens-per-batch", "512"]
    recipe += ["--log-steps", str(STEPS // 2)]
    monkeypatch.setattr(release, "RECIPE", recipe)
    return release


def test_the_encoder_is_made_in_sittings_and_the_record_can_be_checked(
    small: ModuleType, tmp_path: Path, comments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(comments[:400]) + "\n", encoding="utf-8")
    run = tmp_path / "released"
    tokens = 1.5 * STEPS * 512
    began = time.monotonic()
    assert small.pretrain(corpus, run, tokens, 60)
    minutes = (time.monotonic() - began) / 60
    assert small.pretrain(corpus, run, tokens, 60)  # nothing is left to do
    # A sitting of half as long again, by this machine's own measure, cannot do a hundred times the
    # work; the next goes on where it stopped.
    long = tmp_path / "long"
    steps = []
    for _ in range(2):
        assert not small.pretrain(corpus, long, 100 * tokens, 1.5 * minutes)
        steps.append(max(small._losses(long / "metrics.jsonl")))
    assert STEPS // 2 <= steps[0] < steps[1]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows[1]["discriminator_loss"] *= 1.1
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run / "metrics.jsonl").write_text(text, encoding="utf-8")
    # 1 - 1 / 1.1 to the digit: nothing else differs from the record.
    with pytest.raises(InputError, match=r"within 3% of the record, found 9\.1%"):
        small.check(corpus, run, steps=STEPS)


def test_a_stage_that_fails_ends_the_release_with_its_code(
    release: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.txt"
    with pytest.raises(SystemExit) as ended:
        release.pretrain(missing, tmp_path / "run", 1e6, 1)
    assert ended.value.code == 2
    errors = capfd.readouterr().err
    assert str(missing) in errors and "Traceback" not in errors


def test_missing_and_changed_reviews_are_refused(release: ModuleType, tmp_path: Path) -> None:
    settings = release.ReleaseSettings(data=tmp_path, work=tmp_path / "work")
    with pytest.raises(InputError, match=r"expected reviews_rated\.tsv\.gz below"):
        release.main(settings)
    (tmp_path / "nsmc").mkdir()
    with gzip.open(tmp_path / "nsmc" / release.REVIEWS, "wt", encoding="utf-8") as file:
        file.write("id\tdocument\trating\n")
    with pytest.raises(InputError, match="SHA-256"):
        release.main(settings)
    assert not (tmp_path / "work").exists()


def test_the_review_classifier_learns_from_as_many_of_each_rating_and_the_written_ones(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated = tmp_path / "rated.tsv.gz"
    lines = [f"{n}\t영화 감상 {n} 번째\t{n % 10 + 1}\n" for n in range(300)]
    with gzip.open(rated, "wt", encoding="utf-8") as file:
        file.writelines(["id\tdocument\trating\n", *lines])
    monkeypatch.setattr(release, "_reviews", lambda data: rated)
    settings = release.ReleaseSettings(work=tmp_path, reviews_per_label=40)
    table = pd.read_csv(release.rated_reviews(settings), keep_default_na=False)
    written = pd.read_csv(ROOT / "corpora" / "reviews" / "reviews.csv", keep_default_na=False)
    assert not table["text"].duplicated().any()
    from_ratings = table[table["text"].str.contains("^영화 감상 [0-9]+ 번째$")]
    assert from_ratings["label"].value_counts().to_dict() == {"부정": 40, "중립": 40, "긍정": 40}
    assert len(table) >= 120 + 0.99 * len(written)
    ratings = {f"영화 감상 {n} 번째": n % 10 + 1 for n in range(300)}
    for text, label in zip(from_ratings["text"], from_ratings["label"], strict=True):
        low, high = release.RATINGS[label]
        assert low <= ratings[text] <= high


def test_written_and_rated_reviews_are_scored_apart(release: ModuleType, tmp_path: Path) -> None:
    written = list(release._written_reviews().items())[:30]
    rows = [{"text": text, "label": label, "predicted": label} for text, label in written]
    for n, label in enumerate(release.RATINGS):
        rows.append({"text": f"영화 감상 {n}", "label": label, "predicted": "긍정"})
    pd.DataFrame(rows).to_csv(tmp_path / "predictions.csv", index=False, encoding="utf-8-sig")
    scores = release.scores_by_origin(tmp_path / "predictions.csv")
    assert scores["written"] == {"texts": 30, "macro_f1": 1.0}
    # One of three right, all called 긍정: F1 of 0.5, 0 and 0.
    assert scores["rated"] == {"texts": 3, "macro_f1": pytest.approx(1 / 6)}


def test_cards_say_what_the_records_say(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = release.ReleaseSettings(output=tmp_path / "checkpoints")
    with pytest.raises(InputError, match="expected a released malmoi-small in"):
        release.write_cards(settings)
    record = {
        "settings": {"seed": 7, "mask_fraction": 0.15, "unigram_fraction": 1.0, "bag_weight": 5.0},
        "networks": {
            "discriminator": {
                "parameters": 7_420_161,
                "num_hidden_layers": 4,
                "hidden_size": 256,
            }
        },
        "vocab_size": 32_000,
        "progress": {"tokens": 49_999_999, "step": 12_345, "seconds": 7_200},
        "device": "cpu",
        "threads": 2,
    }
    corpus = {"sources": {"ChatbotData.csv": {"kept": 14_455}, "petitions_2": {"kept": 3}}}
    report = {
        "folds": [{"macro_f1": 0.8}, {"macro_f1": 0.82}],
        "data": {"per_label": {"꿈": 500, "오류": 501}},
        "by_origin": {"rated": {"texts": 1000, "macro_f1": 0.7}},
    }
    rows = [
        {"part": "test", "task": "nsmc", "encoder": "malmoi-small", "seed": seed, "accuracy": score}
        for seed, score in enumerate((88.0, 89.0))
    ]
    rows.append(rows[0] | {"part": "dev", "accuracy": 1.0})
    results = tmp_path / "quality.json"
    results.write_text(json.dumps({"runs": rows}), encoding="utf-8")
    monkeypatch.setattr(sys.modules["cards"], "QUALITY", results)
    for name, files in {
        "malmoi-small": {"run.json": record, "corpus.json": corpus},
        "malmoi-small-reviews": {"report.json": report},
        "malmoi-small-memos": {"report.json": report},
    }.items():
        (settings.output / name).mkdir(parents=True)
        for file, content in files.items():
            (settings.output / name / file).write_text(json.dumps(content), encoding="utf-8")
    release.write_cards(settings)
    encoder = (settings.output / "malmoi-small" / "README.md").read_text(encoding="utf-8")
    for fact in (
        "7.4 million parameters",
        "50 million tokens (12,345 steps) in 2.0 hours",
        "seed 7",
    ):
        assert fact in encoder
    assert "| 14,455 | MIT |" in encoder and "| 3 | public record, KOGL |" in encoder
    assert "| accuracy | 88.50 ± 0.71 (2) |  |  |" in encoder
    memos = (settings.output / "malmoi-small-memos" / "README.md").read_text(encoding="utf-8")
    assert "0.8100 (standard deviation 0.0141); texts: 꿈 500, 오류 501." in memos
    assert "Rated reviews alone (1,000): 0.7000." in memos
