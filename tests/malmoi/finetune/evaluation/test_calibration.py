"""Temperature scaling, its measure, and the texts whose labels it makes doubtful."""

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from malmoi.finetune.evaluation.calibration import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    apply_temperature,
    calibrate_out_of_fold,
    expected_calibration_error,
    fit_temperature,
    negative_log_likelihood,
    reliability_bins,
)
from malmoi.finetune.evaluation.label_errors import find_likely_errors

Sample = tuple[NDArray[np.float64], NDArray[np.int64]]


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def drawn(texts: int, labels: int, temperature: float, seed: int = 0) -> Sample:
    """Labels drawn from softmax(z), and softmax(z * temperature): what it asks for is known."""
    random = np.random.default_rng(seed)
    logits = random.normal(0, 1.5, (texts, labels))
    chances = softmax(logits)
    ids = (random.random((texts, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return softmax(logits * temperature), np.minimum(ids, labels - 1)


@pytest.mark.parametrize("labels", [2, 5, 44])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_that_was_put_in_is_found(labels: int, temperature: float) -> None:
    probabilities, ids = drawn(4_000, labels, temperature)
    assert fit_temperature(probabilities, ids) == pytest.approx(temperature, rel=0.08)


def test_the_temperature_found_is_the_minimum_of_the_likelihood() -> None:
    probabilities, ids = drawn(300, 3, 1.7)
    found = fit_temperature(probabilities, ids)
    best = negative_log_likelihood(apply_temperature(probabilities, found), ids)
    for other in (found * 0.95, found * 1.05):  # the smoothing moves it by some 2%
        assert best < negative_log_likelihood(apply_temperature(probabilities, other), ids)


def test_scaling_makes_too_confident_probabilities_honest_and_changes_no_prediction() -> None:
    probabilities, ids = drawn(5_000, 5, 3.0)
    found = calibrate_out_of_fold(
        probabilities.astype(np.float32), ids, np.arange(len(ids)) % 5 + 1
    )
    assert found.ece_before > 0.15
    assert found.ece_after < 0.03
    assert found.nll_after < found.nll_before
    assert sorted(found.fold_temperatures) == [1, 2, 3, 4, 5]
    assert (found.probabilities.argmax(axis=1) == probabilities.argmax(axis=1)).all()
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(len(ids)))
    assert json.loads(json.dumps(found.describe()))["bins"] == 15


def test_a_fold_is_scaled_without_its_own_labels() -> None:
    probabilities, ids = drawn(600, 3, 2.0)
    folds = np.arange(600) % 3 + 1
    other = np.where(folds == 2, (ids + 1) % 3, ids)
    one = calibrate_out_of_fold(probabilities, ids, folds)
    two = calibrate_out_of_fold(probabilities, other, folds)
    # The model's own is of all of them.
    assert one.temperature == fit_temperature(probabilities, ids)
    assert two.fold_temperatures[2] == one.fold_temperatures[2]
    assert two.fold_temperatures[1] > one.fold_temperatures[1]
    inside = folds == 2
    assert (two.probabilities[inside] == one.probabilities[inside]).all()


def test_expected_calibration_error_by_hand() -> None:
    probabilities = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55]]
    # With 5 bins: 0.9 alone in (0.8, 1]; 0.8 and 0.7 in (0.6, 0.8]; 0.55 in (0.4, 0.6].
    bins = reliability_bins(probabilities, [0, 1, 1, 0], bins=5)
    assert [part.texts for part in bins] == [0, 0, 1, 2, 1]
    assert bins[3].accuracy == 0.5
    assert bins[3].confidence == pytest.approx(0.75)
    # 2/4 * |0.5 - 0.75| + 1/4 * |1 - 0.9| + 1/4 * |0 - 0.55|
    assert expected_calibration_error(bins) == pytest.approx(0.125 + 0.025 + 0.1375)


def test_certainty_lies_in_the_last_bin() -> None:
    assert reliability_bins([[1.0, 0.0]], [0])[-1].texts == 1


def test_all_wrong_stops_at_the_limit() -> None:
    assert fit_temperature([[0.8, 0.2]] * 9, [1] * 9) == HIGHEST_TEMPERATURE


def test_all_right_is_as_sure_as_so_many_texts_allow() -> None:
    for texts in (9, 900):
        given = [[0.8, 0.2]] * texts
        found = fit_temperature(given, [0] * texts)
        assert LOWEST_TEMPERATURE < found < 1
        # The rule of succession: after N right ones the next is right with (N + 1) / (N + 2).
        after = (texts + 1) / (texts + 2)
        assert apply_temperature(given, found)[0, 0] == pytest.approx(after, abs=1e-4)


def test_probabilities_of_zero_are_survived() -> None:
    found = calibrate_out_of_fold([[1.0, 0.0], [0.0, 1.0]] * 4, [0, 1, 1, 1] * 2, [1] * 4 + [2] * 4)
    assert np.isfinite(found.nll_before)
    assert np.isfinite(found.probabilities).all()


def test_likely_errors_by_hand() -> None:
    of_first = [[0.95, 0.05], [0.95, 0.05], [0.95, 0.05], [0.35, 0.65]]
    of_second = [[0.4, 0.6], [0.4, 0.6], [0.3, 0.7], [0.75, 0.25]]
    # Thresholds: 0.8 and 0.5375, of all texts together 0.67. The model is unsure of the second
    # label everywhere, so its 0.65 tells more than the 0.75 of the first one.
    [found] = find_likely_errors([*of_first, *of_second], [0, 0, 0, 0, 1, 1, 1, 1])
    assert (found.place, found.suggested) == (3, 1)
    assert (found.self_confidence, found.confidence) == (0.35, 0.65)


def test_labels_that_were_changed_are_found_first() -> None:
    random = np.random.default_rng(3)
    ids = random.integers(0, 4, 2_000)
    logits = random.normal(0, 1, (2_000, 4))
    logits[np.arange(2_000), ids] += 4
    changed = random.choice(2_000, 100, replace=False)
    given = ids.copy()
    given[changed] = (ids[changed] + 1) % 4
    found = find_likely_errors(softmax(logits), given)
    first = {error.place for error in found[:80]}
    assert len(first & set(changed.tolist())) >= 75
    assert len(found) < 200
    doubts = [error.self_confidence for error in found]
    assert doubts == sorted(doubts)


def test_a_label_that_no_text_has_is_never_suggested() -> None:
    assert find_likely_errors([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7]], [0, 1]) == []
