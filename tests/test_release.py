"""The recipe of the released checkpoints: sittings, the check of its record, what is refused."""

import gzip
import importlib.util
import json
import time
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from corpora.errors import InputError

ROOT = Path(__file__).parents[1]
STEPS = 20


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """checkpoints/release.py, which lies in no package."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "checkpoints" / "release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
