"""The labelling page without a browser: what it says where there is nothing to label, and what the
server does with what a card sends."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, text
from streamlit.testing.v1 import AppTest

from malmoi.app.labelling.card_server import answer
from malmoi.app.labelling.messages import read_message
from malmoi.app.projects.imports import ImportOrder, start_import
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import own_work
from malmoi.labels.importing import WayOfReading
from malmoi.labels.leasing import return_leases
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import (
    ProjectStore,
    archive,
    change_labels,
    change_settings,
    read_project,
    set_member,
)
from malmoi.labels.scores import TextScore, write_scores
from malmoi.labels.stored_text import sha256_of
from malmoi.labels.tables import AnnotationRow
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import source_of_upload

PAGE = """
import streamlit as st
from malmoi.app.visit import draw_sidebar
from malmoi.app.views.labelling import show
show(draw_sidebar())
"""


def make(workplace: Path, *texts: str) -> ProjectAccess:
    store = ProjectStore(f"sqlite:///{workplace / 'runs' / 'labels.db'}")
    labels = [ProjectLabel(name=name) for name in ("긍정", "부정")]
    access = store.create(
        Person(name="local", is_local=True), NewProject(name="리뷰", labels=labels)
    )
    if texts:
        import_texts(access, [source_of_upload("글.txt", "\n".join(texts).encode())])
    return access


def said() -> str:
    page = AppTest.from_string(PAGE, default_timeout=600).run()
    assert not page.exception
    return "\n".join(str(one.value) for one in page.info)


def test_who_is_one_of_several_annotators_gives_a_name_first(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two of them would count as one, and agree with themselves."""
    access = make(workplace, "하나", "둘")
    assert "이름을 적으면" not in said()
    change_settings(access, annotators_per_text=2)
    assert "이름을 적으면" in said()
    page = AppTest.from_string(PAGE, default_timeout=600).run()
    page.text_input[0].input("지은").run()
    assert not page.exception and not page.info


def test_how_an_import_ended_is_told_to_who_began_it_and_to_nobody_else_who_labels(
    workplace: Path,
) -> None:
    access = make(workplace, "하나")
    order = ImportOrder(groups=[(WayOfReading(), [source_of_upload("더.txt", "둘".encode())])])
    for name, told in (("local", 1), ("지은", 0)):
        other = replace(access, person=Person(name=name, is_local=True))
        running = start_import(other, order)
        assert running.wait(120) and running.error is None
        page = AppTest.from_string(PAGE, default_timeout=600).run()
        assert not page.exception and len(page.success) == told
        assert "라벨링하기" not in [button.label for button in page.button]


def sent(*acts: dict[str, object], **more: object) -> dict[str, object]:
    return {"sequence": 1, "scope": "s", "acts": list(acts), **more}


def label(text_id: int, text: str, request_id: str, **more: object) -> dict[str, object]:
    """A label of the text that was on screen as this one."""
    whole = {"text_id": text_id, "sha256": sha256_of(text), "request_id": request_id}
    whole |= {"kind": "label", "labels": [{"id": 1, "name": "긍정"}], "guideline_version": 1}
    return whole | more


def test_without_a_project_or_texts_the_page_says_what_to_do(workplace: Path) -> None:
    assert "아직 작업이 없습니다" in said()
    access = make(workplace)
    assert "아직 글이 없습니다" in said()
    import_texts(access, [source_of_upload("글.txt", "하나\n둘".encode())])
    assert said() == ""


def test_a_bad_act_among_good_ones_is_refused_alone(workplace: Path) -> None:
    access = make(workplace, "하나", "둘", "셋")
    acts = [
        label(1, "하나", "a"),
        label(99, "둘", "b"),
        label(2, "둘", "c", labels=[{"id": 9, "name": "없는 것"}]),
        label(2, "하나", "other text"),
        label(2, "둘", "of an earlier version", labels=["긍정"]),
        {key: value for key, value in label(2, "둘", "without").items() if key != "sha256"},
        label(3, "셋", "d"),
    ]
    given = answer(access, read_message(sent(*acts, wants=True)))
    assert given.saved == ["a", "d"] and given.labels == 2 and given.failed is None
    reasons = {one["id"]: one["reason"] for one in given.refused}
    assert set(reasons) == {"b", "c", "other text", "of an earlier version", "without"}
    assert "99" in reasons["b"] and "없는 것" in reasons["c"]
    assert "이제 다른 글이" in reasons["other text"] and "이전 버전" in reasons["without"]
    assert given.held == [2]
    # The same message again, as when its answer was lost.
    again = answer(access, read_message(sent(*acts)))
    assert again.saved == ["a", "d"] and again.labels == 0


