"""What the released classifier of reviews learns from, and how it is scored."""

import errno
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from transformers import ElectraForPreTraining

from lab.release.review_texts import RATINGS
from malmoi.errors import InputError
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.inference.learnt_texts import read_learnt, text_keys
from tests.lab.release.conftest import (
    RATED,
    ROOT,
    write_reviews,
)
from tests.malmoi.finetune.conftest import LABELS, make_tokenizer, separable, tiny_config


def test_the_review_classifier_learns_from_as_many_of_each_rating_and_the_written_ones(
    release: ModuleType, tmp_path: Path
) -> None:
    settings = release.ReleaseSettings(
        data=write_reviews(tmp_path / "data", RATED), work=tmp_path / "work", reviews_per_label=40
    )
    table = pd.read_csv(release.rated_reviews(settings), keep_default_na=False)
    written = pd.read_csv(ROOT / "corpora" / "reviews" / "reviews.csv", keep_default_na=False)
    assert not table["text"].duplicated().any()
    from_ratings = table[table["text"].str.contains("^영화 감상 [0-9]+ 번째$")]
    assert from_ratings["label"].value_counts().to_dict() == {"부정": 40, "중립": 40, "긍정": 40}
    assert len(table) >= 120 + 0.99 * len(written)
    ratings = {f"영화 감상 {n} 번째": n % 10 + 1 for n in range(300)}
    for text, label in zip(from_ratings["text"], from_ratings["label"], strict=True):
        low, high = RATINGS[label]
        assert low <= ratings[text] <= high


def test_what_is_learnt_before_them_is_other_ratings_as_many_of_each(
    release: ModuleType, tmp_path: Path
) -> None:
    data = write_reviews(tmp_path / "data", RATED)
    held_out = {f"영화 감상 {n} 번째" for n in range(0, 300, 2)}
    rows = release.ratings_to_begin_with(data, held_out, 1_000)
    texts = [text for text, _ in rows]
    assert len(set(texts)) == len(texts) and not held_out & set(texts)
    # 긍정 has the fewest: ratings 9 and 10 of 300 reviews, of which the odd ones are left.
    assert Counter(label for _, label in rows) == {"부정": 30, "중립": 30, "긍정": 30}
    ratings = {f"영화 감상 {n} 번째": n % 10 + 1 for n in range(300)}
    for text, label in rows:
        low, high = RATINGS[label]
        assert low <= ratings[text] <= high
    labels = [label for _, label in rows]
    assert labels != sorted(labels) and rows == release.ratings_to_begin_with(data, held_out, 1_000)
    assert len(release.ratings_to_begin_with(data, held_out, 7)) == 21


def test_a_classifier_of_ratings_is_what_folds_begin_as(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = make_tokenizer()
    encoder = tmp_path / "encoder"
    ElectraForPreTraining(tiny_config(tokenizer)).save_pretrained(encoder)
    tokenizer.save_pretrained(encoder)
    release.learn_ratings(encoder, LABELS, separable(), tmp_path / "ratings")
    made = load_file(tmp_path / "ratings" / "model.safetensors")
    ratings = tmp_path / "ratings"
    begun = load_for_classification(ratings, LABELS, seed=1, keep_head=True).state_dict()
    for name in ("classifier.out_proj.weight", "electra.encoder.layer.0.output.dense.weight"):
        assert torch.equal(begun[name], made[name])
    learnt = read_learnt(ratings)
    assert learnt is not None
    assert np.array_equal(learnt, np.unique(text_keys([text for text, _ in separable()])))
    assert json.loads((tmp_path / "ratings" / "tokenizer.json").read_text())["truncation"] is None
    record = json.loads((tmp_path / "ratings" / "ratings.json").read_text(encoding="utf-8"))
    assert record.items() >= {"texts": len(separable()), "epochs": 1, "layer_decay": 1.0}.items()
    assert record["seconds"] > 0
    before = load_file(encoder / "model.safetensors")
    name = "electra.encoder.layer.0.output.dense.weight"
    assert not torch.equal(made[name], before[name])

    def half(model: object, tokenizer: object, folder: Path) -> None:
        (folder / "model.safetensors").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys.modules["lab.release.rating_classifier"], "save_model", half)
    with pytest.raises(OSError, match="No space left"):
        release.learn_ratings(encoder, LABELS, separable(), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_what_is_no_rating_is_refused_and_nothing_written(
    release: ModuleType, tmp_path: Path
) -> None:
    for rating in ("11", "", "열"):
        lines = [*RATED, f"300\t1\t20180101\t{rating}\t또 다른 감상\n"]
        data = write_reviews(tmp_path / "data", lines)
        settings = release.ReleaseSettings(data=data, work=tmp_path / "work", reviews_per_label=40)
        with pytest.raises(InputError, match=rf"gz:302: .* found '{rating}'"):
            release.rated_reviews(settings)
    settings = release.ReleaseSettings(data=write_reviews(data, RATED), work=tmp_path / "work")
    with pytest.raises(InputError, match=r"1,000 reviews rated 1 to 4 in .*, found 120; lower"):
        release.rated_reviews(settings)
    assert not (tmp_path / "work").exists()
