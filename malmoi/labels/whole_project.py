"""A whole project as a file for another database of Malmoi, and back: nothing is lost or changed.

JSON lines: first what the file is, then each row of each table, in the order in which they can be
written. Ids are those of the database that the file came from; in an empty one they stay, else
those of each table are moved behind the last that is there.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, func, insert, select, text

from malmoi.errors import InputError
from malmoi.files import file_at_once
from malmoi.labels.access import ProjectAccess, begin_writing, database_errors
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore
from malmoi.labels.schema import HEAD
from malmoi.labels.stored_text import checked_name
from malmoi.labels.tables import (
    AdjudicationRow,
    AnnotationRow,
    AuditRow,
    Base,
    GuidelineRow,
    MemberRow,
    PlaceRow,
    ProjectLabelRow,
    ProjectRow,
    ScoreVersionRow,
    TextImportRow,
    TextRow,
    TextScoreRow,
    TextSourceRow,
    UtcDateTime,
)
from malmoi.messages import Phrase

_FORM = "malmoi project"
_ROWS = 500
# The request of an act that came in by a file: the id of the import is a part of it.
_OF_IMPORT = re.compile(r"import:(\d+):(.*)")
_TABLES: tuple[type[Base], ...] = (
    *(ProjectRow, ProjectLabelRow, GuidelineRow, MemberRow, AuditRow, TextImportRow, TextRow),
    *(TextSourceRow, AnnotationRow, PlaceRow, AdjudicationRow, ScoreVersionRow, TextScoreRow),
)
# Columns that name rows of a table without saying so to the database.
_NAMED: dict[str, type[Base]] = {
    "scores_version": ScoreVersionRow,
    "adjudication_id": AdjudicationRow,
    "alike": TextRow,
    "annotation_id": AnnotationRow,
}
# The same in the details of an entry of the audit trail.
_NAMED_IN_DETAILS: dict[str, type[Base]] = {
    "first": AdjudicationRow,
    "last": AdjudicationRow,
    "relabelling": AuditRow,
    "import": TextImportRow,
    "text": TextRow,
}


def export_project(access: ProjectAccess, path: Path) -> int:
    """Write all of a project, for an admin; the file appears when it is whole.

    Returns:
        How many texts are in it.

    Raises:
        InputError: the person is no admin.
    """
    texts = 0
    with (
        access.reading("admin") as connection,
        file_at_once(path) as scratch,
        scratch.open("w", encoding="utf-8", newline="\n") as file,
    ):
        access.row(connection)
        file.write(f"{json.dumps({'form': _FORM, 'layout': HEAD})}\n")
        for row in _TABLES:
            found = connection.execute(
                _of_project(row, access.project_id), execution_options={"yield_per": _ROWS}
            )
            for values in found.mappings():
                line = json.dumps(
                    [_short(row), dict(values)],
                    ensure_ascii=False,
                    default=lambda moment: moment.astimezone(UTC).isoformat(),
                )
                file.write(f"{line}\n")
                texts += row is TextRow
    return texts


def _short(row: type[Base]) -> str:
    return row.__tablename__.removeprefix("malmoi_")


def _of_project(row: type[Base], project: int) -> Select[Any]:
    """All rows of a table that are the project's, in one order."""
    table = row.metadata.tables[row.__tablename__]
    query = select(table).order_by(*table.primary_key.columns)
    if row is ProjectRow:
        return query.where(table.c.id == project)
    if "project_id" in table.c:
        return query.where(table.c.project_id == project)
    return query.join(TextRow, TextRow.id == table.c.text_id).where(TextRow.project_id == project)


def import_project(
    store: ProjectStore, person: Person, path: Path, name: str | None = None
) -> ProjectAccess:
    """Make the project of such a file, all of it or nothing.

    Args:
        store: of the database that gets it.
        person: who asks; on a server without being a member of it.
        name: of the project here; that of the file without one.

    Raises:
        InputError: it is no such file, or of another layout, or the database has a project of this
            name or this project already.
    """
    with database_errors(store.engine), store.engine.begin() as connection:
        begin_writing(connection)
        try:
            with path.open(encoding="utf-8") as file:
                project_id = _write(connection, _lines(path, file), path, name)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                "expected a project as `malmoi labels export --for malmoi` writes it, found "
                "{error}; export it again",
                place=path,
                error=str(error) or type(error).__name__,
            ) from error
    return ProjectAccess(engine=store.engine, project_id=project_id, person=person)


