"""What is erased is gone from the bytes of all files that the app keeps; the trail says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.people import Person
from malmoi.labels.projects import audit_trail
from malmoi.labels.review import adjudicate, texts_with_votes
from malmoi.labels.stored_text import sha256_of
from tests.malmoi.labels.conftest import Make

SECRET = "김말숙 님 전화는 010-0000-1234 입니다, 꼭 연락 주세요"
NAME = "박달래-라벨러"
OTHERS = ("배송이 빨라요", "그냥 그래요", "다시는 안 사요")

Run = Callable[..., str]


@pytest.fixture
def run(
    any_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Gives `malmoi labels ...` in the data folder; what it says on standard error."""
    monkeypatch.chdir(tmp_path)

    def once(*words: object, code: int = 0) -> str:
        assert main(["labels", *map(str, words), "--database", any_url]) == code
        return capsys.readouterr().err

    return once


@pytest.fixture
def project(make: Make, run: Run, tmp_path: Path) -> ProjectAccess:
    """Texts that came in by a file, labelled, decided, backed up, trained on and exported."""
    access = make()
    rows = [
        {"text": one, "label": "긍정", "annotator": NAME, "별점": 5, "쓴이": NAME}
        for one in (SECRET, f"{SECRET} ", *OTHERS)
    ]
    file = tmp_path / "밖" / "올린 것.jsonl"
    file.parent.mkdir()
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    run("import", file, "--label-column", "label")
    file.unlink()
    mine = as_person(access, NAME)
    for place in (1, 2):
        save_acts(mine, [Act(text_id=place, kind="note", note="메모", request_id=f"{NAME}{place}")])
    adjudicate(mine, 1, ["부정"], request_id="d1", note=f"{SECRET[:3]}의 글")
    name = Path(access.engine.url.database or "").name
    for folder, cell in (("배운-1", SECRET), ("배운-2", OTHERS[0])):
        run_folder = tmp_path / "runs" / "finetune" / folder
        (run_folder / "model").mkdir(parents=True)
        (run_folder / "predictions.csv").write_text(
            f'id,text,label,predicted,fold,seed\n{name}:1,"{cell}",긍정,긍정,1,42\n',
            encoding="utf-8-sig",
        )
    written = tmp_path / "runs" / "uploads" / "x1" / "export.csv"
    written.parent.mkdir(parents=True)
    written.write_text(SECRET, encoding="utf-8")
    return access


def as_person(access: ProjectAccess, name: str) -> ProjectAccess:
    person = Person(name=name, is_local=True)
    return ProjectAccess(engine=access.engine, project_id=access.project_id, person=person)


def holders(folder: Path, access: ProjectAccess, words: str) -> list[str]:
    """Files that have the bytes of these words, and tables of a server that do."""
    escaped = json.dumps(words)[1:-1].encode()
    found = [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and {True} & {one in path.read_bytes() for one in (words.encode(), escaped)}
    ]
    with access.engine.connect() as connection:
        for table in inspect(connection).get_table_names():
            for row in connection.execute(text(f"SELECT * FROM {table}")).tuples():
                if any(words in str(cell) or escaped.decode() in str(cell) for cell in row):
                    found.append(table)
    return sorted(set(found))


def test_a_text_is_gone_from_every_file(project: ProjectAccess, run: Run, tmp_path: Path) -> None:
    sqlite = project.engine.dialect.name == "sqlite"
    if sqlite:
        run("backup", tmp_path / "backups" / "앞.db")
    before = holders(tmp_path, project, SECRET)
    assert {"malmoi_texts", "malmoi_text_sources", "runs/uploads/x1/export.csv"} <= {*before}
    (tmp_path / "runs" / "finetune" / ".하는 중.work").mkdir()
    (tmp_path / "깨진.db").write_bytes(b"SQLite format 3\x00 and nothing more")
    said = run("erase", "--text", SECRET)
    assert "하는 중.work cannot" in said and "깨진.db cannot" in said
    assert "1 text with" in said and "배운-1" in said and "nothing is erased yet" in said
    assert "배운-2" not in said and "not reached: " in said
    assert ("backups/앞.db" in said) == sqlite
    assert holders(tmp_path, project, SECRET) == before
    run("erase", "--text", SECRET, "--yes")
    assert holders(tmp_path, project, SECRET) == []
    left = texts_with_votes(project, range(10))
    assert [one.text for one in left] == list(OTHERS) and all(one.votes for one in left)
    kept = [path.name for path in (tmp_path / "runs" / "finetune").glob("[!.]*")]
    assert kept == ["배운-2"]
    entry = audit_trail(project)[0]
    assert (entry.action, entry.details["what"], entry.details["texts"]) == ("erase", "texts", 1)
    assert entry.person and SECRET[:3] not in str(audit_trail(project))
    # What a browser still holds of it is refused, and so is what would be given to its id.
    act = Act(text_id=1, kind="label", request_id="late", labels=["긍정"], shown=sha256_of(SECRET))
    with pytest.raises(InputError, match="expected the id of a text"):
        save_acts(project, [act])
    assert "found nothing" in run("erase", "--text", SECRET, code=2)


def test_nothing_is_called_erased_while_a_file_stays(
    project: ProjectAccess, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path, **_: object) -> None:
        if not _.get("ignore_errors"):
            raise PermissionError(f"{folder} is in use")

    with monkeypatch.context() as patched:
        patched.setattr("malmoi.labels.erased_files.shutil.rmtree", refused)
        assert "is in use" in run("erase", "--text", SECRET, "--yes", code=2)
    # What it is found by is there still, so that it can be erased again.
    run("erase", "--text", SECRET, "--yes")


def test_a_name_is_gone_and_the_work_stays(
    project: ProjectAccess, run: Run, tmp_path: Path
) -> None:
    sqlite = project.engine.dialect.name == "sqlite"
    if sqlite:
        run("backup", tmp_path / "backups" / "앞.db")
    run("erase", "--person", NAME, "--yes")
    assert holders(tmp_path, project, NAME) == []
    first, *_ = texts_with_votes(project, range(10))
    (vote,) = first.votes
    assert vote.annotator.startswith("erased-") and vote.labels == ("긍정",)
    assert (first.adjudicated, first.reviewer) == (("부정",), vote.annotator)
    assert audit_trail(project)[0].details["now"] == vote.annotator


def test_a_project_is_gone_and_others_stay(
    project: ProjectAccess,
    make: Make,
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = make(*OTHERS, name="다른 작업")
    if project.engine.dialect.name == "sqlite":
        run("backup", tmp_path / "backups" / "앞.db")
    run("erase", "--project", "리뷰", "--yes")
    for words in (SECRET, NAME, "올린 것.jsonl"):
        assert holders(tmp_path, project, words) == []
    run("erase", "--yes")
    assert len(texts_with_votes(other, range(20))) == 3
    main(["labels", "list", "--database", project.engine.url.render_as_string(hide_password=False)])
    said: Any = capsys.readouterr().out
    assert "다른 작업: " in said and "리뷰" not in said and "erased by " in said
