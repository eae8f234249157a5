"""Petitions, which are long: the encoder that is released knows more of one when it reads all."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks.quality.long_texts import RESULTS, petitions
from malmoi.inference.batching import TokenizedTexts
from malmoi.inference.linear.frozen_encoder import FrozenEncoder
from malmoi.inference.running import logits_by_length

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
COUNT = 100


def macro_f1(encoder: FrozenEncoder, tokens: TokenizedTexts, targets: np.ndarray) -> float:
    """Of a logistic regression on the encoder's [CLS] and mean, in five folds."""
    features = np.zeros(0)
    for places, rows in logits_by_length(encoder, tokens, range(tokens.texts)):
        if not len(features):
            features = np.zeros((tokens.texts, rows.shape[1]))
        features[places] = rows
    model = LogisticRegression(C=0.1, max_iter=500)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = cross_val_predict(model, features, targets, cv=folds)
    return float(f1_score(targets, found, average="macro"))


@pytest.mark.skipif(not (SHARED / "petitions").is_dir(), reason=f"no petitions at {SHARED}")
def test_the_category_of_a_petition_is_told_better_from_all_of_it() -> None:
    rows, labels = petitions(SHARED, 4)
    texts, targets = rows.texts, rows.targets
    assert len(labels) == 4 and len(texts) == len(targets) > 1000
    chosen = np.random.default_rng(0).permutation(len(texts))[:COUNT]
    encoder = FrozenEncoder.load(ROOT / "checkpoints" / "malmoi-small")
    tokens = encoder.tokenizer([texts[place] for place in chosen])
    assert len(tokens.lengths) > 4 * COUNT
    whole = macro_f1(encoder, tokens, targets[chosen])
    assert whole > macro_f1(encoder, tokens.beginnings(), targets[chosen]) + 0.01


def test_the_documented_figures_are_those_measured() -> None:
    page = (ROOT / "docs" / "reference" / "classifier.md").read_text(encoding="utf-8")
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    for row, way in (("cut at 128 tokens", "cut"), ("in windows", "windows")):
        scores = [run[way]["macro_f1"] for run in found["runs"]]
        assert f"| {row} | {np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f} |" in page
    windows = np.mean([run["windows_per_text"] for run in found["runs"]])
    assert f"{windows:.1f} windows a petition" in page
    assert f"{found['setting']['learnt']} petitions" in page
