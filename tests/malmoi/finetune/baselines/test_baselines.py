"""Baselines learn from the training part of a fold only, and the table says what they cost."""

import pytest
from sklearn.metrics import f1_score

from malmoi.finetune.baselines import classic
from malmoi.finetune.baselines.baseline import NO_LABEL, Baseline, fold_f1
from malmoi.finetune.baselines.classic import (
    Classifying,
    character_svm,
    in_folds,
    majority,
    morpheme_names,
    morpheme_regression,
)
from malmoi.finetune.baselines.registry import CLASSICAL
from malmoi.finetune.data.folds import assign_folds
from malmoi.finetune.evaluation.scores import macro_f1, score
from malmoi.text.morphemes import AnalyserError
from tests.malmoi.finetune.conftest import LABELS, separable

TEXTS = [text for text, _ in separable()]
LABEL_IDS = [LABELS.index(label) for _, label in separable()]
FOLD_OF = assign_folds(LABEL_IDS, 3, seed=1)


def baseline(**changes: object) -> Baseline:
    given: dict[str, object] = {
        "name": "encoder, random weights",
        "predictions": [0, 1],
        "fold_f1": [0.5, 0.7],
        "train_seconds": 1.0,
        "latency_ms": 12.345,
    }
    return Baseline(**(given | changes))  # type: ignore[arg-type]


def measured(classifying: Classifying, label_ids: list[int] = LABEL_IDS) -> Baseline:
    return in_folds("any", classifying, TEXTS, label_ids, FOLD_OF, 3, seed=1)


@pytest.mark.parametrize("classifying", [character_svm, morpheme_regression])
def test_separable_texts_are_learned(classifying: Classifying) -> None:
    result = measured(classifying)
    assert result.latency_ms is not None
    assert result.mean_f1 > 0.9
    assert len(result.fold_f1) == 3
    assert result.train_seconds > 0
    assert 0 < result.latency_ms < 1000
    assert result.won_per_text == 0
    for fold in range(1, 4):
        held_out = [place for place in range(63) if FOLD_OF[place] == fold]
        expected = [LABEL_IDS[place] for place in held_out]
        found = [result.predictions[place] for place in held_out]
        assert result.fold_f1[fold - 1] == f1_score(expected, found, average="macro")


def test_majority_is_that_of_the_training_part() -> None:
    # 0 is the more frequent outside fold 1, 1 outside fold 2.
    label_ids, fold_of = [1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 2, 2, 2, 2]
    result = in_folds("majority", majority, ["글"] * 8, label_ids, fold_of, 2, 0)
    assert result.predictions == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("classifying", CLASSICAL.values(), ids=CLASSICAL)
def test_labels_of_the_held_out_fold_do_not_matter(classifying: Classifying) -> None:
    """Nothing of a fold leaks into what predicts it, be it vocabulary or regularisation."""
    others = [
        (label + 1) % 3 if fold == 2 else label
        for label, fold in zip(LABEL_IDS, FOLD_OF, strict=True)
    ]
    held_out = [place for place in range(63) if FOLD_OF[place] == 2]
    first = measured(classifying).predictions
    second = measured(classifying, others).predictions
    assert [first[place] for place in held_out] == [second[place] for place in held_out]


def test_texts_of_the_held_out_fold_stay_out_of_the_vocabulary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted: list[list[str]] = []

    class Spy(classic.TfidfVectorizer):  # type: ignore[misc, name-defined]
        def fit_transform(self, texts: list[str], y: object = None) -> object:
            fitted.append(list(texts))
            return super().fit_transform(texts, y)

    monkeypatch.setattr(classic, "TfidfVectorizer", Spy)
    measured(character_svm)
    per_fold = len(fitted) // 3
    for fold in range(1, 4):
        held_out = {text for text, other in zip(TEXTS, FOLD_OF, strict=True) if other == fold}
        for texts in fitted[(fold - 1) * per_fold : fold * per_fold]:
            assert texts and not held_out & set(texts)


@pytest.mark.parametrize("classifying", [character_svm, morpheme_regression])
def test_one_seed_one_result(classifying: Classifying) -> None:
    assert measured(classifying).predictions == measured(classifying).predictions


def test_one_text_a_label_is_enough_to_train_on() -> None:
    texts = ["하늘 꿈", "꿈 하늘", "내일 회의", "회의 내일"]
    result = in_folds("SVM", character_svm, texts, [0, 0, 1, 1], [1, 2, 1, 2], 2, seed=0)
    assert result.predictions == [0, 0, 1, 1]


def test_morphemes_carry_their_tags() -> None:
    assert morpheme_names("학교에 갔다") == ["학교/NNG", "에/JKB", "가/VV", "었/EP", "다/EF"]


def test_what_the_analyser_fails_on_is_cut_at_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise AnalyserError(text)

    monkeypatch.setattr(classic, "analyse", fail)
    assert morpheme_names("학교에 갔다") == ["학교에", "갔다"]


def test_macro_f1_is_that_of_every_other_report() -> None:
    expected, predicted = [0, 0, 1, 2, 2], [0, 1, 1, 1, 2]
    of_report = score(expected, predicted, ["가", "나", "다", "라"])["macro_f1"]
    assert macro_f1(expected, predicted, 4) == of_report


def test_no_label_is_wrong_and_no_prediction_is_left_out() -> None:
    label_ids, fold_of = [0, 1, 0, 1, 0], [1, 1, 2, 2, 2]
    assert fold_f1(label_ids, [0, 1, 0, 1, None], fold_of, 2) == [1.0, 1.0]
    # Fold 2: label 0 perfect, label 1 never found.
    assert fold_f1(label_ids, [0, 1, 0, NO_LABEL, None], fold_of, 2) == [1.0, 0.5]


def test_a_fold_that_lacks_a_label_is_scored_by_the_others() -> None:
    label_ids, fold_of = [0, 1, 0, 1], [1, 1, 2, 2]
    assert fold_f1(label_ids, [0, 1, 0, None], fold_of, 2) == [1.0, 1.0]
    assert fold_f1(label_ids, [0, 1, 1, None], fold_of, 2) == [1.0, 0.0]
    assert fold_f1(label_ids, [0, 1, None, None], fold_of, 2) == [1.0]
    assert baseline(fold_f1=[1.0]).sd_f1 is None
