"""`malmoi labels ACTION`: the projects of a label database, labels into and out of it, a backup."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from malmoi.errors import InputError

if TYPE_CHECKING:
    from malmoi.labels.access import ProjectAccess
    from malmoi.labels.project import Project

ABOUT = (
    "list shows the projects of a label database; export FILE writes the texts and labels of one "
    "as a table; import FILE... adds texts and labels of tables, Label Studio or doccano to one; "
    "backup FILE copies the whole database, whoever works on it meanwhile."
)


@dataclass(kw_only=True)
class LabelsSettings:
    """What is done."""

    action: tyro.conf.Positional[Literal["list", "export", "import", "backup"]]
    """list, export, import or backup."""
    files: tyro.conf.Positional[tuple[Path, ...]] = ()
    """What is written: a table (.csv, .xlsx, .jsonl, .json, .parquet), or a copy of the database.
    What is imported: tables, or files as another tool exports them."""
    project: str | None = None
    """Name of the project; not needed where there is one only."""
    database: str | None = None
    """URL of the database; by default that of MALMOI_DATABASE, or runs/labels.db."""
    all_texts: bool = False
    """Export texts without a label, too."""
    source: Annotated[Literal["table", "label-studio", "doccano"], tyro.conf.arg(name="from")] = (
        "table"
    )
    """Which program has made the files that are imported."""
    text_column: str | None = None
    """Column of the texts that are imported; found by its name where none is given."""
    label_column: str | None = None
    """Column of their labels, of tables; without one the texts come in alone."""
    annotator: str = "import"
    """Who gave the labels, where the files do not say."""


def main(settings: LabelsSettings) -> None:
    """List, export or back up."""
    if settings.action == "list":
        _list(settings)
        return
    if settings.action == "import":
        _import(settings)
        return
    if len(settings.files) != 1:
        raise InputError(
            f"expected one file to write, found {len(settings.files)}: "
            f"malmoi labels {settings.action} FILE"
        )
    if settings.action == "backup":
        from malmoi.labels.backup import back_up

        size = back_up(settings.files[0], settings.database)
        print(f"{settings.files[0]}: {size / 2**20:,.1f} MiB")
        return
    _export(settings, settings.files[0])


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

    access, project = _project(settings)
    written = export_table(access, file, labelled_only=not settings.all_texts)
    print(f"{file}: {written:,} texts of {project.name}", file=sys.stderr)


def _import(settings: LabelsSettings) -> None:
    from dataclasses import replace

    from malmoi.labels.importing import WayOfReading, import_files
    from malmoi.labels.people import Person
    from malmoi.progress import shown_progress
    from malmoi.text.reading.options import ReadOptions
    from malmoi.text.reading.sources import find_all_sources

    if not settings.files:
        raise InputError("expected files to import, found none: malmoi labels import FILE...")
    access, project = _project(settings)
    access = replace(access, person=Person(name=settings.annotator, is_local=True))
    way = WayOfReading(
        origin=settings.source,
        options=ReadOptions(text_column=settings.text_column),
        label_column=settings.label_column,
    )
    with shown_progress("rows") as show:
        done = import_files(access, find_all_sources(settings.files), way, progress=show)
    texts = done.texts
    for line in [*texts.bad_files, *texts.bad_rows, *done.bad_rows]:
        print(f"left out: {line}", file=sys.stderr)
    print(
        f"{project.name}: {texts.new_texts:,} new texts of {texts.rows:,} rows, "
        f"{done.labels:,} new labels; left out: {texts.bad_row_count:,} rows, "
        f"{len(texts.bad_files):,} files, the labels of {done.bad_row_count:,} rows",
        file=sys.stderr,
    )


def _project(settings: LabelsSettings) -> "tuple[ProjectAccess, Project]":
    """The project that is named, or the only one."""
    from malmoi.labels.names import normal_label

    projects = _projects(settings)
    wanted = None if settings.project is None else normal_label(settings.project)
    found = [one for one in projects if wanted in (None, one[1].name)]
    if len(found) != 1:
        names = ", ".join(project.name for _, project in projects) or "none"
        raise InputError(f"expected --project with one of {names}, found {settings.project}")
    return found[0]


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
