"""What annotators do is appended once, and what holds can be told from the log alone."""

import signal
import subprocess
import sys
from itertools import islice
from typing import Any

import pytest
from sqlalchemy import create_engine, select, text

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import (
    Act,
    Suggestion,
    latest_decision,
    own_work,
    save_acts,
    take_back,
)
from malmoi.labels.leasing import lease_texts
from malmoi.labels.review import progress, texts_with_votes
from malmoi.labels.tables import AnnotationRow, PlaceRow
from tests.malmoi.labels.at_work import at_once, write
from tests.malmoi.labels.conftest import Make, for_person

WRITER = """
import sys
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore
url, who, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
access = ProjectStore(url).access(Person(name=who), "리뷰")
for number in range(first, 60):
    act = Act(text_id=number + 1, kind="label", labels=["긍정"], request_id=f"{who}-{number}")
    save_acts(access, [act])
    print(number, flush=True)
"""


def log(access: ProjectAccess) -> list[dict[str, Any]]:
    with create_engine(access.engine.url).connect() as connection:
        query = text("SELECT * FROM malmoi_annotations ORDER BY id")
        return [dict(row) for row in connection.execute(query).mappings()]


def act(text_id: int, kind: str, request_id: str, **given: Any) -> Act:
    return Act(text_id=text_id, kind=kind, request_id=request_id, **given)  # type: ignore[arg-type]


def holds(access: ProjectAccess) -> list[tuple[int, str, tuple[str, ...]]]:
    return [(one.text_id, one.state, one.labels) for one in own_work(access)]


def assert_places_follow_the_log(access: ProjectAccess) -> None:
    with access.reading() as connection:
        places = connection.execute(select(PlaceRow.__table__)).mappings().all()
        for place in places:
            latest = latest_decision(connection, place["text_id"], place["annotator"])
            expected = None if latest is None else latest["id"]
            assert place["annotation_id"] == expected
            assert place["choice"] == (None if latest is None else latest["choice"])
        kinds = select(AnnotationRow.text_id, AnnotationRow.annotator).where(
            AnnotationRow.kind.in_(("label", "skip"))
        )
        decided = {tuple(row) for row in connection.execute(kinds)}
        assert decided <= {(place["text_id"], place["annotator"]) for place in places}


def test_a_label_is_kept_with_all_that_was_known(make: Make) -> None:
    access = make("배송 빨라요 👍🏽", people={"지은": "annotator"})
    mine = for_person(access, "지은")
    lease_texts(mine, 1)
    shown = Suggestion(label="부정", score=0.75, model="reviews-1")
    first = act(1, "label", "r1", labels=["긍정"], suggestion=shown, seconds=2.5)
    (saved,) = save_acts(mine, [first])
    (row,) = log(access)
    assert saved.new and row["id"] == saved.id and row["annotator"] == "지은"
    assert (row["suggested_label"], row["suggested_score"]) == ("부정", 0.75)
    assert (row["suggested_model"], row["seconds"], row["drawn"]) == ("reviews-1", 2.5, "plain")
    assert row["guideline_version"] == 1
    assert holds(mine) == [(1, "labelled", ("긍정",))] and holds(access) == []


def test_the_same_request_is_one_row_and_another_may_not_take_its_id(make: Make) -> None:
    access = make("하나", "둘", people={"가": "annotator", "나": "annotator"})
    a, b = for_person(access, "가"), for_person(access, "나")
    first = act(1, "label", "r1", labels=["긍정"])
    assert save_acts(a, [first])[0].new and not save_acts(a, [first])[0].new
    assert len(log(access)) == 1
    with pytest.raises(InputError, match="names another act"):
        save_acts(b, [first])
    with pytest.raises(InputError, match="names another act"):
        save_acts(a, [act(2, "label", "r1", labels=["긍정"])])


