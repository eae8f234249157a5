"""An encoder and a linear part, scored together on a test file."""

import numpy as np

from lab.benchmarks.quality import score
from lab.benchmarks.quality.tasks import Rows

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