def test_what_may_be_taken_later_is_kept_by_the_card(workplace: Path) -> None:
    access = make(workplace, "하나", "둘")
    set_member(access, "지은", "annotator")
    mine = ProjectAccess(
        engine=access.engine, project_id=access.project_id, person=Person(name="지은")
    )
    set_member(access, "지은", None)
    acts = [label(1, "하나", "a"), label(2, "둘", "b")]
    given = answer(mine, read_message(sent(*acts)))
    assert given.failed and given.saved == given.refused == []
    archive(access)
    given = answer(access, read_message(sent(*acts)))
    assert given.failed and given.saved == given.refused == []
    archive(access, away=False)
    with access.engine.begin() as connection:
        connection.execute(text("ALTER TABLE malmoi_annotations RENAME TO away"))
    given = answer(access, read_message(sent(acts[0])))
    assert given.failed and given.saved == given.refused == []
    # Where the database lies on this machine is not told.
    assert "runs/labels.db" in given.failed and str(workplace) not in given.failed


def test_an_act_is_stored_with_what_was_on_screen(workplace: Path) -> None:
    access = make(workplace, "하나")
    write_scores(access, "m", [TextScore(text_id=1, priority=1, label="부정", score=0.75)])
    offer = answer(access, read_message(sent(wants=True))).texts[0]["offer"]
    note = label(1, "하나", "b", kind="note", note="<script>")
    acts = [label(1, "하나", "a", offer=offer, seconds=0.5), note]
    assert answer(access, read_message(sent(*acts, recent=True))).saved == ["a", "b"]
    assert stored(access)["a"] == ("부정", 0.75, "m", 0.5)
    assert own_work(access)[0].note == "<script>"


def stored(access: ProjectAccess) -> dict[str, tuple[object, ...]]:
    """What the log has of the suggestion and the seconds, by request."""
    names = ("suggested_label", "suggested_score", "suggested_model", "seconds")
    query = select(AnnotationRow.request_id, *(getattr(AnnotationRow, name) for name in names))
    with access.reading() as connection:
        return {row[0]: tuple(row[1:]) for row in connection.execute(query)}


def test_a_browser_invents_neither_suggestion_nor_seconds(workplace: Path) -> None:
    access = make(workplace, "하나", "둘")
    scores = [TextScore(text_id=one, priority=1, label="부정", score=0.75) for one in (1, 2)]
    write_scores(access, "m", scores)
    texts = answer(access, read_message(sent(wants=True))).texts
    mine, other = (one["offer"] for one in sorted(texts, key=lambda one: one["text_id"]))
    # Asked for by somebody else, who has not been offered this.
    colleague = replace(access, person=Person(name="지은", is_local=True))
    shown = {"label": "긍정", "score": 0.99, "model": "n"}
    acts = [
        label(1, "하나", "invented", suggestion=shown, seconds=5),
        label(1, "하나", "of another text", offer=other, seconds=5),
        label(1, "하나", "changed", offer=mine[:-2] + "xx", seconds=5),
    ]
    answer(access, read_message(sent(*acts, label(1, "하나", "long", offer=mine, seconds=3_000))))
    answer(colleague, read_message(sent(label(1, "하나", "of another", offer=mine, seconds=5))))
    found = stored(access)
    assert found.pop("long")[-1] < 60  # no longer than the text has been there
    assert len(found) == 4 and set(found.values()) == {(None, None, None, None)}


