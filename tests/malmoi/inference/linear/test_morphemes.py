"""Eojeols that were read: which are remembered, and which a classifier keeps."""

import pytest

from malmoi.inference.linear import morphemes
from malmoi.inference.linear.morphemes import EojeolReader


def test_the_most_frequent_are_kept_though_others_were_read_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(morphemes, "_MOST_EOJEOLS", 3)
    reader = EojeolReader()
    texts = ["정말 좋다"] * 5 + ["가나 다라", "마바 사아"]
    for text in texts:
        reader([text])
    kept = reader.table_of(texts, most=2)
    assert set(kept.words.tolist()) == {morphemes._hash("정말"), morphemes._hash("좋다")}


def test_what_was_used_last_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(morphemes, "_MOST_EOJEOLS", 2)
    reader = EojeolReader()
    for text in ("정말", "좋다", "정말 가나"):
        reader([text])
    assert set(reader._known) == {morphemes._hash("정말"), morphemes._hash("가나")}
