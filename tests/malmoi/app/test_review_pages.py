"""검수, 살펴보기 and 현황 through Streamlit's own test runner, with a real database."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from sqlalchemy import event, update
from sqlalchemy.pool import Pool
from streamlit.testing.v1 import AppTest

from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, Suggestion, save_acts
from malmoi.labels.bulk_labels import save_acts_of_others
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import (
    ProjectStore,
    archive,
    change_guideline,
    change_labels,
    change_settings,
    read_project,
    set_member,
)
from malmoi.labels.relabelling import relabel
from malmoi.labels.review import adjudicate, latest_decisions, texts_to_review
from malmoi.labels.scores import TextScore, write_scores
from malmoi.labels.searching import Search
from malmoi.labels.tables import TextRow
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import source_of_upload

LOCAL = Person(name="관리자", is_local=True)
EVIL = "<script>alert(1)</script> **굵게** [링크](http://x) $x^2$ :red[빨강]"
TODAY, A_DAY = date.today(), timedelta(days=1)
TEXTS = ("배송이 빨라요", "그냥 그래요", EVIL, "다시는 안 사요", "아직 라벨 없음")


def draw(module: str, name: str | None) -> None:
    """The script of AppTest: one page, for somebody who has logged in or for a local person."""
    import importlib

    from malmoi.app.visit import draw_sidebar
    from malmoi.labels.people import Person

    person = None if name is None else Person(name=name)
    importlib.import_module(f"malmoi.app.views.{module}").show(draw_sidebar(person))


def draw_text_one() -> None:
    """The history of the first text of the only project."""
    from malmoi.app.exploring.one_text import draw_history
    from malmoi.app.visit import draw_sidebar

    opened = draw_sidebar(None).open_project
    assert opened is not None
    draw_history(opened, 1)


def page(module: str, name: str | None = None) -> AppTest:
    shown = AppTest.from_function(draw, default_timeout=600, args=(module, name)).run()
    assert not shown.exception
    return shown


def words_of(shown: AppTest) -> str:
    parts = [*shown.error, *shown.warning, *shown.info, *shown.success, *shown.text]
    parts += [*shown.caption, *shown.metric]
    return "\n".join(f"{getattr(part, 'label', '')} {part.value}" for part in parts)


def button(shown: AppTest, words: str):  # type: ignore[no-untyped-def]
    return next(one for one in shown.button if words in one.label)


def as_member(access: ProjectAccess, name: str) -> ProjectAccess:
    person = Person(name=name)
    return ProjectAccess(engine=access.engine, project_id=access.project_id, person=person)


@pytest.fixture
def project(workplace: Path) -> Iterator[ProjectAccess]:
    """Two annotators who differ on the second and the third of five texts."""
    st.cache_resource.clear()
    access = ProjectStore().create(
        LOCAL,
        NewProject(
            name="리뷰 *감정*",
            labels=[ProjectLabel(name=one) for one in ("긍정", "부정", "중립")],
            guideline="# 기준\n주된 대상을 봅니다.",
            settings=ProjectSettings(annotators_per_text=2),
        ),
    )
    for name, role in (("지은", "annotator"), ("**민수**", "annotator"), ("보람", "reviewer")):
        set_member(access, name, role)  # type: ignore[arg-type]
    lines = "\n".join(TEXTS).encode()
    import_texts(access, [source_of_upload("<b>글</b>.txt", lines)])
    given = {"지은": "긍정 긍정 긍정 부정", "**민수**": "긍정 부정 중립 부정"}
    for name, labels in given.items():
        for text_id, label in enumerate(labels.split(), 1):
            save_acts(
                as_member(access, name),
                [
                    Act(
                        text_id=text_id,
                        kind="label",
                        labels=[label],
                        request_id=f"{name}{text_id}",
                        suggestion=Suggestion(label="긍정", score=0.8, model="x"),
                        seconds=2.0,
                    )
                ],
            )
    act = Act(text_id=3, kind="note", note=f"메모 {EVIL}", request_id="n")
    save_acts(as_member(access, "지은"), [act])
    yield access
    st.cache_resource.clear()


def test_what_is_saved_is_the_text_on_screen_though_the_queue_has_moved(
    project: ProjectAccess,
) -> None:
    shown = page("review")
    assert "그냥 그래요" in words_of(shown)
    adjudicate(project, 2, ["긍정"], request_id="another reviewer")
    button(shown, "부정").click().run()
    assert "저장하지 못했습니다" in shown.error[0].value
    assert [(one.text_id, one.adjudicated) for one in latest_decisions(project)] == [(2, ("긍정",))]
    button(shown, "결정하지 않고 다음").click().run()
    assert EVIL in [one.value for one in shown.text]


def test_a_text_that_another_reviewer_decides_stays_on_screen(project: ProjectAccess) -> None:
    shown = page("review")
    adjudicate(project, 2, ["긍정"], request_id="another reviewer")
    # As whatever draws the page anew: a note, or the first of several labels.
    shown.text_area[0].input("까닭").run()
    assert "그냥 그래요" in words_of(shown) and "목록에서 빠졌습니다" in words_of(shown)
    button(shown, "부정").click().run()
    assert [(one.text_id, one.adjudicated) for one in latest_decisions(project)] == [(2, ("부정",))]
    assert EVIL in words_of(shown) and "빠졌습니다" not in words_of(shown)
    # The last one of the queue, which is gone past.
    adjudicate(project, 3, ["긍정"], request_id="another reviewer again")
    shown.run()
    button(shown, "결정하지 않고 다음").click().run()
    assert "검수할 글이 없습니다" in words_of(shown)


def test_the_queue_is_gone_through_without_deciding(project: ProjectAccess) -> None:
    shown = page("review")
    button(shown, "결정하지 않고 다음").click().run()
    assert EVIL in [one.value for one in shown.text]
    button(shown, "이전").click().run()
    assert "그냥 그래요" in [one.value for one in shown.text]
    pairs = next(one for one in shown.selectbox if one.label == "갈린 라벨")
    assert pairs.options[1:] == ["긍정 ↔ 부정 1건", "긍정 ↔ 중립 1건"]
    pairs.select_index(2).run()
    assert EVIL in [one.value for one in shown.text]
    for text in texts_to_review(project):
        adjudicate(project, text.text_id, ["긍정"], request_id=str(text.text_id))
    assert "검수할 글이 없습니다" in words_of(page("review"))
    act = Act(text_id=5, kind="flag", flagged=True, request_id="flag")
    save_acts(as_member(project, "지은"), [act])
    assert TEXTS[4] in words_of(page("review"))  # a page begins with what waits


def test_an_annotator_is_told_in_one_line_that_others_review(project: ProjectAccess) -> None:
    shown = page("review", "지은")
    assert [one.value.startswith("검수는 검수자와 관리자만") for one in shown.info] == [True]
    assert not shown.button and "그냥 그래요" not in words_of(shown)
    for part in ("agreement", "model"):
        shown = page("status", "지은")
        shown.button_group(key="status_part").set_value(part).run()
        assert "검수자와 관리자만" in words_of(shown) and not shown.dataframe


def test_an_annotator_explores_own_labels_only(project: ProjectAccess) -> None:
    adjudicate(project, 2, ["중립"], request_id="d")
    mine = page("explore", "지은").dataframe[0].value
    assert mine["label"].tolist() == ["긍정", "긍정", "긍정", "부정", ""]
    everybody = page("explore", "보람").dataframe[0].value
    assert everybody["label"].tolist() == ["긍정", "✓ 중립", "중립 ↔ 긍정", "부정", ""]
    shown = page("explore", "지은")
    assert not [one for one in shown.button if "라벨 정하기" in one.label]
    assert not [one for one in shown.selectbox if one.label == "라벨을 붙인 사람"]


def found_by(shown: AppTest, **fields: object) -> list[int]:
    """The ids of the texts that are found once these fields are filled in, others at their
    beginning; they stand in the table by their words."""
    for name, value in fields.items():
        shown.session_state[f"explore_{name}"] = value
    shown.run()
    assert not shown.exception and not shown.error
    texts = shown.dataframe[0].value["text"].tolist() if shown.dataframe else []
    return [TEXTS.index(text) + 1 for text in texts]


def test_a_reviewer_finds_texts_by_each_filter(project: ProjectAccess) -> None:
    adjudicate(project, 2, ["부정"], request_id="d")
    save_acts(as_member(project, "지은"), [Act(text_id=4, kind="flag", request_id="f")])
    scores = [
        TextScore(text_id=1, priority=1.0, label="부정", score=0.55),
        TextScore(text_id=5, priority=0.5, label="긍정", score=0.9),
    ]
    write_scores(project, "quick-1", scores)
    shown = page("explore", "보람")
    assert found_by(shown) == [1, 2, 3, 4, 5] and "필터" not in words_of(shown)
    for fields, ids, told in (
        ({"label": "부정"}, [2, 4], "라벨 부정"),
        ({"suggested": "부정"}, [1], "제안 부정"),
        ({"scores": (60, 100)}, [5], r"점수 60–100\%"),
        ({"scores": (0, 60)}, [1], r"점수 0–60\%"),
        ({"annotator": "지은", "label": "긍정"}, [1, 2, 3], "사람 지은"),
        ({"annotator": "보람"}, [], "사람 보람"),
        ({"flagged": True}, [4], "표시"),
        ({"noted": True}, [3], "메모"),
        ({"source": " 다른 파일 "}, [], "파일 다른 파일"),
        ({"source": "글</b>.txt"}, [1, 2, 3, 4, 5], "파일"),
        ({"random": True}, [], "무작위"),
        ({"dates": (date(2020, 1, 1), date(2020, 1, 2))}, [], "날짜 정함"),
        ({"dates": (TODAY - A_DAY, TODAY + A_DAY)}, [1, 2, 3, 4], "날짜 정함"),
        ({"state": "disagreeing"}, [3], None),
        ({"state": "decided"}, [2], None),
        ({"state": "open"}, [5], None),
        ({"order": "surest"}, [5, 1], None),
        ({"order": "least sure"}, [1, 5], None),
        ({"order": "newest"}, [4, 3, 2, 1], None),
    ):
        stays = "state" in fields or "order" in fields
        if stays:
            shown = page("explore", "보람")
        # What narrows stands in view, for the fields themselves are behind a button.
        assert found_by(shown, **fields) == ids
        assert told is None or told in words_of(shown), fields
        button(shown, "필터 지우기").click().run()
        if not stays:
            assert found_by(shown) == [1, 2, 3, 4, 5] and "필터" not in words_of(shown), fields


def test_what_was_found_is_counted_anew_after_a_bulk_change(project: ProjectAccess) -> None:
    lines = "\n".join(f"{number}번 글" for number in range(1, 61)).encode()
    import_texts(project, [source_of_upload("더.txt", lines)])
    shown = page("explore", "보람")
    shown.selectbox(key="explore_state").set_value("open").run()
    assert "61건 가운데 1~50" in words_of(shown)
    # The dialog is not drawn by AppTest without its fragment: this is what it does.
    for text_id in range(7, 12):
        for name in ("지은", "**민수**"):
            act = Act(text_id=text_id, kind="label", labels=["긍정"], request_id=f"{name}{text_id}")
            save_acts(as_member(project, name), [act])
    shown.session_state["explore_bulk_done"] = (project.project_id, "5건을 긍정으로 정했습니다.")
    shown.run()
    assert "56건 가운데 1~50" in words_of(shown)


@pytest.mark.parametrize("module", ["explore", "review"])
def test_a_choice_of_rows_holds_as_long_as_the_same_texts_stand_in_them(
    project: ProjectAccess, module: str
) -> None:
    shown = page(module, "보람")
    if module == "explore":
        shown.selectbox(key="explore_state").set_value("disagreeing").run()
    else:
        shown.button_group(key="review_view").set_value("list").run()
    before = shown.dataframe[0].proto.id
    shown.run()
    assert shown.dataframe[0].proto.id == before
    adjudicate(project, 2, ["긍정"], request_id="another reviewer")
    shown.run()
    assert len(shown.dataframe[0].value) == 1 and shown.dataframe[0].proto.id != before


def test_a_bulk_change_says_what_it_would_settle(project: ProjectAccess) -> None:
    shown = page("explore", "보람")
    button(shown, "찾은 글 모두").click().run()
    (warned,) = [one.value for one in shown.warning]
    assert "갈린 글 2건" in warned and "2명보다 적은 글 1건" in warned
    shown.text_input(key="explore_words").input("배송").run()
    button(shown, "찾은 글 모두").click().run()
    assert not shown.warning  # that both have labelled alike


def test_a_bulk_change_is_undone_where_its_filter_finds_nothing_more(
    project: ProjectAccess,
) -> None:
    shown = page("explore", "보람")
    shown.selectbox(key="explore_state").set_value("disagreeing").run()
    search = Search(state="disagreeing")
    relabel(as_member(project, "보람"), search, ["부정"], request_id="all", expected=2)
    shown.run()
    assert "찾은 글이 없습니다" in words_of(shown) and not shown.dataframe
    button(shown, "되돌리기").click().run()
    assert "글 2건을 되돌렸습니다" in words_of(shown) and latest_decisions(project) == []
    assert len(shown.dataframe[0].value) == 2


def test_an_annotator_is_offered_no_filter_by_others_or_by_a_hidden_model(
    project: ProjectAccess,
) -> None:
    shown = page("explore", "지은")
    states, orders = (shown.selectbox(key=f"explore_{name}") for name in ("state", "order"))
    assert states.options == ["모두", "내 라벨이 없음", "내 라벨이 있음", "건너뜀"]
    assert "검토: 틀렸을 듯한 라벨부터" not in orders.options
    assert "모델이 확신하는 글부터" in orders.options and shown.slider
    assert found_by(shown, state="labelled") == [1, 2, 3, 4]
    change_settings(project, show_suggestion=False)
    shown = page("explore", "지은")
    assert shown.selectbox(key="explore_order").options == ["가져온 순서", "최근 라벨부터"]
    assert not shown.slider
    assert "모델이 제안한 라벨" not in [one.label for one in shown.selectbox]


def test_what_cannot_be_searched_for_is_said(project: ProjectAccess) -> None:
    shown = page("explore")
    shown.text_input(key="explore_words").input("가 " * 11).run()
    assert "이렇게는 찾을 수 없습니다" in shown.error[0].value


def test_what_is_decided_of_a_project_that_was_archived_meanwhile_is_not_written(
    project: ProjectAccess,
) -> None:
    shown = page("review")
    archive(project)
    button(shown, "부정").click().run()
    assert not shown.exception and latest_decisions(project) == []
    assert "아직 작업이 없습니다" in words_of(shown)
    assert not [one for one in shown.selectbox if one.label == "작업"]


def test_a_project_of_others_in_the_address_opens_nothing(project: ProjectAccess) -> None:
    secret = ProjectStore().create(
        LOCAL,
        NewProject(name="비밀", labels=[ProjectLabel(name="가"), ProjectLabel(name="나")]),
    )
    import_texts(secret, [source_of_upload("a.txt", "비밀 글".encode())])
    for module in ("review", "explore", "status"):
        shown = AppTest.from_function(draw, default_timeout=600, args=(module, "보람"))
        shown.query_params["project"] = "비밀"
        shown.run()
        assert not shown.exception
        choice = next(one for one in shown.selectbox if one.label == "작업")
        assert choice.options == ["리뷰 *감정*"] and choice.value == "리뷰 *감정*"
        tables = "".join(one.value.to_string() for one in shown.dataframe)
        assert "비밀 글" not in words_of(shown) + tables


def test_status_shows_what_is_done_and_since_when(project: ProjectAccess) -> None:
    shown = page("status")
    assert "기준입니다" in words_of(shown)
    numbers = {one.label: one.value for one in shown.metric}
    assert (numbers["의견 갈린 글"], numbers["검수할 글"]) == ("2", "2")
    people = next(one.value for one in shown.dataframe if "labelled" in one.value)
    assert sorted(people["name"]) == ["**민수**", "지은"]
    adjudicate(project, 2, ["긍정"], request_id="d")
    shown.run()
    # What was computed stands, and says that it is of before.
    assert "기준입니다. 그 뒤로" in words_of(shown)
    button(shown, "다시 계산").click().run()
    numbers = {one.label: one.value for one in shown.metric}
    assert (numbers["검수할 글"], numbers["검수로 정한 글"]) == ("1", "1")


def test_status_counts_the_own_labels_of_whoever_looks(project: ProjectAccess) -> None:
    save_acts(as_member(project, "보람"), [Act(text_id=5, kind="skip", request_id="skip")])
    # Both may review, so that they share what is kept.
    for name, own in ((None, ("0", "0")), ("보람", ("0", "1"))):
        numbers = {one.label: one.value for one in page("status", name).metric}
        assert (numbers["내가 라벨 붙인 글"], numbers["내가 건너뛴 글"]) == own
        assert numbers["의견 갈린 글"] == "2"


def test_unknown_seconds_are_a_dash(project: ProjectAccess) -> None:
    act = Act(text_id=5, kind="label", labels=["긍정"], request_id="imported")
    save_acts_of_others(project, [("밖의 사람", act)])
    people = next(one for one in page("status").dataframe if "labelled" in one.value)
    assert people.value.set_index("name")["median"].isna()["밖의 사람"]
    assert people.proto.placeholder == "–"


def test_all_parts_of_status_are_computed_again_together(project: ProjectAccess) -> None:
    shown = page("status")
    shown.button_group(key="status_part").set_value("agreement").run()
    undo = Act(text_id=2, kind="undo", withdraws="지은2", request_id="undo")
    save_acts(as_member(project, "지은"), [undo])
    first, *others = read_project(project).labels
    change_labels(project, [replace(first, name="좋음"), *others])
    shown.button_group(key="status_part").set_value("work").run()
    button(shown, "다시 계산").click().run()
    assert {one.label: one.value for one in shown.metric}["의견 갈린 글"] == "1"
    shown.button_group(key="status_part").set_value("agreement").run()
    assert "그 뒤로" not in words_of(shown)
    assert shown.dataframe[0].value["disagreed"].tolist()[0] == 1


def test_agreement_and_the_model_have_their_numbers(project: ProjectAccess) -> None:
    write_scores(project, "x", [TextScore(text_id=1, priority=1.0, label="부정", score=0.9)])
    shown = page("status")
    shown.button_group(key="status_part").set_value("agreement").run()
    assert not shown.exception
    rows = shown.dataframe[0].value
    assert rows["kind"].tolist()[:2] == ["Krippendorff α", "Fleiss κ"]
    assert rows["disagreed"].tolist()[0] == 2 and "**민수** · 지은" in rows["name"].tolist()
    shown.button_group(key="status_part").set_value("model").run()
    assert "50.0% 같음" in words_of(shown)  # 5 of 8 would be 62.5%
    shown.button_group(key="status_said").set_value("scores").run()
    assert not shown.exception and "0.0% 같음" in words_of(shown)


def test_none_of_several_labels_is_named(workplace: Path) -> None:
    names = [ProjectLabel(name="긍정"), ProjectLabel(name="부정")]
    access = ProjectStore().create(LOCAL, NewProject(name="글", labels=names, kind="multi"))
    import_texts(access, [source_of_upload("글.txt", "\n".join(TEXTS).encode())])
    for name, labels in (("지은", ["긍정", "부정"]), ("민수", [])):
        own = replace(access, person=Person(name=name, is_local=True))
        save_acts(own, [Act(text_id=1, kind="label", labels=labels, request_id=name)])
    shown = page("status")
    shown.button_group(key="status_part").set_value("agreement").run()
    assert "모두 같을 때만 일치" in words_of(shown)
    told = {cell for name in ("first", "second") for cell in shown.dataframe[1].value[name]}
    assert told == {"민수: 해당 없음", "지은: 긍정, 부정"}
    shown = AppTest.from_function(draw_text_one, default_timeout=600).run()
    assert not shown.exception
    assert sorted(shown.dataframe[0].value["labels"]) == ["긍정, 부정", "해당 없음"]


def test_a_click_costs_as_much_with_ten_times_the_labels(project: ProjectAccess) -> None:
    """Counted in steps of SQLite's machine, as seconds depend on ours."""
    more = "\n".join(f"글 {one}" for one in range(600)).encode()
    import_texts(project, [source_of_upload("b.txt", more)])

    def label(first: int, last: int) -> None:
        for name in ("지은", "**민수**"):
            acts = [
                Act(text_id=one, kind="label", labels=["긍정"], request_id=f"{name}-{one}")
                for one in range(first, last)
            ]
            save_acts(as_member(project, name), acts)

    label(6, 60)
    few = _steps_of_a_click()
    label(60, 600)
    many = _steps_of_a_click()
    assert all(many[module] <= 1.25 * few[module] for module in few), (few, many)


