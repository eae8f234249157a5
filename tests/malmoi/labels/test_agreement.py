"""Agreement by the published examples, and a reason where it is not defined."""

import pytest

from malmoi.labels.agreement import (
    ONE_LABEL,
    agreement,
    fleiss_kappa,
    krippendorff_alpha,
    pairs,
)
from malmoi.labels.annotating import Act, save_acts
from tests.malmoi.labels.conftest import Make, for_person

# Fleiss (1971), Psychological Bulletin 76, table 1: 30 patients, 6 psychiatrists, 5 diagnoses.
FLEISS = """
0 0 0 6 0|0 3 0 0 3|0 1 4 0 1|0 0 0 0 6|0 3 0 3 0|2 0 4 0 0|0 0 4 0 2|2 0 3 1 0|2 0 0 4 0|0 0 0 0 6
1 0 0 5 0|1 1 0 4 0|0 3 3 0 0|1 0 0 5 0|0 2 0 3 1|0 0 5 0 1|3 0 0 1 2|5 1 0 0 0|0 2 0 4 0|1 0 2 0 3
0 0 0 0 6|0 1 0 5 0|0 2 0 1 3|2 0 0 4 0|1 0 0 4 1|0 5 0 1 0|4 0 0 0 2|0 2 0 4 0|1 0 5 0 0|0 0 0 0 6
"""
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: 4 observers, 12
# units, missing values as dots.
OBSERVERS = [
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
]


def test_fleiss_kappa_is_that_of_the_paper() -> None:
    votes = {}
    for number, row in enumerate(FLEISS.replace("\n", "|").strip("|").split("|")):
        given = [str(label) for label, count in enumerate(row.split()) for _ in range(int(count))]
        votes[number] = {f"의사{place}": label for place, label in enumerate(given)}
    measure = fleiss_kappa(votes)
    assert len(votes) == 30 and measure.value == pytest.approx(0.430, abs=0.0005)
    assert len(measure.texts) == 30 and 3 not in measure.disagreed and 0 not in measure.disagreed


def test_krippendorff_alpha_is_that_of_the_paper() -> None:
    votes = {
        unit: {
            f"관찰자{place}": row.split()[unit]
            for place, row in enumerate(OBSERVERS)
            if row.split()[unit] != "."
        }
        for unit in range(12)
    }
    measure = krippendorff_alpha(votes)
    assert measure.value == pytest.approx(0.743, abs=0.0005)
    assert 11 not in measure.texts and set(measure.disagreed) == {1, 5, 7}


def test_cohen_kappa_of_a_pair_names_the_texts_behind_each_confusion() -> None:
    # Two labels, 50 texts: 20 + 15 alike, 5 and 10 not; kappa 0.4 (the textbook example).
    cells = [("예", "예", 20), ("예", "아니오", 5), ("아니오", "예", 10), ("아니오", "아니오", 15)]
    rows = [(one, other) for one, other, count in cells for _ in range(count)]
    votes = {number: {"가": one, "나": other} for number, (one, other) in enumerate(rows)}
    (pair,) = pairs(votes, {})
    assert pair.kappa.value == pytest.approx(0.4)
    assert pair.confusions == {
        ("예", "아니오"): tuple(range(20, 25)),
        ("아니오", "예"): tuple(range(25, 35)),
    }
    assert pair.kappa.disagreed == tuple(range(20, 35))


def test_what_is_not_defined_has_a_reason_and_no_number() -> None:
    alone = {1: {"가": "긍정"}, 2: {"나": "긍정"}}
    for measure in (krippendorff_alpha(alone), fleiss_kappa(alone), fleiss_kappa({})):
        assert measure.value is None and measure.reason and "no text" in measure.reason
    (pair,) = pairs(alone, {})
    assert pair.kappa.reason == "가 and 나 have labelled no text both"
    same = {n: {"가": "긍정", "나": "긍정"} for n in range(5)}
    (pair,) = pairs(same, {})
    for measure in (krippendorff_alpha(same), fleiss_kappa(same), pair.kappa):
        assert (measure.value, measure.reason) == (None, ONE_LABEL)
        assert measure.texts == tuple(range(5)) and measure.disagreed == ()


def test_a_project_tells_agreement_by_class_and_pair(make: Make) -> None:
    people = dict.fromkeys("가나다", "annotator")
    local = make(*[f"글 {n}" for n in range(6)], annotators_per_text=2, people=people)
    given = {
        "가": ["긍정", "긍정", "부정", "부정", "중립", "중립"],
        "나": ["긍정", "긍정", "부정", "중립", "부정", "중립"],
    }
    for name, labels in given.items():
        for text_id, label in enumerate(labels, 1):
            act = Act(text_id=text_id, kind="label", labels=[label], request_id=f"{name}{text_id}")
            save_acts(for_person(local, name), [act])
    save_acts(for_person(local, "다"), [Act(text_id=1, kind="skip", request_id="다1")])
    report = agreement(local)
    assert report.alpha.disagreed == (4, 5) and report.alpha.texts == tuple(range(1, 7))
    assert report.classes["긍정"].value == 1.0
    assert report.classes["부정"].value == report.classes["중립"].value
    assert report.classes["부정"].disagreed == (4, 5)
    (pair,) = report.pairs
    assert (pair.first, pair.second) == ("가", "나")
    assert pair.kappa.value == pytest.approx(0.5)
    assert pair.confusions == {("부정", "중립"): (4,), ("중립", "부정"): (5,)}


def test_sets_of_labels_agree_where_they_are_equal(make: Make) -> None:
    local = make("하나", "둘", kind="multi", annotators_per_text=2, people={"나": "annotator"})
    sets = {"관리자": [["긍정", "중립"], []], "나": [["중립", "긍정"], ["중립"]]}
    for name, some in sets.items():
        for text_id, labels in enumerate(some, 1):
            who = local if name == "관리자" else for_person(local, name)
            act = Act(text_id=text_id, kind="label", labels=labels, request_id=f"{name}{text_id}")
            save_acts(who, [act])
    report = agreement(local)
    assert report.alpha.disagreed == (2,) and report.classes["긍정"].value == 1.0
    assert report.pairs[0].confusions == {("", "중립"): (2,)}
