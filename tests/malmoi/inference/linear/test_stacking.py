"""Weights of the parts: what helps counts, and what does not is left out."""

import numpy as np
import pytest

from malmoi.inference.linear.cross_fitting import out_of_fold_logits, stack_out_of_fold
from malmoi.inference.linear.fitting import count_texts
from malmoi.inference.linear.stacking import learn_stack

LABELS = 3


def said(rng: np.random.Generator, label_ids: np.ndarray, signal: float) -> np.ndarray:
    """Logits of a part that knows this much."""
    noise = rng.normal(size=(len(label_ids), LABELS))
    noise[np.arange(len(label_ids)), label_ids] += signal
    return noise


@pytest.fixture
def label_ids() -> np.ndarray:
    return np.random.default_rng(0).integers(0, LABELS, 1500)


def accuracy(logits: np.ndarray, label_ids: np.ndarray) -> float:
    return float((logits.argmax(axis=1) == label_ids).mean())


def test_two_that_know_different_things_are_better_than_each(label_ids: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    logits = {"characters": said(rng, label_ids, 1.5), "encoder": said(rng, label_ids, 1.5) * 40}
    stack = learn_stack(logits, label_ids)
    assert set(stack.weights) == {"characters", "encoder"}
    # As much is known by both, and one of them shouts.
    assert stack.weights["characters"] == pytest.approx(40 * stack.weights["encoder"], rel=0.2)
    best = max(accuracy(one, label_ids) for one in logits.values())
    assert accuracy(stack.combined(logits), label_ids) > best + 0.03


def test_noise_is_left_out(label_ids: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    logits = {"characters": said(rng, label_ids, 2), "morphemes": said(rng, label_ids, 0)}
    assert set(learn_stack(logits, label_ids).weights) == {"characters"}


def test_an_encoder_must_bring_more(label_ids: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    logits = {"characters": said(rng, label_ids, 2), "encoder": said(rng, label_ids, 0.35)}
    assert set(learn_stack(logits, label_ids).weights) == {"characters"}
    assert len(learn_stack(logits, label_ids, always={"encoder"}).weights) == 2


def test_a_text_has_no_say_in_its_own_weights(label_ids: np.ndarray) -> None:
    rng = np.random.default_rng(4)
    logits = {"characters": said(rng, label_ids, 1), "morphemes": said(rng, label_ids, 1)}
    fold_of = np.arange(len(label_ids)) % 3 + 1
    before = stack_out_of_fold(logits, label_ids, fold_of)
    other = np.where(fold_of == 2, (label_ids + 1) % LABELS, label_ids)
    after = stack_out_of_fold(logits, other, fold_of)
    assert np.array_equal(before.logits[fold_of == 2], after.logits[fold_of == 2])
    assert not np.array_equal(before.logits[fold_of == 1], after.logits[fold_of == 1])


def test_parts_that_say_nothing_do_no_harm(label_ids: np.ndarray) -> None:
    nothing = {"characters": np.zeros((len(label_ids), LABELS))}
    assert learn_stack(nothing, label_ids).combined(nothing).shape == (len(label_ids), LABELS)


def test_where_nothing_is_surer_than_chance_the_labels_still_have_an_order(
    label_ids: np.ndarray,
) -> None:
    """As with a handful of labels: equal ones would be a suggestion of whichever comes first."""
    # What is added to all labels of a text changes nothing.
    offsets = np.arange(len(label_ids))[:, None]
    logits = {"characters": said(np.random.default_rng(5), label_ids, -1) * 20 + offsets}
    combined = learn_stack(logits, label_ids).combined(logits)
    assert np.array_equal(combined.argmax(axis=1), logits["characters"].argmax(axis=1))
    shares = np.exp(combined) / np.exp(combined).sum(axis=1, keepdims=True)
    assert shares.min() > 0.2 and 0.37 < shares.max() < 0.5


def test_what_a_part_says_of_a_text_does_not_depend_on_its_label(
    memos: list[tuple[str, str]],
) -> None:
    texts = count_texts([text for text, _ in memos[:300]], morphemes=None)
    names = sorted({label for _, label in memos})
    label_ids = np.array([names.index(label) for _, label in memos[:300]])
    fold_of = np.arange(300) % 3 + 1
    before = out_of_fold_logits(texts, label_ids, len(names), fold_of)
    other = np.where(fold_of == 2, (label_ids + 1) % len(names), label_ids)
    after = out_of_fold_logits(texts, other, len(names), fold_of)
    for part, said_before in before.items():
        assert np.array_equal(said_before[fold_of == 2], after[part][fold_of == 2])
        assert not np.allclose(said_before[fold_of == 1], after[part][fold_of == 1])


def test_a_part_that_finds_rare_labels_is_not_outdone_by_one_that_never_names_them() -> None:
    """Parts that give all labels equal chances look worse than one of the common label alone."""
    rng = np.random.default_rng(6)
    label_ids = np.repeat([0, 1, 2], [940, 30, 30])
    deaf = said(rng, label_ids, 0)
    deaf[:, 0] += 3
    logits = {"characters": said(rng, label_ids, 1.5), "morphemes": deaf}
    combined = learn_stack(logits, label_ids, balanced=True).combined(logits)
    rare = label_ids > 0
    assert accuracy(combined[rare], label_ids[rare]) > 0.6
    unaware = learn_stack(logits, label_ids).combined(logits)
    assert accuracy(unaware[rare], label_ids[rare]) < 0.3
