"""An encoder and a linear part, scored together on a test file."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from lab.benchmarks.quality import fitting, score
from lab.benchmarks.quality.tasks import TASKS, Rows

WORDS = ("좋아요", "별로예요")


def rows(start: int, count: int, *, told: bool = True) -> Rows:
    """Texts of two labels at random; which it is, a word says where that is told."""
    targets = np.random.default_rng(start).integers(0, 2, count)
    texts = [
        f"{WORDS[target] if told else '글'} {place}번째"
        for place, target in enumerate(targets.tolist(), start)
    ]
    return Rows(texts=texts, targets=targets)


def test_what_is_held_out_was_not_learnt() -> None:
    found = rows(0, 100)
    twice = Rows(texts=[*found.texts] * 2, targets=np.tile(found.targets, 2))
    learn, held = score._hold_out(twice, seed=0)
    assert len(learn.texts) == 180 and not {*held.texts} & {*learn.texts}
    learn, held = score._hold_out(found, seed=0)
    assert len(held.texts) == 10 and sorted([*learn.texts, *held.texts]) == sorted(found.texts)


@pytest.mark.parametrize(
    ("encoder_knows", "words_tell"), [(True, False), (False, True), (True, True)]
)
def test_together_they_are_as_good_as_the_better_one(
    monkeypatch: pytest.MonkeyPatch, encoder_knows: bool, words_tell: bool
) -> None:
    def ask(_: object, of: Rows) -> np.ndarray:
        draw = np.random.default_rng(len(of.texts))
        said = of.targets if encoder_knows else draw.permutation(of.targets)
        right = np.where(draw.random(len(said)) < 0.97, said, 1 - said)
        return np.log(np.eye(2)[right] * 0.8 + 0.1).astype(np.float32)

    monkeypatch.setattr(fitting, "_ask_logits", ask)
    # Kiwi's vectors take half a minute where no cache is.
    monkeypatch.setattr(fitting, "count_texts", partial(fitting.count_texts, kiwi=False))
    comparison = replace(TASKS["nsmc"], class_weights="balanced")
    parts = [rows(*size, told=words_tell) for size in ((0, 200), (200, 60), (260, 100))]
    given: Any = None
    scores = fitting.score_both(given, comparison, *parts)
    alone = scores["alone"]
    assert (alone["encoder"] > 90) is encoder_knows
    assert (alone["linear"] > 90) is words_tell
    assert scores["accuracy"] >= max(alone.values()) - 2
