"""Reviewers decide where annotators differ; the two never touch each other's state."""

import pytest

from malmoi.errors import InputError
from malmoi.labels.annotating import Act, own_work, save_acts
from malmoi.labels.review import adjudicate, own_counts, progress, texts_to_review
from tests.malmoi.labels.conftest import Make, for_person


def test_a_disagreement_is_decided_and_the_votes_stay(make: Make) -> None:
    people = {"가": "annotator", "나": "annotator", "검수": "reviewer"}
    local = make("하나", "둘", "셋", annotators_per_text=2, people=people)
    a, b, reviewer = (for_person(local, name) for name in people)
    for who, labels in ((a, ["긍정", "긍정", "긍정"]), (b, ["긍정", "부정", "중립"])):
        for text_id, label in enumerate(labels, 1):
            request_id = f"{who.person.name}{text_id}"
            act = Act(text_id=text_id, kind="label", labels=[label], request_id=request_id)
            save_acts(who, [act])
    second, third = texts_to_review(reviewer)
    assert (second.text, third.text) == ("둘", "셋")
    assert [(vote.annotator, vote.labels) for vote in second.votes] == [
        ("가", ("긍정",)),
        ("나", ("부정",)),
    ]
    assert texts_to_review(reviewer, limit=1) == [second]
    assert texts_to_review(reviewer, after=second.text_id) == [third]
    assert adjudicate(reviewer, 2, ["중립"], request_id="1", note="둘 다 아님").new
    assert not adjudicate(reviewer, 2, ["중립"], request_id="1").new
    assert texts_to_review(reviewer) == [third]
    (decided,) = texts_to_review(reviewer, "adjudicated")
    assert (decided.adjudicated, decided.reviewer) == (("중립",), "검수")
    assert decided.votes == second.votes
    assert [work.labels for work in own_work(a)] == [("긍정",)] * 3
    done = progress(reviewer)
    assert (done.texts, done.finished, done.disagreeing, done.to_review) == (3, 3, 2, 1)
    assert (own_counts(reviewer).labelled, own_counts(a).labelled) == (0, 3)
    adjudicate(reviewer, 2, None, request_id="2")
    assert texts_to_review(reviewer) == [second, third]
    save_acts(b, [Act(text_id=3, kind="undo", request_id="u", withdraws="나3")])
    assert texts_to_review(reviewer) == [second] and progress(reviewer).finished == 2


def test_decisions_that_do_not_fit_are_refused(make: Make) -> None:
    access = make("하나", people={"검수": "reviewer"})
    for labels, text_id in ((["좋음"], 1), ([], 1), (["긍정", "부정"], 1), (["긍정"], 99)):
        with pytest.raises(InputError, match="expected"):
            adjudicate(access, text_id, labels, request_id="1")
    with pytest.raises(InputError, match="note of at most 10,000 characters, found 10,001"):
        adjudicate(access, 1, ["긍정"], request_id="1", note="x" * 10_001)
    adjudicate(access, 1, ["긍정"], request_id="1")
    with pytest.raises(InputError, match="names another decision"):
        adjudicate(for_person(access, "검수"), 1, ["긍정"], request_id="1")
