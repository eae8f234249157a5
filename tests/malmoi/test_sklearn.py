"""`malmoi.sklearn.MalmoiClassifier` in scikit-learn's own tools."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from malmoi import InputError
from malmoi.sklearn import MalmoiClassifier
from tests.malmoi.finetune.conftest import separable

FEW_PARTS = {"linear.morphemes": False, "linear.frozen_encoder": False}
TEXTS, LABELS = map(list, zip(*separable(), strict=True))
SHUFFLED = StratifiedKFold(2, shuffle=True, random_state=0)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(**changed: object) -> MalmoiClassifier:
    return MalmoiClassifier(**({"folds": 2, "settings": FEW_PARTS} | changed))  # type: ignore[arg-type]


def test_scikit_learns_own_checks_pass_but_those_for_tables_of_numbers() -> None:
    with pytest.warns(SkipTestWarning, match="Can't test estimator MalmoiClassifier"):
        done = check_estimator(made())
    assert done and {one["status"] for one in done} == {"passed"}


def test_it_works_in_a_pipeline_a_cross_validation_and_a_search() -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, made())
    assert cross_val_score(pipeline, TEXTS, LABELS, cv=SHUFFLED).mean() > 0.8
    search = GridSearchCV(made(), {"folds": [2, 3]}, cv=SHUFFLED, scoring="f1_macro")
    search.fit(pd.Series(TEXTS), LABELS)
    assert search.best_score_ > 0.8
    assert not list(Path().rglob("*"))  # no run is left


def test_labels_of_any_type_probabilities_and_pickle() -> None:
    numbers = np.array([sorted(set(LABELS)).index(label) * 10 for label in LABELS])
    classifier = made()
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)
    assert classifier.fit(np.array(TEXTS)[:, None], numbers) is classifier
    assert classifier.classes_.tolist() == [0, 10, 20]
    found = classifier.predict(TEXTS)
    assert found.dtype == numbers.dtype and classifier.score(TEXTS, numbers) > 0.9
    chances = classifier.predict_proba(TEXTS[:5])
    assert chances.shape == (5, 3) and chances.sum(axis=1) == pytest.approx(1)
    assert classifier.classes_[chances.argmax(axis=1)].tolist() == found[:5].tolist()
    kept = pickle.dumps(classifier)
    again = clone(classifier).fit(TEXTS, numbers)
    del classifier
    for other in (pickle.loads(kept), again):
        assert other.predict_proba(TEXTS[:5]).tolist() == chances.tolist()


def test_bad_input_is_one_line() -> None:
    for texts, labels, expected in (
        ([[1, 2]], ["가"], "one column of texts"),
        (["하나"], ["가", "나"], "label for each of 1 texts, found 2"),
        (TEXTS, ["가"] * len(TEXTS), "at least two labels"),
    ):
        with pytest.raises(InputError, match=expected) as caught:
            made().fit(texts, labels)
        assert "\n" not in str(caught.value)
