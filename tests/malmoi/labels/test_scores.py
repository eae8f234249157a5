"""What a model writes beside the order of texts, and reads to learn from; both databases."""

import unicodedata
from dataclasses import replace

import pytest
from sqlalchemy import select

from malmoi.errors import InputError
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.leasing import lease_texts
from malmoi.labels.near_duplicates import group_alike
from malmoi.labels.people import AccessError
from malmoi.labels.projects import change_labels, change_settings, read_project
from malmoi.labels.review import adjudicate
from malmoi.labels.scores import (
    ModelQuality,
    OutdatedOrderError,
    TextScore,
    random_sample,
    score_versions,
    write_scores,
)
from malmoi.labels.tables import ScoreVersionRow, TextRow, TextScoreRow
from malmoi.labels.training_texts import labelled_texts, texts_to_choose_from
from tests.malmoi.labels.conftest import Make, for_person


def test_second_label_and_doubt_are_written(make: Make) -> None:
    access = make("하나", "둘")
    scores = [
        TextScore(
            text_id=1,
            priority=0.5,
            label="긍정",
            score=0.6,
            second_label="부정",
            second_score=0.3,
        ),
        TextScore(text_id=2, priority=None, doubt=0.9),
    ]
    write_scores(access, "m", scores)
    with access.reading() as connection:
        rows = connection.execute(select(TextScoreRow.__table__).order_by(TextScoreRow.text_id))
        first, second = rows.mappings()
    assert (first["second_label"], first["second_score"], first["doubt"]) == ("부정", 0.3, None)
    assert (second["priority"], second["doubt"]) == (None, 0.9)


def test_every_model_that_was_measured_is_a_point_of_the_curve(make: Make) -> None:
    access = make("하나", "둘", people={"가나": "annotator"})
    write_scores(access, "m1", [TextScore(text_id=1, priority=1.0)], ModelQuality(labels=20))
    write_scores(access, "by hand", [])
    quality = ModelQuality(
        labels=40, cross_validated_f1=0.5, sample_f1=0.6, sample_texts=30, chosen_f1=0.7
    )
    write_scores(access, "m2", [], quality)
    assert [point.model for point in score_versions(access, newest=1)] == ["m2"]
    points = score_versions(for_person(access, "가나"))
    assert [point.model for point in points] == ["m1", "m2"]
    assert points[1].quality == quality
    with pytest.raises(AccessError):
        score_versions(for_person(access, "남"))


def test_a_model_that_failed_is_no_point_of_the_curve(make: Make) -> None:
    access = make("하나")
    with pytest.raises(InputError, match="found others among them"):
        write_scores(access, "m", [TextScore(text_id=99, priority=1.0)], ModelQuality(labels=20))
    assert score_versions(access) == []
    with access.reading() as connection:
        assert connection.scalars(select(ScoreVersionRow.id)).all() == []


def test_scores_out_of_bounds_are_refused() -> None:
    for name in ("score", "second_score", "doubt"):
        for value in (-0.1, 1.1, float("nan")):
            with pytest.raises(InputError, match=f"expected a {name} from 0 to 1"):
                TextScore(text_id=1, priority=1.0, **{name: value})
            with pytest.raises(InputError, match="expected a sample_f1 from 0 to 1"):
                ModelQuality(labels=1, sample_f1=value)


def label(make_access: object, text_id: int, name: str) -> None:
    person = make_access.person.name  # type: ignore[attr-defined]
    act = Act(text_id=text_id, kind="label", labels=[name], request_id=f"{person}-{text_id}")
    save_acts(make_access, [act])  # type: ignore[arg-type]


def test_a_model_learns_from_what_is_decided(make: Make) -> None:
    people = {name: "reviewer" for name in ("가", "나", "다")}
    access = make("하나", "둘", "셋", "넷", people=people, annotators_per_text=3)
    for who, labels in {"가": "긍정 긍정 긍정", "나": "긍정 긍정 부정", "다": "긍정 부정"}.items():
        for text_id, name in enumerate(labels.split(), 1):
            label(for_person(access, who), text_id, name)
    found = {one.text_id: one.labels for one in labelled_texts(access)}
    # All agree, two of three do, and the third text is one against one.
    assert found == {1: ("긍정",), 2: ("긍정",)}
    reviewer = for_person(access, "가")
    adjudicate(reviewer, 2, ["중립"], request_id="a2")
    adjudicate(reviewer, 3, ["부정"], request_id="a3")
    assert {one.text_id: one.labels for one in labelled_texts(access)} == {
        1: ("긍정",),
        2: ("중립",),
        3: ("부정",),
    }
    assert [one.text for one in labelled_texts(access)] == ["하나", "둘", "셋"]
    adjudicate(reviewer, 3, None, request_id="a4")
    assert len(labelled_texts(access)) == 2


