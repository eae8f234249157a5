"""Notes of annotators and reviewers are a thread; an annotator sees what reviewers answer."""

from typing import Any

from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, own_work, save_acts
from malmoi.labels.review import texts_with_votes
from malmoi.labels.searching import Search, search_texts
from malmoi.labels.text_history import read_history
from tests.malmoi.labels.conftest import Make, for_person


def note(access: ProjectAccess, name: str, words: str, **more: Any) -> None:
    act = Act(text_id=1, kind="note", note=words, request_id=f"{name}{words}", **more)
    save_acts(for_person(access, name), [act])


def test_notes_are_a_thread(make: Make) -> None:
    people = {"지은": "annotator", "민수": "annotator", "보람": "reviewer"}
    access = make("가", "나", people=people, annotators_per_text=2)
    mine = for_person(access, "지은")
    save_acts(mine, [Act(text_id=1, kind="label", labels=["긍정"], request_id="l")])
    note(access, "지은", "부정인가요")
    note(access, "지은", "부정인가요?")  # takes the place of the one before
    note(access, "민수", "저도 궁금해요")
    note(access, "보람", "긍정이 맞습니다")
    note(access, "지은", "고맙습니다")

    (text,) = texts_with_votes(access, [1])
    whole = [
        "지은: 부정인가요?",
        "민수: 저도 궁금해요",
        "보람: 긍정이 맞습니다",
        "지은: 고맙습니다",
    ]
    assert text.notes == whole
    # Not those of colleagues, nor how many they are.
    (work,) = own_work(mine)
    assert [one.text for one in work.comments] == ["부정인가요?", "긍정이 맞습니다", "고맙습니다"]
    counts = [
        [len(one.comments) for one in search_texts(one_access, Search()).texts]
        for one_access in (access, mine)
    ]
    assert counts == [[4, 0], [3, 0]]
    said = [act.person for act in read_history(mine, 1).acts if act.action == "note"]
    assert said == ["지은", "지은", "보람", "지은"]

    note(access, "지은", "")
    assert [one.text for one in own_work(mine)[0].comments] == ["부정인가요?", "긍정이 맞습니다"]
    undo = Act(text_id=1, kind="undo", withdraws="보람긍정이 맞습니다", request_id="u")
    save_acts(for_person(access, "보람"), [undo])
    assert [one.text for one in own_work(mine)[0].comments] == ["부정인가요?"]
