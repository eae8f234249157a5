"""A linear part that an older version fitted: Kiwi's morphemes and word vectors, by a formula."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from malmoi.inference.classifier import Classifier
from malmoi.inference.linear.morphemes import hash_of
from malmoi.text.morphemes import eojeol_morphemes

LABELS = ["꿈", "일정"]


def test_it_predicts_as_it_did(tmp_path: Path) -> None:
    """악몽 says 꿈 and 회의 일정, by n-grams of weight 2 and by vectors of weight 1."""
    dream, dream_id = eojeol_morphemes("악몽을")[0]
    meeting, meeting_id = eojeol_morphemes("회의를")[0]
    words = sorted([(hash_of(dream), [2, -2]), (hash_of(meeting), [-2, 2])])
    vectors = np.zeros((max(dream_id, meeting_id) + 1, 2), dtype=np.float16)
    vectors[dream_id], vectors[meeting_id] = [1, -1], [-1, 1]
    arrays = {
        "bias": np.zeros(2, dtype=np.float32),
        "morphemes.keys": np.array([key for key, _ in words], dtype=np.uint64),
        "morphemes.idf": np.ones(2, dtype=np.float16),
        "morphemes.weights": np.array([weights for _, weights in words], dtype=np.float16),
        "vectors.idf": np.ones(len(vectors), dtype=np.float16),
        "vectors.weights": vectors,
    }
    save_file(arrays, tmp_path / "linear.safetensors")
    described = {"version": 1, "labels": LABELS, "parts": ["morphemes", "vectors"]}
    (tmp_path / "linear.json").write_text(json.dumps(described | {"encoder_weight": 0.0}))
    (tmp_path / "calibration.json").write_text(json.dumps({"temperature": 1.0}))
    loaded = Classifier.load(tmp_path)
    # 을 has a vector of nothing, and counts in the mean; 를 is beyond all.
    for text, label, share in (("악몽을", "꿈", 1 / 2), ("회의를", "일정", 1)):
        found = loaded.predict([text])[0].probabilities
        assert found[label] == pytest.approx(1 / (1 + np.exp(-2 * (2 + share))), abs=1e-4)
