"""Two labels become one, with all that people and models have said by them."""

from collections.abc import Callable

import pytest
from sqlalchemy import select

from malmoi.__main__ import main
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, Suggestion, save_acts
from malmoi.labels.people import Person
from malmoi.labels.projects import audit_trail, read_project
from malmoi.labels.review import adjudicate, progress, texts_with_votes
from malmoi.labels.scores import TextScore, write_scores
from malmoi.labels.tables import AnnotationRow, TextScoreRow
from malmoi.labels.text_history import read_history
from tests.malmoi.labels.conftest import Make

Run = Callable[..., str]


@pytest.fixture
def run(any_url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def once(*words: str, code: int = 0) -> str:
        assert main(["labels", *words, "--database", any_url]) == code
        return capsys.readouterr().err

    return once


def say(access: ProjectAccess, name: str, text: int, *labels: str) -> None:
    mine = ProjectAccess(
        engine=access.engine,
        project_id=access.project_id,
        person=Person(name=name, is_local=True),
    )
    shown = Suggestion(label="불만", score=0.5, model="m")
    request = f"{name}{text}{labels}"
    act = Act(text_id=text, kind="label", labels=labels, request_id=request, suggestion=shown)
    save_acts(mine, [act])


def test_a_label_goes_into_another_one(make: Make, run: Run) -> None:
    access = make(*"가나다라", labels="긍정,부정,불만", annotators_per_text=2)
    say(access, "지은", 1, "부정")
    say(access, "민수", 1, "불만")
    say(access, "지은", 2, "불만")
    say(access, "지은", 2, "부정")
    say(access, "민수", 2, "긍정")
    say(access, "지은", 3, "불만")
    adjudicate(access, 4, ["불만"], request_id="d")
    scores = [
        TextScore(
            text_id=1, priority=1, label="불만", score=0.5, second_label="부정", second_score=0.25
        ),
        TextScore(
            text_id=3, priority=0, label="긍정", score=0.5, second_label="불만", second_score=0.25
        ),
    ]
    write_scores(access, "m", scores)
    merge = ("merge", "--label", "불만", "--into", "부정")
    said = run(*merge)
    assert "nothing is changed yet" in said and "3 texts" in said and "1 of them" in said
    assert progress(access).disagreeing == 2
    assert "3 texts" in run(*merge, "--yes")
    assert read_project(access).label_names == ["긍정", "부정"]
    votes = [
        ({one.annotator: one.labels for one in text.votes}, text.adjudicated)
        for text in texts_with_votes(access, range(9))
    ]
    assert votes == [
        ({"지은": ("부정",), "민수": ("부정",)}, None),
        ({"지은": ("부정",), "민수": ("긍정",)}, None),
        ({"지은": ("부정",)}, None),
        ({}, ("부정",)),
    ]
    assert progress(access).disagreeing == 1
    assert "불만" not in str(read_history(access, 2))
    with access.engine.connect() as connection:
        seen = set(connection.scalars(select(AnnotationRow.suggested_label)))
        columns = (TextScoreRow.label, TextScoreRow.score, TextScoreRow.second_label)
        suggested = connection.execute(select(*columns).order_by(TextScoreRow.text_id)).all()
    assert seen == {"부정"}
    assert [tuple(row) for row in suggested] == [("부정", 0.75, None), ("긍정", 0.5, "부정")]
    entry = audit_trail(access)[0]
    assert (entry.action, entry.details["texts"]) == ("merge labels", 3)
    assert "found '긍정' and '없음'" in run(
        *("merge", "--label", "긍정", "--into", "없음", "--yes"), code=2
    )
    # Of two labels one cannot go.
    run("merge", "--label", "긍정", "--into", "부정", "--yes", code=2)


def test_several_labels_of_a_text_become_one(make: Make, run: Run) -> None:
    access = make("가", labels="배송,택배,가격", kind="multi")
    say(access, "지은", 1, "배송", "택배")
    run("merge", "--label", "택배", "--into", "배송", "--yes")
    (text,) = texts_with_votes(access, [1])
    assert text.votes[0].labels == ("배송",)
