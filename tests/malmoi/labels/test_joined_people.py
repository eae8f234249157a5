"""Two names of one person become one, with all that was done under both."""

import pytest
from sqlalchemy import select

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.access_keys import make_key, make_owner_key, person_of
from malmoi.labels.annotating import Act, latest_decision, save_acts
from malmoi.labels.joined_people import join_people
from malmoi.labels.leasing import lease_texts
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore, audit_trail, members
from malmoi.labels.review import adjudicate, progress, texts_with_votes
from malmoi.labels.tables import AdjudicationRow, AnnotationRow
from tests.malmoi.labels.conftest import Make, for_person


def act(access: ProjectAccess, name: str, text: int, label: str | None, note: str = "") -> None:
    acts = [
        Act(
            text_id=text,
            kind="skip" if label is None else "label",
            labels=() if label is None else (label,),
            request_id=f"{name}{text}{label}",
        )
    ]
    if note:
        acts.append(Act(text_id=text, kind="note", note=note, request_id=f"{name}{text}{note}"))
    save_acts(for_person(access, name), acts)


def test_two_names_become_one_person(make: Make) -> None:
    people = {"민수": "annotator", "민수2": "reviewer", "지은": "annotator"}
    access = make(*"가나다라마", people=people, annotators_per_text=2)
    act(access, "민수", 1, "긍정", "먼저")
    act(access, "민수2", 1, "부정", "나중")
    act(access, "민수2", 2, "부정")
    act(access, "민수", 2, None)
    act(access, "민수2", 3, "중립")
    act(access, "민수2", 4, "긍정")
    act(access, "민수", 4, "긍정")
    act(access, "지은", 4, "긍정")
    lease_texts(for_person(access, "민수2"), 1)
    adjudicate(for_person(access, "민수2"), 4, ["중립"], request_id="d")
    secret = make_key(access, "민수2", "reviewer", "invitation")
    with access.reading() as connection:
        before = set(
            connection.execute(select(AnnotationRow.id, AnnotationRow.created_at)).tuples()
        )
    assert progress(access).disagreeing == 1

    counted = join_people(access, "민수2", "민수", only_count=True)
    assert (counted.texts, counted.decisions, counted.both, counted.differing) == (4, 1, 3, 2)
    assert members(access)["민수2"] == "reviewer"
    assert join_people(access, "민수2", " 민수 ") == counted

    votes = {
        one.text_id: {vote.annotator: vote.labels for vote in one.votes}
        for one in texts_with_votes(access, [1, 2, 3, 4])
    }
    # The later act of the log, which was a skip once.
    assert votes[1] == {"민수": ("부정",)} and votes[2] == {"민수": ()}
    assert votes[3] == {"민수": ("중립",)}
    assert votes[4] == {"민수": ("긍정",), "지은": ("긍정",)}
    assert texts_with_votes(access, [4])[0].reviewer == "민수"
    assert texts_with_votes(access, [1])[0].notes == ["민수: 나중"]
    done = progress(access)
    assert (done.finished, done.disagreeing) == (1, 0)
    with access.reading() as connection:
        after = set(connection.execute(select(AnnotationRow.id, AnnotationRow.created_at)).tuples())
        assert after == before
        assert set(connection.scalars(select(AnnotationRow.annotator))) == {"민수", "지은"}
        assert set(connection.scalars(select(AdjudicationRow.reviewer))) == {"민수"}
        held = latest_decision(connection, 2, "민수")
        assert held is not None and held["kind"] == "skip"
    assert members(access)["민수"] == "reviewer" and "민수2" not in members(access)
    person = person_of(ProjectStore(access.engine.url), secret, "invitation")
    assert person is not None and person.name == "민수"
    # What was labelled under either name is not asked again.
    assert [one.text_id for one in lease_texts(for_person(access, "민수"), 9)] == [5]
    entry = audit_trail(access)[0]
    assert entry.action == "join people"
    assert entry.details == {"from": "민수2", "into": "민수", "texts": 4, "both": 3}
    with pytest.raises(InputError, match="two names"):
        join_people(access, "민수", "민수")


def test_the_link_of_whoever_runs_the_server_is_made_anew(make: Make) -> None:
    access = make("가")
    store = ProjectStore(access.engine.url)
    first, invited = make_owner_key(access), make_key(access, "지은", "admin", "invitation")
    second = make_owner_key(access, instead=True)
    assert person_of(store, first, "invitation") is None
    for secret in (second, invited):
        assert isinstance(person_of(store, secret, "invitation"), Person)
    assert audit_trail(access)[0].action == "renew owner link"
