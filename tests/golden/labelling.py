"""A recorded labelling session: messages of two annotators' cards, a review, what is stored."""

import sqlite3
from itertools import count
from pathlib import Path
from typing import Any

from tests.golden import product
from tests.golden.corpora import first_lines
from tests.golden.entries import Golden
from tests.golden.rows import CASES

LABELS = "꿈,일기,일정,메모,오류"
# Drawn at random when a text comes in.
_DRAWN = "lottery"


def run(golden: Golden) -> None:
    """Play the session, read every table, export the labels; import those of other tools."""
    database = Path("labels.db")
    project = product.LabelledProject(database, LABELS)
    project.read(first_lines(Path("corpora/memos/memos.csv"), 41, Path("to-label.csv")))
    golden.add("labelling/answers", play(project))
    _add_tables(golden, "labelling/tables", database)
    for form, flags in (
        ("labels.csv", ["--all-texts"]),
        ("labels.jsonl", []),
        ("studio.json", ["--for", "label-studio"]),
        ("doccano.jsonl", ["--for", "doccano"]),
    ):
        target = ("export", f"exported-{form}", "--database", str(database))
        product.run_malmoi("labels", *target, *flags).done()
        golden.add(f"labelling/export/{form}", Path(f"exported-{form}").read_text("utf-8"))
    _import(golden, "own", "긍정,부정", [(Path("forms/table.csv"), ["--label-column", "label"])])
    if not CASES.is_dir():
        golden.skipped["import/cases"] = "no ../shared/cases beside this checkout"
        return
    studio = ["--from", "label-studio"]
    exports = ("k02_newer_export", "k02_older_export", "k14_predictions")
    files = [(CASES / "round3" / "labels" / f"{name}.json", studio) for name in exports]
    files.append((CASES / "labels" / "doccano.jsonl", ["--from", "doccano"]))
    _import(golden, "cases", "긍정,부정,중립", files)


def _import(golden: Golden, name: str, labels: str, files: list[tuple[Path, list[str]]]) -> None:
    """Import files one after the other into a project of their own."""
    database = Path(f"import-{name}.db")
    product.LabelledProject(database, labels)
    for path, flags in files:
        given = ("labels", "import", str(path), "--database", str(database), *flags)
        said = product.run_malmoi(*given)
        golden.add(f"import/{name}/said/{path.name}", said.out + said.error, code=said.code)
    _add_tables(golden, f"import/{name}", database)


def _add_tables(golden: Golden, name: str, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in sorted(tables.fetchall()):
            if table.startswith("malmoi_") and (rows := rows_of(connection, table)):
                golden.add(f"{name}/{table}", rows, rows=len(rows))


def play(project: product.LabelledProject) -> list[Any]:
    """Labels, a skip, a flag, a note, corrections and undos, refused acts; then decisions."""
    numbers = count(1)
    names = LABELS.split(",")

    def act(text_id: int, kind: str, **values: Any) -> dict[str, Any]:
        given = {"request_id": f"r{next(numbers)}", "seconds": 1.5, "guideline_version": 1}
        return given | {"text_id": text_id, "kind": kind} | project.shown(text_id) | values

    def label(name: str) -> list[dict[str, Any]]:
        return [{"id": names.index(name) + 1 if name in names else 99, "name": name}]

    sent: list[tuple[str, dict[str, Any]]] = [("가", {"wants": True}), ("나", {"wants": True})]
    first = [act(n, "label", labels=label(names[n % 5])) for n in range(1, 13)]
    second = [act(n, "label", labels=label(names[n * n % 5])) for n in range(1, 11)]
    sent += [("가", {"acts": first, "wants": True}), ("나", {"acts": second, "recent": True})]
    undone = act(4, "undo", withdraws=first[3]["request_id"], of="label")
    mixed = [
        act(13, "skip"),
        act(14, "flag", flagged=True),
        act(14, "note", note="비꼬는 말? 🤔"),
        act(15, "label", labels=label("일정")),
        act(2, "label", labels=label("오류"), again=True),
        undone,
        act(16, "label", labels=label("없는 라벨")),
        act(999, "label", labels=label("꿈")),
        act(17, "label", labels=label("꿈")) | project.shown(18),
        first[0],
    ]
    sent += [("가", {"acts": mixed, "recent": True}), ("나", {"stop": True})]
    answers = [
        project.tell(who, {"sequence": place} | message)
        for place, (who, message) in enumerate(sent, 1)
    ]
    for text_id, label in ((1, "일기"), (3, "메모"), (3, "일정")):
        project.decide("다", text_id, label, f"r{next(numbers)}")
    return answers


def rows_of(connection: sqlite3.Connection, table: str) -> list[list[tuple[str, Any]]]:
    """The cells of a table, without times and what is drawn at random."""
    found = connection.execute(f"SELECT * FROM {table}")
    names = [name for name, *_ in found.description]
    rows = [
        [(name, cell) for name, cell in zip(names, row, strict=True) if not _varies(name)]
        for row in found
    ]
    return sorted(rows, key=str)


def _varies(column: str) -> bool:
    return column == _DRAWN or column.endswith("_at")
