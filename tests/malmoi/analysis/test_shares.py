"""Shares with intervals: they hold the truth, and are narrower than those of people alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from malmoi.analysis.analysing import unlearnt
from malmoi.analysis.shares import (
    Labelling,
    counted,
    difference,
    shares,
    texts_to_halve,
    wilson,
)
from malmoi.inference.classifier import Classifier
from malmoi.inference.learnt_texts import text_keys, write_learnt
from malmoi.paths import checkpoint, sample

SHARED = Path(__file__).parents[4] / "shared" / "data"
DRAWS, READ = 20, 150


def rows(labels: list[int], count: int) -> np.ndarray:
    return np.eye(count, dtype=bool)[np.asarray(labels, dtype=np.int64)]


def check_draws(truth: np.ndarray, said: np.ndarray) -> None:
    """Of 20 draws of texts that people read, at least 18 intervals of each label hold its share."""
    texts, labels = truth.shape
    held, wide, alone = np.zeros(labels), np.zeros(labels), np.zeros(labels)
    for seed in range(DRAWS):
        drawn = np.zeros(texts, dtype=bool)
        drawn[np.random.default_rng(seed).choice(texts, READ, replace=False)] = True
        labelling = Labelling(said=said, given=truth & drawn[:, None], drawn=drawn)
        found = shares(counted(labelling, np.zeros(texts, dtype=np.int64), 1))
        true = truth.mean(axis=0)
        held += (found.low[0] <= true) & (true <= found.high[0])
        wide += found.high[0] - found.low[0]
        low, high = wilson(truth[drawn].sum(axis=0), np.full(labels, READ))
        alone += high - low
    assert (held >= 18).all(), held
    assert (wide < alone).all(), (wide / DRAWS, alone / DRAWS)


def test_intervals_hold_the_truth_and_are_narrower_than_those_of_people() -> None:
    table = pd.read_csv(sample("reviews") / "reviews.csv").dropna(subset=["text", "label"])
    names = sorted(table["label"].unique())
    table = table.sample(4_000, random_state=0)
    learnt, others = table.iloc[:1_500], table.iloc[1_500:]
    model = make_pipeline(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), min_df=2),
        LogisticRegression(C=10, max_iter=200),
    )
    model.fit(learnt["text"], learnt["label"])
    said = [names.index(one) for one in model.predict(others["text"])]
    truth = [names.index(one) for one in others["label"]]
    check_draws(rows(truth, len(names)), rows(said, len(names)))


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data")
def test_so_they_do_on_films_with_the_released_model() -> None:
    if not checkpoint("malmoi-medium-reviews").is_dir():
        pytest.skip("malmoi-medium-reviews is not here")
    table = pd.read_csv(SHARED / "nsmc" / "sentiment3_test.tsv", sep="\t", quoting=3)
    table = table.dropna().sample(3_000, random_state=0)
    classifier = Classifier.load(checkpoint("malmoi-medium-reviews"))
    names = classifier.labels
    said = [names.index(one.label) for one in classifier.predict(table["document"].tolist())]
    given = table["label"].map(str).tolist()
    order = {str(number): name for number, name in enumerate(("부정", "중립", "긍정"))}
    truth = [names.index(order.get(one, one)) for one in given]
    check_draws(rows(truth, len(names)), rows(said, len(names)))


def two_parts(read: int) -> tuple[Labelling, np.ndarray]:
    """The first part has 60% of the label, the second 20%; the model errs on every tenth text."""
    truth = np.arange(2_000) % 10 < np.repeat([6, 2], 1_000)
    said = truth ^ (np.arange(2_000) % 11 == 0)
    drawn = np.zeros(2_000, dtype=bool)
    drawn[np.random.default_rng(1).choice(2_000, read, replace=False)] = True
    given = (truth & drawn)[:, None]
    labelling = Labelling(said=said[:, None], given=given, drawn=drawn)
    return labelling, np.repeat([0, 1], 1_000)


def test_parts_differ_only_where_the_intervals_say_so() -> None:
    labelling, parts = two_parts(200)
    found = shares(counted(labelling, parts, 2))
    gap, low, high, chance = difference(found.of(0), found.of(1))
    assert low[0, 0] < 0.4 < high[0, 0]
    assert 0 < low[0, 0] < gap[0, 0] and chance[0, 0] < 0.001
    same = shares(counted(labelling, np.arange(2_000) % 2, 2))
    _, low, high, chance = difference(same.of(0), same.of(1))
    assert low[0, 0] < 0 < high[0, 0] and chance[0, 0] > 0.01
    assert same.drawn.sum() == 200


def test_texts_that_a_model_has_learnt_count_by_what_it_said_before(tmp_path: Path) -> None:
    """Drawn or not; of one that is in no fold nobody knows what it said."""
    texts, model = ["하나", "둘", "셋", "넷"], tmp_path / "model"
    model.mkdir()
    write_learnt(model, text_keys(texts[:3]))
    path, told = tmp_path / "predictions.csv", "{n},{text},가,나,1,42\n"
    rows_of_run = told.format(n=1, text="하나") + told.format(n=2, text="둘")
    path.write_text(f"id,text,label,predicted,fold,seed\n{rows_of_run}", encoding="utf-8")
    nobody = np.zeros((4, 2), dtype=bool)
    drawn = np.array([True, False, True, True])
    labelling = Labelling(said=rows([0, 0, 0, 0], 2), given=nobody, drawn=drawn)
    found, learnt = unlearnt(labelling, texts, ["가", "나"], model)
    assert np.array_equal(found.said, rows([1, 1, 0, 0], 2))
    assert found.drawn.tolist() == [True, False, False, True] and learnt == 1
    # What `malmoi predict` has put beside the model is another file.
    path.write_text("text,label,score\n하나,나,0.5\n", encoding="utf-8")
    assert unlearnt(labelling, texts, ["가", "나"], model)[1] == 2


def test_what_was_read_whole_is_known() -> None:
    labelling, parts = two_parts(2_000)
    found = shares(counted(labelling, parts, 2))
    assert found.share[:, 0] == pytest.approx([0.6, 0.2])
    assert found.low == pytest.approx(found.high)
    assert texts_to_halve(labelling) is None


def test_so_many_more_texts_halve_the_interval() -> None:
    labelling, _ = two_parts(60)
    found = texts_to_halve(labelling)
    assert found is not None
    more, now, then = found
    assert then == pytest.approx(now / 2, rel=0.01)
    whole = np.zeros(2_000, dtype=np.int64)
    again = shares(counted(two_parts(60 + more)[0], whole, 1))
    assert (again.high - again.low).max() / 2 == pytest.approx(then, rel=0.35)


def test_without_labels_of_people_the_confusion_corrects_the_counts() -> None:
    """Of many texts, and of the few of one product, where the model errs by chance, too."""
    rng = np.random.default_rng(0)
    rates = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    confusion = np.round(rates * 500)
    for texts in (120, 5_000):
        held = np.zeros(3)
        for _ in range(DRAWS):
            truth = rng.choice(3, texts, p=[0.6, 0.3, 0.1])
            said = np.array([rng.choice(3, p=rates[one]) for one in truth])
            nobody = np.zeros((texts, 3), dtype=bool)
            labelling = Labelling(
                said=rows(said.tolist(), 3), given=nobody, drawn=nobody[:, 0], confusion=confusion
            )
            counts = counted(labelling, np.zeros(texts, dtype=np.int64), 1)
            found = shares(counts, confusion)
            true = np.bincount(truth, minlength=3) / texts
            held += (found.low[0] <= true) & (true <= found.high[0])
        assert (held >= 18).all(), (texts, held)
    assert (np.abs(found.share[0] - true) < 0.05).all()
    # Without either there is what the model says, and nobody knows how far it is off.
    plain = shares(counts)
    assert np.array_equal(plain.share, plain.said) and np.isnan(plain.low).all()