def _steps_of_a_click() -> dict[str, int]:
    """By page."""
    counts = {}
    for module in ("review", "explore", "status"):
        shown = page(module)
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1

        def watch(connection: Any, _record: object, count: Any = count) -> None:
            connection.set_progress_handler(count, 50)

        event.listen(Pool, "connect", watch)
        try:
            shown.run()
        finally:
            event.remove(Pool, "connect", watch)
        assert not shown.exception and steps
        counts[module] = steps
    return counts


def test_a_picture_in_a_guideline_is_not_fetched(project: ProjectAccess) -> None:
    """It would tell another server who reads the guideline, and when."""
    for module in ("labelling", "review"):
        pictures = "![그림](http://elsewhere.test/x.png) \\\\![그림](http://elsewhere.test/y.png)"
        change_guideline(project, f"# 기준\n{pictures}")
        said = "\n".join(str(one.value) for one in page(module, "보람").markdown)
        assert "elsewhere.test" in said and "![" not in said, module


def test_a_decision_is_on_the_text_and_with_the_label_that_were_seen(
    project: ProjectAccess,
) -> None:
    """Whatever has been renamed, and whichever text has the id, since the page was drawn."""
    shown = page("review", "보람")
    first, second, third = read_project(project).labels
    swapped = [replace(first, name=second.name), replace(second, name=first.name), third]
    change_labels(project, swapped)
    button(shown, first.title).click().run()
    (decided,) = latest_decisions(project)
    assert decided.adjudicated == (second.name,)  # what the label is called now
    shown = page("review", "보람")
    with project.engine.begin() as connection:
        connection.execute(update(TextRow).values(text="다른 글"))
    button(shown, third.title).click().run()
    assert shown.error and latest_decisions(project)[0].decision_id == decided.decision_id
