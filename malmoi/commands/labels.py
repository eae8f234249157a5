"""`malmoi labels ACTION`: the projects of a label database, their labels out of it, a backup."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from malmoi.errors import InputError

if TYPE_CHECKING:
    from malmoi.labels.access import ProjectAccess
    from malmoi.labels.project import Project

ABOUT = (
    "list shows the projects of a label database; export FILE writes the texts and labels of one "
    "as a table; backup FILE copies the whole database, whoever works on it meanwhile."
)


@dataclass(kw_only=True)
class LabelsSettings:
    """What is done."""

    action: tyro.conf.Positional[Literal["list", "export", "backup"]]
    """list, export or backup."""
    file: tyro.conf.Positional[Path | None] = None
    """What is written: a table (.csv, .xlsx, .jsonl, .parquet), or a copy of the database."""
    project: str | None = None
    """Name of the project; not needed where there is one only."""
    database: str | None = None
    """URL of the database; by default that of MALMOI_DATABASE, or runs/labels.db."""
    all_texts: bool = False
    """Export texts without a label, too."""


def main(settings: LabelsSettings) -> None:
    """List, export or back up."""
    if settings.action == "list":
        _list(settings)
        return
    if settings.file is None:
        raise InputError(f"expected a file to write: malmoi labels {settings.action} FILE")
    if settings.action == "backup":
        from malmoi.labels.backup import back_up

        size = back_up(settings.file, settings.database)
        print(f"{settings.file}: {size / 2**20:,.1f} MiB")
        return
    _export(settings, settings.file)


def _list(settings: LabelsSettings) -> None:
    from malmoi.labels.review import progress

    projects = _projects(settings)
    for access, project in projects:
        done = progress(access)
        print(
            f"{project.name}: {done.finished:,} of {done.texts:,} texts labelled, "
            f"{done.to_review:,} to review, labels {', '.join(project.label_names)}"
            f"{' (archived)' if project.archived_at else ''}"
        )
    if not projects:
        print("The database has no projects.", file=sys.stderr)


def _export(settings: LabelsSettings, file: Path) -> None:
    from malmoi.labels.exporting import export_table
    from malmoi.labels.names import normal_label

    projects = _projects(settings)
    wanted = None if settings.project is None else normal_label(settings.project)
    found = [one for one in projects if wanted in (None, one[1].name)]
    if len(found) != 1:
        names = ", ".join(project.name for _, project in projects) or "none"
        raise InputError(f"expected --project with one of {names}, found {settings.project}")
    ((access, project),) = found
    written = export_table(access, file, labelled_only=not settings.all_texts)
    print(f"{file}: {written:,} texts of {project.name}", file=sys.stderr)


def _projects(settings: LabelsSettings) -> "list[tuple[ProjectAccess, Project]]":
    from malmoi.labels.access import ProjectAccess
    from malmoi.labels.project_records import READER
    from malmoi.labels.projects import ProjectStore
    from malmoi.labels.store import existing_database

    store = ProjectStore(existing_database(settings.database))
    return [
        (ProjectAccess(engine=store.engine, project_id=project.id, person=READER), project)
        for project in store.list(READER, archived=True)
    ]
