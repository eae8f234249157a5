"""Searching a project, many decisions at once, numbers: in SQLite and PostgreSQL alike."""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, Suggestion, save_acts
from malmoi.labels.leasing import lease_texts
from malmoi.labels.model_comparison import agreed_share, model_comparison, texts_behind
from malmoi.labels.people import AccessError
from malmoi.labels.project_numbers import last_change, project_numbers
from malmoi.labels.projects import audit_trail, change_labels, change_settings, read_project
from malmoi.labels.relabelling import (
    latest_relabellings,
    relabel,
    texts_to_decide,
    undo_relabelling,
)
from malmoi.labels.review import (
    adjudicate,
    latest_decisions,
    review_counts,
    texts_to_review,
    texts_with_votes,
)
from malmoi.labels.scores import TextScore, write_scores
from malmoi.labels.searching import Search, count_texts, read_model_views, search_texts
from malmoi.labels.tables import TextRow
from malmoi.labels.text_history import read_history
from malmoi.labels.text_import import import_texts
from malmoi.labels.typical_words import typical_words
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.labels.conftest import Make, for_person

PEOPLE = {"가": "annotator", "나": "annotator", "검수": "reviewer"}


def label(access: ProjectAccess, text_id: int, name: str, **more: object) -> None:
    request_id = f"{access.person.name}-{text_id}-{name}"
    act = Act(text_id=text_id, kind="label", labels=[name], request_id=request_id, **more)  # type: ignore[arg-type]
    save_acts(access, [act])


def found(access: ProjectAccess, **search: object) -> list[int]:
    """The ids of all pages of two, which is also what is counted."""
    wanted = Search(**search)  # type: ignore[arg-type]
    ids: list[int] = []
    after = None
    while True:
        page = search_texts(access, wanted, after=after, limit=2)
        ids += [text.text_id for text in page.texts]
        if page.next is None:
            break
        after = page.next
    assert count_texts(access, wanted) == len(ids) == len(set(ids))
    return ids


def test_words_are_found_as_they_are_written(make: Make) -> None:
    texts = [
        "100% 좋아요",
        "100점 좋아요",
        "a_b \\ c",
        "axb / c",
        "그의 '말'과 \"글\"; DROP TABLE malmoi_texts; --",
        "LG전자 ÉCLAIR",
        unicodedata.normalize("NFD", "한글 자모"),
        "<script>alert(1)</script> **굵게**",
    ]
    local = make(*texts, people=PEOPLE)
    for words, ids in {
        "좋아요": [1, 2],
        "100%": [1],
        "%": [1],
        "_": [3, 5],
        "a_b": [3],
        "\\": [3],
        "'말'과": [5],
        '"글";': [5],
        "'; DROP TABLE malmoi_texts; --": [],
        "drop table": [5],
        "TABLE 그의": [5],
        "lg전자": [6],
        "éclair": [6],
        "ÉCLAIR": [6],
        "한글": [7],
        unicodedata.normalize("NFD", "한글"): [7],
        "한글자모": [7],
        "좋아 ㄱㅇ": [],
        "ㅈㅇㅇ": [1, 2],
        "ㄱㅇ": [5],
        "<SCRIPT>": [8],
        "**": [8],
        "": [1, 2, 3, 4, 5, 6, 7, 8],
        "없는 말": [],
    }.items():
        assert found(local, words=words) == ids, words
        assert found(for_person(local, "가"), words=words) == ids, words
    # In an order of the caller's, some of whose texts are gone.
    search = Search(nearest=(7, 99, 2, 5, 1))
    first = search_texts(local, search, limit=2)
    assert [one.text_id for one in first.texts] == [7, 2]
    rest = search_texts(local, search, after=first.next)
    assert ([one.text_id for one in rest.texts], rest.next) == ([5, 1], None)
    assert found(local, nearest=(7, 99, 2, 5, 1), words="좋아요") == [2, 1]


def test_what_cannot_be_searched_for_is_said() -> None:
    for wrong in (
        {"words": "가 " * 11},
        {"words": "가" * 201},
        {"words": "\x00"},
        {"score_from": 0.6, "score_to": 0.5},
        {"state": "gone"},
        {"order": "id; --"},
    ):
        with pytest.raises(InputError, match="expected"):
            Search(**wrong)  # type: ignore[arg-type]


