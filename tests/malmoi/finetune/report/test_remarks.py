"""What is said beside scores of labels that are not equally frequent."""

import numpy as np
import pytest

from malmoi.finetune.evaluation.fold_results import CrossValidation, FoldResult
from malmoi.finetune.evaluation.scores import score
from malmoi.finetune.report.remarks import remarks
from malmoi.finetune.report.terminal import print_remarks


def said(given: dict[str, int], found: dict[str, int], *, weighted: bool = False) -> str:
    """Of each label's texts, so many are found, and the others are called 많음."""
    expected = [name for name, count in given.items() for _ in range(count)]
    predicted = [
        name if place < found[name] else "많음"
        for name, count in given.items()
        for place in range(count)
    ]
    places = list(given)
    scores = score(list(map(places.index, expected)), list(map(places.index, predicted)), places)
    return "\n".join(one.english for one in remarks(scores, weighted=weighted))


def test_the_most_frequent_label_is_measured_like_a_model() -> None:
    found = said({"많음": 90, "드묾": 30}, {"많음": 90, "드묾": 0})
    scores = score([0] * 90 + [1] * 30, [0] * 120, ["많음", "드묾"])
    assert "많음" in found
    assert f"{scores['accuracy']:.4f}" in found and f"{scores['macro_f1']:.4f}" in found


@pytest.mark.parametrize("weighted", [False, True])
def test_rare_labels_that_are_missed_are_named_with_the_way_out(weighted: bool) -> None:
    given = {"많음": 500, "드묾": 50, "찾음": 50, "셋": 3}
    found = said(given, {"많음": 500, "드묾": 10, "찾음": 40, "셋": 0}, weighted=weighted)
    assert ("드묾 20%" in found and "--recipe imbalanced" in found) == (not weighted)
    assert "찾음 80%" not in found and "셋 0%" not in found


def test_labels_of_a_handful_of_texts_are_told_from_the_others() -> None:
    given = {"많음": 40, "셋": 3}
    found = said(given, {"많음": 40, "셋": 0})
    assert "셋 3" in found and f"{2 * 40 / (2 * 40 + 3):.4f}" in found
    assert "fewer than" not in said({"많음": 40, "스물": 20}, {"많음": 40, "스물": 20})


def test_texts_of_several_seeds_are_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    targets = np.array([0] * 60 + [1] * 12)

    def fold(seed: int) -> FoldResult:
        return FoldResult(
            seed=seed,
            fold=1,
            places=np.arange(72),
            probabilities=np.eye(2, dtype=np.float32)[targets],
            thresholds=None,
            scores={"macro_f1": 1.0},
            epochs=1,
            best_epoch=1,
            seconds=1.0,
        )

    result = CrossValidation(
        task="single",
        labels=["많음", "드묾"],
        targets=targets,
        folds=1,
        seeds=(1, 2),
        results=[fold(1), fold(2)],
    )
    print_remarks(result, weighted=False)
    assert "(드묾 12)" in capsys.readouterr().out
