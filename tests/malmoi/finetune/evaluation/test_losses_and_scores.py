"""Losses against PyTorch and the papers; thresholds, intervals and correlations against others."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import f1_score
from torch.nn import functional

from malmoi.finetune.evaluation.scores import (
    choose_thresholds,
    decide,
    score,
    score_multi,
    score_regression,
    summarize,
)
from malmoi.finetune.training.losses import balanced_weights, make_loss

LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.2, 0.3], [-3.0, 1.0, 0.0], [0.0, 4.0, 1.0]])
IDS = torch.tensor([0, 2, 1, 1])
HOT = torch.tensor([[1.0, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]])


def test_no_focus_is_cross_entropy() -> None:
    weights = torch.tensor([0.5, 2.0, 1.0])
    plain = functional.cross_entropy(LOGITS, IDS, weight=weights)
    torch.testing.assert_close(make_loss("single", weights=weights)(LOGITS, IDS), plain)
    near = make_loss("single", weights=weights, focal_gamma=1e-6)(LOGITS, IDS)
    torch.testing.assert_close(near, plain, rtol=1e-4, atol=1e-5)
    smooth = make_loss("pair", label_smoothing=0.1)(LOGITS, IDS)
    torch.testing.assert_close(smooth, functional.cross_entropy(LOGITS, IDS, label_smoothing=0.1))


def test_probabilities_of_a_teacher() -> None:
    certain = functional.one_hot(IDS, 3).float()
    loss = make_loss("single")
    torch.testing.assert_close(loss(LOGITS, certain), loss(LOGITS, IDS))
    teacher = torch.tensor([[0.7, 0.2, 0.1]]).expand(4, 3)
    expected = -(teacher * LOGITS.log_softmax(-1)).sum(1).mean()
    torch.testing.assert_close(loss(LOGITS, teacher), expected)


def test_focal_loss_by_its_formula() -> None:
    p = LOGITS.softmax(-1)[torch.arange(4), IDS]
    expected = (-((1 - p) ** 2) * p.log()).mean()
    torch.testing.assert_close(make_loss("single", focal_gamma=2)(LOGITS, IDS), expected)
    p = torch.where(HOT > 0, LOGITS.sigmoid(), 1 - LOGITS.sigmoid())
    expected = (-((1 - p) ** 2) * p.log()).mean()
    torch.testing.assert_close(make_loss("multi", focal_gamma=2)(LOGITS, HOT), expected)


def test_several_labels_and_values() -> None:
    plain = functional.binary_cross_entropy_with_logits(LOGITS, HOT)
    torch.testing.assert_close(make_loss("multi")(LOGITS, HOT), plain)
    smooth = functional.binary_cross_entropy_with_logits(LOGITS, HOT * 0.8 + 0.1)
    torch.testing.assert_close(make_loss("multi", label_smoothing=0.2)(LOGITS, HOT), smooth)
    values = torch.tensor([1.0, 2.0, 3.0, 4.0])
    loss = make_loss("pair-regression")(LOGITS[:, :1], values)
    torch.testing.assert_close(loss, ((LOGITS[:, 0] - values) ** 2).mean())


def test_balanced_weights() -> None:
    weights = balanced_weights("single", np.array([0] * 6 + [1] * 3 + [2]), 4)
    assert weights.tolist() == pytest.approx([10 / 24, 10 / 12, 10 / 4, 1])
    assert balanced_weights("multi", HOT.numpy(), 3).tolist() == [1, 1, 1]
    assert balanced_weights("multi", HOT.numpy()[:3], 3).tolist() == [2, 2, 2]


def test_thresholds_are_the_best_there_are() -> None:
    drawn = np.random.default_rng(0)
    targets = (drawn.random((200, 3)) < [0.5, 0.1, 0.0]).astype(np.float32)
    probabilities = (0.4 * targets + 0.6 * drawn.random((200, 3))).round(2).astype(np.float32)
    thresholds = choose_thresholds(targets, probabilities)
    assert thresholds[2] == 0.5  # Nobody has this label.
    for label in range(2):
        own = probabilities[:, label]
        best = max(f1_score(targets[:, label], own >= cut) for cut in np.unique(own))
        chosen = f1_score(targets[:, label], own >= thresholds[label])
        assert chosen == pytest.approx(best)


def test_no_threshold_stands_between_equal_probabilities() -> None:
    """Between the second text and its equals it would be best, if it could be put there."""
    own = np.array([0.9, 0.5, 0.5, 0.5, 0.5], dtype=np.float32)[:, None]
    targets = np.array([1, 1, 0, 0, 0], dtype=np.float32)[:, None]
    assert choose_thresholds(targets, own) == pytest.approx(0.7)
    assert choose_thresholds(targets[1:4], own[1:4]) == pytest.approx(0.25)


def test_a_threshold_is_half_way_and_the_highest_of_equally_good_ones() -> None:
    own = np.array([[0.8], [0.6], [0.4], [0.1]], dtype=np.float32)
    # The first alone, or the first four: F1 2/3 both.
    assert choose_thresholds(np.array([[1], [0], [0], [1]]), own) == pytest.approx(0.7)
    # The lowest probability of all: below it there is nothing but 0.
    assert choose_thresholds(np.array([[0], [0], [0], [1]]), own) == pytest.approx(0.05)


def test_a_probability_at_its_threshold_counts() -> None:
    assert decide("multi", np.array([[0.5, 0.49]])).tolist() == [[1, 0]]
    thresholds = np.array([0.6, 0.49])
    assert decide("multi", np.array([[0.5, 0.49]]), thresholds).tolist() == [[0, 1]]


def test_scores_of_several_labels_against_scikit_learn() -> None:
    drawn = np.random.default_rng(1)
    expected, predicted = drawn.random((2, 50, 4)) < 0.3
    scores = score_multi(expected, predicted, list("가나다라"))
    for name in ("macro", "micro", "weighted"):
        own = f1_score(expected, predicted, average=name, zero_division=0)
        assert scores[f"{name}_f1"] == pytest.approx(own)
    assert scores["labels"]["나"]["support"] == expected[:, 1].sum()
    assert scores["accuracy"] == (expected == predicted).all(axis=1).mean()
    nothing = np.zeros((3, 4), dtype=bool)
    assert score_multi(nothing, nothing, list("가나다라"))["micro_f1"] == 0


def test_correlations() -> None:
    expected, predicted = np.array([1.0, 2, 3, 4]), np.array([1.0, 4, 3, 9])
    scores = score_regression(expected, predicted)
    assert scores["pearson"] == pytest.approx(np.corrcoef(expected, predicted)[0, 1])
    assert scores["spearman"] == pytest.approx(0.8)
    assert scores["mean_squared_error"] == pytest.approx((4 + 25) / 4)
    assert score_regression(expected, np.ones(4))["spearman"] == 0


def test_the_interval_is_wider_than_the_usual_one() -> None:
    scores = [0.80, 0.82, 0.78, 0.84, 0.81]
    found = summarize(scores, 5)
    usual = stats.t.interval(0.95, 4, found.mean, found.sd / 5**0.5)
    assert found.mean == pytest.approx(0.81)
    assert found.low < usual[0] < usual[1] < found.high
    assert found.high - found.mean == pytest.approx((usual[1] - found.mean) * (1 + 5 / 4) ** 0.5)


def test_no_interval_is_wider_than_the_score_itself() -> None:
    found = summarize([0.65, 0.59], 2)
    assert (found.low, found.high) == (0.0, 1.0)
    assert summarize([0.65, 0.59], 2, lowest=-1.0).low == pytest.approx(-0.0402, abs=1e-3)


def test_a_label_that_was_not_expected_is_left_out_of_the_mean() -> None:
    right = score([0, 1, 1], [0, 1, 1], ["가", "나", "다"])
    assert right["macro_f1"] == right["weighted_f1"] == 1
    assert right["labels"]["다"] == {"f1": 0, "precision": 0, "recall": 0, "support": 0}
    # Whoever is taken for the third label is missed where it belongs.
    assert score([0, 1, 1], [0, 1, 2], ["가", "나", "다"])["macro_f1"] == pytest.approx(5 / 6)
    several = np.array([[1, 0, 0], [1, 1, 0]])
    assert score_multi(several, several, ["가", "나", "다"])["macro_f1"] == 1