def labelled(make: Make, **more: object) -> Sequence[ProjectAccess]:
    """1 both the same, 2 differ, 3 differ and is decided, 4 one label, 5 a skip, 6 nothing."""
    local = make(
        *["하나", "둘", "셋", "넷", "다섯", "여섯"], annotators_per_text=2, people=PEOPLE, **more
    )
    a, b, reviewer = (for_person(local, name) for name in PEOPLE)
    for text_id, first, second in ((1, "긍정", "긍정"), (2, "긍정", "부정"), (3, "긍정", "중립")):
        label(a, text_id, first, seconds=float(text_id))
        label(b, text_id, second)
    label(a, 4, "부정")
    save_acts(b, [Act(text_id=5, kind="skip", request_id="s")])
    save_acts(a, [Act(text_id=2, kind="flag", request_id="f")])
    save_acts(
        b,
        [
            Act(text_id=1, kind="flag", request_id="g"),
            Act(text_id=1, kind="flag", flagged=False, request_id="h"),
            Act(text_id=6, kind="flag", request_id="i"),
            Act(text_id=6, kind="undo", withdraws="i", request_id="j"),
            Act(text_id=5, kind="note", note="이건 뭔가요?", request_id="note"),
            Act(text_id=1, kind="note", note="지울 메모", request_id="note-2"),
            Act(text_id=1, kind="note", note="", request_id="note-3"),
            Act(text_id=6, kind="note", note="물릴 메모", request_id="note-4"),
            Act(text_id=6, kind="undo", withdraws="note-4", request_id="note-5"),
        ],
    )
    adjudicate(reviewer, 3, ["부정"], request_id="d", note="까닭")
    write_scores(
        local,
        "quick-1",
        [
            TextScore(text_id=one, priority=0.5, label=name, score=score)
            for one, name, score in (
                (1, "긍정", 0.9),
                (2, "부정", 0.4),
                (3, "부정", 0.7),
                (4, "긍정", 0.7),
                (6, "중립", 0.2),
            )
        ],
    )
    return local, a, b, reviewer


def test_every_filter_finds_what_it_says(make: Make) -> None:
    _, _, _, reviewer = labelled(make)
    now = datetime.now(UTC)
    day = timedelta(days=1)
    for search, ids in (
        ({"label": "긍정"}, [1, 2]),  # of 3 the decision counts
        ({"label": "부정"}, [2, 3, 4]),
        ({"label": "긍정", "annotator": "가"}, [1, 2, 3]),
        ({"annotator": "나"}, [1, 2, 3, 5]),
        ({"annotator": "없음"}, []),
        ({"suggested": "부정"}, [2, 3]),
        ({"label": "부정", "suggested": "긍정"}, [4]),
        ({"score_from": 0.5}, [1, 3, 4]),
        ({"score_from": 0.3, "score_to": 0.5}, [2]),
        ({"flagged": True}, [2]),
        ({"noted": True}, [5]),
        ({"state": "open"}, [4, 5, 6]),
        ({"state": "labelled"}, [1, 2, 3, 4]),
        ({"state": "disagreeing"}, [2]),
        ({"state": "decided"}, [3]),
        ({"state": "skipped"}, [5]),
        ({"since": now - day, "until": now + day}, [1, 2, 3, 4, 5]),
        ({"since": now + day}, []),
        ({"until": now - day}, []),
        ({"order": "surest"}, [1, 4, 3, 2, 6]),
        ({"order": "least sure"}, [6, 2, 3, 4, 1]),
        ({"order": "newest"}, [4, 3, 2, 1]),
        ({"order": "newest", "label": "긍정"}, [2, 1]),
        ({"order": "surest", "words": "셋"}, [3]),
    ):
        assert found(reviewer, **search) == ids, search
    with pytest.raises(InputError, match="expected a label of 긍정, 부정, 중립"):
        found(reviewer, label="없음")