def test_a_burst_is_saved_whole_or_not_at_all(make: Make) -> None:
    access = make("하나", "둘")
    burst = [act(1, "label", "r1", labels=["긍정"]), act(99, "label", "r2", labels=["긍정"])]
    with pytest.raises(InputError, match="expected the id of a text of project"):
        save_acts(access, burst)
    assert log(access) == []
    again = save_acts(access, [burst[0], act(2, "skip", "r2"), burst[0]])
    assert [one.new for one in again] == [True, True, False]


def test_labels_that_do_not_fit_are_refused(make: Make) -> None:
    single, multi = make("글"), make("글", name="여럿", kind="multi")
    for access, text_id, labels, fact in (
        (single, 1, [], "one label, found 0"),
        (single, 1, ["긍정", "부정"], "one label, found 2"),
        (single, 1, ["좋음"], "긍정, 부정, 중립, found '좋음'"),
        (multi, 2, ["긍정", "긍정"], "each label once"),
    ):
        with pytest.raises(InputError, match=fact):
            save_acts(access, [act(text_id, "label", "r1", labels=labels)])
        assert log(access) == [], labels


def test_multi_label_texts_have_any_number_of_labels(make: Make) -> None:
    access = make("하나", "둘", kind="multi")
    save_acts(access, [act(1, "label", "r1", labels=["중립", "긍정"])])
    save_acts(access, [act(2, "label", "r2", labels=[])])
    assert holds(access) == [(2, "labelled", ()), (1, "labelled", ("긍정", "중립"))]


def test_undo_brings_back_what_was_before(make: Make) -> None:
    access = make("하나")
    save_acts(access, [act(1, "label", "r1", labels=["긍정"])])
    save_acts(access, [act(1, "label", "r2", labels=["부정"])])
    save_acts(access, [act(1, "undo", "u2", withdraws="r2")])
    assert holds(access) == [(1, "labelled", ("긍정",))] and progress(access).finished == 1
    assert (own_work(access)[0].request_id, own_work(access)[0].text) == ("r1", "하나")
    save_acts(access, [act(1, "undo", "u1", withdraws="r1")])
    assert holds(access) == [] and progress(access).finished == 0
    (leased,) = lease_texts(access, 1)
    assert leased is not None and leased.text_id == 1
    assert [row["kind"] for row in log(access)] == ["label", "label", "undo", "undo"]
    for wrong in ("r1", "u1", "r9"):
        with pytest.raises(InputError, match="expected"):
            save_acts(access, [act(1, "undo", f"again {wrong}", withdraws=wrong)])
    assert_places_follow_the_log(access)


def test_a_text_whose_label_is_taken_back_is_on_nobodys_screen(make: Make) -> None:
    """One that is undone on the page of labelling stays with who undid it."""
    access = make("하나", "둘", people=dict.fromkeys("가나", "annotator"))
    mine, other = for_person(access, "가"), for_person(access, "나")
    for text_id, label in ((1, "긍정"), (1, "부정"), (2, "긍정")):
        save_acts(mine, [act(text_id, "label", f"{text_id} {label}", labels=[label])])
    save_acts(mine, [act(2, "undo", "u", withdraws="2 긍정")])
    assert not lease_texts(other, 1)
    assert take_back(mine, [(1, "1 부정")]) == 1
    assert holds(mine) == [(1, "labelled", ("긍정",))] and not lease_texts(other, 1)
    assert take_back(mine, [(1, "1 긍정"), (1, "1 부정")]) == 1
    assert [one.text_id for one in lease_texts(other, 2)] == [1]
    assert [one.text_id for one in lease_texts(mine, 2)] == [2]
    with pytest.raises(InputError, match="expected the request of an act of 나 on text 1"):
        take_back(other, [(1, "1 긍정")])
    with pytest.raises(InputError, match="which is an undo"):
        take_back(mine, [(2, "u")])
    assert_places_follow_the_log(access)


