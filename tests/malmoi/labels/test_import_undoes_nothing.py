"""An import does not undo what people did since: by time and identity, counted before and after."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from malmoi.commands.labels import LabelsSettings
from malmoi.commands.labels import main as command
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.people import Person
from malmoi.labels.review import texts_with_votes
from tests.malmoi.labels.conftest import Make

Run = Callable[..., str]
Row = dict[str, Any]


@pytest.fixture
def run(any_url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `malmoi labels ACTION FILE`; what it says."""

    def once(action: str, file: Path, **settings: Any) -> str:
        given = {"action": action, "files": (file,), "database": any_url} | settings
        command(LabelsSettings(**given))
        return capsys.readouterr().err

    return once


def votes(access: ProjectAccess) -> list[dict[str, str]]:
    return [
        {vote.annotator: "/".join(vote.labels) for vote in text.votes}
        for text in texts_with_votes(access, range(1, 100))
    ]


def task(text: str, who: str, label: str, at: str | None) -> Row:
    value = {"choices": [label]}
    part = {"from_name": "label", "to_name": "text", "type": "choices", "value": value}
    annotation: Row = {"result": [part], "completed_by": {"id": 1, "email": who}}
    annotation |= {"lead_time": 3.5} | ({} if at is None else {"created_at": at, "updated_at": at})
    return {"data": {"text": text, "별점": 5}, "id": 9, "annotations": [annotation]}


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def label_as(access: ProjectAccess, name: str, text: int, label: str, request: str) -> None:
    me = ProjectAccess(
        engine=access.engine,
        project_id=access.project_id,
        person=Person(name=name, is_local=True),
    )
    save_acts(me, [Act(text_id=text, kind="label", request_id=request, labels=[label])])


def test_an_older_export_is_counted_and_left_out(make: Make, run: Run, tmp_path: Path) -> None:
    access = make()
    who = "gana@x.example"
    newer = [task(one, who, "부정", "2026-02-05T03:00:00Z") for one in ("하나", "둘", "셋")]
    older = [task(one, who, "긍정", "2026-01-05T03:00:00Z") for one in ("하나", "둘", "넷")]
    older.append(task("셋", "nara@x.example", "긍정", "2026-01-05T03:00:00Z"))
    run("import", write(tmp_path / "new.json", newer), source="label-studio")
    held = votes(access)
    counts = "2 new labels, 1 of these differ from others: to review, 2 older than what is here"
    file = write(tmp_path / "old.json", older)
    said = run("import", file, source="label-studio", dry_run=True)
    assert "1 new texts of 4 rows" in said and counts in said
    assert votes(access) == held
    assert counts in run("import", file, source="label-studio")
    assert votes(access) == [
        {who: "부정"},
        {who: "부정"},
        {who: "부정", "nara@x.example": "긍정"},
        {who: "긍정"},
    ]
    # The other way round the later holds, and the times stay.
    again = make(name="다시")
    for name in ("old.json", "new.json"):
        run("import", tmp_path / name, source="label-studio", project="다시")
    assert votes(again)[0] == {who: "부정"}
    out = tmp_path / "out.json"
    run("export", out, target="label-studio", project="다시")
    first = json.loads(out.read_text("utf-8"))[0]
    assert first["data"] == {"text": "하나", "별점": 5}
    assert first["annotations"][0]["created_at"].startswith("2026-02-05T03:00:00")
    assert first["annotations"][0]["lead_time"] == 3.5


def test_our_own_export_undoes_no_correction(make: Make, run: Run, tmp_path: Path) -> None:
    access = make("하나입니다", "둘입니다")
    for text in (1, 2):
        label_as(access, "local", text, "긍정", f"a{text}")
    files: dict[str, Row] = {
        "ls.json": {"target": "label-studio"},
        "do.jsonl": {"target": "doccano"},
        "ours.csv": {},
    }
    for name, settings in files.items():
        run("export", tmp_path / name, **settings)
    unchanged = run("import", tmp_path / "do.jsonl", source="doccano")
    assert "0 new labels, 2 here already" in unchanged
    label_as(access, "local", 1, "부정", "b1")
    said = run("import", tmp_path / "ls.json", source="label-studio")
    assert "0 new labels, 1 here already, 1 older" in said
    said = run("import", tmp_path / "ours.csv", label_column="label")
    assert "0 new labels, 1 here already, 1 older" in said
    said = run("import", tmp_path / "ours.csv", label_column="votes")
    assert "nothing is new, 1 here already, 1 older" in said
    assert votes(access) == [{"local": "부정"}, {"local": "긍정"}]