def test_a_label_keeps_its_id_whatever_it_is_called_by_now(workplace: Path) -> None:
    """Two labels that swap their names, one that gets another; an id that is another label's."""
    access = make(workplace, *(f"글 {number}" for number in range(4)))
    shown = [{"id": one.id, "name": one.name} for one in read_project(access).labels]
    first, second = read_project(access).labels
    swapped = [replace(first, name=second.name), replace(second, name=first.name)]
    change_labels(access, swapped)
    acts = [label(n, f"글 {n - 1}", f"r{n}", labels=[shown[n % 2]]) for n in (1, 2)]
    assert answer(access, read_message(sent(*acts))).saved == ["r1", "r2"]
    assert {one.text_id: one.labels for one in own_work(access)} == {1: ("긍정",), 2: ("부정",)}
    change_labels(access, [swapped[0], replace(swapped[1], name="좋음")])
    assert answer(access, read_message(sent(label(3, "글 2", "r3", labels=[shown[1]])))).saved
    assert own_work(access)[0].labels == ("좋음",)
    strange = label(4, "글 3", "r4", labels=[{"id": first.id, "name": "환불"}])
    (refused,) = answer(access, read_message(sent(strange))).refused
    assert "‘환불’ 라벨은 이제" in refused["reason"]


def test_what_is_no_message_is_refused() -> None:
    for message in (
        None,
        [],
        "exchange",
        {"sequence": 1, "scope": "s"},
        {"sequence": "1", "scope": "s", "acts": []},
        {"sequence": 1, "scope": None, "acts": []},
        {"sequence": 1, "scope": "s", "acts": [1]},
        {"sequence": 1, "scope": "s", "acts": [{"text_id": 1}]},
        {"sequence": 1, "scope": "s", "acts": [{"request_id": "a"}] * 501},
    ):
        with pytest.raises(InputError, match="expected"):
            read_message(message)


def test_a_forged_value_is_refused_and_told(workplace: Path) -> None:
    access = make(workplace, "하나")
    for values in (
        {"text_id": 2**40},
        {"text_id": True},
        {"labels": "긍정"},
        {"labels": [1]},
        {"labels": [{"id": "1", "name": "긍정"}]},
        {"sha256": 1},
        {"kind": "make_admin"},
        {"seconds": "long"},
        {"seconds": -1},
        {"guideline_version": 9},
        {"request_id": "x" * 200},
    ):
        given = answer(access, read_message(sent(label(1, "하나", "a") | values)))
        assert len(given.refused) == 1 and given.saved == [], values
        assert own_work(access) == [], values


def test_who_labels_alone_holds_all_and_two_share_what_is_left(workplace: Path) -> None:
    access = make(workplace, *(f"글 번호 {number}" for number in range(60)))
    first, second = (
        ProjectAccess(
            engine=access.engine,
            project_id=access.project_id,
            person=Person(name=name, is_local=True),
        )
        for name in ("지은", "민수")
    )
    given = answer(first, read_message(sent(wants=True)))
    assert given.held is not None and len(given.held) == 60
    # The one who comes later waits for nothing, and the first is told what is still theirs.
    have = [{"text_id": one["text_id"], "sha256": one["sha256"]} for one in given.texts]
    shared = answer(second, read_message(sent(wants=True)))
    assert shared.held is not None and len(shared.held) == 30
    left = answer(first, read_message(sent(have=have)))
    assert left.held is not None and {*left.held} == {*given.held} - {*shared.held}
    return_leases(first)
    rest = answer(second, read_message(sent(wants=True)))
    assert rest.held is not None and len(rest.held) == 60 and not rest.more


def test_a_new_order_is_handed_out_with_its_suggestions(workplace: Path) -> None:
    access = make(workplace, "하나", "둘", "셋")
    texts = answer(access, read_message(sent(wants=True))).texts
    have = [{"text_id": one["text_id"], "sha256": one["sha256"]} for one in texts]
    assert sorted(one["text_id"] for one in have) == [1, 2, 3]
    # A text that the card has under this id, and that is another, comes anew.
    other = [*have[:2], have[2] | {"sha256": sha256_of("옛글")}]
    (came,) = answer(access, read_message(sent(wants=True, have=other))).texts
    assert came["text_id"] == have[2]["text_id"]
    scores = [TextScore(text_id=one, priority=0.5, label="부정", score=0.9) for one in (1, 2, 3)]
    write_scores(access, "고른 모델", scores)
    given = answer(access, read_message(sent(have=have)))
    assert given.renewed and {one["model"] for one in given.texts} == {"고른 모델"}
    assert sorted(one["text_id"] for one in given.texts) == [1, 2, 3]