def test_texts_are_found_by_their_file(make: Make) -> None:
    access = make("하나", "둘")
    for name, words in (("1월 리뷰.txt", "둘\n셋"), ("Café%.csv", "text\n넷")):
        import_texts(access, [source_of_upload(name, words.encode())])
    assert found(access, source="글.txt") == [1, 2]
    assert found(access, source="1월") == [2, 3]  # of the text in two files, too
    assert found(access, source=unicodedata.normalize("NFD", "1월 리")) == [2, 3]
    assert found(access, source="café") == found(access, source="é%") == [4]
    assert found(access, source="%.txt") == found(access, source="없음") == []
    assert found(access, source="1월", words="셋") == [3]


def test_the_likeliest_errors_come_first(make: Make) -> None:
    local, _, _, reviewer = labelled(make)
    assert found(reviewer, order="doubt") == []
    with local.engine.begin() as connection:
        for text_id, doubt in ((1, 0.2), (2, 0.9), (4, 0.9)):
            connection.exec_driver_sql(
                f"UPDATE malmoi_text_scores SET doubt = {doubt} WHERE text_id = {text_id}"
            )
    assert found(reviewer, order="doubt") == [4, 2, 1]
    assert read_model_views(reviewer, [2, 5])[2].doubt == 0.9


def test_texts_drawn_by_chance_are_found(make: Make) -> None:
    local = make(*["하나", "둘", "셋"], people=PEOPLE, text_order="random", random_share=1.0)
    a = for_person(local, "가")
    (text,) = lease_texts(a, 1)
    label(a, text.text_id, "긍정")
    other = next(one for one in (1, 2, 3) if one != text.text_id)
    label(a, other, "부정")
    assert found(local, at_random=True) == [text.text_id]
    assert found(local, at_random=True, label="부정") == []


def test_annotators_see_and_search_their_own_labels_only(make: Make) -> None:
    _, a, b, _ = labelled(make)
    assert found(a, label="부정") == [4]
    assert found(b, label="부정") == [2]
    assert found(a, flagged=True) == [2] and found(b, flagged=True) == []
    assert found(b, noted=True) == [5] and found(a, noted=True) == []
    assert found(b, state="skipped") == [5] and found(a, state="skipped") == []
    assert found(a, state="labelled") == [1, 2, 3, 4]
    assert found(a, state="open") == [5, 6]
    assert found(a, order="newest") == [4, 3, 2, 1] and found(b, order="newest") == [3, 2, 1]
    for text in search_texts(a, Search()).texts:
        assert {vote.annotator for vote in text.votes} <= {"가"}
        assert text.adjudicated is None and text.reviewer is None
    history = read_history(a, 3)
    assert [(act.person, act.action) for act in history.acts] == [("가", "label")]
    for search in (
        {"annotator": "나"},
        {"state": "disagreeing"},
        {"state": "decided"},
        {"order": "doubt"},
    ):
        with pytest.raises(AccessError, match="expected the role reviewer"):
            search_texts(a, Search(**search))  # type: ignore[arg-type]


def test_a_hidden_model_stays_hidden_from_annotators(make: Make) -> None:
    _, a, _, reviewer = labelled(make, show_suggestion=False)
    assert [text.view for text in search_texts(a, Search()).texts] == [None] * 6
    for search in ({"suggested": "긍정"}, {"score_from": 0.5}, {"order": "surest"}):
        with pytest.raises(AccessError, match="hides what the model says"):
            search_texts(a, Search(**search))  # type: ignore[arg-type]
        assert search_texts(reviewer, Search(**search)).texts  # type: ignore[arg-type]


def test_nothing_of_another_project_is_found_or_changed(make: Make) -> None:
    _, _, _, reviewer = labelled(make)
    other = make("하나", "남의 글", name="다른 작업", people={"남": "reviewer"})
    stranger = for_person(other, "남")
    assert found(stranger) == [7, 8]
    assert found(stranger, words="하나") == [7]
    assert found(reviewer) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(InputError, match="expected the id of a text of project"):
        read_history(stranger, 1)
    with pytest.raises(InputError, match="expected 2 texts to decide, found 1"):
        relabel(stranger, [1, 7], ["긍정"], request_id="x", expected=2)
    made = relabel(reviewer, [1], ["부정"], request_id="y", expected=1)
    with pytest.raises(InputError, match="expected a bulk change of project"):
        undo_relabelling(stranger, made.id)
    forged = for_person(reviewer, "남")
    for refused in (lambda: search_texts(forged, Search()), lambda: read_history(forged, 1)):
        with pytest.raises(AccessError, match="expected a member"):
            refused()


