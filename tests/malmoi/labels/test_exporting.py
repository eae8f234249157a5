"""What leaves a project can be read again: by people, by k-fold, as a backup."""

import csv
import json
import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from malmoi.__main__ import main
from malmoi.commands.labels import LabelsSettings
from malmoi.commands.labels import main as command
from malmoi.errors import InputError
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.data.source import find_data
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, Suggestion, save_acts
from malmoi.labels.backup import back_up
from malmoi.labels.exporting import export_for, export_table
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore, change_guideline, change_labels, read_project
from malmoi.labels.review import adjudicate
from malmoi.labels.text_import import import_texts
from malmoi.text.reading.sources import source_of_upload
from malmoi.text.written_cells import EXCEL_CELL
from tests.malmoi.labels.conftest import LOCAL, Make, for_person

TABLE = (
    "내용,=번호,label\n좋아요 👍🏽,1,x\n=cmd(),2,y\n별로,3,z\n모르겠다,4,w\n안 봄,5,v\n"
    "좋아요 👍🏽,6,the same text again\n"
)


def label(access: ProjectAccess, text_id: int, *labels: str, note: str = "") -> None:
    shown = Suggestion(label="부정", score=0.25, model="m")
    request_id = f"{access.person.name}-{text_id}-{labels}"
    act = Act(text_id=text_id, kind="label", labels=labels, request_id=request_id, suggestion=shown)
    save_acts(access, [act])
    if note:
        save_acts(
            access, [Act(text_id=text_id, kind="note", note=note, request_id=f"n{request_id}")]
        )


@pytest.fixture
def project(make: Make) -> ProjectAccess:
    """Text 1 agreed, 2 decided by review, 3 by majority, 4 a tie, 5 without labels."""
    people = dict.fromkeys("가나다", "annotator")
    local = make(annotators_per_text=3, people=people)
    import_texts(local, [source_of_upload("원본.csv", TABLE.encode())])
    a, b, c = (for_person(local, name) for name in people)
    change_guideline(local, "둘째 기준")
    label(a, 1, "긍정", note="-1+1")
    label(b, 1, "긍정")
    label(a, 2, "긍정")
    label(b, 2, "부정")
    adjudicate(local, 2, ["중립"], request_id="검수")
    for who, name in ((a, "부정"), (b, "부정"), (c, "긍정")):
        label(who, 3, name)
    label(a, 4, "긍정")
    label(b, 4, "중립")
    return local


def test_a_table_has_votes_decisions_scores_and_the_own_columns(
    project: ProjectAccess, tmp_path: Path
) -> None:
    shown = Suggestion(label="중립", score=0.5, model="later")
    skip = Act(text_id=2, kind="skip", request_id="skip", suggestion=shown, seconds=9)
    save_acts(for_person(project, "다"), [skip])  # says nothing of the label
    path = tmp_path / "out.jsonl"
    assert export_table(project, path) == 4
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [(row["text"], row["label"], row["decided_by"]) for row in rows] == [
        ("좋아요 👍🏽", "긍정", "all"),
        ("=cmd()", "중립", "review"),
        ("별로", "부정", "majority"),
        ("모르겠다", None, None),
    ]
    first, second = rows[:2]
    assert json.loads(first["votes"]) == {"가": ["긍정"], "나": ["긍정"]}
    assert (first["=번호"], first["label (2)"]) == ("1", "x")
    assert (first["source"], first["row"], first["notes"]) == ("원본.csv", "2", "가: -1+1")
    assert (second["adjudicated_label"], second["reviewer"]) == ("중립", LOCAL.name)
    assert (second["suggested_label"], second["suggested_score"]) == ("부정", 0.25)
    assert (second["guideline_version"], second["seconds"]) == (2, None)
    assert export_table(project, path, labelled_only=False) == 5


def test_a_flag_and_a_note_leave_without_a_label_too(
    project: ProjectAccess, tmp_path: Path
) -> None:
    """Whoever cannot decide a text may say so and go on: what they wrote is not lost."""
    doubtful = for_person(project, "다")
    save_acts(doubtful, [Act(text_id=1, kind="note", note="비꼬는 말?", request_id="n")])
    save_acts(doubtful, [Act(text_id=1, kind="flag", request_id="f")])
    export_table(project, tmp_path / "out.jsonl")
    first = json.loads((tmp_path / "out.jsonl").read_text("utf-8").splitlines()[0])
    assert (first["flagged_by"], first["notes"]) == ("다", "가: -1+1\n다: 비꼬는 말?")
    assert json.loads(first["votes"]) == {"가": ["긍정"], "나": ["긍정"]}
    export_for(project, tmp_path / "doccano.jsonl", "doccano")
    first = json.loads((tmp_path / "doccano.jsonl").read_text("utf-8").splitlines()[0])
    assert first["Comments"] == ["가: -1+1", "다: 비꼬는 말?"]


