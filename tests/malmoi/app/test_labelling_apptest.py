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
from malmoi.labels.projects import ProjectStore, archive, change_settings, set_member
from malmoi.labels.scores import TextScore, write_scores
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


def label(text_id: object, request_id: str, **more: object) -> dict[str, object]:
    whole = {"text_id": text_id, "request_id": request_id, "kind": "label", "labels": ["긍정"]}
    return whole | {"guideline_version": 1} | more


def test_without_a_project_or_texts_the_page_says_what_to_do(workplace: Path) -> None:
    assert "아직 작업이 없습니다" in said()
    access = make(workplace)
    assert "아직 글이 없습니다" in said()
    import_texts(access, [source_of_upload("글.txt", "하나\n둘".encode())])
    assert said() == ""


def test_a_bad_act_among_good_ones_is_refused_alone(workplace: Path) -> None:
    access = make(workplace, "하나", "둘", "셋")
    acts = [label(1, "a"), label(99, "b"), label(2, "c", labels=["없는 것"]), label(3, "d")]
    given = answer(access, read_message(sent(*acts, wants=True)))
    assert given.saved == ["a", "d"] and given.labels == 2 and given.failed is None
    assert [one["id"] for one in given.refused] == ["b", "c"]
    assert "99" in given.refused[0]["reason"]
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
    given = answer(mine, read_message(sent(label(1, "a"), label(2, "b"))))
    assert given.failed and given.saved == given.refused == []
    archive(access)
    given = answer(access, read_message(sent(label(1, "a"), label(2, "b"))))
    assert given.failed and given.saved == given.refused == []
    archive(access, away=False)
    with access.engine.begin() as connection:
        connection.execute(text("ALTER TABLE malmoi_annotations RENAME TO away"))
    given = answer(access, read_message(sent(label(1, "a"))))
    assert given.failed and given.saved == given.refused == []
    # Where the database lies on this machine is not told.
    assert "runs/labels.db" in given.failed and str(workplace) not in given.failed


def test_an_act_is_stored_with_what_was_on_screen(workplace: Path) -> None:
    access = make(workplace, "하나")
    shown = {"label": "부정", "score": 0.75, "model": "m"}
    note = label(1, "b", kind="note", note="<script>", suggestion=None)
    acts = [label(1, "a", suggestion=shown, seconds=1.5), note]
    assert answer(access, read_message(sent(*acts, recent=True))).saved == ["a", "b"]
    with access.reading() as connection:
        names = ("suggested_label", "suggested_score", "suggested_model", "seconds")
        query = select(*(getattr(AnnotationRow, name) for name in names))
        row = connection.execute(query.order_by(AnnotationRow.id)).first()
    assert row == ("부정", 0.75, "m", 1.5)
    assert own_work(access)[0].note == "<script>"


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
        {"kind": "make_admin"},
        {"seconds": "long"},
        {"seconds": -1},
        {"suggestion": {"label": "긍정", "score": 7, "model": "m"}},
        {"suggestion": {"label": "긍정"}},
        {"guideline_version": 9},
        {"request_id": "x" * 200},
    ):
        given = answer(access, read_message(sent(label(1, "a") | values)))
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
    # The one who comes later is told where the texts are, and finds some as soon as there are.
    waiting = answer(second, read_message(sent(wants=True)))
    assert waiting.held == [] and waiting.others == 60 and not waiting.more
    return_leases(first)
    shared = answer(second, read_message(sent(wants=True)))
    assert shared.held is not None and len(shared.held) == 30 and shared.more


def test_a_new_order_is_handed_out_with_its_suggestions(workplace: Path) -> None:
    access = make(workplace, "하나", "둘", "셋")
    assert sorted(answer(access, read_message(sent(wants=True))).held or ()) == [1, 2, 3]
    scores = [TextScore(text_id=one, priority=0.5, label="부정", score=0.9) for one in (1, 2, 3)]
    write_scores(access, "고른 모델", scores)
    given = answer(access, read_message(sent(have=[1, 2, 3])))
    assert given.renewed and {one["model"] for one in given.texts} == {"고른 모델"}
    assert sorted(one["text_id"] for one in given.texts) == [1, 2, 3]
