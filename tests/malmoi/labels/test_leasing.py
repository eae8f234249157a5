"""Texts are handed out by lease: k annotators each, blind, in the order that was asked for."""

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from sqlalchemy import create_engine, func, select, text, update

from malmoi.errors import InputError
from malmoi.labels import access, annotating, leasing, scores
from malmoi.labels.access import ProjectAccess, database_time
from malmoi.labels.annotating import Act, own_work, save_acts
from malmoi.labels.leasing import lease_texts, return_leases, suggestion_of
from malmoi.labels.near_duplicates import acts_of_alike
from malmoi.labels.projects import change_settings
from malmoi.labels.scores import TextScore, random_sample, write_scores
from malmoi.labels.searching import read_model_views
from malmoi.labels.tables import PlaceRow, TextRow, TextScoreRow
from tests.malmoi.labels.at_work import at_once, lease
from tests.malmoi.labels.conftest import Make, for_person


class _AnyMoment(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class Tomorrow(datetime, metaclass=_AnyMoment):
    """The clock of a client that is a day fast."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(days=1)


def label(access: ProjectAccess, text_id: int, name: str = "긍정") -> None:
    request_id = f"{access.person.name}-{text_id}-{name}"
    save_acts(access, [Act(text_id=text_id, kind="label", labels=[name], request_id=request_id)])


def ids(access: ProjectAccess, count: int) -> list[int]:
    return [one.text_id for one in lease_texts(access, count)]


def let_leases_expire(access: ProjectAccess) -> None:
    """As if the seconds of a lease had passed, so that no test races against the clock."""
    with access.writing("admin") as connection:
        lease = timedelta(seconds=access.row(connection)["lease_seconds"])
        (held,) = connection.scalars(select(PlaceRow.expires_at).where(PlaceRow.state == "leased"))
        now = database_time(connection)
        assert held is not None and now < held <= now + lease
        connection.execute(update(PlaceRow).values(expires_at=held - lease))


def test_an_annotator_keeps_the_text_on_screen_until_it_is_labelled(make: Make) -> None:
    access = make("하나", "둘")
    (first,), (again,) = lease_texts(access, 1), lease_texts(access, 1)
    assert first.text_id == again.text_id and first.text == "하나"
    assert again.expires_at >= first.expires_at
    label(access, first.text_id)
    (second,) = lease_texts(access, 1)
    assert second.text == "둘"
    label(access, second.text_id)
    assert not lease_texts(access, 1)


def test_a_text_is_handed_to_as_many_as_its_labels_need(make: Make) -> None:
    local = make("하나", "둘", annotators_per_text=2, people=dict.fromkeys("가나다", "annotator"))
    a, b, c = (for_person(local, name) for name in "가나다")
    assert ids(a, 2) == ids(b, 2) == [1, 2]
    assert ids(c, 2) == []
    label(a, 1)
    assert ids(c, 2) == [] and ids(a, 2) == [2]
    assert return_leases(b, [1]) == 1
    assert ids(c, 2) == [1]
    label(c, 1)
    label(b, 2)
    label(a, 2)
    assert [ids(one, 2) for one in (a, b, c)] == [[], [], []]


def test_a_lease_that_expires_gives_its_place_back(make: Make) -> None:
    local = make("하나", lease_seconds=90, people=dict.fromkeys("가나", "annotator"))
    a, b = (for_person(local, name) for name in "가나")
    assert ids(a, 1) == [1] and ids(b, 1) == []
    let_leases_expire(local)
    assert ids(b, 1) == [1] and ids(a, 1) == []
    # What was labelled after all is not thrown away.
    label(a, 1)
    label(b, 1, "부정")
    assert ids(a, 1) == ids(b, 1) == []


def test_the_clock_of_a_client_does_not_matter(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    local = make("하나", people=dict.fromkeys("가나", "annotator"))
    assert ids(for_person(local, "가"), 1) == [1]
    for module in (access, annotating, leasing):
        monkeypatch.setattr(module, "datetime", Tomorrow)
    assert access.datetime.now(UTC) > datetime.now(UTC) + timedelta(hours=23)
    assert ids(for_person(local, "나"), 1) == []


def test_what_was_skipped_goes_to_others(make: Make) -> None:
    local = make("하나", people=dict.fromkeys("가나", "annotator"))
    a, b = (for_person(local, name) for name in "가나")
    assert ids(a, 1) == [1]
    save_acts(a, [Act(text_id=1, kind="skip", request_id="1")])
    assert ids(a, 1) == [] and ids(b, 1) == [1]


@pytest.mark.parametrize(("needed", "texts"), [(1, 60), (3, 24)])
def test_eight_processes_at_once_fill_each_place_once(
    make: Make, any_url: str, needed: int, texts: int
) -> None:
    people = [f"사람{number}" for number in range(8)]
    lines = [f"글 번호 {number}" for number in range(texts)]
    make(*lines, annotators_per_text=needed, people=dict.fromkeys(people, "annotator"))
    done = at_once(lease, [(any_url, who) for who in people])
    assert all(len(set(one)) == len(one) for one in done)
    labelled = Counter(text_id for one in done for text_id in one)
    assert labelled == dict.fromkeys(range(1, texts + 1), needed)


def test_two_threads_never_get_the_last_place_both(make: Make) -> None:
    people = dict.fromkeys("가나다라", "annotator")
    local = make("하나", "둘", "셋", annotators_per_text=2, people=people)
    label(local, 1)
    label(local, 2)
    label(local, 3)
    barrier = threading.Barrier(4)
    found: list[int] = []

    def take(name: str) -> None:
        barrier.wait()
        found.extend(ids(for_person(local, name), 1))

    threads = [threading.Thread(target=take, args=(name,)) for name in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 2, 3]


def test_scores_order_the_texts_and_what_is_done_is_passed_over(make: Make) -> None:
    access = make("하나", "둘", "셋", "넷", text_order="scores", random_share=0.0)
    assert ids(access, 4) == [1, 2, 3, 4]
    return_leases(access)
    label(access, 3)
    scores = [
        TextScore(text_id=2, priority=0.5, label="긍정", score=0.75),
        TextScore(text_id=3, priority=0.9),
        TextScore(text_id=4, priority=0.7, label="부정", score=0.5),
    ]
    write_scores(access, "빠른 모델", scores)
    leased = lease_texts(access, 3)
    assert [(one.text_id, one.drawn) for one in leased] == [
        (4, "scores"),
        (2, "scores"),
        (1, "plain"),
    ]
    assert (leased[0].suggested_label, leased[0].suggested_score) == ("부정", 0.5)
    change_settings(access, show_suggestion=False)
    assert {one.suggested_label for one in lease_texts(access, 3)} == {None}
    label(access, 4)
    return_leases(access)
    assert ids(access, 1) == [2]
    return_leases(access)
    write_scores(access, "빠른 모델", [TextScore(text_id=1, priority=1.0)])
    assert ids(access, 1) == [1]


def test_wrong_scores_leave_the_order_as_it_was(make: Make) -> None:
    other = make("남의 글", name="다른 것")
    access = make("하나", "둘", text_order="scores", random_share=0.0)
    first, second = ids(access, 2)
    return_leases(access)
    write_scores(access, "m", [TextScore(text_id=second, priority=1.0)])
    for wrong, message in (
        ([TextScore(text_id=first, priority=1.0)] * 2, "found a text twice"),
        ([TextScore(text_id=ids(other, 1)[0], priority=1.0)], "found others among them"),
    ):
        with pytest.raises(InputError, match=message):
            write_scores(access, "m", wrong)
    with pytest.raises(InputError, match="expected a finite priority, found nan"):
        TextScore(text_id=1, priority=float("nan"))
    assert ids(access, 1) == [second]


def test_the_newer_of_two_orders_that_are_written_at_once_holds(make: Make) -> None:
    access = make("하나", "둘", "셋", text_order="scores", random_share=0.0)

    def older() -> Iterator[TextScore]:
        yield from [TextScore(text_id=n, priority=float(-n)) for n in (1, 2, 3)]
        # A second model begins and ends while this one still hands in.
        write_scores(access, "m2", [TextScore(text_id=n, priority=float(n)) for n in (1, 2, 3)])

    with pytest.raises(InputError, match="found a newer one that was written meanwhile"):
        write_scores(access, "m1", older())
    assert ids(access, 3) == [3, 2, 1]


def test_an_order_that_is_half_written_suggests_nothing_yet(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "_ROWS", 1)
    access = make("하나", "둘", text_order="scores", random_share=0.0)

    def of(label: str, *priorities: float) -> Iterator[TextScore]:
        for text_id, priority in enumerate(priorities, 1):
            yield TextScore(text_id=text_id, priority=priority, label=label, score=0.9)

    def newer() -> Iterator[TextScore]:
        yield from of("부정", 0.1, 0.9)
        (leased,) = lease_texts(access, 1)
        assert (leased.text_id, leased.suggested_label, leased.model) == (1, "긍정", "m1")
        assert suggestion_of(access, 1) == ("긍정", "m1")
        assert [one.label for one in read_model_views(access, [1, 2]).values()] == ["긍정"] * 2
        return_leases(access)

    write_scores(access, "m1", of("긍정", 0.9, 0.1))
    write_scores(access, "m2", newer())
    (leased,) = lease_texts(access, 1)
    assert (leased.text_id, leased.suggested_label, leased.model) == (2, "부정", "m2")


def test_a_text_that_is_done_leaves_the_order_and_no_other(make: Make) -> None:
    access = make("하나", "둘", text_order="scores", random_share=0.0)
    write_scores(access, "m", [TextScore(text_id=n, priority=1.0) for n in (1, 2)])
    label(access, 1)
    with access.reading() as connection:
        query = select(TextScoreRow.text_id, TextScoreRow.priority).order_by(TextScoreRow.text_id)
        assert connection.execute(query).all() == [(1, None), (2, 1.0)]


def test_chance_orders_texts_until_enough_of_them_have_labels(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malmoi.labels.leasing.LABELS_BY_CHANCE", 5)
    access = make(*map(str, range(20)), text_order="adaptive", random_share=0.0)
    write_scores(access, "m", [TextScore(text_id=n, priority=float(n)) for n in range(1, 21)])
    drawn = []
    for _ in range(8):
        (leased,) = lease_texts(access)
        drawn.append(leased.drawn)
        label(access, leased.text_id)
    assert drawn == ["random"] * 5 + ["scores"] * 3


def test_a_share_is_drawn_at_random_and_makes_a_random_sample(make: Make) -> None:
    lines = [f"글 번호 {number}" for number in range(400)]
    access = make(*lines, text_order="scores", random_share=0.25)
    # The model wants the texts from the end.
    write_scores(access, "m", [TextScore(text_id=n, priority=float(n)) for n in range(1, 401)])
    assert random_sample(access) == []
    drawn: Counter[str] = Counter()
    for _ in range(3):
        for leased in lease_texts(access, 40):
            drawn[leased.drawn] += 1
            label(access, leased.text_id)
    # 120 draws of 0.25: 30 with a standard deviation of 4.7.
    assert 10 <= drawn["random"] <= 55 and drawn["random"] + drawn["scores"] == 120
    with create_engine(access.engine.url).connect() as connection:
        query = text("SELECT id FROM malmoi_texts ORDER BY lottery")
        by_lottery = [number for (number,) in connection.execute(query)]
        marked = text("SELECT count(*) FROM malmoi_annotations WHERE drawn = 'random'")
        assert connection.scalar(marked) == drawn["random"]
    sample = random_sample(access)
    assert len(sample) >= drawn["random"] and sample == by_lottery[: len(sample)]
    # What the model chose is the end of the file; the sample is of all of it.
    assert min(sample) < 200


def test_what_was_passed_over_comes_at_the_end(make: Make) -> None:
    """Going on from the last text must lose none that was given back or is free again."""
    people = dict.fromkeys("가나", "annotator")
    local = make(*["하나", "둘", "셋", "넷", "다섯"], annotators_per_text=2, people=people)
    mine = for_person(local, "가")
    assert ids(mine, 4) == [1, 2, 3, 4]
    label(mine, 1)
    label(mine, 3)
    assert return_leases(mine) == 2
    assert ids(mine, 3) == [4, 5, 2]


def test_who_comes_late_gets_a_fair_share(make: Make) -> None:
    """The first would hold all of the last texts otherwise, and the others wait for nothing."""
    names = ("지은", "민수", "하늘")
    access = make(
        *[f"글 번호 {number}" for number in range(60)], people=dict.fromkeys(names, "annotator")
    )
    people = [for_person(access, name) for name in names]
    spared = set(ids(people[0], 5)) | {60}

    def piles() -> list[set[int]]:
        return [{one.text_id for one in lease_texts(who, 100, spared=spared)} for who in people]

    assert len(lease_texts(people[0], 100, spared=spared)) == 60
    assert [len(pile) for pile in piles()] == [60, 30, 20]
    shared = piles()
    assert [len(pile) for pile in shared] == [20, 20, 20]
    assert len(set.union(*shared)) == 60 and spared <= shared[0]
    assert not leasing.order_and_hold(people[0], [*spared, *shared[1]])[1]
    # All go on until all is done, and nobody is told that nothing is left before.
    rounds = 0
    while any(shared):
        rounds += 1
        assert all(shared)
        for who, pile in zip(people, shared, strict=True):
            for text_id in list(pile)[:4]:
                label(who, text_id)
        spared = set()
        shared = piles()
    with access.reading() as connection:
        left = connection.scalar(select(func.count()).where(TextRow.is_open))
    assert left == 0 and rounds < 10


def test_all_at_random_is_the_order_of_the_lottery(make: Make) -> None:
    access = make(*[f"글 번호 {number}" for number in range(50)], text_order="random")
    found = ids(access, 50)
    assert sorted(found) == list(range(1, 51)) and found != sorted(found)


def test_what_cannot_be_asked_for_is_refused(make: Make) -> None:
    access = make("글")
    for count in (0, 201):
        with pytest.raises(InputError, match="expected 1 to 200 texts"):
            ids(access, count)


def make_alike(access: ProjectAccess, *ids: int) -> None:
    with access.writing("admin") as connection:
        same = update(TextRow).where(TextRow.id.in_(ids)).values(alike=min(ids))
        connection.execute(same)


@pytest.mark.parametrize("order", ["plain", "scores", "random"])
def test_of_texts_nearly_the_same_the_first_comes_and_the_others_at_the_end(
    make: Make, order: str
) -> None:
    access = make(*"가나다라마", text_order=order, random_share=0.0)
    make_alike(access, 2, 3, 5)
    write_scores(access, "m", [TextScore(text_id=n, priority=float(n)) for n in range(1, 6)])
    first = lease_texts(access, 3)
    assert {one.text_id for one in first} == {1, 2, 4}
    assert {one.text_id: (one.kind, one.alike) for one in first}[2] == (2, 2)
    # Nothing else is left.
    assert sorted(ids(access, 5)) == [1, 2, 3, 4, 5]


def test_texts_nearly_the_same_get_one_label_and_lose_it_together(make: Make) -> None:
    local = make(*"가나다라", people=dict.fromkeys("가나", "annotator"))
    make_alike(local, 1, 2, 4)
    mine, other = for_person(local, "가"), for_person(local, "나")
    label(other, 2)
    act = Act(text_id=1, kind="label", labels=["긍정"], request_id="하나")
    more = acts_of_alike(mine, act)
    assert [(one.text_id, one.request_id) for one in more] == [(4, "하나:4")]
    save_acts(mine, [act, *more])
    # The same request again does nothing more.
    make_alike(local, 1, 2, 3, 4)
    assert acts_of_alike(mine, act) == []
    undo = Act(text_id=1, kind="undo", request_id="둘", withdraws="하나")
    back = acts_of_alike(mine, undo)
    assert [(one.text_id, one.withdraws) for one in back] == [(4, "하나:4")]
    save_acts(mine, [undo, *back])
    assert [one.text_id for one in own_work(mine)] == []


def test_the_random_sample_is_of_texts_that_are_handed_out(make: Make) -> None:
    access = make(*[f"글 번호 {number}" for number in range(20)], text_order="random")
    with access.reading() as connection:
        by_lottery = list(connection.scalars(select(TextRow.id).order_by(TextRow.lottery)))
    # The second in the lottery is nearly the same as the last, and not the first of the two.
    pair = by_lottery[1], by_lottery[-1]
    with access.writing("admin") as connection:
        same = update(TextRow).where(TextRow.id.in_(pair)).values(alike=pair[1])
        connection.execute(same)
    for leased in lease_texts(access, 10):
        label(access, leased.text_id)
    assert random_sample(access) == [by_lottery[0], *by_lottery[2:11]]


def test_a_suggestion_has_a_second_label_and_names_its_model(make: Make) -> None:
    access = make("하나", "둘", text_order="scores", random_share=0.0)
    version = write_scores(access, "m", [TextScore(text_id=1, priority=1, label="긍정", score=0.5)])
    with access.writing("admin") as connection:
        second = update(TextScoreRow).where(TextScoreRow.version == version)
        connection.execute(second.values(second_label="중립", second_score=0.25))
    first, without = lease_texts(access, 2)
    assert (first.second_label, first.second_score, first.model) == ("중립", 0.25, "m")
    assert (without.suggested_label, without.model) == (None, None)
    assert suggestion_of(access, 1) == ("긍정", "m") and suggestion_of(access, 2) is None
    change_settings(access, show_suggestion=False)
    assert suggestion_of(access, 1) is None


@pytest.mark.parametrize("order", ["scores", "random"])
def test_with_two_annotators_an_order_goes_on_and_loses_none(make: Make, order: str) -> None:
    people = dict.fromkeys("가나", "annotator")
    lines = [f"글 번호 {number}" for number in range(30)]
    local = make(*lines, annotators_per_text=2, text_order=order, random_share=0.0, people=people)
    write_scores(local, "m", [TextScore(text_id=n, priority=float(n)) for n in range(1, 31)])
    mine = for_person(local, "가")
    done = []
    while leased := lease_texts(mine, 4):
        # The last of each batch is given back, and comes at the end.
        for one in leased[: max(1, len(leased) - 1)]:
            label(mine, one.text_id)
            done.append(one.text_id)
        return_leases(mine)
    assert sorted(done) == list(range(1, 31))


def test_what_is_left_is_what_this_annotator_could_label(make: Make) -> None:
    access = make(
        *[f"글 번호 {number}" for number in range(5)],
        annotators_per_text=2,
        people=dict.fromkeys(("지은", "민수"), "annotator"),
    )
    first, second = for_person(access, "지은"), for_person(access, "민수")
    assert len(lease_texts(second, 5)) == 5
    for text_id in range(1, 5):
        label(first, text_id)
    # The one that is left waits for both; the others are no work of the first any more.
    assert leasing.count_left(first, 10) == 1 and leasing.count_held_by_others(first) == 1
    label(first, 5)
    assert leasing.count_left(first, 10) == leasing.count_held_by_others(first) == 0


def test_a_text_that_has_closed_is_held_no_more(make: Make) -> None:
    access = make("하나", "둘", people=dict.fromkeys(("지은", "민수"), "annotator"))
    first, second = for_person(access, "지은"), for_person(access, "민수")
    assert len(lease_texts(first, 2)) == 2
    label(second, 1)
    assert [one.text_id for one in lease_texts(first, 2)] == [2]
    assert leasing.count_left(first, 10) == 1