def test_texts_to_choose_from_are_open_and_bounded(make: Make) -> None:
    access = make(*[f"글 번호 {number}" for number in range(300)])
    label(access, 1, "긍정")
    everything = texts_to_choose_from(access, 1_000)
    assert sorted(everything) == list(range(2, 301))
    assert everything[300] == "글 번호 299"
    held = {text.text_id for text in lease_texts(access, 5)}
    wanted = [TextScore(text_id=n, priority=float(n)) for n in range(291, 301)]
    write_scores(access, "m", wanted)
    some = texts_to_choose_from(access, 100)
    assert len(some) <= 100
    # What is on a screen, and what the last model wanted most.
    assert held | set(range(291, 301)) <= set(some)


def test_what_was_skipped_does_not_end_the_random_sample(make: Make) -> None:
    access = make(*[f"글 {number}" for number in range(10)])
    with access.reading() as connection:
        order = list(connection.scalars(select(TextRow.id).order_by(TextRow.lottery)))
    for place, text_id in enumerate(order[:5]):
        kind = "skip" if place == 1 else "label"
        labels = [] if kind == "skip" else ["긍정"]
        save_acts(
            access,
            [Act(text_id=text_id, kind=kind, labels=labels, request_id=str(place))],  # type: ignore[arg-type]
        )
    label(access, order[7], "부정")
    assert random_sample(access) == [order[place] for place in (0, 2, 3, 4)]


def test_nearly_equal_texts_get_the_id_of_their_first(make: Make) -> None:
    """200 texts: 40 sentences, each in other spacing, decomposed, and with one that is another."""
    lines = []
    for number in range(40):
        sentence = f"{_words(number)} 물건을 샀는데 배송이 빠르고 포장도 꼼꼼해서 마음에 들었습니다"
        lines += [
            sentence,
            sentence.replace("배송이 ", "배송이"),
            unicodedata.normalize("NFD", sentence.replace("물건을 ", "물건을  ")),
            sentence.replace("포장도 꼼꼼해서", "포장도꼼꼼해서").replace("샀는데", "샀는데 "),
            f"{_words(number)} 환불해 달라고 했더니 {_words(number + 40)} 답이 없네요",
        ]
    access = make(*lines)
    with access.reading() as connection:
        texts = dict(connection.execute(select(TextRow.id, TextRow.text)).tuples().all())
    copies = group_alike(access)
    with access.reading() as connection:
        alike = dict(connection.execute(select(TextRow.id, TextRow.alike)).tuples().all())
    groups: dict[int, set[str]] = {}
    for text_id, first in alike.items():
        if first is not None:
            groups.setdefault(first, set()).add("".join(texts[text_id].split()))
    # Decomposed ones are equal to the first once they are clean, and were one text from the start.
    assert len(texts) == 40 * 4
    assert copies == 40 * 2
    assert len(groups) == 40
    assert all(
        len({unicodedata.normalize("NFC", one) for one in same}) == 1 for same in groups.values()
    )
    assert all(first == min(one for one, of in alike.items() if of == first) for first in groups)
    assert group_alike(access) == copies

    # Only the first of a group is one to choose, and a text that stands for none is alone.
    assert len(texts_to_choose_from(access, 1_000)) == 80


def _words(number: int) -> str:
    """Different for each number, and alike no other's."""
    syllables = "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허고노도로모보소오조초코토"
    return " ".join(
        syllables[(number * step + shift) % 40] * 2 for step, shift in ((1, 0), (7, 3), (11, 9))
    )


def test_suggestions_follow_a_renamed_label_and_forget_a_retired_one(make: Make) -> None:
    access = make("하나", "둘", "셋", labels="긍정,부정,중립")
    said = [("긍정", "부정"), ("부정", "중립"), ("중립", "긍정")]
    scores = [
        TextScore(text_id=place, priority=0.5, label=first, score=0.6, second_label=second)
        for place, (first, second) in enumerate(said, 1)
    ]
    write_scores(access, "quick-20", scores)
    good, bad, neutral = read_project(access).labels
    swapped = [
        replace(good, name="부정"),
        replace(bad, name="긍정"),
        replace(neutral, retired=True),
    ]
    change_labels(access, swapped)
    leased = {one.text_id: one for one in lease_texts(access, 3)}
    assert [(leased[1].suggested_label, leased[1].second_label)] == [("부정", "긍정")]
    assert [(leased[2].suggested_label, leased[2].second_label)] == [("긍정", None)]
    assert leased[3].suggested_label is None


def test_an_order_of_other_labels_or_of_a_model_no_longer_chosen_is_refused(make: Make) -> None:
    """Both may change while the model computes."""
    access = make("하나", "둘", labels="긍정,부정")
    began = read_project(access)
    scores = [TextScore(text_id=1, priority=0.5, label="긍정", score=0.9)]
    assert write_scores(access, "quick-20", scores, project=began) == 1
    good, bad = began.labels
    change_labels(access, [replace(good, name="부정"), replace(bad, name="긍정")])
    with pytest.raises(OutdatedOrderError, match="labels"):
        write_scores(access, "quick-40", scores, project=began)
    now = read_project(access)
    change_settings(access, model="다른 모델")
    with pytest.raises(OutdatedOrderError, match="model"):
        write_scores(access, "quick-40", scores, project=now)
    # What held goes on to hold, by the new name.
    assert lease_texts(access, 1)[0].suggested_label == "부정"