def test_nobody_undoes_the_work_of_another(make: Make) -> None:
    access = make("하나", people={"가": "annotator", "나": "admin"})
    save_acts(for_person(access, "가"), [act(1, "label", "r1", labels=["긍정"])])
    with pytest.raises(InputError, match="expected the request of an act of 나 on text 1"):
        save_acts(for_person(access, "나"), [act(1, "undo", "u1", withdraws="r1")])


def test_flags_and_notes_stand_beside_the_label(make: Make) -> None:
    access = make("하나")
    for one in (
        act(1, "flag", "f1"),
        act(1, "note", "n1", note="비꼬는 말? 🤔"),
        act(1, "label", "r1", labels=["긍정"]),
        act(1, "note", "n2", note="=cmd()"),
        act(1, "flag", "f2", flagged=False),
    ):
        save_acts(access, [one])
    (work,) = own_work(access)
    assert (work.labels, work.flagged, work.note) == (("긍정",), False, "=cmd()")
    save_acts(access, [act(1, "undo", "u1", withdraws="f2"), act(1, "undo", "u2", withdraws="n2")])
    (work,) = own_work(access)
    assert (work.labels, work.flagged, work.note) == (("긍정",), True, "비꼬는 말? 🤔")
    (reviewed,) = texts_with_votes(access, [1])
    assert reviewed.votes[0].flagged and reviewed.votes[0].note == work.note


def test_acts_that_say_nothing_are_refused() -> None:
    for wrong in (
        {"kind": "love"},
        {"kind": "undo"},
        {"kind": "skip", "withdraws": "r1"},
        {"kind": "skip", "request_id": ""},
        {"kind": "skip", "request_id": "x" * 129},
        {"kind": "skip", "seconds": -1.0},
        {"kind": "skip", "seconds": float("nan")},
        {"kind": "note", "note": "x" * 10_001},
        {"kind": "skip", "suggestion": Suggestion(label="긍정", score=1.5, model="m")},
    ):
        with pytest.raises(InputError, match="expected"):
            Act(**{"text_id": 1, "request_id": "r", **wrong})


def test_a_writer_that_was_killed_loses_nothing_it_was_told_is_saved(
    make: Make, any_url: str
) -> None:
    """What the writer printed was acknowledged; it is sent again by who comes after."""
    access = make(*[f"글 번호 {number}" for number in range(60)], people={"가": "annotator"})
    acknowledged: list[int] = []
    for _ in range(3):
        first = max(0, len(acknowledged) - 3)
        command = [sys.executable, "-c", WRITER, any_url, "가", str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            # A writer that is too fast for this process has ended; it is not waited for.
            said = list(islice(process.stdout, 10))
            process.send_signal(signal.SIGKILL)
            said += process.stdout
            acknowledged += [int(line) for line in said if line.endswith("\n")]
    assert acknowledged
    requests = [row["request_id"] for row in log(access)]
    assert len(set(requests)) == len(requests)
    assert {f"가-{number}" for number in acknowledged} <= set(requests)
    assert_places_follow_the_log(access)


def test_eight_writers_at_once_lose_and_double_nothing(make: Make, any_url: str) -> None:
    people = [f"사람{number}" for number in range(8)]
    lines = [f"글 번호 {number}" for number in range(60)]
    access = make(*lines, annotators_per_text=8, people=dict.fromkeys(people, "annotator"))
    # Each of them twice, as with two windows.
    at_once(write, [(any_url, who, 40) for who in people for _ in range(2)])
    assert len(log(access)) == 8 * 20
    assert progress(access).finished == 20
    assert_places_follow_the_log(access)


def test_what_was_skipped_long_ago_is_found_behind_the_last_work(make: Make) -> None:
    access = make("하나", "둘", "셋")
    save_acts(access, [act(1, "skip", "s1")])
    save_acts(access, [act(2, "label", "r2", labels=["긍정"]), act(3, "skip", "s3")])
    assert [one.text_id for one in own_work(access, limit=1)] == [3, 1]
    save_acts(access, [act(1, "label", "r1", labels=["부정"])])
    assert [one.text_id for one in own_work(access, limit=2)] == [1, 3]