def test_labels_of_several_are_found_by_each(make: Make) -> None:
    names = ",".join(f"라벨{one}" for one in range(1, 13))
    access = make("하나", "둘", "셋", labels=names, kind="multi")
    for text_id, some in ((1, ["라벨1", "라벨12"]), (2, ["라벨12"]), (3, [])):
        act = Act(text_id=text_id, kind="label", labels=some, request_id=str(text_id))
        save_acts(access, [act])
    assert found(access, label="라벨1") == [1]
    assert found(access, label="라벨12") == [1, 2]
    assert found(access, label="라벨2") == []
    made = relabel(access, Search(label="라벨12"), [], request_id="x", expected=2)
    assert made.labels == () and found(access, label="라벨12") == []
    assert project_numbers(access).labels["라벨12"] == 2


def test_what_a_bulk_change_would_settle_is_known_before(make: Make) -> None:
    _, a, _, reviewer = labelled(make)

    def of(which: Sequence[int] | Search) -> tuple[int, int, int, int]:
        found = texts_to_decide(reviewer, which)
        return found.texts, found.disagreeing, found.short, found.decided

    disagreeing = found(reviewer, state="disagreeing")
    unlabelled = [one for one in found(reviewer, state="open") if one not in disagreeing]
    assert disagreeing and unlabelled
    assert of(Search(state="disagreeing"))[:2] == (len(disagreeing),) * 2
    assert of(unlabelled) == (len(unlabelled), 0, len(unlabelled), 0)
    short = len(found(reviewer, state="open"))
    assert of(Search()) == (6, len(disagreeing), short, 1)
    assert of(Search(state="decided")) == (1, 0, 0, 1)
    relabel(reviewer, Search(), ["중립"], request_id="all", expected=6)
    assert of(Search()) == (6, 0, 0, 6)
    with pytest.raises(AccessError, match="expected the role reviewer"):
        texts_to_decide(a, Search())


def test_many_decisions_at_once_are_undone_as_one(make: Make) -> None:
    local, _, _, reviewer = labelled(make)
    votes = [text.votes for text in texts_with_votes(reviewer, [1, 2, 3, 4, 5, 6])]
    made = relabel(
        reviewer, Search(label="부정"), ["중립"], request_id="bulk", expected=3, note="다시 봄"
    )
    assert (made.person, made.labels, made.texts) == ("검수", ("중립",), 3)
    assert found(reviewer, label="중립") == [2, 3, 4] and found(reviewer, label="부정") == []
    again = relabel(reviewer, Search(label="부정"), ["중립"], request_id="bulk", expected=3)
    assert again == made and len(latest_relabellings(reviewer)) == 1
    # Whoever decides alone afterwards is not overruled by the undo.
    adjudicate(reviewer, 4, ["긍정"], request_id="later")
    assert undo_relabelling(reviewer, made.id) == 2
    assert undo_relabelling(reviewer, made.id) == 0
    decided = {text.text_id: text.adjudicated for text in latest_decisions(reviewer)}
    assert decided == {3: ("부정",), 4: ("긍정",)}
    assert texts_to_review(reviewer)[0].text_id == 2
    assert [text.votes for text in texts_with_votes(reviewer, [1, 2, 3, 4, 5, 6])] == votes
    (one,) = latest_relabellings(reviewer)
    assert one.undone and one.id == made.id
    trail = [entry for entry in audit_trail(local) if "relabel" in entry.action]
    assert [(entry.person, entry.details["texts"]) for entry in trail] == [("검수", 2), ("검수", 3)]
    acts = [(act.action, act.labels, act.undone) for act in read_history(reviewer, 3).acts][-3:]
    assert acts == [
        ("decide", ("부정",), True),
        ("decide", ("중립",), True),
        ("decide", ("부정",), False),
    ]