def test_every_format_is_read_again_by_fine_tuning(project: ProjectAccess, tmp_path: Path) -> None:
    for ending in ("csv", "xlsx", "parquet", "jsonl"):
        path = tmp_path / f"out.{ending}"
        export_table(project, path)
        adjudicate(project, 4, ["긍정"], request_id="4")
        export_table(project, path)
        assert read_examples(path).counts == {"긍정": 2, "중립": 1, "부정": 1}, ending
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == [], ending
        if ending == "csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            assert not [cell for cell in cells if cell.startswith("=")]
            assert any(cell.endswith("=cmd()") for cell in cells)
        if ending == "parquet":
            assert pd.read_parquet(path).guideline_version.tolist() == [2] * 4, ending


def test_texts_longer_than_a_cell_of_excel_are_counted(
    make: Make, any_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("가" * (EXCEL_CELL + 1), "나" * EXCEL_CELL, "다" * 40_000)
    for name, cut in [("a.xlsx", "2 cells cut at 32,767 characters"), ("a.csv", "")]:
        command(
            LabelsSettings(
                action="export", files=(tmp_path / name,), database=any_url, all_texts=True
            )
        )
        said = capsys.readouterr().err
        assert cut in said and ("cut" in said) == bool(cut)


def test_a_project_is_read_for_training_by_its_name(project: ProjectAccess, any_url: str) -> None:
    examples = read_examples(find_data(f"{any_url}#리뷰", None).place)
    assert examples.texts == ["좋아요 👍🏽", "=cmd()", "별로"]
    assert examples.counts == {"긍정": 1, "중립": 1, "부정": 1}
    good, *others = read_project(project).labels
    renamed = ProjectLabel(name="좋음", id=good.id, key=good.key, color=good.color)
    change_labels(project, [renamed, *others])
    assert read_examples(find_data(f"{any_url}#리뷰", None).place).counts["좋음"] == 1


def test_a_project_that_is_not_named_is_the_only_one_or_an_error_that_names_all(
    project: ProjectAccess, make: Make, any_url: str
) -> None:
    assert read_examples(find_data(any_url, None).place).counts["긍정"] == 1
    with pytest.raises(InputError, match=r"one of the projects .*, #리뷰, found #리뷰들$"):
        read_examples(find_data(f"{any_url}#리뷰들", None).place)
    make("글", name="둘째 100%")
    with pytest.raises(InputError, match="behind it, #둘째 100%25, #리뷰, found none"):
        read_examples(find_data(any_url, None).place)


def test_multi_labels_are_lists(make: Make, tmp_path: Path) -> None:
    access = make("가격도 배송도", "아무것도", kind="multi", labels="가격,배송")
    label(access, 1, "배송", "가격")
    label(access, 2)
    export_table(access, tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    assert found.label.tolist() == ['["가격", "배송"]', "[]"]


def test_a_backup_is_whole_while_somebody_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/labels.db"
    labels = [ProjectLabel(name=one) for one in ("긍정", "부정")]
    access = ProjectStore(url).create(LOCAL, NewProject(name="리뷰", labels=labels))
    import_texts(access, [source_of_upload("글.txt", "글".encode())])
    stop = threading.Event()
    saved: list[int] = []
    # Somebody who reads all the while: what is written meanwhile stays in the log beside the file.
    reader = sqlite3.connect(tmp_path / "labels.db", isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM malmoi_annotations").fetchone() == (0,)

    def write() -> None:
        while not stop.is_set():
            number = len(saved)
            name = ("긍정", "부정")[number % 2]
            save_acts(access, [Act(text_id=1, kind="label", labels=[name], request_id=str(number))])
            saved.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(saved) < 20 and writer.is_alive():
            time.sleep(0.01)
        before = len(saved)
        assert before >= 20
        size = back_up(tmp_path / "copy.db", url)
    finally:
        stop.set()
        writer.join()
        reader.close()
    assert size == (tmp_path / "copy.db").stat().st_size
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        requests = copy.execute("SELECT request_id FROM malmoi_annotations ORDER BY id")
        ids = [int(one) for (one,) in requests]
    copy.close()
    assert len(ids) >= before and ids == list(range(len(ids)))
    copied = ProjectStore(f"sqlite:///{tmp_path}/copy.db").list(LOCAL)
    assert [one.name for one in copied] == ["리뷰"]
    with pytest.raises(InputError, match=r"expected a new file for the backup"):
        back_up(tmp_path / "copy.db", url)


def test_a_backup_that_takes_the_place_of_the_database_works_as_it_did(tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    labels = [ProjectLabel(name=one) for one in ("가", "나")]
    ProjectStore(f"sqlite:///{path}").create(LOCAL, NewProject(name="전", labels=labels))
    back_up(tmp_path / "copy.db", str(path))
    ProjectStore(str(path)).create(LOCAL, NewProject(name="후", labels=labels))
    for old in tmp_path.glob("labels.db*"):
        old.unlink()
    shutil.copy(tmp_path / "copy.db", path)
    store = ProjectStore(str(path))
    assert [one.name for one in store.list(LOCAL)] == ["전"]
    with store.engine.connect() as connection:
        # Else who reads would keep those who label waiting.
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_what_cannot_be_backed_up_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no file"):
        back_up(tmp_path / "copy.db", f"sqlite:///{tmp_path}/none.db")
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5_000)
    with pytest.raises(InputError, match=r"cannot be read|is damaged"):
        back_up(tmp_path / "copy.db", f"sqlite:///{tmp_path}/broken.db")
    with pytest.raises(InputError, match="is not a database URL"):
        back_up(tmp_path / "copy.db", "labels")
    with pytest.raises(InputError, match="run pg_dump --format=custom --file=") as caught:
        back_up(tmp_path / "copy.db", "postgresql+psycopg://user:secret@host/name")
    assert "secret" not in str(caught.value) and "postgresql://user@host/name" in str(caught.value)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["broken.db"]


def listed(database: str | None) -> None:
    command(LabelsSettings(action="list", database=database))


def test_a_database_is_named_by_the_path_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.db"
    ProjectStore(f"sqlite:///{path}").create(
        LOCAL, NewProject(name="리뷰", labels=[ProjectLabel(name=one) for one in ("가", "나")])
    )
    path.rename(tmp_path / "#100% copy")
    for given in ("#100% copy", str(tmp_path / "#100% copy")):
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("MALMOI_DATABASE", raising=False)
        listed(given)
        assert capsys.readouterr().out.startswith("리뷰: ")
        monkeypatch.setenv("MALMOI_DATABASE", given)
        listed(None)
        assert capsys.readouterr().out.startswith("리뷰: ")
        assert [one.name for one in ProjectStore().list(LOCAL)] == ["리뷰"]
    # What a typing error makes of an address is no file.
    for wrong in ("me@host/name", "postgresql:host.db", "sqlite:labels.db", "file:labels.db"):
        with pytest.raises(InputError, match=r"^--database is not a database URL"):
            listed(wrong)
        monkeypatch.setenv("MALMOI_DATABASE", wrong)
        with pytest.raises(InputError, match=r"^MALMOI_DATABASE is not a database URL"):
            ProjectStore()
    with pytest.raises(InputError, match=r"found no file none\.db"):
        listed("none.db")
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5_000)
    with pytest.raises(InputError, match="check --database"):
        listed("broken.db")


def test_the_command_names_what_it_was_given_to_write(
    project: ProjectAccess, any_url: str, tmp_path: Path
) -> None:
    settings = LabelsSettings(action="export", files=(tmp_path / "x.doc",), database=any_url)
    with pytest.raises(InputError, match="expected a file to write with the ending"):
        command(settings)


def test_the_command_lists_exports_and_backs_up(
    project: ProjectAccess, any_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = f"--database={any_url}"

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["labels", *arguments])
        return code, *capsys.readouterr()

    _, listed, errors = run("list", database)
    assert listed.startswith("리뷰: 1 of 5 texts finished, 2 to review"), errors
    code, _, errors = run("export", str(tmp_path / "out.csv"), database, "--project=리뷰")
    assert code == 0 and "4 texts with a label" in errors
    assert len(pd.read_csv(tmp_path / "out.csv")) == 4
    code, _, errors = run("export", str(tmp_path / "no.csv"), database, "--project=없음")
    assert code == 2 and errors.startswith("error: expected --project with one of")
    code, _, errors = run("list", f"--database=sqlite:///{tmp_path}/typo.db")
    assert code == 2 and "found no file" in errors
    assert not (tmp_path / "typo.db").exists()
    code, _, errors = run("backup", str(tmp_path / "copy.db"), database)
    if any_url.startswith("sqlite"):
        assert code == 0
        names = [one.name for one in ProjectStore(f"sqlite:///{tmp_path}/copy.db").list(LOCAL)]
        assert names == ["리뷰"]
    else:
        assert code == 2 and "pg_dump" in errors
        assert errors.count("\n") == 1