def _lines(path: Path, file: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    head = json.loads(next(file, "null"))
    if not isinstance(head, dict) or head.get("form") != _FORM:
        raise ValueError("another kind of file")
    if head.get("layout") != HEAD:
        raise InputError(
            "expected a project of the layout {known}, found {layout}; export and import it with "
            "the same version of Malmoi",
            place=path,
            known=HEAD,
            layout=head.get("layout"),
        )
    for line in file:
        table, cells = json.loads(line)
        yield table, cells


def _write(
    connection: Connection,
    rows: Iterator[tuple[str, dict[str, Any]]],
    path: Path,
    name: str | None,
) -> int:
    tables = {_short(row): row.metadata.tables[row.__tablename__] for row in _TABLES}
    before = {
        table.name: connection.scalar(select(func.coalesce(func.max(table.c.id), 0))) or 0
        for table in tables.values()
        if "id" in table.c
    }
    project_id = 0
    for table_name, group in groupby(rows, key=lambda row: row[0]):
        table = tables[table_name]
        while part := [cells for _, cells in islice(group, _ROWS)]:
            values = [_placed(table, cells, before) for cells in part]
            if table.name == ProjectRow.__tablename__:
                (project,) = values
                project["name"] = checked_name(name or project["name"], Phrase("a project"))
                same = select(ProjectRow.id).where(ProjectRow.name == project["name"])
                if connection.scalar(same) is not None:
                    raise InputError(
                        "expected a new name for a project, found {project}, which another one has",
                        project=project["name"],
                    )
                project_id = project["id"]
            _insert(connection, table, values, path)
    if not project_id:
        raise ValueError("no project in it")
    if connection.dialect.name == "postgresql":
        for table_name in before:
            connection.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table_name}', 'id'), "
                    f"GREATEST(MAX(id), 1)) FROM {table_name}"
                )
            )
    return project_id


def _insert(connection: Connection, table: Table, values: list[dict[str, Any]], path: Path) -> None:
    if "request_id" in table.c:
        requests = [one["request_id"] for one in values]
        known = select(table.c.request_id).where(table.c.request_id.in_(requests))
        if connection.scalar(known.limit(1)) is not None:
            raise InputError(
                "expected a project that the database has not, found acts of it in there; import "
                "it into another database",
                place=path,
            )
    connection.execute(insert(table), values)


def _placed(table: Table, cells: Mapping[str, Any], before: Mapping[str, int]) -> dict[str, Any]:
    """A row as this database holds it: its ids and those that it names are moved."""
    if cells.keys() != set(table.c.keys()):
        raise ValueError(f"other columns of {table.name}")
    placed = {}
    for column in table.c:
        value = cells[column.name]
        if value is not None:
            keys = [key.column.table.name for key in column.foreign_keys]
            if column.name in _NAMED:
                keys = [_NAMED[column.name].__tablename__]
            elif column.name == "id":
                keys = [table.name]
            if keys:
                value += before[keys[0]]
            elif column.name == "choice":
                moved = before[ProjectLabelRow.__tablename__]
                value = json.dumps([one + moved for one in json.loads(value)])
            elif column.name == "details":
                value = json.dumps(_details(json.loads(value), before), ensure_ascii=False)
            elif column.name == "request_id" and (known := _OF_IMPORT.fullmatch(value)):
                own = int(known[1]) + before[TextImportRow.__tablename__]
                value = f"import:{own}:{known[2]}"
            elif isinstance(column.type, UtcDateTime):
                value = datetime.fromisoformat(value)
        placed[column.name] = value
    return placed


def _details(details: dict[str, Any], before: Mapping[str, int]) -> dict[str, Any]:
    moved: dict[str, Any] = {
        key: value + before[_NAMED_IN_DETAILS[key].__tablename__]
        if key in _NAMED_IN_DETAILS and type(value) is int
        else value
        for key, value in details.items()
    }
    for key in ("before", "after"):
        if isinstance(moved.get(key), list):
            labels = before[ProjectLabelRow.__tablename__]
            moved[key] = [
                one | {"id": None if one["id"] is None else one["id"] + labels}
                for one in moved[key]
            ]
    return moved