def test_a_bulk_change_is_of_the_number_that_was_told_or_of_nothing(make: Make) -> None:
    _, _, _, reviewer = labelled(make)
    for which, labels, expected in (
        (Search(label="긍정"), ["부정"], 5),
        ([1, 2], ["부정"], 1),
        ([], ["부정"], 0),
        ([1], ["없음"], 1),
        ([1], ["긍정", "부정"], 1),
        ([99], ["긍정"], 1),
    ):
        with pytest.raises(InputError, match="expected"):
            relabel(reviewer, which, labels, request_id="x", expected=expected)
    with pytest.raises(InputError, match="request of 1 to 100 characters"):
        relabel(reviewer, [1], ["긍정"], request_id="x" * 101, expected=1)
    assert not latest_relabellings(reviewer)
    assert [text.text_id for text in latest_decisions(reviewer)] == [3]
    relabel(reviewer, [1], ["긍정"], request_id="x", expected=1)
    with pytest.raises(InputError, match="names another decision"):
        adjudicate(reviewer, 2, ["부정"], request_id="x:1")


def test_the_queue_by_pair_flag_and_skip(make: Make) -> None:
    _, _, b, reviewer = labelled(make)
    label(b, 4, "중립")
    counts = review_counts(reviewer)
    assert (counts.disagreeing, counts.flagged, counts.skipped, counts.adjudicated) == (2, 1, 1, 1)
    pairs = {(pair.first, pair.second): pair for pair in counts.pairs}
    assert {names: pair.texts for names, pair in pairs.items()} == {
        (("긍정",), ("부정",)): 1,
        (("부정",), ("중립",)): 1,
    }
    chosen = pairs[("부정",), ("중립",)].choices
    assert [text.text_id for text in texts_to_review(reviewer, pair=chosen)] == [4]
    assert [text.text_id for text in texts_to_review(reviewer, "flagged")] == [2]
    assert [text.text_id for text in texts_to_review(reviewer, "skipped")] == [5]
    (decided,) = latest_decisions(reviewer)
    assert (decided.text_id, decided.decision_note, decided.reviewer) == (3, "까닭", "검수")


def test_nobodys_decision_is_replaced_unseen(make: Make) -> None:
    local, _, _, reviewer = labelled(make)
    seen = texts_to_review(reviewer)[0].decision_id
    adjudicate(local, 2, ["긍정"], request_id="first", shown_decision=seen)
    with pytest.raises(InputError, match="it is 관리자's now"):
        adjudicate(reviewer, 2, ["부정"], request_id="second", shown_decision=seen)
    held = latest_decisions(reviewer)[0]
    adjudicate(reviewer, 2, None, request_id="third", shown_decision=held.decision_id)
    with pytest.raises(InputError, match="it was withdrawn now"):
        adjudicate(local, 2, ["부정"], request_id="fourth", shown_decision=held.decision_id)


def test_the_pace_is_of_labels_that_hold(make: Make) -> None:
    _, a, _, reviewer = labelled(make)
    before = sum(hour.labels for hour in project_numbers(reviewer).hours)
    save_acts(a, [Act(text_id=5, kind="label", labels=["긍정"], request_id="fast")])
    save_acts(a, [Act(text_id=5, kind="undo", withdraws="fast", request_id="back")])
    assert sum(hour.labels for hour in project_numbers(reviewer).hours) == before


def test_numbers_are_of_all_for_reviewers_and_of_oneself_for_annotators(make: Make) -> None:
    local, a, _, reviewer = labelled(make)
    before = last_change(reviewer)
    everybody = project_numbers(reviewer)
    assert [(one.name, one.labelled, one.skipped) for one in everybody.annotators] == [
        ("가", 4, 0),
        ("나", 3, 1),
    ]
    assert everybody.labels == {"긍정": 4, "부정": 2, "중립": 1}
    assert (everybody.progress.finished, everybody.decided) == (3, 1)
    assert sum(hour.labels for hour in everybody.hours) == 7
    seconds = everybody.annotators[0].seconds
    assert seconds is not None and (seconds.labels, seconds.median) == (3, 2.0)
    own = project_numbers(a)
    assert [one.name for one in own.annotators] == ["가"] and own.decided is None
    assert {hour.name for hour in own.hours} == {"가"}
    assert last_change(reviewer) == before
    label(a, 5, "긍정")
    changed = last_change(reviewer)
    assert changed.annotation > before.annotation and changed.audit == before.audit
    adjudicate(local, 1, ["긍정"], request_id="new")
    assert last_change(reviewer).audit > changed.audit


