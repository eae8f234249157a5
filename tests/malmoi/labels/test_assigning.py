"""Texts given to one person come to them first, and to nobody else until done or taken back."""

import pytest

from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.assigning import GivenTexts, assign_texts, given_texts, take_back_assigned
from malmoi.labels.erasing import Wanted, erase, find
from malmoi.labels.leasing import count_left, lease_texts
from malmoi.labels.people import AccessError
from malmoi.labels.projects import audit_trail, set_member
from malmoi.labels.searching import Search, search_texts
from tests.malmoi.labels.conftest import Make, for_person


def ids(access: ProjectAccess, name: str, count: int = 9) -> list[int]:
    return [one.text_id for one in lease_texts(for_person(access, name), count)]


def decide(access: ProjectAccess, name: str, text: int, *labels: str) -> None:
    kind = "label" if labels else "skip"
    act = Act(text_id=text, kind=kind, labels=labels, request_id=f"{name}{text}")  # type: ignore[arg-type]
    save_acts(for_person(access, name), [act])


def test_given_texts_are_one_persons_until_done_or_taken_back(
    make: Make,
) -> None:
    people = {"민수": "annotator", "지은": "annotator", "수아": "annotator"}
    access = make("가", "나", "배송 다", "라", "배송 마", "배송 바", people=people)
    # Who has some on screen gets others.
    assert ids(access, "지은", 4) == [1, 2, 3, 4] and ids(access, "민수", 1) == [5]
    decide(access, "지은", 3, "긍정")
    assert assign_texts(access, Search(words="배송"), "민수") == 2
    assert ids(access, "지은") == [1, 2, 4] and ids(access, "수아") == []
    # First, also where they hold others already; of those nobody else has a fair share.
    assert ids(access, "민수", 2) == [5, 6]
    fair = {one.text_id for one in lease_texts(for_person(access, "수아"), 9, spared=())}
    assert fair and fair < {1, 2, 4} and count_left(for_person(access, "수아"), 9) == len(fair)
    assert given_texts(access) == [GivenTexts(person="민수", texts=2, left=2)]
    mine = Search(assigned_to="민수")
    for person in (access, for_person(access, "민수")):
        assert [one.text_id for one in search_texts(person, mine).texts] == [5, 6]
    with pytest.raises(AccessError, match="what others said"):
        search_texts(for_person(access, "지은"), mine)

    # Where they skip it others go on.
    decide(access, "민수", 5)
    assert given_texts(access) == [GivenTexts(person="민수", texts=2, left=1)]
    assert 5 in ids(access, "수아") and 6 not in ids(access, "수아")
    assert take_back_assigned(access, "민수") == 2 and given_texts(access) == []
    assert 6 in ids(access, "수아")
    actions = [(one.action, one.details) for one in audit_trail(access)[:2]]
    details = {"person": "민수", "texts": 2}
    assert actions == [("take back assigned", details), ("assign", details)]

    # By their ids, to somebody who has not begun; who is taken out has none any more.
    assert assign_texts(access, [1, 2, 4, 6], "지은") == 4
    assert ids(access, "수아") == [5] and ids(access, "지은") == [1, 2, 4, 6]
    assert assign_texts(access, [6], "수아") == 1
    set_member(access, "지은", None)
    assert given_texts(access) == [GivenTexts(person="수아", texts=1, left=1)]
    # For a person who was erased nobody waits.
    wanted = Wanted(person="수아")
    erase(find([access], wanted), wanted)
    assert given_texts(access) == []
