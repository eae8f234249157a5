"""A project moves whole: out of one database, into another, and out again as the same bytes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from malmoi.__main__ import main
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, Suggestion, save_acts, take_back
from malmoi.labels.people import Person
from malmoi.labels.projects import (
    ProjectStore,
    change_guideline,
    change_labels,
    read_project,
    set_member,
)
from malmoi.labels.relabelling import latest_relabellings, relabel, undo_relabelling
from malmoi.labels.review import adjudicate, texts_with_votes
from malmoi.labels.scores import TextScore, write_scores
from malmoi.labels.text_history import read_history
from tests.malmoi.labels.conftest import Make

Run = Callable[..., str]
ROWS = [
    {
        "text": "배송 빨라요 👍🏽",
        "label": "긍정",
        "annotator": "나래",
        "별점": 5,
        "쓴날": "2026-01-02",
    },
    {"text": "그냥 그래요", "label": "부정", "annotator": "나래", "별점": 3, "목록": [1, "둘"]},
    {"text": "다시는 안 사요", "label": "", "annotator": "", "별점": 1},
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def once(*words: str, database: str, code: int = 0) -> str:
        done = main(["labels", *words, "--database", database])
        said = capsys.readouterr().err
        assert done == code, said
        return said

    return once


@pytest.fixture
def project(make: Make, any_url: str, run: Run, tmp_path: Path) -> ProjectAccess:
    """One of each thing that a project may have, beside another project."""
    make("앞의 글", "둘", name="먼저 있던 작업")
    access = make(labels="긍정,부정,중립,옛말", annotators_per_text=2)
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in ROWS)
    (tmp_path / "원본.jsonl").write_text(lines, encoding="utf-8")
    given = ("import", "원본.jsonl", "--project", "리뷰", "--label-column", "label")
    run(*given, database=any_url)
    ids = [text.text_id for text in texts_with_votes(access, range(9)) if text.text[0] in "배그다"]
    mine = ProjectAccess(
        engine=access.engine,
        project_id=access.project_id,
        person=Person(name="지은", is_local=True),
    )
    shown = Suggestion(label="부정", score=0.125, model="m")
    acts = [
        Act(text_id=ids[0], kind="label", labels=["옛말"], request_id="a", suggestion=shown),
        Act(text_id=ids[0], kind="flag", request_id="b", seconds=1.5),
        Act(text_id=ids[1], kind="note", note="헷갈림\n둘째 줄", request_id="c"),
        Act(text_id=ids[2], kind="skip", request_id="d"),
        Act(text_id=ids[1], kind="label", labels=["중립"], request_id="e"),
    ]
    save_acts(mine, acts)
    take_back(mine, [(ids[1], "e")])
    change_guideline(access, "# 둘째 판")
    change_labels(access, [one for one in read_project(access).labels if one.name != "옛말"])
    set_member(access, "bora@b.kr", "reviewer")
    adjudicate(access, ids[0], ["긍정"], request_id="f", note="까닭")
    relabel(access, ids[1:], ["중립"], request_id="g", expected=2)
    write_scores(access, "m", [TextScore(text_id=ids[2], priority=1, label="부정", score=0.5)])
    return access


def told(access: ProjectAccess) -> list[Any]:
    """All that people see of it, without ids."""
    project = read_project(access)
    labels = [(one.name, one.color, one.key, one.retired) for one in project.labels]
    texts = texts_with_votes(access, range(1, 30))
    seen = [(one.text, one.votes, one.adjudicated, one.decided_at, one.remarks) for one in texts]
    return [labels, project.guideline, project.settings.annotators_per_text, seen]


def test_a_project_goes_round_as_the_same_bytes(
    project: ProjectAccess, any_url: str, make: Make, run: Run, tmp_path: Path
) -> None:
    out = ("export", "--project", "리뷰", "--for", "malmoi")
    run(*out, "하나.jsonl", database=any_url)
    empty = f"sqlite:///{tmp_path}/다른 곳.db"
    assert "리뷰: made" in run("import", "--from", "malmoi", "하나.jsonl", database=empty)
    run(*out, "둘.jsonl", database=empty)
    assert Path("하나.jsonl").read_bytes() == Path("둘.jsonl").read_bytes()
    moved = ProjectStore(empty).access(project.person, "리뷰")
    assert told(moved) == told(project)
    # Beside others its ids are moved, and all that names them.
    other = f"sqlite:///{tmp_path}/남의 곳.db"
    ProjectStore(other)
    run("import", "--from", "malmoi", "하나.jsonl", database=other)
    said = run("import", "--from", "malmoi", "하나.jsonl", database=other, code=2)
    assert "found 리뷰, which another one has" in said
    again = ("import", "--from", "malmoi", "하나.jsonl", "--project", "또")
    assert "found acts of it in there" in run(*again, database=other, code=2)
    assert [one.name for one in ProjectStore(other).list(project.person)] == ["리뷰"]
    # And back to where it was erased; what is made there then gets ids of its own.
    before = told(project)
    run("erase", "--project", "리뷰", "--yes", database=any_url)
    run("import", "--from", "malmoi", "하나.jsonl", database=any_url)
    back = ProjectStore(any_url).access(project.person, "리뷰")
    assert told(make("새 글", name="셋째"))[3] and told(back)[:3] == before[:3]
    assert [one[:2] for one in told(back)[3] if one[1]] == [one[:2] for one in before[3] if one[1]]


def test_beside_other_projects_all_that_names_ids_moves(
    project: ProjectAccess, any_url: str, make: Make, run: Run, tmp_path: Path
) -> None:
    run("export", "하나.jsonl", "--project", "리뷰", "--for", "malmoi", database=any_url)
    other = f"sqlite:///{tmp_path}/남의 곳.db"
    Path("셋.txt").write_text("가\n나\n다\n", encoding="utf-8")
    Path("하나 더.jsonl").write_text(
        Path("하나.jsonl")
        .read_text(encoding="utf-8")
        .replace('"request_id": "', '"request_id": "x'),
        encoding="utf-8",
    )
    for name, file in (("앞", "하나 더.jsonl"), ("리뷰", "하나.jsonl")):
        run("import", "--from", "malmoi", file, "--project", name, database=other)
    run("import", "셋.txt", "--project", "리뷰", database=other)
    moved = ProjectStore(other).access(project.person, "리뷰")
    texts = [one for one in texts_with_votes(moved, range(100)) if one.votes]
    assert told(project)[0] == told(moved)[0]
    assert {one.text: one.votes for one in texts} == {
        one.text: one.votes for one in texts_with_votes(project, range(30)) if one.votes
    }
    (change,) = latest_relabellings(moved)
    assert undo_relabelling(moved, change.id) == 2
    assert read_history(moved, texts[0].text_id)


def test_what_is_no_such_file_is_refused(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/labels.db"
    head = json.dumps({"form": "malmoi project", "layout": "0004"})
    for text in ("", "text\n가\n", head, f'{head}\n["projects", {{"id": 1}}]\n', f"{head}\n[1]\n"):
        Path("하나.jsonl").write_text(text, encoding="utf-8")
        said = run("import", "--from", "malmoi", "하나.jsonl", database=url, code=2)
        assert "expected a project as" in said and said.count("\n") == 1
    Path("하나.jsonl").write_text(head.replace("0004", "9999"), encoding="utf-8")
    assert "layout" in run("import", "--from", "malmoi", "하나.jsonl", database=url, code=2)