def test_other_names_of_labels_and_other_settings_are_a_change(make: Make) -> None:
    access = make("하나", "둘")
    known = [last_change(access)]
    first, *others = read_project(access).labels
    for change in (
        lambda: change_labels(access, [replace(first, name="좋음"), *others]),
        lambda: change_labels(access, others),
        lambda: change_settings(access, annotators_per_text=2),
    ):
        change()
        assert last_change(access) not in known
        known.append(last_change(access))


def test_the_model_is_compared_with_what_people_gave(make: Make) -> None:
    local = make(*["하나", "둘", "셋"], people=PEOPLE)
    a = for_person(local, "가")
    for text_id, said, given in ((1, "긍정", "긍정"), (2, "긍정", "부정")):
        label(a, text_id, given, suggestion=Suggestion(label=said, score=0.8, model="x"))
    label(a, 3, "중립")
    with local.engine.begin() as connection:
        for text_id, lottery in ((1, 0.1), (2, 0.9), (3, 0.5)):
            connection.execute(
                TextRow.__table__.update()  # type: ignore[attr-defined]
                .where(TextRow.id == text_id)
                .values(lottery=lottery, is_open=text_id == 3)
            )
    reviewer = for_person(local, "검수")
    shown = model_comparison(reviewer, "shown")
    assert shown.everywhere == {("긍정", "긍정"): 1, ("긍정", "부정"): 1}
    assert shown.in_sample == {("긍정", "긍정"): 1}
    assert (agreed_share(shown.everywhere), agreed_share(shown.in_sample)) == (0.5, 1.0)
    assert agreed_share({}) is None
    behind = texts_behind(reviewer, "shown", ("긍정", "부정"), in_sample=False)
    assert [text.text_id for text in behind] == [2]
    assert not texts_behind(reviewer, "shown", ("긍정", "부정"), in_sample=True)
    assert not model_comparison(reviewer, "scores").everywhere
    write_scores(local, "quick-1", [TextScore(text_id=2, priority=1.0, label="부정", score=0.9)])
    assert model_comparison(reviewer, "scores").everywhere == {("부정", "부정"): 1}
    # A decision counts in place of the vote.
    adjudicate(reviewer, 2, ["중립"], request_id="d")
    assert model_comparison(reviewer, "scores").everywhere == {("부정", "중립"): 1}


def test_the_history_of_a_text_has_who_what_and_where_from(make: Make) -> None:
    _, a, _, reviewer = labelled(make)
    save_acts(a, [Act(text_id=4, kind="note", note="<b>**메모**</b>", request_id="n")])
    save_acts(a, [Act(text_id=4, kind="undo", withdraws="가-4-부정", request_id="u")])
    adjudicate(reviewer, 4, ["긍정"], request_id="x")
    history = read_history(reviewer, 4)
    said = [(act.person, act.action, act.labels, act.undone) for act in history.acts]
    assert said == [
        ("가", "label", ("부정",), True),
        ("가", "note", (), False),
        ("가", "undo", (), False),
        ("검수", "decide", ("긍정",), False),
    ]
    assert history.acts[1].note == "<b>**메모**</b>" and history.acts[2].undoes == "label"
    (source,) = history.sources
    assert (source.source, source.place) == ("글.txt", "4")
    assert history.found.adjudicated == ("긍정",) and history.found.votes == ()


def test_typical_words_are_those_of_the_label(make: Make) -> None:
    good = [f"배송이 빨라서 만족합니다 {one}" for one in range(12)]
    bad = [f"고장이 나서 환불했습니다 {one}" for one in range(12)]
    local = make(*good, *bad, people=PEOPLE)
    a = for_person(local, "가")
    assert typical_words(local).words == {}
    for text_id in range(1, 25):
        label(a, text_id, "긍정" if text_id <= 12 else "부정")
    for who in (local, a):
        words = typical_words(who).words
        assert list(words) == ["긍정", "부정"]
        assert "배송" in {one.word for one in words["긍정"].keywords}
        assert {"고장", "환불"} <= {one.word for one in words["부정"].keywords}
    assert typical_words(for_person(local, "나")).words == {}