def test_local_of_another_machine_is_another_person(make: Make, run: Run, tmp_path: Path) -> None:
    there = make("하나입니다", "둘입니다", name="저기")
    for text, label in ((1, "긍정"), (2, "부정")):
        label_as(there, "local", text, label, f"there{text}")
    run("export", tmp_path / "지은.json", target="label-studio", project="저기")
    here = make("하나입니다", name="여기")
    label_as(here, "local", 3, "부정", "here")
    said = run("import", tmp_path / "지은.json", source="label-studio", project="여기")
    assert "named local (지은.json)" in said
    assert votes(here) == [
        {"local": "부정", "local (지은.json)": "긍정"},
        {"local (지은.json)": "부정"},
    ]
    said_who = make(name="말하고")
    run(
        *("import", tmp_path / "지은.json"),
        source="label-studio",
        project="말하고",
        annotator="지은",
    )
    assert votes(said_who)[0] == {"지은": "긍정"}


def test_tables_keep_the_vote_of_each_person(make: Make, run: Run, tmp_path: Path) -> None:
    columns = ("text", "id", "sentiment", "annotator", "annotation_id", "updated_at", "lead_time")
    cells = [
        ("하나입니다", 1, "긍정", 1, 11, "2026-02-05T03:00:00Z", 2.5),
        ("하나입니다", 1, "부정", 2, 12, "2026-02-05T03:00:01Z", 2.5),
        ("하나입니다", 1, "중립", "c@b.kr", 13, "2026-02-05T03:00:02Z", 2.5),
    ]
    studio = {"label-studio:1": "긍정", "label-studio:2": "부정", "c@b.kr": "중립"}
    for name, separator in (("ls.csv", ","), ("ls.tsv", "\t")):
        access = make(name=name)
        lines = [separator.join(map(str, row)) for row in (columns, *cells)]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        run("import", tmp_path / name, label_column="sentiment", project=name)
        assert votes(access) == [studio], name
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    access = make(name="min")
    run(
        *("import", write(tmp_path / "min.json", rows)),
        label_column="sentiment",
        project="min",
    )
    assert votes(access) == [studio]
    access = make(name="prodigy")
    lines = [
        json.dumps({"text": "하나입니다", "accept": [label], "answer": "accept"} | who)
        for label, who in (
            ("긍정", {"_annotator_id": "리뷰-가", "_timestamp": 1_700_000_000}),
            ("부정", {"_annotator_id": "리뷰-나", "_timestamp": 1_700_000_001}),
            ("중립", {"_annotator_id": "리뷰-가", "_timestamp": 1_600_000_000}),
        )
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines), encoding="utf-8")
    said = run("import", tmp_path / "p.jsonl", label_column="accept", project="prodigy")
    assert votes(access) == [{"리뷰-가": "긍정", "리뷰-나": "부정"}] and "1 older" in said
    # Nobody's, where that is what is said.
    alone = make(name="한 사람")
    table = tmp_path / "ls.csv"
    said = run(*("import", table), label_column="sentiment", annotator_column="", project="한 사람")
    assert set(votes(alone)[0]) == {"import"}


def test_of_rows_that_contradict_each_other_the_first_holds(
    make: Make, run: Run, tmp_path: Path
) -> None:
    table = tmp_path / "표.csv"
    lines = ["하나,긍정", *(f"{n}번 글,중립" for n in range(600)), "하나,부정", "하나,긍정"]
    table.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    access = make()
    counts = "601 new labels, 1 here already, 1 contradict a row before: left out"
    assert counts in run("import", table, label_column="label", dry_run=True)
    assert counts in run("import", table, label_column="label")
    assert votes(access)[0] == {"import": "긍정"}
    # What comes in later without a time takes the place of what did so before.
    table.write_text("text,label\n하나,부정", encoding="utf-8")
    run("import", table, label_column="label")
    assert votes(access)[0] == {"import": "부정"}
    # A file that was there before says nothing new, in a trial either.
    before = table.read_bytes()
    table.write_text("text,label\n하나,긍정", encoding="utf-8")
    run("import", table, label_column="label")
    table.write_bytes(before)
    for trial in (True, False):
        said = run("import", table, label_column="label", dry_run=trial)
        assert "imported before, nothing is new" in said
    assert votes(access)[0] == {"import": "긍정"}
    # But not of what somebody has done here.
    label_as(access, "import", 1, "중립", "mine")
    table.write_text("text,label\n하나,긍정\n아홉,긍정", encoding="utf-8")
    said = run("import", table, label_column="label")
    assert "1 differ from what is here and do not say when" in said
    assert votes(access)[0] == {"import": "중립"}


def test_predictions_come_in_as_suggestions(make: Make, run: Run, tmp_path: Path) -> None:
    make(name="예측")
    rows = [task(text, "a@b.kr", "부정", None) for text in ("하나", "둘")]
    for row in rows:
        (made,) = row.pop("annotations")
        row["predictions"] = [{"model_version": "m1", "score": 0.93, "result": made["result"]}]
    file = write(tmp_path / "k14.json", rows)
    counts = "0 new labels, 2 suggestions of m1;"
    assert counts in run("import", file, source="label-studio", dry_run=True)
    assert counts in run("import", file, source="label-studio")
    # An order that is there is not replaced.
    assert "2 suggestions of models not read" in run("import", file, source="label-studio")
